//! What a gateway hears: late, twice, of an earlier turn, of two primaries, of nobody's. It
//! believes what the primary tells it in this turn, once, and in its order.

use crate::coordination::message::{GatewayNews, Message, News};
use crate::coordination::tests::world::{Client, SOON, World, hosts, led, settings, three};
use crate::coordination::tree::sessions as tree_sessions;
use crate::coordination::tree::tests::world::{create, delete, set};
use crate::testing::hosts::Taken;
use quorate_kernel::news::News as Heard;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::process::Process;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::tree::{Act, Connect, Item, Told as Reply, What, Zxid};
use std::cell::RefCell;
use std::rc::Rc;
use std::string::String;
use std::vec::Vec;

/// Follows a node and all below it until it is told otherwise.
fn follow(world: &mut World, client: &Client, path: &str) {
    let act = Act::Follow { path: path.into(), recursive: true };
    assert_eq!(world.act(client, act), Ok(Reply::Done));
}

/// The host that alone has the group, and one that is the gateway of all clients.
const ALONE: usize = 0;
const GATEWAY: usize = 1;

fn one_member() -> World {
    let mut world = led(World::new(7, 2, settings(1, Durability::Sync)));
    world.run(Span::secs(1));
    world
}

/// The last of what a host tells another, which it goes on to be told.
fn watched(world: &mut World, from: usize, to: usize) -> Rc<RefCell<GatewayNews>> {
    let last = Rc::new(RefCell::new(GatewayNews::default()));
    let seen = Rc::clone(&last);
    world.take(move |at, of, message| {
        if let Message::Told(told) = message
            && (at, of) == (from, to)
        {
            seen.replace(told.clone());
        }
        false
    });
    last
}

/// A host tells another something that it has not told.
fn say(world: &mut World, from: usize, to: usize, told: GatewayNews) {
    let (me, start) = (world.hosts[from].me, world.hosts[to].me.start);
    world.let_come(&Taken { from: me, to, start, message: Message::Told(told) });
}

/// The gateway believes that its link to a host was reset.
fn reset(world: &mut World, gateway: usize, of: usize) {
    let node = world.hosts[of].me.node;
    world.turn(gateway, |process, cx| process.on_news(Heard::Unlinked(node), cx));
}

/// The only member restarts, and remembers no changes, while a gateway hears nothing of it, and the
/// node at `/a` is set.
fn forget_changes(world: &mut World) {
    world.part(ALONE, GATEWAY);
    assert!(world.anyone(ALONE, set("/a", "unseen", None)).is_ok());
    // What it executes again is known again: that is not in its log any more.
    for _ in 0..100 {
        assert!(world.anyone(ALONE, set("/b", "", None)).is_ok());
    }
    world.crash(ALONE);
    world.restart(ALONE);
    assert!(world.run_until(SOON, |world| world.leader().is_some()));
}

#[test]
fn who_follows_something_is_sent_away_if_changes_are_missing() {
    let mut world = one_member();
    let [one, two, three] = [(); 3].map(|()| world.open(GATEWAY));
    assert!(world.one(&one, create("/a", "")).is_ok());
    assert!(world.one(&one, create("/b", "")).is_ok());
    let get = Item::Get { path: "/a".into(), watch: true };
    assert!(world.one(&one, get).is_ok());
    world.run(Span::millis(600));
    world.part(ALONE, GATEWAY);
    // The second follows nothing, and its session moves meanwhile; the third's stays.
    world.attach(&two, ALONE);
    forget_changes(&mut world);
    world.mend();
    let are_told = |world: &mut World| [one, two, three].iter().all(|it| world.ended(it).is_some());
    assert!(world.run_until(SOON, are_told), "they come again, and look");
    assert_eq!(world.ended(&one), Some(Refusal::TooSlow));
    assert_eq!(world.changes(&one), [], "nothing is known of what has changed");
    let again = world.attach(&three, GATEWAY);
    follow(&mut world, &again, "/");
    assert!(world.anyone(ALONE, delete("/a", None)).is_ok());
    let is_told = |world: &mut World| !world.changes(&again).is_empty();
    assert!(world.run_until(SOON, is_told), "changes are told from now on");
}

#[test]
fn who_came_again_is_not_sent_away_by_what_comes_twice() {
    let mut world = one_member();
    let one = world.open(GATEWAY);
    assert!(world.one(&one, create("/a", "")).is_ok());
    assert!(world.one(&one, create("/b", "")).is_ok());
    follow(&mut world, &one, "/a");
    world.run(Span::millis(600));
    forget_changes(&mut world);
    world.mend();
    let mut lacks = None;
    // One that is of an earlier turn by then is not heard.
    while world.ended(&one).is_none() {
        world.take(|from, _, message| {
            matches!(message, Message::Told(told) if from == ALONE && told.lacks)
        });
        world.run_to_taken(1, SOON);
        let taken = world.taken().remove(0);
        world.let_come(&taken);
        lacks = Some(taken);
    }
    let lacks = lacks.expect("changes are missing");
    assert_eq!(world.ended(&one), Some(Refusal::TooSlow));
    let again = world.attach(&one, GATEWAY);
    follow(&mut world, &again, "/a");
    world.let_come(&lacks);
    assert_eq!(world.ended(&again), None, "it has come since");
    assert!(world.anyone(ALONE, set("/a", "seen", None)).is_ok());
    world.run(Span::secs(1));
    assert_eq!(world.changes(&again), [("/a".into(), What::Data)]);
    assert_eq!(world.ended(&again), None);
}

/// How many sessions a gateway has.
fn sessions(world: &World, at: usize) -> usize {
    world.hosts[at].process.as_ref().expect("it is up").gateway.sessions()
}

#[test]
fn a_gateway_forgets_a_session_that_has_moved_unseen() {
    let mut world = one_member();
    let one = world.open(GATEWAY);
    assert!(world.one(&one, create("/a", "")).is_ok());
    assert!(world.one(&one, create("/b", "")).is_ok());
    world.run(Span::millis(600));
    world.part(ALONE, GATEWAY);
    world.attach(&one, ALONE);
    forget_changes(&mut world);
    let moved = world.attach(&one, ALONE);
    world.mend();
    assert_eq!(sessions(&world, GATEWAY), 1, "it knows nothing of it");
    let end = world.now + SOON + SOON;
    while sessions(&world, GATEWAY) > 0 && world.now < end {
        assert_eq!(world.act(&moved, Act::Ping), Ok(Reply::Done));
        world.run(Span::millis(100));
    }
    assert_eq!(sessions(&world, GATEWAY), 0, "it is told that the session goes on elsewhere");
    assert_eq!((world.ended(&moved), world.sessions_there(ALONE)), (None, 1));
}

#[test]
fn who_waits_for_a_session_that_has_ended_unseen_is_sent_away() {
    let mut world = one_member();
    let one = world.open_with(GATEWAY, Span::secs(60));
    assert!(world.one(&one, create("/a", "")).is_ok());
    assert!(world.one(&one, create("/b", "")).is_ok());
    world.leave(&one);
    world.run(Span::millis(600));
    // It is attached, and the gateway does not hear so.
    world.cut.insert((ALONE, GATEWAY));
    let session = Some((one.session, one.password));
    let connect = Connect { session, timeout_ms: 60_000, seen: Zxid(0), peer: None };
    let waits = world.connect(GATEWAY, connect);
    let is_attached = |world: &mut World| {
        let hosted = world.hosts[ALONE].process.as_ref().and_then(|it| it.hosted.as_ref());
        hosted.is_some_and(|it| tree_sessions(it.machine.objects()).any(|(_, it)| it.attached == 2))
    };
    assert!(world.run_until(SOON, is_attached), "what it asks is heard");
    let moved = world.attach(&one, ALONE);
    assert_eq!(world.act(&moved, Act::Close), Ok(Reply::Done));
    forget_changes(&mut world);
    world.mend();
    assert!(world.run_to(SOON, |world| !world.told(waits).is_empty()), "it is told");
    world.run(Span::secs(1));
    assert_eq!(world.told(waits), [&Outcome::Refused(Refusal::TooSlow)], "and looks again");
    let again = world.go_on(&one, GATEWAY);
    assert_eq!(world.opened(GATEWAY, again), None, "its session is over");
}

#[test]
fn who_gives_up_a_close_between_the_end_of_its_session_and_the_answer_is_told_the_end() {
    let mut world = one_member();
    let one = world.open_with(GATEWAY, Span::secs(60));
    world.take(|from, to, message| {
        let closes = |told: &GatewayNews| told.news.iter().any(|it| matches!(it, News::Done(..)));
        (from, to) == (ALONE, GATEWAY) && matches!(message, Message::Told(it) if closes(it))
    });
    let ticket = world.send(&one, Act::Close);
    world.run_to_taken(1, SOON);
    let taken = world.taken().remove(0);
    world.cut.insert((ALONE, GATEWAY));
    let Message::Told(told) = taken.message else { panic!("it is told") };
    let [change, done] = &told.news[..] else { panic!("a change, and the answer") };
    assert!(matches!((change, done), (News::Change(..), News::Done(..))));
    say(&mut world, ALONE, GATEWAY, GatewayNews { news: Vec::from([change.clone()]), ..told });
    assert!(world.ended(&one).is_none(), "the answer is still to come");
    assert_eq!(world.answer(ticket), Outcome::Refused(Refusal::OutcomeUnknown));
    assert!(world.is_expired(&one) && world.ended(&one) == Some(Refusal::NoSession));
    world.mend();
    world.run(SOON);
    assert!(world.ended(&one).is_some(), "it is told once");
}

#[test]
fn what_a_host_tells_as_primary_of_two_views_is_not_one_stream() {
    let mut world = one_member();
    let one = world.open(GATEWAY);
    assert!(world.one(&one, create("/a", "")).is_ok());
    follow(&mut world, &one, "/a");
    let last = watched(&mut world, ALONE, GATEWAY);
    world.run(Span::millis(600));
    let (turn, number) = (last.borrow().turn, last.borrow().number);
    assert!(number > 0, "something was told");
    // It leads in a later view, and the gateway is not told so, nor what it hears first.
    world.take(move |from, to, message| {
        (from, to) == (ALONE, GATEWAY)
            && match message {
                Message::Told(told) => (told.turn, told.number) != (turn, number + 1),
                _ => true,
            }
    });
    world.crash(ALONE);
    world.restart(ALONE);
    assert!(world.run_until(SOON, |world| world.leader() == Some(ALONE)));
    let is_heard = |world: &World| !world.tap.taken.is_empty();
    assert!(world.run_to(SOON, is_heard), "the gateway has said that it is there");
    let mut count = 0;
    let told = |world: &World| {
        let numbers = world.tap.taken.iter().map(|taken| match &taken.message {
            Message::Told(told) if told.turn == turn => told.number,
            _ => 0,
        });
        numbers.max().unwrap_or_default()
    };
    while told(&world) <= number {
        assert!(world.anyone(ALONE, set("/a", "new", None)).is_ok());
        count += 1;
        world.run(Span::millis(5));
        if count > number + 5 {
            break;
        }
    }
    world.taken();
    assert!(world.anyone(ALONE, delete("/a", None)).is_ok());
    let is_over = |world: &mut World| {
        world.ended(&one).is_some() || world.changes(&one).last() == Some(&deleted())
    };
    assert!(world.run_until(SOON, is_over));
    let changed = world.changes(&one);
    assert_eq!(changed.len() as u64, count + 1, "each change is told: {changed:?}");
}

fn deleted() -> (String, What) {
    ("/a".into(), What::Deleted)
}

#[test]
fn what_was_told_in_an_earlier_turn_does_not_hide_what_was_lost_of_it() {
    let mut world = hosts(4);
    let (leader, gateway) = (world.leader().expect("somebody leads"), 3);
    let one = world.open(gateway);
    follow(&mut world, &one, "/");
    let is_told = move |from: usize, to: usize, message: &Message| {
        (from, to) == (leader, gateway)
            && matches!(message, Message::Told(told) if !told.news.is_empty())
    };
    world.take(is_told);
    assert!(world.anyone(leader, create("/a", "")).is_ok());
    world.run_to_taken(1, SOON);
    assert!(world.anyone(leader, create("/b", "")).is_ok());
    world.run_to_taken(2, SOON);
    let told = world.taken();
    // The gateway begins another turn, and what it asks in it is on its way.
    world.take(move |from, _, message| from == gateway && matches!(message, Message::Ask(_)));
    reset(&mut world, gateway, leader);
    let asked = world.taken();
    assert!(!asked.is_empty(), "it asks everything anew");
    world.let_come(&told[1]);
    asked.iter().for_each(|asked| world.let_come(asked));
    let both = |world: &mut World| world.changes(&one).len() >= 2;
    assert!(world.run_until(SOON, both), "{:?}", world.changes(&one));
    let made = ["/a", "/b"].map(|path| (String::from(path), What::Created));
    assert_eq!(world.changes(&one), made);
}

#[test]
fn what_is_told_once_more_is_no_event() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    follow(&mut world, &one, "/");
    let last = Rc::new(RefCell::new(None));
    let seen = Rc::clone(&last);
    world.take(move |from, to, message| {
        if let Message::Told(told) = message
            && (from, to) == (leader, other)
            && told.news.iter().any(|news| matches!(news, News::Change(..)))
        {
            seen.replace(Some(told.clone()));
        }
        false
    });
    assert!(world.anyone(leader, create("/a", "")).is_ok());
    assert!(world.run_to(SOON, |world| !world.changes(&one).is_empty()));
    let told: GatewayNews = last.take().expect("it was told of the change");
    let number = told.number + 1;
    // Its next message says the same, and so says one of the same number.
    say(&mut world, leader, other, GatewayNews { number, ..told.clone() });
    say(&mut world, leader, other, told);
    world.run(Span::secs(1));
    assert_eq!(world.changes(&one), [("/a".into(), What::Created)]);
    assert!(world.anyone(leader, set("/a", "x", None)).is_ok());
    assert!(world.run_until(SOON, |world| world.changes(&one).len() == 2), "it goes on");
}

#[test]
fn who_is_not_asked_is_not_believed() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    let one = world.open(other);
    follow(&mut world, &one, "/");
    let last = watched(&mut world, leader, other);
    world.run(Span::secs(1));
    let told = last.borrow().clone();
    say(&mut world, third, other, GatewayNews { has_ended: true, ..GatewayNews::default() });
    assert_eq!(world.ended(&one), None, "its host has not started again");
    for number in [1, told.number + 1] {
        let upto = told.upto + 100;
        say(&mut world, third, other, GatewayNews { number, upto, lacks: true, ..told.clone() });
    }
    assert_eq!(world.ended(&one), None, "and lacks nothing");
    assert!(world.anyone(leader, create("/a", "")).is_ok());
    assert!(world.run_until(SOON, |world| !world.changes(&one).is_empty()), "nor has it seen all");
    assert_eq!(world.ended(&one), None);
}

#[test]
fn who_is_told_that_its_host_has_started_again_is_sent_away() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    let waits = world.send_one(&one, create("/late", ""));
    say(&mut world, leader, other, GatewayNews { has_ended: true, ..GatewayNews::default() });
    assert_eq!(world.ended(&one), Some(Refusal::Stopping));
    let told = world.answer(waits);
    assert_eq!(told, Outcome::Refused(Refusal::OutcomeUnknown));
}
