//! Each thing that is asked takes effect once and is answered once, though it is asked again, comes
//! twice or late, and though hosts start again.

use super::order::names;
use super::world::{SOON, World, hosts, led, settings};
use crate::coordination::message::Message;
use crate::coordination::tree::tests::world::{create, get, sequential, set};
use bytes::Bytes;
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::{Cursor, Operation, Outcome, Refusal};
use quorate_kernel::process::Process;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::tree::{Act, Ask, Told};
use std::format;
use std::vec::Vec;

/// A host that is the gateway of clients and has nothing of the tree.
const GATEWAY: usize = 3;

fn four() -> (World, usize) {
    let mut world = hosts(4);
    let leader = world.leader().expect("somebody leads");
    assert!(world.anyone(leader, create("/q", "")).is_ok());
    world.run(Span::secs(1));
    (world, leader)
}

/// Somebody without a session makes a sequential node.
fn make(world: &mut World, at: usize, within: Span) -> Ticket {
    let act = Act::One(sequential(create("/q/", "")));
    world.request(at, Operation::Tree(Ask { session: None, opening: None, act }.into()), within)
}

/// What the gateway asks is taken from the links, if there are commands.
fn take_commands(world: &mut World) {
    world.take(|from, _, message| {
        from == GATEWAY && matches!(message, Message::Ask(ask) if !ask.commands.is_empty())
    });
}

#[test]
fn each_question_is_answered_once_over_links_that_lose_and_double() {
    for seed in 0..6 {
        let mut world = led(World::new(seed, 4, settings(3, Durability::Sync)));
        let one = world.open_with(GATEWAY, Span::secs(60));
        for path in ["/a", "/b"] {
            assert!(world.one(&one, create(path, path)).is_ok());
        }
        (world.loss_percent, world.double_percent) = (20, 30);
        let mut asked = Vec::new();
        for _ in 0..10 {
            asked.push(world.send_one(&one, get("/a")));
            asked.push(world.request(GATEWAY, Operation::get("/b".into()), SOON));
            let scan = Operation::Scan { from: Cursor { token: 0, key: Bytes::new() }, limit: 9 };
            asked.push(world.request(GATEWAY, scan, SOON));
            world.run(Span::millis(3));
        }
        let keys = ["/a", "/b"].map(Bytes::from).into();
        let page = Outcome::Page { keys, next: None };
        for (ticket, number) in asked.iter().zip(0..) {
            let told = world.answer(*ticket);
            match number % 3 {
                0 => assert!(matches!(told, Outcome::Tree(reply) if reply.told.is_ok())),
                1 => assert_eq!(told, Outcome::value(Some("/b".into()))),
                _ => assert_eq!(told, page),
            }
        }
        world.mend();
        world.run(Span::secs(5));
        assert!(asked.iter().all(|ticket| world.told(*ticket).len() == 1), "seed {seed}");
    }
}

#[test]
fn what_an_earlier_start_has_asked_is_not_done_behind_what_the_next_one_asks() {
    let (mut world, leader) = four();
    take_commands(&mut world);
    make(&mut world, GATEWAY, SOON);
    world.run_to_taken(1, SOON);
    let late = world.taken().remove(0);
    world.crash(GATEWAY);
    world.restart(GATEWAY);
    let ticket = make(&mut world, GATEWAY, SOON);
    assert!(world.reply(ticket).is_ok());
    let (from, message) = (late.from, late.message);
    world.turn(leader, |process, cx| process.on_message(from, message, cx));
    world.run(Span::secs(1));
    assert_eq!(names(&mut world, leader, "/q").len(), 1);
}

#[test]
fn what_comes_again_late_is_done_once_whoever_leads() {
    let (mut world, leader) = four();
    take_commands(&mut world);
    let mut asked: Vec<Ticket> = (0..3).map(|_| make(&mut world, GATEWAY, SOON)).collect();
    world.run_to_taken(3, SOON);
    let taken = world.taken();
    // The last first, and each of them twice.
    for late in taken.iter().rev().chain(&taken) {
        world.let_come(late);
    }
    asked.push(make(&mut world, GATEWAY, SOON));
    for ticket in &asked {
        assert!(world.reply(*ticket).is_ok());
    }
    world.crash(leader);
    let is_led = |world: &mut World| world.leader().is_some_and(|it| it != leader);
    assert!(world.run_until(SOON, is_led));
    let next = world.leader().expect("somebody leads");
    for late in &taken {
        let (from, message) = (late.from, late.message.clone());
        world.turn(next, |process, cx| process.on_message(from, message, cx));
    }
    world.run(Span::secs(1));
    assert_eq!(names(&mut world, next, "/q").len(), 4);
    assert!(asked.iter().all(|ticket| world.told(*ticket).len() == 1));
    world.restart(leader);
    world.agree();
}

#[test]
fn what_is_unknown_at_the_deadline_is_done_once_or_not_at_all() {
    let (mut world, leader) = four();
    world.isolate(GATEWAY);
    let unknown: Vec<Ticket> =
        (0..5).map(|_| make(&mut world, GATEWAY, Span::millis(400))).collect();
    world.run(Span::secs(1));
    for ticket in &unknown {
        assert_eq!(world.answer(*ticket), Outcome::Refused(Refusal::OutcomeUnknown));
    }
    world.mend();
    let known = make(&mut world, GATEWAY, SOON);
    assert!(world.reply(known).is_ok());
    assert_eq!(names(&mut world, leader, "/q").len(), 6, "in its order, and once");
    world.run(Span::secs(3));
    assert_eq!(names(&mut world, leader, "/q").len(), 6);
    assert!(unknown.iter().all(|ticket| world.told(*ticket).len() == 1), "nothing more is told");
}

#[test]
fn what_a_primary_has_not_told_when_it_starts_again_is_done_once() {
    for wait in [200, 1000, 2000, 4000, 8000] {
        // The primary alone has the log, so nobody else leads.
        let mut world = led(World::new(7, 2, settings(1, Durability::Sync)));
        let one = world.open_with(1, Span::secs(60));
        assert!(world.one(&one, create("/a", "0")).is_ok());
        let mut asked: Vec<Ticket> = Vec::new();
        for round in 1..20 {
            asked.push(world.send_one(&one, set("/a", &format!("{round}"), Some(round - 1))));
            asked.push(world.send_one(&one, get("/a")));
            world.run(Span::micros(300));
            if round % 6 == 0 {
                world.run(Span::micros(wait));
                world.crash(0);
                world.restart(0);
            }
        }
        for ticket in &asked {
            assert!(world.reply(*ticket).is_ok(), "each finds the version before it");
        }
        assert_eq!(world.data(1, "/a"), Some("19".into()));
        assert_eq!(world.act(&one, Act::Ping), Ok(Told::Done));
    }
}
