//! How many slots a coordinator skips, and when.

use crate::multicast::{AHEAD, Decision, Lacking, Merge, Pace, Pacer, RingId, SKIP_MAX, Slot};
use crate::vsr::Op;
use std::vec::Vec;

/// What a pacer answers when the log takes commands.
fn takes(pacer: &mut Pacer) -> Option<u64> {
    pacer.on_taken(&Decision::Commands(()))
}

/// The log takes the skip that is answered.
fn skips(pacer: &mut Pacer, skip: Option<u64>) -> Option<u64> {
    let count = skip?;
    assert_eq!(pacer.on_taken(&Decision::<()>::Skip(count)), None, "a skip calls for no other");
    Some(count)
}

/// A replica asks when all that it asks for is due by time.
fn lacks(pacer: &mut Pacer, until: u64) -> Option<u64> {
    let skip = pacer.on_lacking(Slot(until), u64::MAX);
    skips(pacer, skip)
}

fn period(pacer: &mut Pacer, now_ms: u64) -> Option<u64> {
    let skip = pacer.on_period(now_ms);
    skips(pacer, skip)
}

const TIME: Pace = Pace::Time { origin_ms: 1000, slots_per_s: 500 };

#[test]
fn by_time_a_ring_has_the_slots_that_the_rate_fills() {
    let mut pacer = Pacer::new(RingId(0), TIME, Slot(0));
    assert_eq!(period(&mut pacer, 1000), None);
    assert_eq!(period(&mut pacer, 1040), Some(20));
    (0..5).for_each(|_| assert_eq!(takes(&mut pacer), None));
    assert_eq!(period(&mut pacer, 1080), Some(15));
    (0..21).for_each(|_| assert_eq!(takes(&mut pacer), None));
    assert_eq!(period(&mut pacer, 1120), None, "it has more than its rate fills");
    assert_eq!(period(&mut pacer, 1130), Some(4));
    assert_eq!(period(&mut pacer, 900), None, "a clock before the origin skips nothing");
    assert_eq!(lacks(&mut pacer, 65 + 500), None, "that the next periods bring");
}

#[test]
fn by_time_a_ring_that_is_far_behind_skips_up_to_what_waits_in_others() {
    // A month of slots, of which a period brings a second's.
    let mut pacer = Pacer::new(RingId(0), TIME, Slot(3));
    let month = 30 * 24 * 3600 * 500;
    assert_eq!(lacks(&mut pacer, month), Some(month - 3));
    assert_eq!(lacks(&mut pacer, month), None);
    assert_eq!(lacks(&mut pacer, month + 500), None, "by time");
    assert_eq!(lacks(&mut pacer, month + 501), Some(501));
}

#[test]
fn by_time_a_ring_skips_up_to_what_another_has_whose_clock_is_ahead() {
    let mut pacer = Pacer::new(RingId(0), TIME, Slot(0));
    assert_eq!(period(&mut pacer, 1100), Some(50));
    let mut early = |until, now_ms| {
        let skip = pacer.on_lacking(Slot(until), now_ms);
        skips(&mut pacer, skip)
    };
    assert_eq!(early(60, 1120), None, "the next period brings it");
    assert_eq!(early(61, 1120), Some(11));
    assert_eq!(early(61, 1120), None);
    assert_eq!(early(1, 0), None, "it has more than is due");
    assert_eq!(early(62, 0), Some(1));
}

#[test]
fn by_time_a_late_coordinator_catches_up_by_a_second_a_period() {
    let mut pacer = Pacer::new(RingId(0), TIME, Slot(100));
    let skips: Vec<_> = (0..4).map_while(|_| period(&mut pacer, 3000)).collect();
    assert_eq!(skips, [500, 400]);
}

#[test]
fn by_demand_a_ring_skips_what_is_asked_for_and_no_more() {
    let mut pacer = Pacer::new(RingId(0), Pace::Demand, Slot(3));
    assert_eq!(period(&mut pacer, u64::MAX), None, "time is nothing to it");
    assert_eq!(lacks(&mut pacer, 10), Some(7));
    assert_eq!(lacks(&mut pacer, 10), None, "a question that comes twice is answered once");
    assert_eq!(takes(&mut pacer), None);
    assert_eq!(lacks(&mut pacer, 10), None);
    assert_eq!(lacks(&mut pacer, 12), Some(1));
    assert_eq!(lacks(&mut pacer, SKIP_MAX * 2), Some(SKIP_MAX));
}

#[test]
fn by_demand_the_common_ring_goes_ahead_behind_each_of_its_commands() {
    let mut pacer = Pacer::new(RingId::ALL, Pace::Demand, Slot(0));
    let skip = takes(&mut pacer);
    assert_eq!(skips(&mut pacer, skip), Some(AHEAD));
    assert_eq!(lacks(&mut pacer, AHEAD + 1), None);
    assert_eq!(lacks(&mut pacer, AHEAD + 2), Some(1));
}

#[test]
fn a_coordinator_that_comes_back_counts_what_the_log_has() {
    let mut pacer = Pacer::new(RingId(0), Pace::Demand, Slot(0));
    assert_eq!(lacks(&mut pacer, 50), Some(50));
    // Another took over before that was decided.
    pacer.takes_over(Slot(4));
    assert_eq!(lacks(&mut pacer, 50), Some(46));
}

#[test]
fn what_the_log_refuses_is_not_counted() {
    let mut pacer = Pacer::new(RingId(0), Pace::Demand, Slot(0));
    assert_eq!(pacer.on_lacking(Slot(50), 0), Some(50));
    // The log had no room for that. Whoever waits asks again, and is not told that it is there.
    assert_eq!(lacks(&mut pacer, 50), Some(50));
    assert_eq!(lacks(&mut pacer, 50), None);
    let mut pacer = Pacer::new(RingId(0), TIME, Slot(0));
    assert_eq!(pacer.on_period(1040), Some(20));
    assert_eq!(period(&mut pacer, 1050), Some(25));
}

#[test]
fn entries_of_the_log_itself_take_a_slot_and_call_for_no_skip() {
    let mut pacer = Pacer::new(RingId::ALL, Pace::Demand, Slot(0));
    assert_eq!(pacer.on_taken(&Decision::<()>::Nothing), None);
    assert_eq!(lacks(&mut pacer, 3), Some(2));
}

#[test]
fn the_common_ring_is_asked_for_room_before_anything_waits() {
    let mut merge = Merge::new([RingId(0), RingId::ALL]);
    let asked = |merge: &Merge<()>| merge.questions().collect::<Vec<_>>();
    let room = |until| Lacking { ring: RingId::ALL, until: Slot(until) };
    assert_eq!(asked(&merge), [room(AHEAD)]);
    assert!(merge.learn(RingId::ALL, Op(1), Decision::Skip(AHEAD)));
    assert_eq!(asked(&merge), []);
    assert!(merge.learn(RingId(0), Op(1), Decision::Skip(AHEAD / 2)));
    assert_eq!(asked(&merge), []);
    assert!(merge.learn(RingId(0), Op(2), Decision::Commands(())));
    assert_eq!(asked(&merge), [room(AHEAD / 2 + 1 + AHEAD)]);
    // Of what waits and what may wait one question is made.
    assert!(merge.learn(RingId(0), Op(3), Decision::Skip(AHEAD)));
    assert!(merge.learn(RingId(0), Op(4), Decision::Commands(())));
    assert_eq!(asked(&merge), [room(AHEAD / 2 + 2 + AHEAD * 2)]);
    // Commands of the common ring are what the other one has to skip up to.
    assert!(merge.learn(RingId::ALL, Op(2), Decision::Skip(AHEAD * 2)));
    assert!(merge.learn(RingId::ALL, Op(3), Decision::Commands(())));
    let own = Lacking { ring: RingId(0), until: Slot(AHEAD * 3 + 1) };
    assert_eq!(asked(&merge), [own]);
}
