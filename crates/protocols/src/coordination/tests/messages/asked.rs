//! What a primary hears of gateways: late, of earlier turns and starts, and while it reaches no
//! majority.

use crate::coordination::GROUP;
use crate::coordination::message::Message;
use crate::coordination::tests::world::{SOON, TIMEOUT, World, hosts, three};
use crate::coordination::tree::tests::world::{create, ephemeral, set};
use crate::coordination::tree::{Command, Tree};
use crate::smr::Entry;
use crate::vsr;
use quorate_kernel::news::News as Heard;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::Process;
use quorate_kernel::time::Span;
use quorate_kernel::tree::{Act, Told, What};
use std::collections::BTreeMap;
use std::vec::Vec;

/// A host that is the gateway of clients and has nothing of the tree.
const GATEWAY: usize = 3;

/// Four hosts, who leads, and two nodes with their names.
fn four() -> (World, usize) {
    let mut world = hosts(4);
    let leader = world.leader().expect("somebody leads");
    for path in ["/a", "/b"] {
        assert!(world.anyone(leader, create(path, path)).is_ok());
    }
    world.run(Span::secs(1));
    (world, leader)
}

/// What the gateway asks is taken from the links, if it asks something.
fn take_questions(world: &mut World) {
    world.take(|from, _, message| {
        from == GATEWAY && matches!(message, Message::Ask(ask) if !ask.questions.is_empty())
    });
}

#[test]
fn a_question_of_an_earlier_start_is_not_one_of_the_next() {
    let (mut world, leader) = four();
    take_questions(&mut world);
    world.request(GATEWAY, Operation::get("/a".into()), SOON);
    world.run_to_taken(1, SOON);
    let late = world.taken().remove(0);
    world.crash(GATEWAY);
    world.restart(GATEWAY);
    // The primary hears of this start.
    world.run(Span::secs(1));
    take_questions(&mut world);
    let ticket = world.request(GATEWAY, Operation::get("/b".into()), SOON);
    world.run_to_taken(1, SOON);
    let asked = world.taken().remove(0);
    // It was on a link for so long. Links do not let it through, and the engine does not count on
    // that.
    let (from, message) = (late.from, late.message.clone());
    world.turn(leader, |process, cx| process.on_message(from, message, cx));
    world.let_come(&asked);
    assert_eq!(world.answer(ticket), Outcome::value(Some("/b".into())));
}

#[test]
fn what_was_asked_before_the_first_watch_and_comes_behind_it_does_not_end_it() {
    let (mut world, leader) = four();
    let one = world.open(GATEWAY);
    take_questions(&mut world);
    let before = world.request(GATEWAY, Operation::get("/b".into()), SOON);
    world.run_to_taken(1, SOON);
    let late = world.taken().remove(0);
    let follow = Act::Follow { path: "/a".into(), recursive: false };
    assert_eq!(world.act(&one, follow), Ok(Told::Done));
    world.let_come(&late);
    assert!(world.anyone(leader, set("/a", "new", None)).is_ok());
    world.run(Span::secs(1));
    assert_eq!(world.changes(&one), [("/a".into(), What::Data)]);
    assert_eq!(world.answer(before), Outcome::value(Some("/b".into())));
}

#[test]
fn a_question_that_is_asked_anew_is_confirmed_anew() {
    let (mut world, leader) = four();
    let one = world.open(GATEWAY);
    // Nobody confirms that the primary leads, for a short while.
    let members: Vec<usize> = (0..3).filter(|at| *at != leader).collect();
    members.iter().for_each(|at| world.part(leader, *at));
    let get = Operation::get("/a".into());
    let asked: Vec<_> = (0..3).map(|_| world.request(GATEWAY, get.clone(), SOON)).collect();
    let read = world.send_one(&one, crate::coordination::tree::tests::world::get("/b"));
    world.run(Span::millis(20));
    for _ in 0..3 {
        let node = world.hosts[leader].me.node;
        world.turn(GATEWAY, |process, cx| process.on_news(Heard::Unlinked(node), cx));
        world.run(Span::millis(5));
    }
    world.mend();
    for ticket in asked {
        assert_eq!(world.answer(ticket), Outcome::value(Some("/a".into())));
    }
    assert!(world.reply(read).is_ok());
}

/// How often the end of each session is in the log.
fn ends(world: &World) -> BTreeMap<u64, usize> {
    let mut ends = BTreeMap::new();
    for bytes in world.logs[&GROUP].values().flatten() {
        let entry = Entry::<Tree>::of(bytes).expect("it is one");
        for command in entry.parts.into_iter().flat_map(|part| part.commands) {
            if let Command::Expire { session, .. } = command {
                *ends.entry(session.0).or_default() += 1;
            }
        }
    }
    ends
}

#[test]
fn the_end_of_a_session_is_proposed_once_while_the_log_executes_nothing() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    let watcher = world.open_with(leader, Span::secs(60));
    let gone: Vec<_> = (0..3).map(|_| world.open(other)).collect();
    for (number, client) in gone.iter().enumerate() {
        assert!(world.one(client, ephemeral(&std::format!("/{number}"))).is_ok());
    }
    // Its host stops, and the third acknowledges nothing, though it follows the primary.
    world.crash(other);
    world.take(move |from, _, message| match message {
        Message::Log(parts) if from == third => {
            parts.iter().any(|(_, message)| matches!(message, vsr::Message::PrepareOk { .. }))
        }
        _ => false,
    });
    world.run(Span(TIMEOUT.0 + Span::secs(4).0));
    assert_eq!(world.leader(), Some(leader), "it leads all the time");
    assert!(world.has_node(leader, "/0"), "nothing was executed");
    world.taken();
    assert_eq!(world.act(&watcher, Act::Ping), Ok(Told::Done));
    assert!(world.run_until(SOON, |world| !world.has_node(leader, "/2")));
    world.run(Span::secs(3));
    let ends = ends(&world);
    assert_eq!(ends.len(), 3);
    assert!(ends.values().all(|count| *count == 1), "{ends:?}");
    world.restart(other);
    world.agree();
}
