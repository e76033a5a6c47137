//! Groups that have lost their data, or are gone for long: what others tell them ends.

use super::*;
use crate::serializable::{Input, Outcome, rules};
use quorate_kernel::time::Span;

/// A group has lost its vote with all of its data. The coordinator's decision is told until it is
/// applied: it ends, and nobody is told that the transaction has failed.
#[test]
fn a_decision_ends_where_the_vote_was_lost() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    world.commit_tx(tx(2, 1), &[], &acts);
    commit_all(&mut world);
    world.deliver(|it| is_vote(&it.message));
    world.commit(ONE, usize::MAX);
    world.net.clear();
    lose_all(&mut world, TWO);
    world.run_ms(3000);
    let forgotten = Some(Outcome::Forgotten { lowest: 3 });
    assert_eq!(world.state(TWO).outcome(tx(2, 1)), forgotten, "its client counts on, above it");
    assert_eq!((world.value("1x").0, world.value("2x").0), (2, 0), "what is lost is lost");
    world.check_quiet();
    let told = world.net.len();
    world.run_ms(10_000);
    assert_eq!(world.net.len(), told, "it is told no more");
    let later = world.commit_tx(tx(3, 1), &[("2x", 0)], &acts);
    world.settle();
    assert!(world.is_committed(later), "they go on");
}

/// A primary that is deposed and does not know has not executed the vote that a decision rests on.
/// What it makes of that is never committed.
#[test]
fn a_decision_at_who_is_deposed_changes_nothing() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    world.fail_over(TWO, 1, 0, false);
    let ticket = world.commit_tx(tx(2, 1), &[], &acts);
    world.settle();
    assert!(world.is_committed(ticket));
    let decision = Message::Decision { tx: tx(2, 1), group: GroupId(1), outcome: Ok(()) };
    world.handle(TWO, 0, Input::Message(decision));
    world.run_ms(1000);
    assert_eq!(world.value("2x"), (2, Some("b".into())));
    world.check_quiet();
    world.check_equal();
}

/// A group is gone for long. Aborts that it does not acknowledge do not fill what is copied in one
/// turn: whoever holds locks there asks when it is back.
#[test]
fn aborts_that_nobody_acknowledges_are_let_go() {
    let mut world = two();
    let long = "k".repeat(60_000);
    let room = rules::UNENDED_BYTES_MAX / (long.len() * 2);
    // Each is aborted for a version of a key with a long name, at the coordinator alone.
    for counter in 0..room as u64 + 60 {
        let name = std::format!("1{long}");
        let acts = [("1x", put("a")), ("2x", put("b"))];
        let reads = [(&name[..], 7)];
        world.commit_at(ONE, tx(counter + 2, 1), &reads, &acts);
        world.commit(ONE, usize::MAX);
        world.net.clear();
    }
    let max = rules::UNENDED_BYTES_MAX;
    assert!(world.state(ONE).head.sizes.unended > max / 2, "they are told");
    for _ in 0..3 {
        world.now = world.now + Span::millis(100);
        world.handle_primary(ONE, Input::Tick);
        world.commit(ONE, usize::MAX);
        world.net.clear();
    }
    assert!(world.state(ONE).head.sizes.unended <= max / 2, "half of them are enough");
    let late = world.commit_at(TWO, tx(2, 1), &[], &[("1x", put("a")), ("2x", put("b"))]);
    world.run_ms(3000);
    assert_eq!(world.answer(late), None, "it is not the one that decides");
    assert!(world.state(TWO).locks.keys().is_empty(), "and is told when it asks");
    assert_eq!(world.value("2x").0, 1);
    world.check_quiet();
}
