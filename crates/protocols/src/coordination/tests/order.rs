//! What one session asks is done in its order, and each command once.

use super::world::{Client, SOON, World, data_of, hosts, led, settings, three};
use crate::coordination::GROUP;
use crate::coordination::tree::Tree;
use crate::coordination::tree::tests::world::{children, create, delete, get, sequential, set};
use crate::smr::Entry;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::tree::{Failure, Item, Told, TreeReply};
use std::collections::{BTreeMap, BTreeSet};
use std::format;
use std::string::String;
use std::vec::Vec;

/// What a read has found, in words.
fn read(world: &mut World, ticket: Ticket) -> Option<Bytes> {
    data_of(world.reply(ticket))
}

/// Where in all that was told something was.
pub fn place(world: &World, ticket: Ticket) -> usize {
    world.answers.iter().position(|(_, of, _)| *of == ticket).expect("it is answered")
}

fn is_in_order(world: &World, tickets: &[Ticket]) -> bool {
    tickets.iter().map(|ticket| place(world, *ticket)).is_sorted()
}

/// The names of the children of a node.
pub fn names(world: &mut World, at: usize, path: &str) -> BTreeSet<String> {
    let children = Item::Children { path: path.into(), watch: false };
    match world.anyone(at, children) {
        Ok(Told::Children { names, .. }) => names.into_iter().collect(),
        other => panic!("{path} has children, not {other:?}"),
    }
}

/// Commands that make so many sequential nodes, sent by a client at once.
fn make(world: &mut World, client: &Client, count: usize) -> Vec<Ticket> {
    (0..count).map(|_| world.send_one(client, sequential(create("/q/", "")))).collect()
}

/// What was made: each node once, and nothing else.
fn made(world: &mut World, tickets: &[Ticket]) -> Vec<String> {
    let mut made = Vec::new();
    for ticket in tickets {
        match world.reply(*ticket) {
            Ok(Told::Created { path, .. }) => {
                made.push(String::from(path.strip_prefix("/q/").expect("it is a child")));
            }
            other => panic!("a node is made, not {other:?}"),
        }
    }
    let all: BTreeSet<String> = made.iter().cloned().collect();
    assert_eq!(all.len(), made.len(), "no number is given twice");
    assert_eq!(names(world, 0, "/q"), all, "what was made was told, and once");
    made
}

/// How often each command of a gateway is in the log.
fn logged(world: &World) -> BTreeMap<(Incarnation, u64), usize> {
    let mut logged = BTreeMap::new();
    for bytes in world.logs[&GROUP].values().flatten() {
        let entry = Entry::<Tree>::of(bytes).expect("it is one");
        for part in entry.parts {
            let Some(from) = part.from else { continue };
            for number in from.first..from.first + part.commands.len() as u64 {
                *logged.entry((from.client, number)).or_default() += 1;
            }
        }
    }
    logged
}

#[test]
fn what_is_sent_at_once_is_done_in_its_order() {
    for seed in 0..12 {
        let mut world = led(World::new(seed, 3, settings(3, Durability::Sync)));
        let one = world.open((seed % 3) as usize);
        if seed >= 4 {
            (world.loss_percent, world.double_percent) = (8, 8);
        }
        let mut tickets = Vec::new();
        for round in 0..10 {
            let write = match round {
                0 => create("/a", "0"),
                _ => set("/a", &format!("{round}"), Some(round - 1)),
            };
            tickets.push(world.send_one(&one, write));
            tickets.push(world.send_one(&one, get("/a")));
            tickets.push(world.send_one(&one, get("/a")));
            world.run(Span::micros(300));
        }
        for (round, tickets) in (0..).zip(tickets.chunks(3)) {
            assert!(world.reply(tickets[0]).is_ok(), "seed {seed}, round {round}");
            for ticket in &tickets[1..] {
                assert_eq!(read(&mut world, *ticket), Some(format!("{round}").into()));
            }
        }
        assert!(is_in_order(&world, &tickets), "answers come in the order of what is asked");
        world.mend();
        world.agree();
    }
}

#[test]
fn a_write_does_not_overtake_a_read_that_was_lost() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    assert!(world.one(&one, create("/a", "old")).is_ok());
    world.cut.insert((other, leader));
    let first = world.send_one(&one, get("/a"));
    world.run(Span::millis(10));
    world.mend();
    let write = world.send_one(&one, set("/a", "new", None));
    let second = world.send_one(&one, get("/a"));
    assert_eq!(read(&mut world, first), Some("old".into()));
    assert!(world.reply(write).is_ok());
    assert_eq!(read(&mut world, second), Some("new".into()));
    assert!(is_in_order(&world, &[first, write, second]));
}

#[test]
fn a_read_does_not_overtake_a_write_that_was_lost() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    assert!(world.one(&one, create("/a", "old")).is_ok());
    world.cut.insert((other, leader));
    let write = world.send_one(&one, set("/a", "new", None));
    world.run(Span::millis(10));
    world.mend();
    let first = world.send_one(&one, get("/a"));
    assert_eq!(read(&mut world, first), Some("new".into()));
    assert!(is_in_order(&world, &[write, first]));
}

#[test]
fn a_read_does_not_overtake_another_of_its_session() {
    let (mut world, leader, other) = three();
    let [one, two] = [world.open(other), world.open(other)];
    assert!(world.one(&one, create("/a", "old")).is_ok());
    world.cut.insert((other, leader));
    let first = world.send_one(&one, get("/a"));
    world.run(Span::millis(10));
    world.mend();
    let second = world.send_one(&one, get("/a"));
    // Another client is not held up.
    let others = world.send_one(&two, get("/a"));
    assert_eq!(read(&mut world, others), Some("old".into()));
    assert!(world.anyone(leader, set("/a", "new", None)).is_ok());
    let values = [first, second].map(|ticket| read(&mut world, ticket));
    assert!(is_in_order(&world, &[first, second]));
    assert_ne!(values, [Some("new".into()), Some("old".into())], "time does not run back");
}

#[test]
fn what_waits_behind_a_read_that_is_given_up_goes_on() {
    let (mut world, leader, other) = three();
    let one = world.open_with(other, Span::secs(60));
    assert!(world.one(&one, create("/a", "old")).is_ok());
    world.part(other, leader);
    world.part(other, 3 - leader - other);
    let first = world.send_one(&one, get("/a"));
    world.run(Span::secs(4));
    let write = world.send_one(&one, set("/a", "new", None));
    let told = world.answer(first);
    assert_eq!(told, Outcome::Refused(Refusal::NoQuorum { reached: 0, needed: 2 }));
    world.mend();
    assert!(world.reply(write).is_ok());
    assert_eq!(world.data(other, "/a"), Some("new".into()));
}

#[test]
fn what_waits_behind_a_write_that_was_refused_is_refused_too() {
    let (mut world, leader, other) = three();
    let one = world.open_with(other, Span::secs(60));
    assert!(world.one(&one, create("/a", "old")).is_ok());
    world.part(other, leader);
    world.part(other, 3 - leader - other);
    let first = world.send_one(&one, children("/"));
    let lost = world.send_one(&one, set("/a", "new", None));
    world.run(Span::secs(4));
    let behind = world.send_one(&one, create("/ready", ""));
    for ticket in [first, lost, behind] {
        let told = world.answer(ticket);
        assert_eq!(told, Outcome::Refused(Refusal::NoQuorum { reached: 0, needed: 2 }));
    }
    // What comes when the write was refused already is behind it all the same.
    let next = world.send_one(&one, create("/next", ""));
    assert_eq!(world.answer(next), Outcome::Refused(Refusal::NoSession));
    world.mend();
    world.run(Span::secs(3));
    assert_eq!(world.data(other, "/a"), Some("old".into()));
    assert!(!world.is_there(other, "/ready"));
}

#[test]
fn commands_are_done_once_though_their_answers_are_lost_and_logged_once() {
    let mut world = hosts(4);
    let leader = world.leader().expect("somebody leads");
    let one = world.open(3);
    assert!(world.one(&one, create("/q", "")).is_ok());
    world.run(Span::secs(2));
    world.cut.insert((leader, 3));
    let mut tickets = make(&mut world, &one, 10);
    world.run(Span::millis(250));
    world.mend();
    tickets.extend(make(&mut world, &one, 10));
    let made = made(&mut world, &tickets);
    assert!(made.is_sorted(), "in the order of the session");
    assert_eq!(world.leader(), Some(leader));
    assert!(logged(&world).values().all(|count| *count == 1), "{:?}", logged(&world));
}

#[test]
fn commands_behind_a_gap_wait_for_what_is_missing() {
    let mut world = hosts(4);
    let leader = world.leader().expect("somebody leads");
    let one = world.open(3);
    assert!(world.one(&one, create("/q", "")).is_ok());
    world.cut.insert((3, leader));
    let mut tickets = make(&mut world, &one, 1);
    world.run(Span::millis(20));
    world.mend();
    tickets.extend(make(&mut world, &one, 1));
    world.run(Span::millis(20));
    assert!(tickets.iter().all(|ticket| world.told(*ticket).is_empty()), "the first is missing");
    assert!(made(&mut world, &tickets).is_sorted());
}

#[test]
fn commands_are_done_once_whoever_leads() {
    for wait in [1, 2, 3, 5, 8] {
        let (mut world, leader, other) = three();
        let clients = [leader, other, 3 - leader - other].map(|at| world.open(at));
        assert!(world.one(&clients[1], create("/q", "")).is_ok());
        let mut tickets = Vec::new();
        for _ in 0..5 {
            for client in &clients[1..] {
                tickets.extend(make(&mut world, client, 3));
            }
            world.run(Span::millis(wait));
        }
        world.crash(leader);
        for client in &clients[1..] {
            tickets.extend(make(&mut world, client, 3));
        }
        for ticket in &tickets {
            assert!(world.reply(*ticket).is_ok(), "it is done, by the next primary at last");
        }
        world.restart(leader);
        made(&mut world, &tickets);
        world.agree();
    }
}

#[test]
fn commands_are_done_once_over_links_that_lose_and_double() {
    for seed in 0..8 {
        let mut world = led(World::new(seed, 4, settings(3, Durability::Sync)));
        let clients: Vec<Client> = (0..4).map(|at| world.open(at)).collect();
        assert!(world.one(&clients[0], create("/q", "")).is_ok());
        (world.loss_percent, world.double_percent) = (10, 10);
        let mut tickets = Vec::new();
        for _ in 0..20 {
            for client in &clients {
                tickets.extend(make(&mut world, client, 1));
            }
            world.run(Span::millis(5));
        }
        for ticket in &tickets {
            assert!(world.reply(*ticket).is_ok(), "seed {seed}");
        }
        world.mend();
        made(&mut world, &tickets);
        world.agree();
    }
}

#[test]
fn a_later_start_of_a_host_begins_anew() {
    let (mut world, _, other) = three();
    let one = world.open(other);
    assert!(world.one(&one, create("/q", "")).is_ok());
    world.crash(other);
    world.restart(other);
    // The first command of this start is not the first one of the last.
    assert_eq!(world.anyone(other, delete("/q", None)), Ok(Told::Done));
    let again = world.attach(&one, other);
    assert_eq!(world.one(&again, delete("/q", None)), Err(Failure::NoNode));
}

#[test]
fn what_is_not_known_at_the_deadline_is_said_to_be_unknown() {
    let (mut world, leader, other) = three();
    let one = world.open_with(other, Span::secs(60));
    world.isolate(other);
    let write = world.send_one(&one, create("/a", ""));
    let reads = [(); 3].map(|()| world.send_one(&one, get("/a")));
    let behind = world.send_one(&one, create("/b", ""));
    world.run(SOON);
    world.run(Span::millis(100));
    for ticket in [write, behind] {
        assert_eq!(world.answer(ticket), Outcome::Refused(Refusal::OutcomeUnknown));
    }
    let no_quorum = Outcome::Refused(Refusal::NoQuorum { reached: 0, needed: 2 });
    for ticket in reads {
        assert_eq!(world.answer(ticket), no_quorum);
    }
    world.mend();
    let are_done = |world: &mut World| world.has_node(leader, "/b");
    assert!(world.run_until(SOON, are_done), "they may be done yet");
    assert!(world.is_there(leader, "/a"), "in their order");
}

#[test]
fn answers_say_what_they_rest_on() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    let mut last = 0;
    for round in 0..5 {
        assert!(world.anyone(leader, create(&format!("/{round}"), "")).is_ok());
        let ticket = world.send_one(&one, get("/0"));
        let Outcome::Tree(reply) = world.answer(ticket) else { panic!("it tells of a tree") };
        let TreeReply { zxid, told: Ok(_) } = *reply else { panic!("it is there") };
        assert!(zxid.0 > last, "each answer shows one change more");
        last = zxid.0;
    }
}
