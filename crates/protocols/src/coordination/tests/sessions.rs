//! Sessions: how they begin, move, and end.

use super::world::{SOON, TIMEOUT, World, hosts, three};
use crate::coordination::gateway::stream::COMMANDS_MAX;
use crate::coordination::tree::tests::world::{create, ephemeral};
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::time::{Span, Time};
use quorate_kernel::tree::{Act, Ask, Connect, Failure, SessionEvent, Told, Zxid};
use quorate_kernel::watch::Event;
use std::vec::Vec;

/// A client that pings so often, for so long.
pub(super) fn keep(world: &mut World, client: &super::world::Client, span: Span) {
    let end = world.now + span;
    while world.now < end {
        assert_eq!(world.act(client, Act::Ping), Ok(Told::Done));
        world.run(Span::millis(400));
    }
}

#[test]
fn a_session_has_the_time_out_that_is_asked_for_within_bounds() {
    let (mut world, _, other) = three();
    for (asked, given) in [(1, 2000), (5000, 5000), (u32::MAX, 60_000)] {
        let connect = Connect { session: None, timeout_ms: asked, seen: Zxid(0), peer: None };
        let ticket = world.connect(other, connect);
        world.opened(other, ticket).expect("it is opened");
        let Outcome::More(events) = world.told(ticket)[0] else { panic!("events") };
        let Event::Session(SessionEvent::Open { timeout_ms, .. }) = events[0] else {
            panic!("it is open")
        };
        assert_eq!(timeout_ms, given);
    }
}

#[test]
fn who_pings_keeps_its_session_and_who_is_silent_loses_it_with_its_nodes() {
    let (mut world, leader, other) = three();
    let [one, two] = [world.open(other), world.open(other)];
    assert!(world.one(&one, ephemeral("/one")).is_ok());
    assert!(world.one(&two, ephemeral("/two")).is_ok());
    let silent = world.now;
    world.run(Span::millis(500));
    let end = silent + Span(TIMEOUT.0 - Span::millis(300).0);
    let rest = end - world.now;
    keep(&mut world, &one, rest);
    assert!(world.is_there(leader, "/two") && !world.is_expired(&two), "its time is not over");
    keep(&mut world, &one, Span::secs(1));
    assert!(world.is_expired(&two) && world.ended(&two) == Some(Refusal::NoSession));
    assert!(!world.is_there(leader, "/two"), "its nodes end with it");
    assert!(world.is_there(leader, "/one") && world.ended(&one).is_none());
    let ticket = world.send(&two, Act::Ping);
    assert_eq!(world.answer(ticket), Outcome::Refused(Refusal::NoSession));
    let ticket = world.go_on(&two, leader);
    assert_eq!(world.opened(leader, ticket), None, "it is over everywhere");
    world.agree();
}

#[test]
fn who_closes_its_session_is_told_so_and_ends_its_nodes_at_once() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    assert!(world.one(&one, ephemeral("/one")).is_ok());
    assert_eq!(world.act(&one, Act::Close), Ok(Told::Done));
    assert!(!world.is_there(leader, "/one"));
    assert!(world.is_expired(&one), "its connection ends with it");
    assert_eq!(world.ended(&one), Some(Refusal::NoSession));
    let ticket = world.send(&one, Act::Ping);
    assert_eq!(world.answer(ticket), Outcome::Refused(Refusal::NoSession));
}

#[test]
fn a_close_that_finds_no_room_waits_for_it() {
    let (mut world, _, other) = three();
    let one = world.open(other);
    // Nobody executes anything, so there is no room at last.
    world.isolate(other);
    assert_eq!(world.fill(other), COMMANDS_MAX);
    let ticket = world.send(&one, Act::Close);
    assert!(world.told(ticket).is_empty() && world.ended(&one).is_none(), "it waits");
    world.mend();
    assert_eq!(world.reply(ticket), Ok(Told::Done));
    assert!(world.is_expired(&one));
}

#[test]
fn who_is_not_told_whether_its_session_is_closed_is_told_later_that_it_has_ended() {
    let mut world = hosts(4);
    world.run(Span::secs(2));
    let one = world.open_with(3, Span::secs(60));
    world.isolate(3);
    let ticket = world.send(&one, Act::Close);
    assert_eq!(world.answer(ticket), Outcome::Refused(Refusal::OutcomeUnknown));
    assert!(!world.is_expired(&one) && world.ended(&one).is_none(), "nobody knows");
    world.mend();
    assert!(world.run_until(SOON, |world| world.ended(&one) == Some(Refusal::NoSession)));
    assert!(world.is_expired(&one));
    assert!(world.run_until(SOON, |world| world.sessions_there(0) == 0));
}

#[test]
fn a_session_goes_on_at_another_host_and_what_it_asks_late_is_refused() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    let old = world.open(other);
    assert!(world.one(&old, ephemeral("/one")).is_ok());
    // What it asks here is on its way while it moves.
    world.part(other, leader);
    let late = world.send_one(&old, create("/late", ""));
    let new = world.attach(&old, third);
    assert_eq!(new.session, old.session);
    world.mend();
    assert_eq!(world.reply(late), Err(Failure::SessionMoved));
    assert!(world.run_until(SOON, |world| world.ended(&old) == Some(Refusal::NoSession)));
    assert!(!world.is_expired(&old), "it goes on, elsewhere");
    keep(&mut world, &new, Span(2 * TIMEOUT.0));
    assert!(world.is_there(other, "/one") && !world.is_there(other, "/late"));
    let ticket = world.send(&old, Act::Ping);
    assert_eq!(world.answer(ticket), Outcome::Refused(Refusal::NoSession));
}

#[test]
fn a_close_that_comes_behind_a_move_ends_its_connection_and_not_the_session() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    let old = world.open(other);
    assert!(world.one(&old, ephemeral("/one")).is_ok());
    world.part(other, leader);
    let late = world.send(&old, Act::Close);
    let new = world.attach(&old, third);
    world.mend();
    assert_eq!(world.reply(late), Err(Failure::SessionMoved));
    assert!(world.run_until(SOON, |world| world.ended(&old) == Some(Refusal::NoSession)));
    keep(&mut world, &new, Span(2 * TIMEOUT.0));
    assert!(world.is_there(other, "/one"));
}

#[test]
fn a_client_that_comes_again_to_its_host_ends_its_earlier_connection() {
    let (mut world, _, other) = three();
    let old = world.open(other);
    let new = world.attach(&old, other);
    assert_eq!(world.ended(&old), Some(Refusal::NoSession));
    keep(&mut world, &new, Span(2 * TIMEOUT.0));
    world.leave(&new);
    world.run(Span::secs(1));
    let again = world.attach(&new, other);
    assert_eq!(world.act(&again, Act::Ping), Ok(Told::Done));
}

#[test]
fn who_does_not_know_the_password_is_told_that_there_is_no_such_session() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    let mut thief = one;
    thief.password[15] ^= 1;
    for at in [leader, other] {
        let ticket = world.go_on(&thief, at);
        assert_eq!(world.opened(at, ticket), None);
    }
    keep(&mut world, &one, TIMEOUT);
    assert!(world.ended(&one).is_none(), "its client has not lost it");
}

#[test]
fn a_session_without_a_client_lasts_as_long_as_its_time_out() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    assert!(world.one(&one, ephemeral("/one")).is_ok());
    world.leave(&one);
    world.run(Span(TIMEOUT.0 - Span::millis(500).0));
    assert!(world.is_there(leader, "/one"));
    world.run(Span::secs(1));
    assert!(!world.is_there(leader, "/one"));
}

#[test]
fn who_has_seen_a_later_state_than_there_is_is_sent_away_once() {
    let (mut world, _, other) = three();
    let connect = Connect { session: None, timeout_ms: 3000, seen: Zxid(1 << 40), peer: None };
    let ticket = world.connect(other, connect);
    assert_eq!(world.opened(other, ticket), None);
    // The session ends some time, and nobody is told of it.
    world.run(Span(2 * TIMEOUT.0));
    assert_eq!(world.told(ticket), [&Outcome::Refused(Refusal::Unsupported)]);
}

#[test]
fn the_sessions_of_a_host_that_stops_last_as_long_as_their_time_outs_or_go_on_elsewhere() {
    for restarts in [false, true] {
        let (mut world, leader, other) = three();
        let third = 3 - leader - other;
        // The primary has led for longer than any time-out.
        let watcher = world.open(third);
        keep(&mut world, &watcher, Span(2 * TIMEOUT.0));
        let [stays, moves] = [world.open(other), world.open(other)];
        assert!(world.one(&stays, ephemeral("/stays")).is_ok());
        assert!(world.one(&moves, ephemeral("/moves")).is_ok());
        world.crash(other);
        let stopped = world.now;
        if restarts {
            world.restart(other);
        }
        let moved = world.attach(&moves, third);
        while world.now - stopped < Span(TIMEOUT.0 - Span::millis(200).0) {
            assert!(world.is_there(leader, "/stays"), "{:?} of its time-out", world.now - stopped);
            assert_eq!(world.act(&moved, Act::Ping), Ok(Told::Done));
            world.run(Span::millis(100));
        }
        keep(&mut world, &moved, TIMEOUT);
        assert!(!world.is_there(leader, "/stays"), "nobody has heard its client for so long");
        assert!(world.is_there(leader, "/moves"));
        assert!(world.ended(&moved).is_none());
    }
}

/// When a connection of a host that nobody hears ends, counted from then on, and when its session
/// is over elsewhere.
fn cut_off(mut world: World, host: usize) -> (Span, Span) {
    let one = world.open(host);
    assert!(world.one(&one, ephemeral("/one")).is_ok());
    world.run(Span::millis(100));
    world.isolate(host);
    let began: Time = world.now;
    let (mut ended, mut over) = (None, None);
    let other = (host + 1) % 3;
    while over.is_none() && world.now - began < Span::secs(30) {
        // Its client is there all the time.
        world.send(&one, Act::Ping);
        world.run(Span::millis(20));
        let now = world.now;
        if ended.is_none() && world.ended(&one).is_some() {
            ended = Some(now - began);
        }
        let leads = world.leader().is_some_and(|leader| leader != host);
        if leads && !world.has_node(other, "/one") {
            over = Some(now - began);
        }
    }
    assert_eq!(world.ended(&one), Some(Refusal::NoRoute));
    assert!(!world.is_expired(&one), "nobody knows it here");
    (ended.expect("it has ended"), over.expect("it is over"))
}

#[test]
fn a_host_that_is_cut_off_sends_its_clients_away_before_their_sessions_end() {
    let (world, leader, other) = three();
    for host in [leader, other] {
        let (mut again, ..) = three();
        again.run(Span::secs(1));
        let (ended, over) = cut_off(again, host);
        assert!(ended <= Span(TIMEOUT.0 / 3 * 2 + Span::millis(100).0), "{host}: {ended:?}");
        assert!(over >= Span(TIMEOUT.0 - Span::millis(600).0), "{over:?}");
        assert!(ended < over);
    }
    drop(world);
}

#[test]
fn a_new_primary_waits_for_the_hosts_anew() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    assert!(world.one(&one, ephemeral("/one")).is_ok());
    // The host of the session cannot be heard, nearly until its time is over; then somebody else
    // leads, who has not heard of it either.
    world.crash(other);
    world.run(Span(TIMEOUT.0 - Span::millis(500).0));
    world.restart(other);
    world.crash(leader);
    let changed = world.now;
    let third = 3 - leader - other;
    assert!(world.run_until(SOON, |world| world.leader().is_some()));
    while world.now - changed < Span(TIMEOUT.0 - Span::millis(100).0) {
        assert!(world.is_there(third, "/one"), "{:?}", world.now - changed);
        world.run(Span::millis(100));
    }
    world.run(Span::secs(3));
    assert!(!world.is_there(third, "/one"));
}

#[test]
fn what_is_asked_for_a_session_that_is_not_here_is_refused() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    let ask = |act| Operation::Tree(Ask { session: Some(one.session), opening: None, act }.into());
    let ticket = world.request(leader, ask(Act::Ping), SOON);
    assert_eq!(world.answer(ticket), Outcome::Refused(Refusal::NoSession));
    let nobody = |act| Operation::Tree(Ask { session: None, opening: None, act }.into());
    for act in [Act::Ping, Act::Close, Act::Follow { path: "/".into(), recursive: true }] {
        let ticket = world.request(other, nobody(act), SOON);
        assert_eq!(world.answer(ticket), Outcome::Refused(Refusal::NoSession));
    }
}

#[test]
fn a_host_that_joins_serves_clients_though_it_has_nothing_of_the_tree() {
    let mut world = hosts(4);
    world.run(Span::secs(2));
    let one = world.open(3);
    assert!(world.one(&one, ephemeral("/one")).is_ok());
    keep(&mut world, &one, Span(2 * TIMEOUT.0));
    assert!(world.is_there(0, "/one"));
    let all: Vec<bool> = (0..4).map(|at| world.has_node(at, "/one")).collect();
    assert_eq!(all, [true, true, true, false]);
}
