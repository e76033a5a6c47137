//! What hosts say to each other has bounds, by bytes and by number, whatever clients ask.

use crate::coordination::gateway::stream::QUESTIONS_MAX;
use crate::coordination::message::{Message, News as Said};
use crate::coordination::tests::order::place;
use crate::coordination::tests::world::{Client, SOON, World, hosts, led, settings};
use crate::coordination::tree::tests::world::{children, create, get, set};
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::Ticket;
use quorate_kernel::limits::{CLIENT_OPERATIONS_MAX, TRANSACTION_BYTES_MAX, TREE_PATH_BYTES_MAX};
use quorate_kernel::news::News;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::process::Process;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::tree::{Act, Failure, Item, Told};
use quorate_kernel::wire::Body;
use std::cell::Cell;
use std::format;
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;

/// A host that is the gateway of clients and has nothing of the tree.
const GATEWAY: usize = 3;
const MIB: usize = 1024 * 1024;

/// What one turn of the gateway asks, and how many bytes each message has. All of it is lost.
fn asked(world: &mut World) -> Vec<(usize, usize, usize)> {
    let sizes = world.taken().into_iter().filter_map(|taken| {
        let body = Body::encode(&taken.message, &mut BytesMut::new()).expect("it fits");
        match taken.message {
            Message::Ask(ask) => {
                Some((ask.commands.len(), ask.questions.len(), body.frame_bytes()))
            }
            _ => None,
        }
    });
    sizes.collect()
}

/// Asks all of it while nothing is heard of it, and then of the primary anew, at once; what the
/// gateway says then, and the tickets.
fn ask_at_once(
    world: &mut World,
    asked_for: Vec<Operation>,
) -> (Vec<(usize, usize, usize)>, Vec<Ticket>) {
    world.isolate(GATEWAY);
    let requests = asked_for.into_iter();
    let tickets = requests.map(|it| world.request(GATEWAY, it, Span::secs(20))).collect();
    world.mend();
    world.take(|from, _, message| from == GATEWAY && matches!(message, Message::Ask(_)));
    let leader = world.leader().expect("somebody leads");
    let node = world.hosts[leader].me.node;
    world.turn(GATEWAY, |process, cx| process.on_news(News::Unlinked(node), cx));
    (asked(world), tickets)
}

/// A key that is about as long as may be.
fn long(number: usize) -> String {
    format!("/{number}{}", "x".repeat(TREE_PATH_BYTES_MAX - 100))
}

#[test]
fn what_is_asked_at_once_goes_in_messages_of_a_size() {
    let mut world = hosts(4);
    world.run(Span::secs(1));
    let gets = (0..200).map(|number| Operation::get(long(number).into()));
    let puts = (0..200).map(|number| Operation::put(long(number).into(), Bytes::new()));
    let (said, tickets) = ask_at_once(&mut world, gets.chain(puts).collect());
    assert!(said.len() >= 4, "{} messages for 6 MiB", said.len());
    let questions: usize = said.iter().map(|(_, questions, _)| questions).sum();
    let commands: usize = said.iter().map(|(commands, ..)| commands).sum();
    assert_eq!((commands, questions), (200, 200), "all of it is asked");
    for (commands, questions, bytes) in said {
        // One more of each kind than fits a mebibyte.
        let most = 2 * (MIB + TREE_PATH_BYTES_MAX);
        assert!(bytes <= most, "{commands} commands and {questions} questions in {bytes}");
    }
    for ticket in tickets {
        let told = world.answer_within(ticket, Span::secs(30));
        assert!(!matches!(told, Outcome::Refused(_)), "{told:?}");
    }
}

#[test]
fn what_is_asked_at_once_goes_in_messages_of_so_many() {
    let mut world = hosts(4);
    world.run(Span::secs(1));
    let gets = (0..3000).map(|_| Operation::get("/a".into()));
    let puts = (0..3000).map(|number| Operation::put(format!("/{number}").into(), Bytes::new()));
    let (said, tickets) = ask_at_once(&mut world, gets.chain(puts).collect());
    assert_eq!(said.len(), 3, "messages");
    assert!(said.iter().all(|(commands, questions, _)| *commands <= 1024 && *questions <= 1024));
    for ticket in tickets {
        let told = world.answer_within(ticket, Span::secs(30));
        assert!(!matches!(told, Outcome::Refused(_)), "{told:?}");
    }
}

#[test]
fn a_gateway_has_so_many_questions_and_no_more() {
    let mut world = hosts(4);
    world.run(Span::secs(1));
    world.isolate(GATEWAY);
    let get = || Operation::get("/a".into());
    for _ in 0..QUESTIONS_MAX {
        world.request(GATEWAY, get(), Span::secs(1));
    }
    assert_eq!(world.answers.len(), 0, "all of them wait");
    let more = world.request(GATEWAY, get(), Span::secs(1));
    assert_eq!(world.told(more), [&Outcome::Refused(Refusal::Overloaded)]);
    world.run(Span::millis(1100));
    assert_eq!(world.answers.len(), QUESTIONS_MAX + 1, "all are answered by their deadlines");
    world.mend();
    let again = world.request(GATEWAY, get(), SOON);
    assert_eq!(world.answer(again), Outcome::value(None), "there is room again");
}

#[test]
fn so_many_operations_of_a_session_wait_behind_a_read() {
    let mut world = hosts(4);
    let one = world.open(GATEWAY);
    assert!(world.one(&one, create("/a", "old")).is_ok());
    world.isolate(GATEWAY);
    let read = world.send_one(&one, children("/"));
    let waits: Vec<Ticket> = (0..CLIENT_OPERATIONS_MAX)
        .map(|number| world.send_one(&one, set("/a", &format!("{number}"), None)))
        .collect();
    let more = world.send_one(&one, get("/a"));
    assert_eq!(world.answer(more), Outcome::Refused(Refusal::Overloaded));
    assert_eq!(world.act(&one, Act::Ping), Ok(Told::Done), "its client is there");
    world.mend();
    assert!(world.reply(read).is_ok());
    for ticket in waits {
        assert!(world.reply(ticket).is_ok());
    }
    let last = format!("{}", CLIENT_OPERATIONS_MAX - 1);
    assert_eq!(world.data(GATEWAY, "/a"), Some(last.into()));
}

/// A keyspace of large nodes, one of which has a mebibyte.
fn large() -> (World, Client) {
    let settings =
        crate::coordination::Settings { value_bytes_max: MIB, ..settings(3, Durability::Sync) };
    let mut world = led(World::new(7, 4, settings));
    let one = world.open_with(GATEWAY, Span::secs(60));
    let mut made = create("/large", "");
    if let Item::Create { data, .. } = &mut made {
        *data = Some(Bytes::from([b'x'; MIB].to_vec()));
    }
    assert!(world.one(&one, made).is_ok());
    (world, one)
}

/// The most bytes of one message that a gateway is told, from now on.
fn largest(world: &mut World) -> Rc<Cell<usize>> {
    let largest = Rc::new(Cell::new(0));
    let seen = Rc::clone(&largest);
    world.take(move |_, _, message| {
        if matches!(message, Message::Told(_)) {
            let body = Body::encode(message, &mut BytesMut::new()).expect("it fits");
            seen.set(seen.get().max(body.frame_bytes()));
        }
        false
    });
    largest
}

#[test]
fn answers_go_in_messages_of_a_size() {
    let (mut world, one) = large();
    // Links that keep the order: what overtakes would be asked for again.
    world.delay_max = Span::micros(50);
    let largest = largest(&mut world);
    let asked: Vec<Ticket> = (0..20).map(|_| world.send_one(&one, get("/large"))).collect();
    for ticket in asked {
        assert!(matches!(world.reply(ticket), Ok(Told::Data { .. })));
    }
    let largest = largest.get();
    assert!((MIB..MIB + 1000).contains(&largest), "{largest} bytes at once");
}

#[test]
fn reads_for_whose_answers_there_is_no_room_fail_and_no_others() {
    let (mut world, one) = large();
    let fit = TRANSACTION_BYTES_MAX / (MIB + 64);
    let reads = (0..fit + 5).map(|_| get("/large")).chain([get("/none")]).collect();
    let Ok(Told::Many(many)) = world.act(&one, Act::Each(reads)) else { panic!("several") };
    let is_read = |told: &Result<Told, Failure>| matches!(told, Ok(Told::Data { .. }));
    assert!(many[..fit].iter().all(is_read), "there is room for so many");
    assert!(many[fit..fit + 5].iter().all(|told| *told == Err(Failure::Quota)));
    assert_eq!(many[fit + 5], Err(Failure::NoNode), "what has no bytes needs no room");
}

#[test]
fn a_turn_answers_so_much_and_the_next_ones_go_on_in_order() {
    let settings =
        crate::coordination::Settings { value_bytes_max: MIB, ..settings(1, Durability::Sync) };
    let mut world = led(World::new(7, 2, settings));
    world.run(Span::secs(1));
    let one = world.open_with(1, Span::secs(60));
    let mut made = create("/large", "");
    if let Item::Create { data, .. } = &mut made {
        *data = Some(Bytes::from([b'x'; MIB].to_vec()));
    }
    assert!(world.one(&one, made).is_ok());
    world.part(0, 1);
    let asked: Vec<Ticket> = (0..40).map(|_| world.send_one(&one, get("/large"))).collect();
    world.mend();
    // Links that keep the order: what is missed would be asked for again.
    world.delay_max = Span::micros(50);
    let told = Rc::new(Cell::new(0));
    let seen = Rc::clone(&told);
    world.take(move |from, _, message| {
        if let Message::Told(message) = message {
            let answers = message.news.iter();
            let answers = answers.filter(|it| matches!(it, Said::Answer(..))).count();
            seen.set(seen.get() + answers);
        }
        from == 1 && matches!(message, Message::Ask(ask) if !ask.questions.is_empty())
    });
    let node = world.hosts[0].me.node;
    world.turn(1, |process, cx| process.on_news(News::Unlinked(node), cx));
    let all = world.tap.taken.remove(0);
    assert!(matches!(&all.message, Message::Ask(ask) if ask.questions.len() == 40), "at once");
    // The only member knows at once that it leads: this is one turn.
    world.let_come(&all);
    assert_eq!(told.get(), 8, "as many as are eight mebibytes");
    for ticket in &asked {
        assert!(matches!(world.reply(*ticket), Ok(Told::Data { .. })));
    }
    assert!(asked.iter().map(|ticket| place(&world, *ticket)).is_sorted(), "in their order");
}
