//! Reads: what they must wait for.

use super::*;
use crate::serializable::{Act, Expiry, Input, Item, Raw, Refused, Request, Version};
use std::collections::BTreeMap;
use std::vec::Vec;

fn read(names: &[&str]) -> Request {
    Request::Read { keys: names.iter().map(|name| key(name)).collect() }
}

fn item(version: u64, value: Option<&str>) -> Item {
    Item { version: Version(version), content: value.map(|value| (key(value), None)) }
}

fn check(reads: &[(&str, u64)]) -> Request {
    let reads: BTreeMap<Raw, Version> =
        reads.iter().map(|(name, version)| (key(name), Version(*version))).collect();
    Request::Check { reads }
}

/// A transaction over both groups whose client knows that it has committed, and that the second
/// group has not applied.
fn decided() -> World {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    let ticket = world.commit_tx(tx(2, 1), &[], &acts);
    commit_all(&mut world);
    world.deliver(|it| is_vote(&it.message));
    world.commit(ONE, usize::MAX);
    assert!(world.is_committed(ticket));
    world
}

#[test]
fn a_read_waits_for_what_its_client_may_know() {
    let mut world = decided();
    let ticket = world.ask(TWO, read(&["2x"]));
    world.confirm(TWO);
    assert_eq!(world.answer(ticket), None, "what is there may be old");
    let any = world.ask(TWO, Request::ReadAny { keys: Vec::from([key("2x")]) });
    assert_eq!(world.answer(any), Some(&Reply::Refused(Refused::NotReady)), "for as long");
    world.settle();
    assert_eq!(world.answer(ticket), Some(&Reply::Items(Vec::from([item(2, Some("b"))]))));
}

/// Time passes at the second group, and no message reaches anybody.
fn alone_ms(world: &mut World, ms: u64) {
    for _ in 0..ms / 100 {
        world.now = world.now + quorate_kernel::time::Span::millis(100);
        world.handle_primary(TWO, Input::Tick);
        world.net.clear();
        world.commit(TWO, usize::MAX);
    }
}

/// A key is held until its coordinator answers, which is gone for long. Who reads it is told so,
/// and reads are answered of other keys meanwhile, and commits taken.
#[test]
fn a_read_gives_up_when_its_key_is_held_for_long() {
    let mut world = decided();
    let ticket = world.ask(TWO, read(&["2x"]));
    let unconfirmed = world.ask(TWO, read(&["2y"]));
    world.handle_primary(TWO, Input::Readable(ticket));
    alone_ms(&mut world, 3900);
    assert_eq!((world.answer(ticket), world.answer(unconfirmed)), (None, None));
    alone_ms(&mut world, 100);
    let held = Refused::Held { key: key("2x") };
    assert_eq!(world.answer(ticket), Some(&Reply::Refused(held)));
    assert_eq!(world.answer(unconfirmed), Some(&Reply::Refused(Refused::Busy)));
    // What is confirmed late, or is free late, is answered no second time.
    let replies = world.replies.len();
    world.confirm(TWO);
    assert_eq!(world.replies.len(), replies);
    let other = world.ask(TWO, read(&["2y"]));
    world.confirm(TWO);
    assert_eq!(world.answer(other), Some(&Reply::Items(Vec::from([item(0, None)]))));
    world.run_ms(2000);
    let again = world.ask(TWO, read(&["2x"]));
    world.settle();
    assert_eq!(world.answer(again), Some(&Reply::Items(Vec::from([item(2, Some("b"))]))));
    assert!(!world.replies[replies..].iter().any(|(of, _)| *of == ticket || *of == unconfirmed));
    world.check_quiet();
}

/// Reads that wait for a key leave room for what frees it, and for others.
#[test]
fn reads_that_wait_keep_no_commit_out() {
    let mut world = decided();
    let long = Raw(bytes::Bytes::from(std::vec![b'2'; 60_000]));
    let keys: Vec<Raw> = std::iter::once(key("2x")).chain(std::iter::repeat_n(long, 250)).collect();
    let ask = |world: &mut World| world.ask(TWO, Request::Read { keys: keys.clone() });
    let tickets: Vec<_> = (0..6).map(|_| ask(&mut world)).collect();
    let refused = Some(&Reply::Refused(Refused::Busy));
    assert_eq!(world.answer(tickets[5]), refused, "of reads there is no more room");
    world.confirm(TWO);
    let ticket = world.commit_tx(tx(3, 1), &[], &[("2y", put("y"))]);
    world.commit(TWO, usize::MAX);
    assert!(world.is_committed(ticket), "{:?}", world.answer(ticket));
    alone_ms(&mut world, 4000);
    let held = Reply::Refused(Refused::Held { key: key("2x") });
    assert!(tickets[..5].iter().all(|ticket| world.answer(*ticket) == Some(&held)));
    let ticket = ask(&mut world);
    assert_eq!(world.answer(ticket), None, "their bytes are free again");
    world.run_ms(2000);
    assert!(matches!(world.answer(ticket), Some(Reply::Items(_))));
    world.check_quiet();
}

#[test]
fn a_commit_that_only_reads_sees_no_half_of_another() {
    let mut world = decided();
    // It has read the new value of one and the old one of the other.
    let one = world.ask(ONE, check(&[("1x", 2)]));
    let two = world.ask(TWO, check(&[("2x", 1)]));
    world.confirm(ONE);
    world.confirm(TWO);
    assert_eq!(world.answer(one), Some(&Reply::Current));
    assert_eq!(world.answer(two), Some(&Reply::Changed { key: key("2x") }));
    world.settle();
    let two = world.ask(TWO, check(&[("2x", 2)]));
    let old = world.ask(TWO, check(&[("2x", 1)]));
    world.settle();
    assert_eq!(world.answer(two), Some(&Reply::Current));
    assert_eq!(world.answer(old), Some(&Reply::Changed { key: key("2x") }));
}

#[test]
fn a_deposed_primary_answers_no_read() {
    let mut world = two();
    let before = world.ask(ONE, read(&["1x"]));
    world.fail_over(ONE, 1, 0, false);
    let ticket = world.ticket();
    let request = read(&["1x"]);
    world.handle(ONE, 0, Input::Request { ticket, request });
    world.commit_tx(tx(2, 1), &[], &[("1x", put("new"))]);
    world.settle();
    assert_eq!((world.answer(before), world.answer(ticket)), (None, None));
    world.handle(ONE, 0, Input::Deposed);
    let request = read(&["1x"]);
    world.handle(ONE, 0, Input::Request { ticket, request });
    assert_eq!(world.answer(ticket), Some(&Reply::Refused(Refused::NotPrimary)));
}

fn expiring(world: &mut World, name: &str, in_ms: u64) {
    let at = world.now.0 / 1_000_000 + in_ms;
    let act = Act::Put { value: key("v"), expiry: Expiry::At(at) };
    world.commit_tx(tx(1, 1), &[], &[(name, act)]);
    world.settle();
}

#[test]
fn a_replica_does_not_show_what_has_expired() {
    let mut world = World::new(1);
    expiring(&mut world, "1x", 100);
    let ask = |world: &mut World| world.ask(ONE, Request::ReadAny { keys: Vec::from([key("1x")]) });
    let early = ask(&mut world);
    assert!(matches!(world.answer(early), Some(Reply::Items(_))));
    world.now = world.now + quorate_kernel::time::Span::millis(200);
    let late = ask(&mut world);
    assert_eq!(
        world.answer(late),
        Some(&Reply::Refused(Refused::NotReady)),
        "the primary removes it"
    );
}

#[test]
fn what_was_seen_to_have_expired_is_not_seen_again() {
    let mut world = World::new(1);
    expiring(&mut world, "1x", 100);
    world.groups[ONE].replicas[0].skew_ms = 200;
    let ticket = world.ask(ONE, read(&["1x"]));
    world.confirm(ONE);
    assert_eq!(world.answer(ticket), None, "it is removed first");
    world.settle();
    assert_eq!(world.answer(ticket), Some(&Reply::Items(Vec::from([item(2, None)]))));
    // The clock of the next primary is behind.
    world.fail_over(ONE, 1, 0, true);
    let again = world.ask(ONE, read(&["1x"]));
    world.settle();
    assert_eq!(world.answer(again), Some(&Reply::Items(Vec::from([item(2, None)]))));
}

/// Where the log stands, what a read would have to remove waits until there is room again.
#[test]
fn reads_of_what_has_expired_fill_no_log() {
    let mut world = World::new(1);
    let at = world.now.0 / 1_000_000 + 100;
    let lives = || Act::Put { value: key("v"), expiry: Expiry::At(at) };
    let large = super::bounds::large(8 * 1024 * 1024);
    world.commit_tx(tx(1, 1), &[], &[("1x", lives()), ("1z", lives()), ("1y", large)]);
    world.settle();
    // Each leaves all of a large value.
    for client in 2..12 {
        world.commit_tx(tx(client, client), &[], &[("1y", Act::Append(key("more")))]);
    }
    world.groups[ONE].replicas[0].skew_ms = 200;
    let in_hand = |world: &World| world.groups[ONE].replicas[0].member.in_hand();
    let before = in_hand(&world);
    let tickets = [&["1x"][..], &["1x", "1z"]].map(|names| world.ask(ONE, read(names)));
    world.confirm(ONE);
    assert_eq!(in_hand(&world), before, "nothing is proposed");
    assert_eq!(tickets.map(|ticket| world.answer(ticket).is_some()), [false; 2]);
    world.settle();
    let none = || item(2, None);
    assert_eq!(world.answer(tickets[0]), Some(&Reply::Items([none()].into())));
    assert_eq!(world.answer(tickets[1]), Some(&Reply::Items([none(), none()].into())));
    world.check_quiet();
}

#[test]
fn a_clock_does_not_run_backwards_over_views() {
    let mut world = World::new(1);
    expiring(&mut world, "1x", 100);
    world.groups[ONE].replicas[0].skew_ms = 500;
    world.commit_tx(tx(2, 1), &[], &[("1y", put("y"))]);
    world.settle();
    world.fail_over(ONE, 1, 0, true);
    let ticket = world.ask(ONE, read(&["1x"]));
    world.settle();
    assert_eq!(world.answer(ticket), Some(&Reply::Items(Vec::from([item(2, None)]))));
}

#[test]
fn what_expires_is_not_removed_under_a_lock_nor_when_it_was_changed() {
    let mut world = World::new(2);
    expiring(&mut world, "2x", 100);
    let ticket = world.commit_tx(tx(2, 1), &[("2x", 1)], &[("1x", put("a"))]);
    commit_all(&mut world);
    world.groups[TWO].replicas[0].skew_ms = 500;
    let waits = world.ask(TWO, read(&["2x"]));
    world.confirm(TWO);
    assert!(world.groups[TWO].tail.is_empty(), "somebody rests on it");
    world.settle();
    assert!(world.is_committed(ticket), "as it was");
    assert_eq!(world.answer(waits), Some(&Reply::Items(Vec::from([item(2, None)]))));
    // A change goes before a removal that comes late.
    expiring(&mut world, "1k", 100);
    let stays = world.commit_tx(tx(3, 1), &[], &[("1k", put("stays"))]);
    world.groups[ONE].replicas[0].skew_ms = 500;
    world.handle_primary(ONE, Input::Sweep { from: Default::default(), purge: crate::vsr::Op(0) });
    world.settle();
    assert!(world.is_committed(stays));
    assert_eq!(world.value("1k"), (2, Some("stays".into())));
}

/// A clock that was far ahead is logged; who leads later, with a clock that is right, removes
/// nothing early for it.
#[test]
fn a_clock_that_was_far_ahead_is_believed_for_a_minute() {
    let mut world = World::new(1);
    let year_ms = 365 * 24 * 3600 * 1000;
    world.groups[ONE].replicas[0].skew_ms = year_ms;
    world.commit_tx(tx(1, 1), &[], &[("1y", put("y"))]);
    world.settle();
    assert!(world.state(ONE).head.clock >= year_ms as u64, "it is logged");
    world.fail_over(ONE, 1, 0, true);
    let now = world.now.0 / 1_000_000;
    let lives = |in_ms| Act::Put { value: key("v"), expiry: Expiry::At(now + in_ms) };
    let ahead = crate::serializable::rules::CLOCK_AHEAD_MAX_MS;
    let acts = [("1k", lives(ahead + 1000)), ("1soon", lives(ahead - 1000))];
    let ticket = world.commit_tx(tx(2, 1), &[], &acts);
    world.settle();
    assert!(world.is_committed(ticket));
    assert_eq!(world.value("1k").1, Some("v".into()), "it has a minute more");
    assert_eq!(world.value("1soon").1, None, "so far it is believed");
    // The clock of one that leads is set right: it runs back, and no further.
    world.groups[ONE].replicas[1].skew_ms = year_ms;
    world.commit_tx(tx(3, 1), &[], &[("1y", put("y"))]);
    world.settle();
    world.groups[ONE].replicas[1].skew_ms = 0;
    let ticket = world.commit_tx(tx(4, 1), &[], &[("1l", lives(ahead + 1000))]);
    world.settle();
    assert!(world.is_committed(ticket));
    assert_eq!(world.value("1l").1, Some("v".into()));
    world.check_equal();
}

/// Once it is corrected, a wrong clock is believed for a minute, and not for as long as it was
/// ahead: neither by who leads then, nor by who leads later.
#[test]
fn a_clock_that_was_far_ahead_is_forgotten_after_a_minute() {
    let mut world = World::new(1);
    world.groups[ONE].replicas[0].skew_ms = 365 * 24 * 3600 * 1000;
    world.commit_tx(tx(1, 1), &[], &[("1y", put("y"))]);
    world.settle();
    let ahead = crate::serializable::rules::CLOCK_AHEAD_MAX_MS;
    let lives = |world: &mut World, counter: u64, in_ms: u64| {
        let at = world.now.0 / 1_000_000 + in_ms;
        let act = Act::Put { value: key("v"), expiry: Expiry::At(at) };
        world.commit_tx(tx(counter, 1), &[], &[("1k", act)]);
        world.settle();
        world.value("1k").1
    };
    world.fail_over(ONE, 1, 0, true);
    assert_eq!(lives(&mut world, 2, ahead - 1000), None, "so far it is believed");
    world.run_ms(ahead / 2);
    assert_eq!(lives(&mut world, 3, ahead / 2 - 1000), None, "the clock stands");
    world.run_ms(ahead / 2);
    assert_eq!(lives(&mut world, 4, 1000), Some("v".into()), "time has come there");
    world.fail_over(ONE, 2, 0, true);
    let clock = world.state(ONE).head.clock;
    assert_eq!(clock, world.now.0 / 1_000_000, "the next one begins with a clock that is right");
    assert_eq!(lives(&mut world, 5, 500), Some("v".into()));
    // A client that is gone tells no time.
    world.commit_tx(tx(6, 2), &[], &[("1y", put("y"))]);
    world.settle();
    let gone = Input::ClientGone(crate::serializable::Client(2));
    world.handle_primary(ONE, gone);
    world.settle();
    assert_eq!(world.state(ONE).head.clock, clock);
    world.check_equal();
}

/// While a copy is made a replica has a part of it, and the rest looks as if it was never there.
#[test]
fn who_copies_shows_nothing() {
    let mut world = two();
    let ask_any = |world: &mut World| {
        let (ticket, keys) = (world.ticket(), Vec::from([key("1x")]));
        let request = Request::ReadAny { keys };
        world.handle(ONE, 2, Input::Request { ticket, request });
        world.answer(ticket).cloned().expect("it is answered")
    };
    world.follow(ONE, 2, usize::MAX);
    let whole = Reply::Items(Vec::from([item(1, Some("0"))]));
    assert_eq!(ask_any(&mut world), whole);
    let mut answers = Vec::new();
    world.copy(ONE, 0, 2, &mut |world| answers.push(ask_any(world)));
    assert!(!answers.is_empty());
    assert!(answers.iter().all(|it| *it == Reply::Refused(Refused::NotReady)), "{answers:?}");
    assert_eq!(ask_any(&mut world), whole);
}
