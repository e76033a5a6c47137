//! Something that was acknowledged is lost: numbers are not given again, and nobody goes on as if
//! nothing had happened.

use super::world::{Client, SOON, World, led, settings};
use crate::coordination::tree::tests::world::{create, ephemeral, get};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::tree::{Act, Failure, Item, Told};
use std::format;

/// Three hosts have the group, and a fourth is a gateway alone.
fn hosts(durability: Durability) -> World {
    let mut world = led(World::new(7, 4, settings(3, durability)));
    world.run(Span::secs(2));
    world
}

/// All who have the group lose power at one moment.
fn lose_power(world: &mut World) {
    (0..3).for_each(|at| world.crash(at));
    (0..3).for_each(|at| world.unlink(at));
    world.run(Span::millis(200));
    // Places in the log are given again.
    world.logs.clear();
    (0..3).for_each(|at| world.restart(at));
    assert!(world.run_until(SOON, |world| world.leader().is_some()), "somebody leads");
    world.run(Span::secs(2));
}

/// A client that stays where it is, however long nobody leads.
fn patient(world: &mut World) -> Client {
    world.open_with(3, Span::secs(60))
}

#[test]
fn a_gateway_goes_on_when_more_was_lost_than_it_knows_of() {
    for durability in [Durability::Memory, Durability::Periodic { every_ms: 50 }] {
        let mut world = hosts(durability);
        let one = patient(&mut world);
        let follow = Act::Follow { path: "/".into(), recursive: true };
        assert_eq!(world.act(&one, follow), Ok(Told::Done));
        for round in 0..20 {
            assert!(world.one(&one, create(&format!("/{round}"), "")).is_ok());
        }
        // Whoever waits for something is told that nobody knows.
        (0..3).for_each(|at| world.part(3, at));
        let write = world.send_one(&one, create("/late", ""));
        let read = world.send_one(&one, get("/0"));
        world.run(Span::millis(50));
        world.mend();
        lose_power(&mut world);
        for ticket in [write, read] {
            assert_eq!(world.answer(ticket), Outcome::Refused(Refusal::OutcomeUnknown));
        }
        assert_eq!(world.ended(&one), Some(Refusal::NoRoute), "it comes again, and looks");
        let again = world.go_on(&one, 3);
        assert_eq!(world.opened(3, again), None, "what it relies on may be lost");
        let two = patient(&mut world);
        assert!(world.one(&two, create("/two", "")).is_ok());
        assert_eq!(world.data(3, "/two"), Some("".into()));
        assert!(!world.has_node(0, "/late"), "what was given up is not done later");
        let follow = Item::Exists { path: "/two".into(), watch: true };
        assert!(world.one(&two, follow).is_ok());
        assert!(world.anyone(0, Item::Delete { path: "/two".into(), version: None }).is_ok());
        assert!(world.run_until(SOON, |world| !world.changes(&two).is_empty()), "it is told");
        world.agree();
    }
}

#[test]
fn no_session_is_named_like_one_that_was_lost() {
    let mut world = hosts(Durability::Memory);
    let old = [0, 1, 2, 3].map(|at| world.open_with(at, Span::secs(60)));
    lose_power(&mut world);
    let new = [0, 1, 2, 3].map(|at| world.open_with(at, Span::secs(60)));
    for one in old {
        assert!(new.iter().all(|other| other.session != one.session), "an id is given once");
        let ticket = world.go_on(&one, 0);
        assert_eq!(world.opened(0, ticket), None, "nobody takes over the session of another");
    }
    for one in &new {
        assert_eq!(world.act(one, Act::Ping), Ok(Told::Done));
        assert!(world.ended(one).is_none());
    }
}

#[test]
fn sessions_end_when_what_they_rely_on_may_be_lost() {
    let mut world = hosts(Durability::Periodic { every_ms: 50 });
    let [one, two] = [0, 1].map(|at| world.open(at));
    assert!(world.one(&one, ephemeral("/one")).is_ok());
    assert!(world.one(&two, ephemeral("/two")).is_ok());
    // All of it is on the disks.
    world.run(Span::secs(1));
    (0..3).for_each(|at| world.hosts[at].disk.sync());
    lose_power(&mut world);
    assert!(world.is_there(0, "/one") && world.is_there(0, "/two"), "nothing was lost this time");
    let ticket = world.go_on(&one, 2);
    assert_eq!(world.opened(2, ticket), None, "that it was not, nobody knows");
    assert!(!world.is_there(0, "/one"));
    let is_over = |world: &mut World| !world.has_node(0, "/two");
    assert!(world.run_until(SOON, is_over), "nor has who does not come any session");
    let late = world.anyone(0, create("/one", ""));
    assert!(late.is_ok(), "its name is free");
    world.agree();
}

#[test]
fn who_restarts_alone_loses_nothing() {
    let mut world = hosts(Durability::Memory);
    let leader = world.leader().expect("somebody leads");
    let one = patient(&mut world);
    assert!(world.one(&one, create("/a", "")).is_ok());
    world.crash((leader + 1) % 3);
    world.restart((leader + 1) % 3);
    world.run(Span::secs(2));
    assert_eq!(world.one(&one, create("/a", "")), Err(Failure::Exists));
    assert!(world.ended(&one).is_none(), "its session goes on");
}
