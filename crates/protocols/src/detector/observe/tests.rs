//! The rules of what lanes observe, one by one. Times are in milliseconds.

use super::*;
use std::sync::Arc;
use std::vec;

const PEER: NodeId = NodeId(2);
const LANE: LaneId = LaneId(16);

fn who(node: u64, start: u32) -> Incarnation {
    Incarnation { node: NodeId(node), start: Start(start) }
}

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn silence(lane: u32, peer: u64, is_over: bool) -> Silence {
    Silence { lane: LaneId(lane), peer: NodeId(peer), is_over }
}

/// A lane asks at a time when nodes below 100 are known.
fn ask(observer: &mut Observer, lane: u32, peers: &[u64], every: Every, ms: u64) -> Vec<Silence> {
    let peers: Arc<[NodeId]> = peers.iter().copied().map(NodeId).collect();
    let is_known = |node: NodeId| node.0 < 100;
    observer.ask(LaneId(lane), &Observation { peers, every }, is_known, at(ms))
}

/// One that observes a peer, which has answered until now.
fn calm(every: Every, until: u64) -> Observer {
    let mut observer = Observer::default();
    assert_eq!(ask(&mut observer, LANE.0, &[PEER.0], every, 0), []);
    assert_eq!(run(&mut observer, 0, until, |sent| Some(sent + 1)), []);
    observer
}

/// Ticks as often as lanes want; what is asked at a time is answered at the time that `answered`
/// says. Returns who was told what, and when.
fn run(
    observer: &mut Observer,
    from: u64,
    to: u64,
    answered: impl Fn(u64) -> Option<u64>,
) -> Vec<(u64, Silence)> {
    let period = observer.every().expect("somebody is observed").span().as_millis();
    let (mut told, mut answers) = (Vec::new(), BTreeMap::<u64, Vec<u64>>::new());
    for ms in from..=to {
        for sent in answers.remove(&ms).unwrap_or_default() {
            let silences = observer.on_answer(who(2, 1), at(sent), at(ms));
            told.extend(silences.into_iter().map(|silence| (ms, silence)));
        }
        if (ms - from).is_multiple_of(period) {
            let due = observer.tick(at(ms));
            told.extend(due.silences.into_iter().map(|silence| (ms, silence)));
            if due.asks.contains(&PEER)
                && let Some(answered) = answered(ms)
            {
                answers.entry(answered.max(ms + 1)).or_default().push(ms);
            }
        }
        observer.check();
    }
    told
}

#[test]
fn silence_is_known_within_its_bound_and_told_once() {
    for (every, bound) in [(Every::Ms50, 450), (Every::Ms100, 900), (Every::Ms200, 1800)] {
        for crash in 1000..1200 {
            let mut observer = calm(every, 999);
            let told = run(&mut observer, 1000, 5000, |sent| (sent < crash).then_some(sent + 1));
            let [(known, found)] = told[..] else { panic!("{told:?}") };
            assert_eq!(found, silence(16, 2, false));
            assert!(known - crash < bound, "{every:?}: {crash} is known at {known}");
            assert!(known - crash >= 4 * every.span().as_millis(), "{every:?}: {crash}, {known}");
        }
    }
}

#[test]
fn one_that_has_never_answered_has_time_to_come() {
    let mut observer = Observer::default();
    ask(&mut observer, LANE.0, &[PEER.0], Every::Ms50, 0);
    assert_eq!(run(&mut observer, 0, 5000, |_| None), [(1050, silence(16, 2, false))]);
    let told = run(&mut observer, 5050, 5500, |sent| (sent < 5100).then_some(sent + 1));
    assert_eq!(told, [(5051, silence(16, 2, true)), (5400, silence(16, 2, false))]);
}

#[test]
fn slow_answers_are_waited_for() {
    let mut observer = calm(Every::Ms50, 999);
    // They take ever longer, up to 600 ms, as on a host that has more and more to do.
    let slow = |sent: u64| Some(sent + 1 + ((sent - 1000) / 10).min(600));
    assert_eq!(run(&mut observer, 1000, 20_000, slow), []);
    let told = run(&mut observer, 20_001, 30_000, |_| None);
    assert!(told.len() == 1 && told[0].0 < 22_000, "{told:?}");
}

#[test]
fn a_host_that_stops_now_and_then_is_silent_ever_less() {
    let mut observer = calm(Every::Ms50, 999);
    // Of each five seconds it stands still for 600 ms, and then answers all that waits.
    let busy =
        |sent: u64| Some(if sent % 5000 < 600 { sent - sent % 5000 + 600 } else { sent + 1 });
    let told = run(&mut observer, 1000, 120_000, busy);
    let found = |from: u64, to: u64| {
        told.iter().filter(|(ms, told)| !told.is_over && (from..to).contains(ms)).count()
    };
    assert!((1..=4).contains(&found(0, 30_000)), "{told:?}");
    assert!(found(30_000, 120_000) <= 2, "of eighteen times: {told:?}");
}

#[test]
fn a_few_lost_questions_are_no_silence() {
    let mut observer = calm(Every::Ms50, 999);
    let lost = |sent: u64| (sent / 50).is_multiple_of(5).then_some(sent + 1);
    assert_eq!(run(&mut observer, 1000, 60_000, lost), []);
}

#[test]
fn other_signs_of_life_count_for_a_while() {
    let mut observer = calm(Every::Ms50, 999);
    let mut told = Vec::new();
    for ms in (1000..20_000).step_by(50) {
        observer.on_heard(who(2, 1), at(ms));
        told.extend(observer.tick(at(ms)).silences.into_iter().map(|silence| (ms, silence)));
    }
    let [(known, found)] = told[..] else { panic!("{told:?}") };
    assert_eq!(found, silence(16, 2, false));
    assert!((5950..6450).contains(&known), "it may send and not hear: {known}");
}

#[test]
fn time_in_which_the_observer_stood_still_does_not_count() {
    let mut observer = calm(Every::Ms50, 999);
    for ms in [1200, 1400, 6000] {
        assert_eq!(observer.tick(at(ms)).silences, [], "{ms}");
    }
    let told = run(&mut observer, 6050, 7000, |_| None);
    assert!(told.len() == 1 && told[0].0 < 6400, "but it judges again: {told:?}");
}

#[test]
fn a_link_that_ends_is_a_reason_to_ask_and_no_proof() {
    let mut observer = calm(Every::Ms50, 1000);
    assert!(observer.on_unlinked(PEER, at(1010)) && !observer.on_unlinked(NodeId(3), at(1010)));
    let told = run(&mut observer, 1050, 2000, |_| None);
    assert_eq!(told, [(1200, silence(16, 2, false))], "without it at 1300");
    let mut observer = calm(Every::Ms50, 1000);
    observer.on_unlinked(PEER, at(1010));
    assert_eq!(run(&mut observer, 1050, 5000, |sent| Some(sent + 90)), [], "it was back");
    observer.on_unlinked(PEER, at(5010));
    observer.on_heard(who(2, 1), at(5020));
    assert_eq!(run(&mut observer, 5050, 5200, |_| None), []);
}

#[test]
fn a_restarted_peer_has_no_history_and_an_older_start_says_nothing() {
    let mut observer = calm(Every::Ms50, 999);
    run(&mut observer, 1000, 5000, |sent| Some(sent + 700));
    assert_eq!(run(&mut observer, 5001, 9000, |_| None).len(), 1);
    assert_eq!(observer.on_answer(who(2, 2), at(9000), at(9001)), [silence(16, 2, true)]);
    assert_eq!(observer.on_answer(who(2, 1), at(9001), at(9002)), []);
    assert_eq!(observer.on_answer(who(2, 2), at(9009), at(9003)), [], "of the future");
    let told = run(&mut observer, 9010, 10_000, |_| None);
    assert!(told.len() == 1 && told[0].0 <= 9001 + 350, "{told:?}");
}

#[test]
fn the_shortest_period_of_all_lanes_applies_and_each_lane_hears_of_its_own() {
    let mut observer = Observer::default();
    ask(&mut observer, 16, &[2, 3], Every::Ms200, 0);
    assert_eq!(observer.every(), Some(Every::Ms200));
    ask(&mut observer, 17, &[2], Every::Ms50, 0);
    assert_eq!(observer.every(), Some(Every::Ms50));
    let asked = |observer: &mut Observer, from: u64| -> Vec<usize> {
        let ticks = (from..from + 400).step_by(50).map(|ms| observer.tick(at(ms)).asks.len());
        ticks.collect()
    };
    assert_eq!(asked(&mut observer, 0), [2, 1, 1, 1, 2, 1, 1, 1]);
    for ms in (400..1100).step_by(50) {
        observer.on_heard(who(3, 1), at(ms));
        let silent = observer.tick(at(ms)).silences;
        let told = [silence(16, 2, false), silence(17, 2, false)];
        assert_eq!(silent, if ms == 1050 { told.to_vec() } else { vec![] }, "{ms}");
    }
    assert_eq!(ask(&mut observer, 18, &[2, 3], Every::Ms100, 1100), [silence(18, 2, false)]);
    assert_eq!(ask(&mut observer, 17, &[3], Every::Ms100, 1100), [], "in place of the other");
    assert_eq!(
        observer.on_answer(who(2, 1), at(1100), at(1101)),
        [silence(16, 2, true), silence(18, 2, true)]
    );
    assert_eq!(observer.every(), Some(Every::Ms100));
}

#[test]
fn a_peer_that_is_to_be_asked_more_often_is_not_silent_for_that() {
    let mut observer = calm(Every::Ms200, 999);
    // Two questions were lost.
    assert_eq!(
        (observer.tick(at(1000)).silences, observer.tick(at(1200)).silences),
        (vec![], vec![])
    );
    assert_eq!(ask(&mut observer, 17, &[PEER.0], Every::Ms50, 1290), []);
    assert_eq!(run(&mut observer, 1290, 5000, |sent| Some(sent + 1)), []);
}

#[test]
fn who_asks_nothing_more_observes_nobody_and_only_known_hosts_are_observed() {
    let mut observer = calm(Every::Ms50, 999);
    observer.ask(LANE, &Observation::none(), |_| true, at(1000));
    assert_eq!((observer.every(), observer.counts()), (None, (0, 0)));
    assert_eq!(observer.tick(at(9000)), Due::default());
    ask(&mut observer, LANE.0, &[PEER.0, 300], Every::Ms50, 9000);
    assert_eq!(observer.counts(), (1, 0));
    assert_eq!(observer.tick(at(9000)).asks, [PEER], "the time between does not count");
    observer.set_known(|_| true, at(9000));
    assert_eq!(observer.counts(), (2, 0));
    observer.check();
}
