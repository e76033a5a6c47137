//! Writes do not wait for the answers of reads in front of them, and those see nothing of them.

use super::order::place;
use super::world::{Client, SOON, World, data_of, hosts, three};
use crate::coordination::Message;
use crate::coordination::message::{GatewayNews as Taken, News as Told};
use crate::coordination::tree::Answer;
use crate::coordination::tree::tests::world::{children, create, get, set};
use bytes::Bytes;
use quorate_kernel::ids::Ticket;
use quorate_kernel::news::News;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::process::Process;
use quorate_kernel::time::Span;
use quorate_kernel::tree::{Act, Item, What};
use std::format;
use std::string::String;
use std::vec::Vec;

/// How often a session reads, writes and reads.
const ROUNDS: usize = 3;

/// What is written in a round: more than the state keeps of an answer.
fn value(round: usize) -> String {
    format!("{round:0200}")
}

/// A client of a host, whose answers are known to be small.
fn client(world: &mut World, at: usize) -> Client {
    let client = world.open(at);
    assert!(world.one(&client, create("/a", &value(0))).is_ok());
    for _ in 0..20 {
        assert!(world.one(&client, get("/a")).is_ok());
    }
    client
}

/// What a session reads and writes at once; the last of it makes a node.
fn ask(world: &mut World, client: &Client) -> Vec<Ticket> {
    let mut tickets = Vec::new();
    for round in 1..=ROUNDS {
        tickets.push(world.send_one(client, get("/a")));
        tickets.push(world.send_one(client, set("/a", &value(round), Some(round as i32 - 1))));
        tickets.push(world.send_one(client, get("/a")));
    }
    tickets.push(world.send_one(client, create("/last", "")));
    tickets
}

/// The same, of which the gateway hears nothing, until all of it is done.
fn ask_unheard(world: &mut World, (leader, at): (usize, usize), client: &Client) -> Vec<Ticket> {
    // All is asked at one time, as links overtake.
    world.part(leader, at);
    let tickets = ask(world, client);
    world.mend();
    take_told(world, leader, at);
    unlink(world, at, leader);
    let is_done = |world: &mut World| world.has_node(leader, "/last");
    assert!(world.run_until(Span::millis(250), is_done), "no write waits for an answer");
    tickets
}

/// Each read has found what was written before it, and nothing behind.
fn are_answered(world: &mut World, tickets: &[Ticket]) {
    let data = |round: usize| Some(Bytes::from(value(round)));
    for (round, asked) in tickets[..3 * ROUNDS].chunks(3).enumerate() {
        assert_eq!(data_of(world.reply(asked[0])), data(round), "round {round}");
        assert!(world.reply(asked[1]).is_ok(), "round {round}");
        assert_eq!(data_of(world.reply(asked[2])), data(round + 1), "round {round}");
    }
    assert!(world.reply(tickets[3 * ROUNDS]).is_ok());
    let places = tickets.iter().map(|ticket| place(world, *ticket));
    assert!(places.is_sorted(), "answers come in the order of what is asked");
}

/// What a primary tells a gateway is taken from the links.
fn take_told(world: &mut World, leader: usize, at: usize) {
    world.take(move |from, to, message| {
        (from, to) == (leader, at) && matches!(message, Message::Told(_))
    });
}

fn unlink(world: &mut World, at: usize, from: usize) {
    let node = world.hosts[from].me.node;
    world.turn(at, |process, cx| process.on_news(News::Unlinked(node), cx));
}

#[test]
fn writes_are_done_before_the_reads_before_them_are_answered() {
    let (mut world, leader, other) = three();
    let one = client(&mut world, other);
    let tickets = ask_unheard(&mut world, (leader, other), &one);
    for told in world.taken() {
        world.let_come(&told);
    }
    are_answered(&mut world, &tickets);
}

#[test]
fn what_was_told_and_lost_is_told_again() {
    let (mut world, leader, other) = three();
    let one = client(&mut world, other);
    let tickets = ask_unheard(&mut world, (leader, other), &one);
    drop(world.taken());
    unlink(&mut world, other, leader);
    are_answered(&mut world, &tickets);
    // The same where the reads were on their way as questions when the writes came.
    assert!(world.one(&one, set("/a", &value(0), None)).is_ok());
    world.cut.insert((other, leader));
    let read = world.send_one(&one, get("/a"));
    world.run(Span::millis(10));
    world.mend();
    let write = world.send_one(&one, set("/a", &value(1), None));
    assert_eq!(data_of(world.reply(read)), Some(value(0).into()));
    assert!(world.reply(write).is_ok());
}

#[test]
fn the_next_primary_tells_what_was_found_in_front_of_a_write() {
    for gateway in [1, 2, 3] {
        let mut world = hosts(4);
        let leader = world.leader().expect("somebody leads");
        let at = if gateway == 3 { 3 } else { (leader + gateway) % 3 };
        let one = client(&mut world, at);
        let tickets = ask_unheard(&mut world, (leader, at), &one);
        world.crash(leader);
        drop(world.taken());
        are_answered(&mut world, &tickets);
        assert_eq!(world.ended(&one), None, "its connection stays");
        world.restart(leader);
        world.agree();
    }
}

#[test]
fn an_answer_to_a_question_that_went_ahead_is_not_heard() {
    let (mut world, leader, other) = three();
    let one = client(&mut world, other);
    // The question is on its way, and what is said of it comes late.
    world.take(move |from, to, message| {
        (from, to) == (other, leader)
            && matches!(message, Message::Ask(ask) if !ask.questions.is_empty())
    });
    let read = world.send_one(&one, get("/a"));
    world.run_to_taken(1, SOON);
    let late = world.taken();
    let write = world.send_one(&one, set("/a", &value(1), None));
    take_told(&mut world, leader, other);
    let is_done = |world: &mut World| world.data(leader, "/a") == Some(value(1).into());
    assert!(world.run_until(Span::millis(250), is_done));
    late.iter().for_each(|ask| world.let_come(ask));
    world.run(Span::millis(20));
    let told = world.taken();
    told.iter().for_each(|told| world.let_come(told));
    assert_eq!(data_of(world.reply(read)), Some(value(0).into()));
    assert!(world.reply(write).is_ok());
    assert_eq!(world.told(read).len(), 1, "it is answered once");
}

#[test]
fn who_watches_with_a_read_in_front_of_a_write_is_told_of_that_write() {
    let (mut world, leader, other) = three();
    let one = client(&mut world, other);
    world.part(leader, other);
    let read = world.send_one(&one, Item::Get { path: "/a".into(), watch: true });
    let write = world.send_one(&one, set("/a", &value(1), None));
    world.mend();
    take_told(&mut world, leader, other);
    unlink(&mut world, other, leader);
    let is_done = |world: &mut World| world.data(leader, "/a") == Some(value(1).into());
    assert!(world.run_until(Span::millis(250), is_done));
    drop(world.taken());
    unlink(&mut world, other, leader);
    assert_eq!(data_of(world.reply(read)), Some(value(0).into()));
    assert!(world.reply(write).is_ok());
    assert_eq!(world.changes(&one), [(String::from("/a"), What::Data)]);
    // A connection that follows in front of a write too.
    let follow = world.send(&one, Act::Follow { path: "/b".into(), recursive: false });
    let made = world.send_one(&one, create("/b", ""));
    assert!(world.reply(follow).is_ok() && world.reply(made).is_ok());
    assert_eq!(world.changes(&one).last(), Some(&(String::from("/b"), What::Created)));
}

#[test]
fn where_nobody_knows_an_answer_any_more_the_connection_ends() {
    let (mut world, leader, other) = three();
    let one = client(&mut world, other);
    let tickets = ask_unheard(&mut world, (leader, other), &one);
    let mut lost = 0;
    for mut taken in world.taken() {
        let Message::Told(told) = &mut taken.message else { panic!("it is taken") };
        let done = told.news.iter_mut().filter_map(|news| match news {
            Told::Done(_, answer) if answer.bytes() > 200 => Some(answer),
            _ => None,
        });
        if let Some(answer) = done.into_iter().next().filter(|_| lost == 0) {
            (*answer, lost) = (Answer::Lost, 1);
        }
        world.let_come(&taken);
    }
    assert_eq!(lost, 1);
    assert_eq!(world.answer(tickets[0]), Outcome::Refused(Refusal::TooSlow));
    assert_eq!(world.ended(&one), Some(Refusal::TooSlow));
    let again = world.attach(&one, other);
    assert_eq!(data_of(world.one(&again, get("/a"))), Some(value(ROUNDS).into()));
    // It may have been too large, and it is not to be lost each time.
    let two = world.open(other);
    one_of_two_waits(&mut world, (leader, other), &[again, two]);
}

#[test]
fn writes_wait_for_reads_that_cannot_go_ahead() {
    let (mut world, leader, other) = three();
    let one = client(&mut world, other);
    // A list, and many.
    for reads in [Vec::from([children("/")]), Vec::from([(); 9].map(|()| get("/a")))] {
        take_told(&mut world, leader, other);
        let reads: Vec<Ticket> = reads.into_iter().map(|it| world.send_one(&one, it)).collect();
        let write = world.send_one(&one, set("/a", "x", None));
        world.run(Span::millis(50));
        assert_eq!(world.data(leader, "/a"), Some(value(0).into()), "it waits");
        for told in world.taken() {
            world.let_come(&told);
        }
        for read in reads {
            assert!(world.reply(read).is_ok());
        }
        assert!(world.reply(write).is_ok());
        assert!(world.one(&one, set("/a", &value(0), None)).is_ok());
    }
}

#[test]
fn what_one_message_answers_is_asked_once() {
    let (mut world, leader, other) = three();
    let one = client(&mut world, other);
    world.part(leader, other);
    let reads = [(); 9].map(|()| world.send_one(&one, get("/a")));
    let write = world.send_one(&one, set("/a", "x", None));
    world.mend();
    take_told(&mut world, leader, other);
    unlink(&mut world, other, leader);
    world.run(Span::millis(50));
    let told = world.taken();
    let count = |told: &Taken| told.news.iter().filter(|it| matches!(it, Told::Answer(..))).count();
    let is_all = |taken: &Message| matches!(taken, Message::Told(told) if count(told) == 9);
    let all = told.iter().rfind(|it| is_all(&it.message));
    world.let_come(all.expect("one message answers all"));
    let process = world.hosts[other].process.as_ref();
    assert_eq!(process.map(|it| it.gateway.waiting()), Some((1, 0)), "the write alone is asked");
    unlink(&mut world, other, leader);
    for read in reads {
        assert_eq!(data_of(world.reply(read)), Some(value(0).into()));
    }
    assert!(world.reply(write).is_ok());
}

#[test]
fn what_waits_where_a_session_was_is_not_told_that_it_has_ended() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    take_told(&mut world, leader, other);
    world.send_one(&one, children("/"));
    let write = world.send_one(&one, create("/a", ""));
    world.run(Span::millis(50));
    let moved = world.attach(&one, 3 - leader - other);
    drop(world.taken());
    unlink(&mut world, other, leader);
    assert_eq!(world.answer(write), Outcome::Refused(Refusal::NoRoute), "nothing was done");
    assert_eq!(world.ended(&one), Some(Refusal::NoSession));
    assert!(!world.has_node(leader, "/a"));
    assert!(world.one(&moved, create("/a", "")).is_ok(), "it goes on");
}

/// Of two clients that read much and write, one waits: answers are expected to be large.
fn one_of_two_waits(world: &mut World, (leader, at): (usize, usize), clients: &[Client; 2]) {
    for (path, client) in ["/0", "/1"].iter().zip(clients) {
        assert!(world.one(client, create(path, "")).is_ok());
    }
    world.part(leader, at);
    let mut tickets = Vec::new();
    for (path, client) in ["/0", "/1"].iter().zip(clients) {
        tickets.extend([(); 7].map(|()| world.send_one(client, get(path))));
        tickets.push(world.send_one(client, set(path, "x", None)));
    }
    world.mend();
    take_told(world, leader, at);
    unlink(world, at, leader);
    world.run(Span::millis(100));
    assert_eq!(world.data(leader, "/0"), Some("x".into()));
    assert_eq!(world.data(leader, "/1"), Some(Bytes::new()), "it waits");
    for told in world.taken() {
        world.let_come(&told);
    }
    for ticket in tickets {
        assert!(world.reply(ticket).is_ok());
    }
    assert_eq!(world.data(leader, "/1"), Some("x".into()));
}

#[test]
fn writes_wait_while_there_may_be_no_room_for_the_answers_of_reads() {
    let (mut world, leader, other) = three();
    // Nothing is known of the answers yet.
    let clients = [(); 2].map(|()| world.open(other));
    one_of_two_waits(&mut world, (leader, other), &clients);
}
