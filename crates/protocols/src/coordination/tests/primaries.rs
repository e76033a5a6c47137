//! Primaries that change while requests, reads and clients that want sessions wait.

use super::order::names;
use super::world::{Client, SOON, TIMEOUT, World, data_of, hosts, three};
use crate::coordination::tree::tests::world::{create, get, sequential, set};
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::time::Span;
use quorate_kernel::tree::{Act, Connect, Told, Zxid};
use std::collections::BTreeSet;
use std::format;
use std::vec::Vec;

#[test]
fn clients_that_come_while_nobody_leads_are_given_sessions() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    let old = world.open(other);
    world.crash(leader);
    let connect = Connect { session: None, timeout_ms: 3000, seen: Zxid(0), peer: None };
    let tickets: Vec<(usize, Ticket)> =
        [other, third, other].map(|at| (at, world.connect(at, connect))).into();
    let moves = world.go_on(&old, third);
    let mut sessions = BTreeSet::new();
    for (at, ticket) in tickets {
        let client = world.opened(at, ticket).expect("it is opened");
        assert_eq!(world.act(&client, Act::Ping), Ok(Told::Done));
        assert!(sessions.insert(client.session), "each has its own");
    }
    assert_eq!(world.opened(third, moves).map(|it| it.session), Some(old.session));
    assert!(world.run_until(SOON, |world| world.ended(&old) == Some(Refusal::NoSession)));
}

#[test]
fn whoever_waits_when_a_primary_stops_is_answered_by_the_next_one_in_order() {
    for wait in [0, 300, 900, 2000, 4000, 9000] {
        let (mut world, leader, other) = three();
        let third = 3 - leader - other;
        let clients = [world.open(other), world.open(third)];
        assert!(world.one(&clients[0], create("/q", "")).is_ok());
        for (name, client) in ["/0", "/1"].iter().zip(&clients) {
            assert!(world.one(client, create(name, "0")).is_ok());
        }
        let mut asked = Vec::new();
        let ask = |world: &mut World, asked: &mut Vec<_>, round: i32| {
            for (name, client) in ["/0", "/1"].iter().zip(&clients) {
                let value = format!("{round}");
                asked.push((world.send_one(client, set(name, &value, Some(round - 1))), None));
                asked.push((world.send_one(client, get(name)), Some(value)));
                asked.push((world.send_one(client, sequential(create("/q/", ""))), None));
            }
        };
        for round in 1..6 {
            ask(&mut world, &mut asked, round);
            world.run(Span::micros(wait));
        }
        world.crash(leader);
        for round in 6..10 {
            ask(&mut world, &mut asked, round);
            world.run(Span::micros(wait));
        }
        let count = asked.len();
        for (ticket, value) in asked {
            let told = world.reply(ticket);
            match value {
                None => assert!(told.is_ok(), "after {wait} us: {told:?}"),
                Some(value) => assert_eq!(data_of(told), Some(value.into()), "after {wait} us"),
            }
        }
        assert_eq!(names(&mut world, other, "/q").len(), count / 3, "each once");
        world.restart(leader);
        world.agree();
    }
}

#[test]
fn who_leads_no_more_and_does_not_know_it_answers_no_reads() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    let one = world.open_with(leader, Span::secs(60));
    assert!(world.one(&one, create("/a", "old")).is_ok());
    world.isolate(leader);
    let is_over = |world: &mut World| world.leader().is_some_and(|it| it != leader);
    let before = world.send_one(&one, get("/a"));
    assert!(world.run_until(SOON, is_over), "another one leads");
    assert!(world.anyone(third, set("/a", "new", None)).is_ok());
    // It was asked when the change was done, and the first one before.
    let behind = world.send_one(&one, get("/a"));
    let anybody = world.request(leader, Operation::get("/a".into()), SOON);
    world.run(Span::millis(300));
    for ticket in [before, behind, anybody] {
        assert_eq!(world.told(ticket), [] as [&Outcome; 0], "nobody confirms it");
    }
    world.mend();
    assert!(data_of(world.reply(before)).is_some());
    assert_eq!(data_of(world.reply(behind)), Some("new".into()));
    assert_eq!(world.answer(anybody), Outcome::value(Some("new".into())));
}

#[test]
fn what_a_primary_had_in_hand_that_was_cut_off_is_done_once_or_by_nobody() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    let [mine, theirs] = [world.open_with(leader, Span::secs(60)), world.open(third)];
    assert!(world.one(&mine, create("/q", "")).is_ok());
    world.isolate(leader);
    // It puts them into its log, and nobody else has them.
    let kept: Vec<Ticket> =
        (0..5).map(|_| world.send_one(&mine, sequential(create("/q/", "mine")))).collect();
    let is_over = |world: &mut World| world.leader().is_some_and(|it| it != leader);
    assert!(world.run_until(SOON, is_over), "another one leads");
    for _ in 0..5 {
        assert!(world.one(&theirs, sequential(create("/q/", "theirs"))).is_ok());
    }
    world.mend();
    for ticket in kept {
        assert!(world.reply(ticket).is_ok(), "its host asks the next primary");
    }
    let all: Vec<_> = names(&mut world, other, "/q").into_iter().collect();
    assert_eq!(all.len(), 10);
    assert!(
        all[5..].iter().all(|name| world.data(other, &format!("/q/{name}")) == Some("mine".into()))
    );
    world.agree();
}

#[test]
fn each_host_leads_in_turn_and_a_session_goes_on() {
    let mut world = hosts(4);
    let one = world.open(3);
    assert!(world.one(&one, create("/q", "")).is_ok());
    for round in 0..6 {
        let leader = world.leader().expect("somebody leads");
        let waits = world.send_one(&one, sequential(create("/q/", "")));
        world.crash(leader);
        if round % 2 == 0 {
            world.unlink(leader);
        }
        assert!(world.reply(waits).is_ok(), "round {round}");
        assert_ne!(world.leader(), Some(leader));
        world.restart(leader);
        world.agree();
        // It confirms that the gateway is there.
        world.run(Span::millis(700));
    }
    assert_eq!(names(&mut world, 3, "/q").len(), 6);
    assert_eq!(world.ended(&one), None);
}

/// A gateway that cannot say that it is there, or cannot hear that it is known: when its client is
/// sent away, and when its session is over.
fn half_cut(cut: impl Fn(usize, usize) -> (usize, usize)) -> (Span, Option<Span>) {
    let mut world = hosts(4);
    let gateway = 3;
    let one: Client = world.open(gateway);
    world.run(Span::secs(1));
    world.send(&one, Act::Ping);
    (0..3).for_each(|member| _ = world.cut.insert(cut(gateway, member)));
    let (began, mut ended, mut over) = (world.now, None, None);
    while world.now - began < Span(3 * TIMEOUT.0) {
        world.send(&one, Act::Ping);
        world.run(Span::millis(50));
        let since = world.now - began;
        if ended.is_none() && world.ended(&one).is_some() {
            ended = Some(since);
        }
        if over.is_none() && world.sessions_there(0) == 0 {
            over = Some(since);
        }
    }
    assert_eq!(world.ended(&one), Some(Refusal::NoRoute));
    (ended.expect("it is sent away"), over)
}

#[test]
fn a_client_is_sent_away_before_its_session_ends_if_its_host_is_cut_off_in_one_direction() {
    let (ended, over) = half_cut(|gateway, member| (gateway, member));
    assert!(over.is_some_and(|over| ended < over), "{ended:?} and {over:?}");
    // Its host says that it is there, so the session stays.
    let (ended, over) = half_cut(|gateway, member| (member, gateway));
    assert!(ended <= Span(TIMEOUT.0 / 3 * 2 + Span::millis(600).0), "{ended:?}");
    assert!(over.is_none_or(|over| ended < over), "{ended:?} and {over:?}");
}
