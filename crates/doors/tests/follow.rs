//! Following what happens: in order with replies, in both versions, bounded, with an end.

mod common;

use common::{Following, World};
use quorate_doors::Session as _;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::limits::{CLIENT_OPERATIONS_MAX, CLIENT_QUEUE_BYTES_MAX};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::watch::{Change, Event};

fn left() -> Outcome {
    let (change, address) = (Change::Left, String::from("h:1"));
    Outcome::More(vec![Event::Host { change, node: NodeId(7), address }])
}

const LEFT: &str = "{\"event\":\"host-left\",\"node\":\"0000000000000007\",\"address\":\"h:1\"}";

/// What the client reads.
fn told(world: &mut World) -> String {
    String::from_utf8_lossy(&world.take()).into_owned()
}

/// A client that follows, and the number of its watch.
fn following(version: &str) -> (World, u32) {
    let mut world = World::default();
    world.ask(&format!("HELLO {version}"));
    let head = if version == "3" { '>' } else { '*' };
    let said = format!("{head}3\r\n$9\r\nsubscribe\r\n$6\r\nevents\r\n:1\r\n");
    assert_eq!(world.ask("SUBSCRIBE events"), said);
    let [Following::Begun(number, lane)] = world.started.1[..] else { panic!("it has begun") };
    assert_eq!(lane, LaneId::EVENTS);
    world.started.1.clear();
    (world, number)
}

#[test]
fn each_event_is_a_message_and_version_3_goes_on_beside_it() {
    for (version, head) in [("2", '*'), ("3", '>')] {
        let (mut world, number) = following(version);
        world.complete_with(number, left());
        let length = LEFT.len();
        let message =
            format!("{head}3\r\n$7\r\nmessage\r\n$6\r\nevents\r\n${length}\r\n{LEFT}\r\n");
        assert_eq!(told(&mut world), message);
        let refused = "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / \
                       QUIT / RESET are allowed in this context\r\n";
        let (got, pong) = match version {
            "2" => (refused, "*2\r\n$4\r\npong\r\n$0\r\n\r\n"),
            _ => ("_\r\n", "+PONG\r\n"),
        };
        assert_eq!(world.ask("GET k"), got);
        assert_eq!(world.ask("PING"), pong);
        let gone = format!("{head}3\r\n$11\r\nunsubscribe\r\n$6\r\nevents\r\n:0\r\n");
        assert_eq!(world.ask("UNSUBSCRIBE"), gone);
        assert_eq!(world.started.1, [Following::Ended(number)]);
        world.complete_with(number, left());
        assert_eq!(told(&mut world), "", "nothing is told to who does not follow");
        assert_eq!(world.ask("PING"), "+PONG\r\n");
    }
}

#[test]
fn there_is_one_channel_and_following_twice_is_following_once() {
    let mut world = World::default();
    let unknown = "-ERR there is no channel 'news'; there is: events\r\n";
    assert_eq!(world.ask("SUBSCRIBE events news"), unknown);
    assert!(world.started.1.is_empty());
    assert_eq!(world.ask("UNSUBSCRIBE"), "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n");
    let (mut world, number) = following("3");
    world.ask("SUBSCRIBE events");
    assert!(world.started.1.is_empty());
    assert_eq!(world.ask("RESET"), "+RESET\r\n");
    assert_eq!(world.started.1, [Following::Ended(number)]);
}

#[test]
fn nothing_is_told_before_the_replies_of_earlier_commands() {
    let mut world = World::default();
    world.ask("HELLO 3");
    world.receive(b"SET k v\r\nSUBSCRIBE events\r\n");
    assert!(world.started.1.is_empty(), "the first command has no reply yet");
    world.complete(0);
    assert_eq!(told(&mut world), "+OK\r\n>3\r\n$9\r\nsubscribe\r\n$6\r\nevents\r\n:1\r\n");
    assert_eq!(world.started.1.len(), 1);
}

#[test]
fn a_client_that_takes_nothing_is_told_what_it_has_lost_and_holds_bounded_memory() {
    let (mut world, number) = following("3");
    let mut count = 0;
    while !world.session.is_closing() {
        world.complete_with(number, left());
        count += 1;
        assert!(world.session.output().len() <= CLIENT_QUEUE_BYTES_MAX + 1024);
    }
    assert!(count * LEFT.len() > CLIENT_QUEUE_BYTES_MAX / 2, "it is paused for a while first");
    assert_eq!(world.started.1, [Following::Ended(number)]);
    let told = told(&mut world);
    let why = "-OVERLOADED what happened was not taken in time, and some of it is lost; watch \
               anew\r\n";
    assert!(told.ends_with(why), "{}", &told[told.len() - 200..]);
    assert_eq!(told.matches("host-left").count() + 1, count, "nothing before is lost");
}

#[test]
fn the_source_and_the_host_end_it_with_an_error() {
    let (mut world, number) = following("2");
    world.complete_with(number, Outcome::Refused(Refusal::Overloaded));
    let why = "-OVERLOADED the node has too many operations in hand; try again\r\n";
    assert_eq!(told(&mut world), why);
    assert!(world.session.is_closing());
    let (mut world, number) = following("3");
    world.session.finish();
    assert_eq!(told(&mut world), "-SHUTDOWN the node is shutting down\r\n");
    assert!(world.session.is_closing());
    world.complete_with(number, left());
    assert_eq!(told(&mut world), "");
}

/// All that a client may have in hand, its watch among it.
#[test]
fn a_watch_counts_among_what_is_in_hand() {
    let (mut world, _) = following("3");
    let sets: String = (0..1100).map(|n| format!("SET k{n} v\r\n")).collect();
    world.receive(sets.as_bytes());
    assert_eq!(world.started.0.len() + 1, CLIENT_OPERATIONS_MAX);
    world.settle();
    let pairs: String = (0..3000).map(|n| format!(" k{n} v")).collect();
    world.receive(format!("MSET{pairs}\r\n").as_bytes());
    while !world.started.0.is_empty() {
        assert!(world.started.0.len() < CLIENT_OPERATIONS_MAX);
        world.complete(0);
    }
    assert_eq!(told(&mut world), "+OK\r\n");
}

/// In version 2 an event looks like a reply, so it must not come before one.
#[test]
fn no_event_is_taken_for_the_reply_of_a_command_before_it() {
    let is_told_after = |world: &mut World, number: u32, reply: &str| {
        world.complete_with(number, left());
        let before = told(world);
        assert!(!before.contains("host-left"), "{before}");
        assert!(world.session.held_bytes() >= LEFT.len(), "it is counted while it waits");
        world.complete(0);
        let after = told(world);
        assert!(after.starts_with(reply) && after.ends_with(&format!("{LEFT}\r\n")), "{after}");
        assert_eq!(world.session.held_bytes(), 0);
    };
    let (mut world, number) = following("3");
    world.receive(b"GET a\r\nHELLO 2\r\n");
    is_told_after(&mut world, number, "_\r\n*");
    let (mut world, number) = following("3");
    world.receive(b"GET a\r\nRESET\r\nSUBSCRIBE events\r\n");
    is_told_after(&mut world, number, "_\r\n+RESET\r\n*3\r\n$9\r\nsubscribe");
    let (mut world, number) = following("2");
    world.receive(b"UNSUBSCRIBE\r\nGET a\r\nSUBSCRIBE events\r\n");
    is_told_after(&mut world, number, "$-1\r\n*3\r\n$9\r\nsubscribe");
    // In version 3 it needs no order.
    let (mut world, number) = following("3");
    world.receive(b"GET a\r\n");
    world.complete_with(number, left());
    assert!(told(&mut world).contains(LEFT));
    // What was not told to who follows no more is forgotten.
    world.receive(b"HELLO 2\r\n");
    world.complete_with(number, left());
    world.receive(b"UNSUBSCRIBE\r\n");
    assert!(!String::from_utf8_lossy(&world.settle()).contains("host-left"));
    assert_eq!(world.session.held_bytes(), 0);
}
