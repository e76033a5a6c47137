//! Where that is so set hosts answer what sessions read, from what their replicas have executed: in
//! the order of each session, and never what was not committed.

use super::order::place;
use super::world::{Client, SOON, World, data_of, led, settings};
use crate::coordination::Message;
use crate::coordination::tree::tests::world::{create, digest, get, set};
use crate::groups::is_ready;
use bytes::Bytes;
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::tree::{
    Acl, Act, Failure, Followed, Item, SessionEvent, Told, TreeReply, What,
};
use quorate_kernel::watch::Event;
use std::format;
use std::string::String;
use std::vec::Vec;

/// So many hosts, of which three have the tree and answer what sessions read; the one that leads,
/// and another one with a replica.
pub fn world(hosts: u64) -> (World, usize, usize) {
    let mut settings = settings(3, Durability::Sync);
    settings.session_reads = true;
    let world = led(World::new(7, hosts, settings));
    let leader = world.leader().expect("somebody leads");
    (world, leader, (leader + 1) % 3)
}

/// What something was answered in the turn in which it was asked.
pub fn at_once(world: &World, ticket: Ticket) -> Option<TreeReply> {
    match world.told(ticket)[..] {
        [Outcome::Tree(reply)] => Some((**reply).clone()),
        _ => None,
    }
}

pub fn value(reply: Option<TreeReply>) -> Option<Bytes> {
    reply.and_then(|reply| data_of(reply.told))
}

fn is_of_log(message: &Message) -> bool {
    matches!(message, Message::Log(_))
}

fn is_told(message: &Message) -> bool {
    matches!(message, Message::Told(_))
}

/// A host's replica hears nothing more of the log; its gateway does.
pub fn starve(world: &mut World, at: usize) {
    world.take(move |_, to, message| to == at && is_of_log(message));
}

/// All that happens has come everywhere.
pub fn settle(world: &mut World) {
    world.run(Span::millis(200));
}

/// A client of a host, for longer than any test takes, and a node that it has made.
pub fn client(world: &mut World, at: usize) -> Client {
    let client = world.open_with(at, Span::secs(60));
    assert!(world.one(&client, create("/a", "old")).is_ok());
    settle(world);
    client
}

/// A read that begins to follow.
fn watched(path: &str) -> Item {
    Item::Get { path: path.into(), watch: true }
}

#[test]
fn a_host_answers_what_its_sessions_read_and_nobody_else() {
    let (mut world, leader, other) = world(4);
    let outside = 3;
    let [here, there] = [client(&mut world, other), world.open(outside)];
    let read = world.send_one(&here, get("/a"));
    assert_eq!(value(at_once(&world, read)), Some("old".into()));
    let each = world.send(&here, Act::Each([get("/a"), get("/b")].into()));
    assert!(at_once(&world, each).is_some());
    // Who has no replica asks who has one; so does who has no session.
    let read = world.send_one(&there, get("/a"));
    assert_eq!(at_once(&world, read), None);
    assert_eq!(data_of(world.reply(read)), Some("old".into()));
    assert_eq!(world.data(other, "/a"), Some("old".into()));
    // What others write comes by itself.
    assert!(world.anyone(leader, set("/a", "new", None)).is_ok());
    settle(&mut world);
    let read = world.send_one(&here, get("/a"));
    assert_eq!(value(at_once(&world, read)), Some("new".into()));
    world.settings.session_reads = false;
    world.crash(other);
    world.restart(other);
    let again = world.attach(&here, other);
    let read = world.send_one(&again, get("/a"));
    assert_eq!(at_once(&world, read), None, "it is linearizable by now");
}

#[test]
fn members_execute_at_once_what_is_committed() {
    let (mut world, leader, other) = world(3);
    assert!(world.anyone(leader, create("/a", "")).is_ok());
    let soon = Span::millis(10);
    assert!(world.run_to(soon, |world| world.has_node(other, "/a")), "before the next beat");
}

#[test]
fn a_session_reads_what_it_has_written_before_also_if_it_does_not_wait() {
    let (mut world, _, other) = world(3);
    let client = client(&mut world, other);
    let asked = [set("/a", "1", None), get("/a"), set("/a", "2", None), get("/a")];
    let asked = asked.map(|item| world.send_one(&client, item));
    assert!(world.reply(asked[0]).is_ok());
    assert_eq!(data_of(world.reply(asked[1])), Some("1".into()));
    assert!(world.reply(asked[2]).is_ok());
    assert_eq!(data_of(world.reply(asked[3])), Some("2".into()));
    assert!(asked.map(|ticket| place(&world, ticket)).is_sorted());
}

#[test]
fn behind_a_sync_is_read_what_was_committed_before_it() {
    let (mut world, leader, other) = world(3);
    let client = client(&mut world, other);
    for round in 0..5 {
        let new = format!("{round}");
        assert!(world.anyone(leader, set("/a", &new, None)).is_ok());
        let sync = world.send(&client, Act::Sync { path: "/".into() });
        let read = world.send_one(&client, get("/a"));
        assert_eq!(data_of(world.reply(read)), Some(new.into()));
        assert!(place(&world, sync) < place(&world, read));
        let read = world.send_one(&client, get("/a"));
        assert_eq!(data_of(world.reply(read)), Some(format!("{round}").into()));
    }
}

#[test]
fn what_a_session_was_told_it_never_sees_undone() {
    let (mut world, leader, other) = world(3);
    let here = client(&mut world, other);
    starve(&mut world, other);
    assert!(world.one(&here, set("/a", "new", None)).is_ok());
    let read = world.send_one(&here, get("/a"));
    assert_eq!(at_once(&world, read), None, "the replica lags");
    assert_eq!(data_of(world.reply(read)), Some("new".into()));
    // A session that comes from elsewhere has seen what was there.
    let there = world.open_with(leader, Span::secs(60));
    assert!(world.one(&there, set("/a", "newer", None)).is_ok());
    let moved = world.attach(&there, other);
    assert_eq!(data_of(world.one(&moved, get("/a"))), Some("newer".into()));
    world.taken();
    settle(&mut world);
    let read = world.send_one(&moved, get("/a"));
    assert_eq!(value(at_once(&world, read)), Some("newer".into()));
}

#[test]
fn a_replica_that_is_left_behind_answers_nothing_older_than_its_host_has_heard_of() {
    let (mut world, leader, other) = world(3);
    let client = client(&mut world, other);
    starve(&mut world, other);
    assert!(world.anyone(leader, set("/a", "new", None)).is_ok());
    let read = world.send_one(&client, get("/a"));
    assert_eq!(value(at_once(&world, read)), Some("old".into()), "nobody here knows yet");
    // The gateway hears how far the primary is, as it says that it is there.
    world.run(Span::secs(1));
    let hosted = world.hosts[other].process.as_ref().and_then(|it| it.hosted.as_ref());
    assert!(hosted.is_some_and(|it| is_ready(&it.replica)), "it does not know that it lags");
    let read = world.send_one(&client, get("/a"));
    assert_eq!(at_once(&world, read), None);
    assert_eq!(data_of(world.reply(read)), Some("new".into()));
}

#[test]
fn a_replica_that_is_left_behind_by_what_nobody_can_watch_answers_nothing_either() {
    let (mut world, leader, other) = world(3);
    let client = client(&mut world, other);
    starve(&mut world, other);
    let acl = Vec::from([Acl { permissions: 31, id: digest("somebody else") }]);
    assert!(world.anyone(leader, Item::SetAcl { path: "/a".into(), acl, version: None }).is_ok());
    let read = world.send_one(&client, get("/a"));
    assert_eq!(value(at_once(&world, read)), Some("old".into()), "nobody here knows yet");
    world.run(Span::secs(1));
    let read = world.send_one(&client, get("/a"));
    assert_eq!(at_once(&world, read), None);
    assert_eq!(world.reply(read), Err(Failure::NoAuth), "it may not read it any more");
}

#[test]
fn a_host_whose_primary_does_not_say_how_far_it_is_soon_answers_nothing_by_itself() {
    let (mut world, _, other) = world(3);
    let client = client(&mut world, other);
    let is_said = |message: &Message| matches!(message, Message::Applied { .. });
    world.take(move |_, to, message| to == other && is_said(message));
    world.run(Span::secs(3));
    let read = world.send_one(&client, get("/a"));
    assert_eq!(at_once(&world, read), None, "its replica may lag");
    assert_eq!(data_of(world.reply(read)), Some("old".into()));
    // What comes late says how far it was then.
    let said = world.taken();
    world.let_come(&said[0]);
    let read = world.send_one(&client, get("/a"));
    assert_eq!(at_once(&world, read), None);
    world.run(Span::secs(1));
    let read = world.send_one(&client, get("/a"));
    assert_eq!(value(at_once(&world, read)), Some("old".into()));
}

#[test]
fn a_host_that_hears_nothing_of_a_majority_soon_answers_nothing_by_itself() {
    let (mut world, _, other) = world(3);
    let client = client(&mut world, other);
    world.isolate(other);
    let read = world.send_one(&client, get("/a"));
    assert_eq!(value(at_once(&world, read)), Some("old".into()));
    world.run(Span::secs(3));
    let read = world.send_one(&client, get("/a"));
    assert_eq!(at_once(&world, read), None, "others may know more since long");
    world.mend();
    assert_eq!(data_of(world.reply(read)), Some("old".into()));
}

#[test]
fn checks_of_versions_are_made_at_the_primary_as_zookeeper_makes_them() {
    let (mut world, leader, other) = world(3);
    let client = client(&mut world, other);
    let check = || Item::Check { path: "/a".into(), version: Some(0) };
    let read = world.send_one(&client, get("/a"));
    assert!(at_once(&world, read).is_some());
    for act in [Act::All([check()].into()), Act::Each([check()].into()), Act::One(check())] {
        let asked = world.send(&client, act);
        assert_eq!(at_once(&world, asked), None);
        _ = world.reply(asked);
    }
    starve(&mut world, other);
    assert!(world.anyone(leader, set("/a", "new", None)).is_ok());
    let told = world.act(&client, Act::All([check()].into())).expect("it is told");
    assert_eq!(told, Told::Many([Err(Failure::BadVersion)].into()), "it was changed elsewhere");
}

#[test]
fn what_a_session_is_told_by_its_host_is_no_older_than_what_it_has_read_there() {
    let (mut world, leader, other) = world(3);
    let client = client(&mut world, other);
    assert!(world.anyone(leader, set("/a", "new", None)).is_ok());
    settle(&mut world);
    let read = world.send_one(&client, get("/a"));
    let read = at_once(&world, read).expect("it is answered here");
    for act in [Act::Ping, Act::WhoAmI] {
        let asked = world.send(&client, act);
        assert_eq!(at_once(&world, asked).map(|it| it.zxid), Some(read.zxid));
    }
}

#[test]
fn who_follows_a_node_is_told_before_it_reads_the_change() {
    let (mut world, leader, other) = world(3);
    let client = client(&mut world, other);
    assert!(world.one(&client, watched("/a")).is_ok());
    settle(&mut world);
    world.take(move |_, to, message| to == other && is_told(message));
    assert!(world.anyone(leader, set("/a", "new", None)).is_ok());
    world.run(Span::millis(20));
    let read = world.send_one(&client, get("/a"));
    assert_eq!(at_once(&world, read), None, "it was not told yet");
    for told in world.taken() {
        world.let_come(&told);
    }
    assert_eq!(data_of(world.reply(read)), Some("new".into()));
    assert_eq!(world.changes(&client), [(String::from("/a"), What::Data)]);
    let is_event = |(_, ticket, outcome): &(usize, Ticket, Outcome)| {
        *ticket == client.ticket && is_change(outcome)
    };
    let event = world.answers.iter().position(is_event).expect("it was told");
    assert!(event < place(&world, read));
}

fn is_change(outcome: &Outcome) -> bool {
    let is_of_node = |event: &Event| matches!(event, Event::Session(SessionEvent::Changed(_)));
    matches!(outcome, Outcome::More(events) if events.iter().any(is_of_node))
}

#[test]
fn that_a_session_is_elsewhere_is_told_by_no_read() {
    let (mut world, leader, other) = world(3);
    let client = client(&mut world, other);
    world.take(move |_, to, message| to == other && is_told(message));
    world.attach(&client, leader);
    settle(&mut world);
    let read = world.send_one(&client, get("/a"));
    assert_eq!(at_once(&world, read), None, "its host does not know yet");
    for told in world.taken() {
        world.let_come(&told);
    }
    settle(&mut world);
    assert_eq!(world.ended(&client), Some(Refusal::NoSession));
}

#[test]
fn nothing_is_missed_of_what_a_read_begins_to_follow() {
    let (mut world, leader, other) = world(3);
    let client = client(&mut world, other);
    for count in 1..=4 {
        // Nobody here follows anything; then somebody does.
        for round in 0..2 {
            let is_first = round == 0;
            let read = world.send_one(&client, watched("/a"));
            assert_eq!(at_once(&world, read).is_none(), is_first, "the first is heard of");
            assert!(world.reply(read).is_ok());
            if is_first {
                assert!(world.one(&client, watched("/zookeeper")).is_ok());
            }
            assert!(world.anyone(leader, set("/a", &format!("{count}{round}"), None)).is_ok());
            settle(&mut world);
            let told = world.changes(&client).len();
            assert_eq!(told, 2 * (count - 1) + round + 1);
        }
        let unfollow =
            Act::Unfollow { path: "/zookeeper".into(), kind: Followed::Any, only_check: false };
        assert_eq!(world.act(&client, unfollow), Ok(Told::Done));
        // The primary hears that nobody follows anything.
        world.run(Span::secs(1));
    }
}

#[test]
fn a_replica_that_copies_the_tree_shows_nothing_of_it() {
    let mut settings = settings(3, Durability::Sync);
    (settings.session_reads, settings.value_bytes_max) = (true, 100_000);
    let mut world = led(World::new(7, 3, settings));
    let leader = world.leader().expect("somebody leads");
    let other = (leader + 1) % 3;
    let client = client(&mut world, other);
    world.isolate(other);
    let before = world.send_one(&client, get("/a"));
    assert_eq!(value(at_once(&world, before)), Some("old".into()), "as it was when it was cut off");
    // Many pages, as who has missed so much copies all.
    let large = "x".repeat(90_000);
    for number in 0..60 {
        assert!(world.anyone(leader, create(&format!("/n{number}"), &large)).is_ok());
    }
    assert!(world.anyone(leader, set("/a", "new", None)).is_ok());
    world.mend();
    let is_copying = |world: &World| {
        let hosted = world.hosts[other].process.as_ref().and_then(|it| it.hosted.as_ref());
        hosted.is_some_and(|it| !is_ready(&it.replica))
    };
    let (mut copied, mut shown) = (0, Vec::new());
    let mut asked = before;
    while copied == 0 || is_copying(&world) {
        world.run(Span::micros(250));
        assert!(world.now < Time(0) + Span::secs(60), "it copies, and ends that");
        // Who waits for an answer is not answered here anyhow.
        if !world.told(asked).is_empty() {
            copied += usize::from(is_copying(&world));
            asked = world.send_one(&client, get("/a"));
            shown.extend(at_once(&world, asked).map(|reply| reply.told));
        }
    }
    assert!(copied > 0, "it asks while it copies");
    let data = shown.into_iter().map(|told| data_of(told).expect("it is there"));
    assert!(data.collect::<Vec<_>>().is_sorted_by(|one, other| one >= other), "old, then new");
    let is_here = |world: &mut World| {
        let read = world.send_one(&client, get("/a"));
        value(at_once(world, read)) == Some("new".into())
    };
    assert!(world.run_until(SOON, is_here));
}
