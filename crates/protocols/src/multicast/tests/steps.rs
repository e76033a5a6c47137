//! One step at a time: when something is delivered, and what is waited for.

use crate::multicast::{Decision, Delivered, Lacking, Merge, RingId, SKIP_MAX, Slot};
use crate::vsr::Op;
use std::vec::Vec;

const ONE: RingId = RingId(0);

fn both() -> Merge<&'static str> {
    Merge::new([ONE, RingId::ALL])
}

fn names(merge: &mut Merge<&'static str>) -> Vec<&'static str> {
    core::iter::from_fn(|| merge.deliver()).map(|it| it.commands).collect()
}

fn lacking(merge: &Merge<&'static str>) -> Vec<(RingId, u64)> {
    merge.lacking().map(|Lacking { ring, until }| (ring, until.0)).collect()
}

#[test]
fn rings_take_turns_by_slot_and_the_common_one_comes_last() {
    let mut merge = both();
    assert!(merge.learn(RingId::ALL, Op(1), Decision::Commands("all 0")));
    assert!(merge.learn(RingId::ALL, Op(2), Decision::Commands("all 1")));
    assert_eq!(merge.deliver(), None);
    assert!(merge.learn(ONE, Op(1), Decision::Commands("one 0")));
    let first = Delivered { ring: ONE, slot: Slot(0), commands: "one 0" };
    assert_eq!(merge.deliver(), Some(first));
    assert_eq!(names(&mut merge), ["all 0"]);
    assert!(merge.learn(ONE, Op(2), Decision::Skip(1)));
    let last = Delivered { ring: RingId::ALL, slot: Slot(1), commands: "all 1" };
    assert_eq!(merge.deliver(), Some(last));
}

#[test]
fn a_long_skip_lets_the_other_ring_pass_alone() {
    let mut merge = both();
    assert!(merge.learn(RingId::ALL, Op(1), Decision::Skip(3)));
    for op in 1..=5 {
        assert!(merge.learn(ONE, Op(op), Decision::Commands("one")));
    }
    // At slot 3 nothing is known of the common ring, which comes behind this one there.
    assert_eq!(names(&mut merge), ["one"; 4]);
    assert_eq!(lacking(&merge), [(RingId::ALL, 4)]);
    assert!(merge.learn(RingId::ALL, Op(2), Decision::Commands("all")));
    assert_eq!(names(&mut merge), ["all", "one"]);
}

#[test]
fn a_ring_alone_waits_for_none() {
    let mut merge = Merge::new([ONE]);
    assert!(merge.learn(ONE, Op(1), Decision::Commands("a")));
    assert!(merge.learn(ONE, Op(2), Decision::Skip(9)));
    assert!(merge.learn(ONE, Op(3), Decision::Commands("b")));
    assert_eq!(names(&mut merge), ["a", "b"]);
    assert_eq!((lacking(&merge), merge.questions().count()), (Vec::new(), 0));
}

#[test]
fn an_entry_of_the_log_itself_is_delivered_to_nobody_and_leaves_no_hole() {
    let mut merge = both();
    assert!(merge.learn(ONE, Op(1), Decision::Commands("one 0")));
    assert!(merge.learn(ONE, Op(2), Decision::Nothing));
    assert!(merge.learn(ONE, Op(3), Decision::Commands("one 2")));
    for op in 1..=2 {
        assert!(merge.learn(RingId::ALL, Op(op), Decision::Nothing));
    }
    assert_eq!(names(&mut merge), ["one 0", "one 2"]);
    assert!(merge.learn(RingId::ALL, Op(3), Decision::Commands("all 2")));
    assert_eq!(names(&mut merge), ["all 2"]);
    let reached = merge.cursor().into_iter().map(|it| (it.op.0, it.next.0));
    assert_eq!(reached.collect::<Vec<_>>(), [(3, 3), (3, 3)]);
}

#[test]
fn what_waits_of_a_ring_is_told_with_its_slots() {
    let mut merge = both();
    assert!(merge.learn(RingId::ALL, Op(1), Decision::Skip(4)));
    assert!(merge.learn(RingId::ALL, Op(2), Decision::Commands("all 4")));
    assert!(merge.learn(RingId::ALL, Op(3), Decision::Commands("all 5")));
    let waits = merge.waiting(RingId::ALL).map(|(slot, it)| (slot.0, *it));
    assert_eq!(waits.collect::<Vec<_>>(), [(4, "all 4"), (5, "all 5")]);
    assert_eq!(merge.waiting(ONE).count(), 0);
}

#[test]
fn only_the_next_position_is_taken_and_only_of_rings_that_are_learned() {
    let mut merge = both();
    let take = |merge: &mut Merge<_>, ring, op| merge.learn(ring, Op(op), Decision::Commands("x"));
    assert!(!take(&mut merge, ONE, 2) && take(&mut merge, ONE, 1));
    assert!(!take(&mut merge, ONE, 1) && !take(&mut merge, ONE, 0));
    assert!(!take(&mut merge, RingId(1), 1));
    assert_eq!(names(&mut merge), ["x"]);
}

#[test]
fn what_waits_says_which_ring_lacks_how_much() {
    let mut merge = both();
    assert_eq!(lacking(&merge), []);
    assert!(merge.learn(RingId::ALL, Op(1), Decision::Skip(6)));
    assert!(merge.learn(RingId::ALL, Op(2), Decision::Commands("all 6")));
    assert_eq!(lacking(&merge), [(ONE, 7)]);
    assert!(merge.learn(ONE, Op(1), Decision::Skip(6)));
    assert_eq!((lacking(&merge), names(&mut merge)), (Vec::from([(ONE, 7)]), Vec::new()));
    assert!(merge.learn(ONE, Op(2), Decision::Skip(1)));
    assert_eq!((lacking(&merge), names(&mut merge)), (Vec::new(), Vec::from(["all 6"])));
}

#[test]
fn a_cursor_stands_before_what_is_not_delivered() {
    let mut merge = both();
    assert!(merge.learn(ONE, Op(1), Decision::Skip(4)));
    assert!(merge.learn(ONE, Op(2), Decision::Commands("one 4")));
    assert!(merge.learn(RingId::ALL, Op(1), Decision::Skip(2)));
    assert_eq!(merge.deliver(), None);
    let reached = merge.cursor().into_iter().map(|it| (it.op.0, it.next.0));
    assert_eq!(reached.collect::<Vec<_>>(), [(1, 4), (1, 2)]);
    let mut again = Merge::resume(merge.cursor());
    assert!(again.learn(ONE, Op(2), Decision::Commands("one 4")));
    assert_eq!(again.deliver(), None);
    assert!(again.learn(RingId::ALL, Op(2), Decision::Skip(2)));
    assert_eq!(names(&mut again), ["one 4"]);
}

#[test]
fn what_skips_nothing_or_too_much_is_not_sound() {
    let skip = |count| Decision::<()>::Skip(count).is_sound();
    assert!(!skip(0) && skip(1) && skip(SKIP_MAX) && !skip(SKIP_MAX + 1));
    assert!(Decision::Commands(()).is_sound() && Decision::<()>::Nothing.is_sound());
}
