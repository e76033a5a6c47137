//! Bounds: what a primary has in hand, what is copied in one turn, and a log that takes no more.

use super::*;
use crate::serializable::{
    Act, Cause, Done, Input, Outcome, Refused, Request, Sizes, TxId, Version, VoteSeq, rules,
};
use bytes::Bytes;
use quorate_kernel::ids::Ticket;
use std::format;
use std::vec;
use std::vec::Vec;

const MIB: usize = 1024 * 1024;

pub fn large(bytes: usize) -> Act {
    let value = crate::serializable::Raw(Bytes::from(vec![b'x'; bytes]));
    Act::Put { value, expiry: crate::serializable::Expiry::Never }
}

/// What the log does not take is not in it: it waits, in its order, and a later primary has none of
/// it.
#[test]
fn what_the_log_refuses_waits() {
    let mut world = World::new(1);
    let add = |text: &str| [("1x", Act::Append(key(text)))];
    let first = world.commit_tx(tx(1, 1), &[], &add("a"));
    world.groups[ONE].is_full = true;
    let second = world.commit_tx(tx(1, 2), &[], &add("b"));
    let third = world.commit_tx(tx(1, 3), &[], &add("c"));
    assert_eq!(world.groups[ONE].tail.len(), 1, "one is in the log");
    world.commit(ONE, 1);
    assert!(world.is_committed(first) && world.groups[ONE].tail.is_empty());
    world.handle_primary(ONE, Input::Tick);
    assert!(world.groups[ONE].tail.is_empty(), "it is still full");
    assert_eq!((world.told(second), world.told(third)), (None, None));
    world.groups[ONE].is_full = false;
    world.handle_primary(ONE, Input::Tick);
    assert_eq!(world.groups[ONE].tail.len(), 1, "one is tried");
    world.handle_primary(ONE, Input::Tick);
    assert_eq!(world.groups[ONE].tail.len(), 2, "and then the other");
    world.settle();
    assert!(world.is_committed(second) && world.is_committed(third));
    assert_eq!(world.value("1x"), (3, Some("abc".into())));
    // What waits is lost with its view, and the next primary expects none of it.
    world.groups[ONE].is_full = true;
    let lost = world.commit_tx(tx(2, 1), &[], &add("d"));
    world.groups[ONE].is_full = false;
    world.fail_over(ONE, 0, 0, true);
    let next = world.commit_tx(tx(2, 2), &[], &add("e"));
    world.settle();
    assert!(world.is_committed(next) && world.told(lost).is_none());
    assert_eq!(world.value("1x").1, Some("abce".into()));
    world.check_quiet();
    world.check_equal();
}

#[test]
fn a_read_that_is_not_confirmed_is_refused() {
    let mut world = World::new(1);
    world.groups[ONE].is_full = true;
    let ticket = world.ask(ONE, Request::Read { keys: Vec::from([key("1x")]) });
    assert_eq!(world.answer(ticket), Some(&Reply::Refused(Refused::Busy)));
    world.groups[ONE].is_full = false;
    let ticket = world.ask(ONE, Request::Read { keys: Vec::from([key("1x")]) });
    world.settle();
    assert!(matches!(world.answer(ticket), Some(Reply::Items(_))));
}

/// A few large requests fill a primary as well as many small ones do.
#[test]
fn what_is_in_hand_is_bounded_by_its_bytes() {
    let mut world = World::new(1);
    let (mut taken, mut refused) = (0, 0);
    for counter in 1..=20 {
        let ticket = world.commit_tx(tx(counter, 1), &[], &[("1x", large(8 * MIB))]);
        match world.answer(ticket) {
            Some(Reply::Refused(Refused::Busy)) => refused += 1,
            None => taken += 1,
            other => panic!("it is answered {other:?}"),
        }
    }
    let room = rules::IN_HAND_BYTES_MAX / (8 * MIB);
    assert!(taken <= room && taken >= room / 2 && refused > 0, "{taken} taken, {refused} refused");
    let bytes: usize = world.groups[ONE].tail.iter().map(Bytes::len).sum();
    assert!(bytes <= rules::IN_FLIGHT_BYTES_MAX + 9 * MIB, "fewer are handed to the log");
    world.settle();
    assert_eq!(world.value("1x").0, taken as u64, "all that were taken are done");
    let ticket = world.commit_tx(tx(50, 1), &[], &[("1x", put("small"))]);
    world.settle();
    assert!(world.is_committed(ticket), "there is room again");
    world.check_quiet();
}

/// Also of what other groups have told of before: that it is under way is no room for what it does.
#[test]
fn what_others_have_told_of_is_bounded_too() {
    let mut world = World::new(2);
    let groups = Vec::from([GroupId(1), GroupId(2)]);
    for counter in 1..=20 {
        let (tx, group, groups, seq) = (tx(counter, 1), GroupId(2), groups.clone(), VoteSeq(0));
        let message = Message::Vote { tx, group, groups, seq, vote: Ok(Vec::new()) };
        world.handle_primary(ONE, Input::Message(message));
    }
    let mut is_refused = |counter: u64| {
        let acts = [("1x", large(8 * MIB)), ("2x", put("a"))];
        let ticket = world.commit_at(ONE, tx(counter, 1), &[], &acts);
        world.answer(ticket) == Some(&Reply::Refused(Refused::Busy))
    };
    let refused = (1..=20).filter(|counter| is_refused(*counter)).count();
    let room = rules::IN_HAND_BYTES_MAX / (8 * MIB);
    assert!(20 - refused <= room && refused < 20, "{refused} of 20 are refused");
}

/// A coordinator that does not answer leaves votes behind: no more than can be copied in one turn.
#[test]
fn votes_are_bounded_by_what_is_copied_in_one_turn() {
    let mut world = World::new(2);
    let room = rules::UNENDED_BYTES_MAX / (2 * MIB);
    let count = room as u64 + 6;
    for counter in 1..=count {
        let name = format!("2k{counter}");
        let acts = [("1x", put("a")), (&name[..], large(2 * MIB))];
        world.commit_at(TWO, tx(counter, counter), &[], &acts);
        world.commit(TWO, usize::MAX);
    }
    let Sizes { unended, .. } = world.state(TWO).head.sizes;
    assert!(unended <= rules::UNENDED_BYTES_MAX + 3 * MIB, "{unended} bytes are not too many");
    let voted = world.state(TWO).head.pending.len();
    assert!(voted >= room, "{voted} have voted");
    // The others wait, and vote when there is room.
    let ticket = world.commit_tx(tx(99, 99), &[], &[("2small", put("s"))]);
    world.commit(TWO, usize::MAX);
    assert!(world.is_committed(ticket), "what needs no vote goes on");
    for counter in 1..=count {
        let name = format!("2k{counter}");
        world.commit_at(
            ONE,
            tx(counter, counter),
            &[],
            &[("1x", put("a")), (&name[..], large(2 * MIB))],
        );
        world.settle();
    }
    world.run_ms(4000);
    world.check_quiet();
    assert_eq!(world.state(TWO).head.sizes.unended, 0);
}

/// So many transactions of both groups, which the first decides; its own votes are committed, and
/// those of the other answer about 1.2 MB each.
pub fn decide_large(world: &mut World, count: u64) -> Vec<(TxId, Ticket)> {
    let all: Vec<(TxId, Ticket)> = (1..=count)
        .map(|number| {
            let (one, two) = (format!("1k{number}"), format!("2k{number}"));
            let (id, acts) = (tx(number, number), [(&one[..], put("a")), (&two[..], put("b"))]);
            (id, world.commit_at(ONE, id, &[], &acts))
        })
        .collect();
    world.commit(ONE, usize::MAX);
    let digits = crate::serializable::Raw(Bytes::from(vec![b'1'; 300]));
    let results = vec![Ok(Done::Float(digits)); 4000];
    for (tx, _) in &all {
        let (group, groups) = (GroupId(2), Vec::from([GroupId(1), GroupId(2)]));
        let (tx, seq, vote) = (*tx, VoteSeq(0), Ok(results.clone()));
        let message = Message::Vote { tx, group, groups, seq, vote };
        world.handle_primary(ONE, Input::Message(message));
    }
    all
}

/// Commits all that the first group proposes; what it sends is lost.
pub fn commit_one(world: &mut World) {
    while !world.groups[ONE].tail.is_empty() {
        world.commit(ONE, usize::MAX);
    }
    world.net.clear();
}

/// What other groups answer is part of the coordinator's head until all have applied the decision:
/// it decides on no more than can be copied in one turn, and on the rest when there is room.
#[test]
fn decisions_are_bounded_by_what_is_copied_in_one_turn() {
    let mut world = World::new(2);
    let all = decide_large(&mut world, 80);
    let decided = |world: &World| all.iter().filter(|one| world.is_committed(one.1)).count();
    commit_one(&mut world);
    let unended = world.state(ONE).head.sizes.unended;
    assert!(unended <= rules::UNENDED_ROOM_BYTES + rules::ANSWERS_BYTES_MAX, "{unended} bytes");
    let first = decided(&world);
    assert!(first > 40 && first < all.len(), "{first} are decided");
    // The other group has applied what it was told; no vote comes again. What nobody asks for but
    // clients is remembered within bounds: not all is let go at once.
    for (tx, _) in all.iter().filter(|one| world.is_committed(one.1)).copied().collect::<Vec<_>>() {
        let message = Message::Applied { tx, group: GroupId(2) };
        world.handle_primary(ONE, Input::Message(message));
    }
    let room = rules::REMEMBERED_BYTES_MAX + rules::REMEMBERED_ROOM_BYTES + rules::TOLD_ROOM_BYTES;
    for _ in 0..12 {
        world.handle_primary(ONE, Input::Tick);
        commit_one(&mut world);
        let Sizes { unended, remembered } = world.state(ONE).head.sizes;
        assert!(remembered <= room + 2 * MIB, "{remembered} bytes");
        assert!(unended <= rules::UNENDED_ROOM_BYTES + rules::ANSWERS_BYTES_MAX);
        if decided(&world) == all.len() {
            break;
        }
    }
    assert_eq!(decided(&world), all.len(), "there is room again");
}

/// A decision in flight is told to other groups before it is remembered for clients alone: until
/// then it takes no room of that.
#[test]
fn decisions_in_flight_keep_out_nobody_who_needs_no_other_group() {
    let mut world = World::new(2);
    decide_large(&mut world, 24);
    let ticket = world.commit_tx(tx(90, 90), &[], &[("1x", put("a"))]);
    world.commit(ONE, usize::MAX);
    assert!(world.is_committed(ticket), "{:?}", world.answer(ticket));
}

/// Outcomes that no client says it knows, of clients that come and go, are dropped from the oldest
/// on.
#[test]
fn what_is_remembered_of_clients_is_bounded() {
    let mut world = World::new(1);
    let is_over = |world: &World| world.state(ONE).head.sizes.remembered;
    // Each answers three hundred digits.
    let many: Vec<(&str, Act)> = vec![("1n", Act::AddFloat(key("1e300"))); 4000];
    let each = {
        world.commit_tx(tx(1, 1), &[], &many);
        world.settle();
        is_over(&world)
    };
    let count = (rules::REMEMBERED_BYTES_MAX / each) as u64 + 20;
    for counter in 2..=count {
        world.commit_tx(tx(counter, counter), &[], &many);
        world.commit(ONE, usize::MAX);
        world.handle_primary(ONE, Input::Tick);
    }
    world.settle();
    assert!(is_over(&world) <= rules::REMEMBERED_BYTES_MAX, "{} bytes", is_over(&world));
    assert!(world.state(ONE).head.horizon > 1, "the oldest were dropped");
    let last = world.commit_tx(tx(count, count), &[], &many);
    assert!(world.is_committed(last), "the newest are remembered");
    let first = world.commit_tx(tx(1, 1), &[], &many);
    let lowest = world.state(ONE).head.horizon;
    assert_eq!(world.told(first), Some(&crate::serializable::Outcome::Forgotten { lowest }));
    world.check_quiet();
}

/// Clients that count ahead of time are the first to be dropped: a horizon there would pass all
/// others.
#[test]
fn who_counts_ahead_of_time_is_forgotten_first() {
    let mut world = World::new(1);
    let now = world.now.0 / 1_000_000 * rules::COUNTERS_PER_MS;
    let many: Vec<(&str, Act)> = vec![("1n", Act::AddFloat(key("1e300"))); 4000];
    let honest = world.commit_tx(tx(now - 7, 1), &[], &[("1x", put("a"))]);
    world.settle();
    assert!(world.is_committed(honest));
    for counter in 1..=20 {
        world.commit_tx(tx(now + 1_000_000 * counter, 100 + counter), &[], &many);
        world.commit(ONE, usize::MAX);
        world.handle_primary(ONE, Input::Tick);
    }
    world.settle();
    let head = &world.state(ONE).head;
    assert!(head.sizes.remembered <= rules::REMEMBERED_BYTES_MAX);
    assert_eq!(head.horizon, 0, "nobody is behind it");
    let again = world.commit_tx(tx(now - 7, 1), &[], &[("1x", put("a"))]);
    let next = world.commit_tx(tx(now - 6, 1), &[], &[("1x", put("b"))]);
    world.settle();
    assert!(world.is_committed(again) && world.is_committed(next), "they go on");
    world.check_quiet();
}

/// What is ahead of time no horizon drops: so while too much is remembered, no more of it is taken.
/// Others go on, and so does it when time has come there.
#[test]
fn too_many_who_count_ahead_of_time_wait_for_it() {
    let mut world = World::new(1);
    let now = rules::counter_of(world.now.0 / 1_000_000);
    let many: Vec<(&str, Act)> = vec![("1n", Act::AddFloat(key("1e300"))); 4000];
    let ahead = |client: u64| tx(now + rules::counter_of(1000) + client, client);
    let (mut taken, mut refused) = (0, 0);
    for client in 1..=40 {
        let ticket = world.commit_tx(ahead(client), &[], &many);
        world.commit(ONE, usize::MAX);
        match world.answer(ticket).expect("it is answered") {
            // Its counter is not wrong, and others need not be: it asks again.
            Reply::Refused(Refused::Busy) => refused += 1,
            reply => {
                assert!(matches!(reply, Reply::Outcome { .. }), "{reply:?}");
                taken += 1;
            }
        }
    }
    assert!(refused > 0, "there is room for who does not count so far");
    // Room above that is of such that have begun already.
    assert!(taken > 5 && taken <= 8, "{taken} were taken");
    let remembered = |world: &World| world.state(ONE).head.sizes.remembered;
    assert!(remembered(&world) <= rules::REMEMBERED_BYTES_MAX + 2 * MIB);
    let honest = world.commit_tx(tx(now - 1, 50), &[], &[("1x", put("a"))]);
    world.settle();
    assert!(world.is_committed(honest), "{:?}", world.answer(honest));
    world.run_ms(1100);
    let late = world.commit_tx(ahead(60), &[], &[("1x", put("b"))]);
    world.settle();
    assert!(world.is_committed(late), "{:?}", world.answer(late));
    assert!(remembered(&world) <= rules::REMEMBERED_BYTES_MAX);
    world.check_quiet();
}

/// What ends in one turn is bounded too: the rest waits until something was dropped.
#[test]
fn what_ends_in_one_turn_is_remembered_within_bounds() {
    let mut world = World::new(1);
    let many: Vec<(&str, Act)> = vec![("1n", Act::AddFloat(key("1e300"))); 4000];
    // They wait for one key, which is free then.
    let holder = world.commit_tx(tx(1, 1), &[], &many);
    let tickets: Vec<_> =
        (2..=40).map(|client| world.commit_tx(tx(client, client), &[], &many)).collect();
    world.commit(ONE, usize::MAX);
    assert!(world.is_committed(holder));
    let remembered = world.state(ONE).head.sizes.remembered;
    let room = rules::REMEMBERED_BYTES_MAX + rules::REMEMBERED_ROOM_BYTES;
    assert!(remembered <= room + 2 * MIB, "{remembered} bytes");
    let is_refused = |ticket| world.answer(ticket) == Some(&Reply::Refused(Refused::Busy));
    assert!(tickets.iter().any(|ticket| is_refused(*ticket)));
    world.run_ms(1000);
    let later = world.commit_tx(tx(90, 90), &[], &many);
    world.settle();
    assert!(world.is_committed(later), "there is room again");
    world.check_quiet();
}

/// A horizon that a clock moved that was ahead shuts nobody out: who counts on from it is taken.
#[test]
fn who_counts_on_from_a_horizon_is_taken() {
    let mut world = World::new(1);
    let year_ms = 365 * 24 * 3600 * 1000;
    let counter = rules::counter_of(world.now.0 / 1_000_000 + year_ms);
    let horizon = crate::serializable::Entry::Horizon { counter };
    world.groups[ONE].log.push(horizon.bytes());
    world.fail_over(ONE, 1, 0, true);
    let forgotten = world.commit_tx(tx(9, 1), &[], &[("1x", put("a"))]);
    let lowest = crate::serializable::Outcome::Forgotten { lowest: counter };
    assert_eq!(world.told(forgotten), Some(&lowest));
    let ticket = world.commit_tx(tx(counter, 1), &[], &[("1x", put("a"))]);
    world.settle();
    assert!(world.is_committed(ticket), "{:?}", world.answer(ticket));
}

/// An answer has a bound too, whatever keys are asked for.
#[test]
fn who_reads_too_much_is_refused() {
    let mut world = World::new(1);
    let names = ["1a", "1b", "1c"];
    for (counter, name) in names.iter().enumerate() {
        world.commit_tx(tx(counter as u64 + 1, 1), &[], &[(name, large(12 * MIB))]);
        world.settle();
    }
    let keys: Vec<_> = names.iter().map(|name| key(name)).collect();
    for request in [Request::Read { keys: keys.clone() }, Request::ReadAny { keys }] {
        let ticket = world.ask(ONE, request);
        world.settle();
        let (bytes, bytes_max) = (36 * MIB, rules::READ_BYTES_MAX);
        let refused = Refused::TooLarge { bytes, bytes_max };
        assert_eq!(world.answer(ticket), Some(&Reply::Refused(refused)));
    }
    let keys = Vec::from([key("1a"), key("1b")]);
    let ticket = world.ask(ONE, Request::Read { keys });
    world.settle();
    assert!(matches!(world.answer(ticket), Some(Reply::Items(_))));
    // Nor is it read to be deleted, or to see whether it has changed.
    let reads = names.iter().map(|name| (key(name), Version(1))).collect();
    let ticket = world.ask(ONE, Request::Check { reads });
    world.settle();
    assert!(matches!(world.answer(ticket), Some(Reply::Refused(Refused::TooLarge { .. }))));
    let all = world.commit_tx(tx(7, 1), &[], &names.map(|name| (name, Act::Delete)));
    world.settle();
    let (bytes, bytes_max) = (36 * MIB as u64, rules::READ_BYTES_MAX as u64);
    let cause = Cause::ReadsTooMuch { bytes, bytes_max };
    assert_eq!(world.told(all), Some(&Outcome::Aborted(cause)));
    assert_eq!(names.map(|name| world.value(name).0), [1; 3], "nothing was done");
    let two = world.commit_tx(tx(8, 1), &[], &[("1a", Act::Delete), ("1b", Act::Delete)]);
    world.settle();
    assert!(world.is_committed(two));
}
