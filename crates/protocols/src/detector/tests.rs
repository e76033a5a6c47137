//! The detector's rules, one by one.

use super::*;
use quorate_kernel::ids::Start;

fn who(node: u64, start: u32) -> Incarnation {
    Incarnation { node: NodeId(node), start: Start(start) }
}

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

/// Runs ticks from `from` to `to` and returns when somebody was first suspected.
fn silent(detector: &mut Detector, from: u64, to: u64) -> Option<u64> {
    let mut ticks = (from..=to).step_by(500);
    ticks.find(|ms| !detector.tick(at(*ms)).suspects.is_empty())
}

#[test]
fn silence_is_suspected_within_its_bound_and_once() {
    let mut detector = Detector::default();
    detector.watch([who(2, 1)].into_iter(), at(0));
    assert_eq!(silent(&mut detector, 0, 10_000), Some(1500));
    assert_eq!(silent(&mut detector, 2000, 10_000), None, "it is suspected already");
    assert!(detector.is_suspected(NodeId(2)));
}

#[test]
fn answers_keep_it_calm_and_a_slow_path_lengthens_the_timeout() {
    let mut detector = Detector::default();
    detector.watch([who(2, 1)].into_iter(), at(0));
    for tick in 0..40 {
        assert!(detector.tick(at(tick * 500)).suspects.is_empty());
        let heard =
            detector.on_pong(who(2, 1), at((tick * 500).saturating_sub(900)), at(tick * 500));
        assert_eq!(heard, Heard::Alive);
    }
    assert!(detector.timeout(NodeId(2)) >= Some(TIMEOUT_MIN));
    let mut slow = Detector::default();
    slow.watch([who(2, 1)].into_iter(), at(0));
    slow.tick(at(0));
    slow.on_pong(who(2, 1), at(0), at(800));
    assert_eq!(slow.timeout(NodeId(2)), Some(Span::millis(800 + 4 * 400)));
}

#[test]
fn a_false_suspicion_makes_it_more_patient() {
    let mut detector = Detector::default();
    detector.watch([who(2, 1)].into_iter(), at(0));
    silent(&mut detector, 0, 1500);
    assert_eq!(detector.on_pong(who(2, 1), at(1400), at(1500)), Heard::Restored);
    assert_eq!(detector.on_pong(who(2, 1), at(1500), at(1600)), Heard::Restored);
    assert!(detector.is_suspected(NodeId(2)), "only the suspect's own word ends it");
    detector.on_refuted(who(2, 1), at(1500));
    assert!(!detector.is_suspected(NodeId(2)));
    assert_eq!(detector.timeout(NodeId(2)), Some(Span::millis(1500)));
    assert_eq!(silent(&mut detector, 2000, 10_000), Some(3500));
    detector.on_refuted(who(2, 1), at(3600));
    assert_eq!(detector.timeout(NodeId(2)), Some(Span::millis(2000)));
}

#[test]
fn a_newer_start_is_another_one_and_an_older_says_nothing() {
    let mut detector = Detector::default();
    detector.watch([who(2, 2)].into_iter(), at(0));
    silent(&mut detector, 0, 1500);
    assert_eq!(detector.on_pong(who(2, 1), at(1400), at(1500)), Heard::Nothing);
    assert!(detector.is_suspected(NodeId(2)));
    assert_eq!(detector.on_pong(who(2, 3), at(1400), at(1500)), Heard::Restarted);
    assert!(!detector.is_suspected(NodeId(2)));
    assert_eq!(detector.timeout(NodeId(2)), Some(TIMEOUT_MIN), "it has no history");
}

#[test]
fn an_observer_that_stood_still_suspects_nobody() {
    let mut detector = Detector::default();
    detector.watch([who(2, 1), who(3, 1)].into_iter(), at(0));
    detector.tick(at(0));
    let due = detector.tick(at(60_000));
    assert!(due.is_late && due.suspects.is_empty());
    assert_eq!(silent(&mut detector, 60_500, 90_000), Some(61_500), "then it judges again");
}

#[test]
fn suspects_are_pinged_for_a_while_and_the_watched_are_bounded() {
    let mut detector = Detector::default();
    detector.watch((2..100).map(|node| who(node, 1)), at(0));
    assert_eq!(detector.watched().len(), WATCHED_MAX);
    silent(&mut detector, 0, 1500);
    detector.watch((200..300).map(|node| who(node, 1)), at(1500));
    detector.check();
    assert!(detector.tick(at(2000)).pings.contains(&NodeId(2)));
    detector.watch(core::iter::empty(), at(2000));
    for tick in 5..70 {
        detector.tick(at(tick * 500));
    }
    assert!(detector.tick(at(35_000)).pings.is_empty(), "in the end it is given up");
}

#[test]
fn other_signs_of_life_put_a_suspicion_off_for_a_while() {
    let mut detector = Detector::default();
    detector.watch([who(2, 2)].into_iter(), at(0));
    let mut first = None;
    for ms in (0..20_000).step_by(500) {
        detector.on_heard(who(2, 2), at(ms));
        detector.on_heard(who(3, 1), at(ms));
        if !detector.tick(at(ms)).suspects.is_empty() {
            first = first.or(Some(ms));
        }
        assert_eq!(detector.hears(NodeId(2), at(ms)), first.is_none());
    }
    assert_eq!(first, Some(5000 + 1500), "it may send and not hear");
    detector.on_refuted(who(2, 2), at(20_000));
    detector.on_heard(who(2, 2), at(22_000));
    assert_eq!(silent(&mut detector, 20_500, 40_000), Some(24_000), "the last sign counts");
    detector.on_refuted(who(2, 2), at(40_000));
    detector.on_heard(who(2, 1), at(42_000));
    assert_eq!(silent(&mut detector, 40_500, 60_000), Some(43_000), "another start says nothing");
}

#[test]
fn a_pong_from_the_future_is_ignored() {
    let mut detector = Detector::default();
    detector.watch([who(2, 1)].into_iter(), at(0));
    assert_eq!(detector.on_pong(who(2, 1), at(99), at(5)), Heard::Nothing);
}
