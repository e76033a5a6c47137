//! What the engine is meant to cost, in counts that do not depend on the machine.

use super::super::message::{Message, Pair, TellClock, Window};
use super::traps::{CausalWorld, bytes, calm, deliver_all, get, put, world};
use crate::dots::clock::{Clock, Entry};
use crate::dots::dot::{Actor, Partition};
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::NodeId;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use quorate_kernel::wire::Body;
use std::format;
use std::vec::Vec;

#[test]
fn two_equal_replicas_exchange_less_than_a_kilobyte_each_way() {
    let mut rng = Rng::new(1);
    let mut actor = |partition: u16, birth| {
        let node = NodeId(rng.next());
        Actor { partition: Partition(partition), since: 1000, birth, node }
    };
    // Five partitions of a keyspace with three replicas, and two former actors at each.
    let mut clock = Clock::default();
    for partition in 30..35 {
        for birth in 1..=3 {
            let entry = clock.entry(actor(partition, birth));
            entry.merge(&Entry::upto(1_000_000_000));
            entry.closed = birth < 3;
        }
    }
    let (from, to) = (actor(30, 3), actor(31, 3));
    let pair = Pair { from, to: Partition(31), map: 1000 };
    let clock = TellClock::of(&clock);
    let question =
        Message::SyncA { pair, clock: clock.clone(), window: Window::default(), all: false };
    let page = Bytes::new();
    let (is_joined, covers, wants) = (true, Window::default(), Some(Window::default()));
    let answer = Message::SyncB { pair, to, clock, is_joined, covers, wants, page };
    for message in [question, answer] {
        let size = Body::encode(&message, &mut BytesMut::new()).expect("it fits").frame_bytes();
        assert!(size < 1024, "{size} bytes");
    }
}

#[test]
fn anti_entropy_alone_brings_every_update_to_every_replica_within_a_second() {
    let mut world = world(5, &["lazy", "partitions=16", "replicas=3"]);
    for number in 0..60 {
        let node = 1 + number % 5;
        put(&mut world, node, &format!("k{number}"), "v", Bytes::new());
        // Writes of nodes that are no replicas are given to one.
        calm(&mut world, Span::millis(20));
    }
    calm(&mut world, Span::secs(1));
    for node in 1..=5 {
        for row in world.rows(node, "replicas") {
            assert_eq!(row["unstripped"], "0", "one dot is all that an object carries");
        }
        for number in 0..60 {
            assert_eq!(get(&mut world, node, &format!("k{number}")).0, [bytes("v")], "k{number}");
        }
    }
}

/// How many questions of anti-entropy are asked in this time; nothing is lost.
fn questions(world: &mut CausalWorld, during: Span) -> usize {
    let (until, mut count) = (world.now + during, 0);
    while world.now < until {
        world.tick(Span::millis(20));
        count += world.flights.iter().filter(|flight| flight.name == "SyncA").count();
        deliver_all(world);
    }
    count
}

#[test]
fn equal_replicas_rest_and_what_is_lost_is_repaired_as_soon_as_ever() {
    let mut world = world(3, &["partitions=8", "replicas=3"]);
    for number in 0..20 {
        put(&mut world, 1 + number % 3, &format!("k{number}"), "v", Bytes::new());
    }
    let busy = questions(&mut world, Span::millis(500));
    assert!(busy >= 8 * 4, "eight replicas ask about ten times a second: {busy}");
    calm(&mut world, Span::secs(60));
    let idle = questions(&mut world, Span::secs(15));
    assert!(idle <= 8 * 2, "each asks every 12.8 s: {idle} in 15 s");
    put(&mut world, 1, "lost", "v", Bytes::new());
    world.flights.clear();
    calm(&mut world, Span::secs(1));
    for node in 2..=3 {
        assert_eq!(get(&mut world, node, "lost").0, [bytes("v")], "it asks at once");
    }
    // One that does not answer is told as soon as it does.
    world.crash(3);
    put(&mut world, 1, "k1", "w", Bytes::new());
    calm(&mut world, Span::secs(20));
    assert!(questions(&mut world, Span::secs(2)) >= 2 * 8, "there is something to tell");
}

/// The bytes that each of three nodes sends to others in this time; nothing is lost.
fn sent_bytes(world: &mut CausalWorld, during: Span) -> [usize; 3] {
    let (until, mut sent) = (world.now + during, [0; 3]);
    while world.now < until {
        world.tick(Span::millis(20));
        while let Some(flight) = world.flights.first() {
            sent[flight.from.node.0 as usize - 1] += flight.body.frame_bytes();
            world.deliver(0);
        }
        world.log.clear();
    }
    sent
}

/// Ten minutes of a keyspace as it is set by itself: 64 partitions of three replicas.
#[test]
fn replicas_at_rest_send_less_than_a_kilobyte_a_second() {
    const MINUTES: u64 = 10;
    for keys in [0, 300] {
        let mut world = world(3, &["partitions=64", "replicas=3"]);
        for number in 0..keys {
            put(&mut world, 1 + number % 3, &format!("k{number}"), "v", Bytes::new());
        }
        calm(&mut world, Span::secs(60));
        for bytes in sent_bytes(&mut world, Span::secs(60 * MINUTES)) {
            let a_second = bytes / (60 * MINUTES as usize);
            assert!((1..1000).contains(&a_second), "{a_second} bytes a second with {keys} keys");
        }
    }
}

#[test]
fn a_thousand_deletes_leave_no_byte_behind() {
    let mut world = world(3, &[]);
    for number in 0..1000 {
        let key = format!("k{number}");
        put(&mut world, 1 + number % 3, &key, "v", Bytes::new());
    }
    calm(&mut world, Span::millis(200));
    let before: Vec<usize> = (1..=3).map(|node| world.stored(node)).collect();
    for number in 0..1000 {
        super::traps::delete(&mut world, 1 + number % 3, &format!("k{number}"));
    }
    calm(&mut world, Span::secs(3));
    for node in 1..=3 {
        let left = world.stored(node);
        assert!(before[node as usize - 1] > 1000);
        // Three clock entries, the state of one replica, and where the log of dots begins.
        assert!(left <= 3 + 3 + 1, "{left} keys are left at {node}");
    }
}

#[test]
fn a_long_backlog_of_contexts_is_stripped_in_one_pass() {
    let (mut world, count) = (world(3, &[]), 6000);
    let unstripped = |world: &mut CausalWorld, node| -> usize {
        world
            .rows(node, "replicas")
            .iter()
            .map(|row| row["unstripped"].parse::<usize>().expect("a number"))
            .sum()
    };
    put(&mut world, 1, "lost", "v", Bytes::new());
    world.flights.clear();
    for number in 0..count {
        put(&mut world, 1, &format!("k{number}"), "v", Bytes::new());
    }
    deliver_all(&mut world);
    assert_eq!(unstripped(&mut world, 2), count, "there is a gap below all of them");
    // An interval, and time for an exchange and pages.
    calm(&mut world, Span::secs(2));
    assert_eq!([2, 3].map(|node| unstripped(&mut world, node)), [0, 0]);
}

/// Of an update each replica writes the object and its dot, here in a turn of its own; what follows
/// when all have seen it does not grow with updates.
#[test]
fn an_update_is_two_records_and_nothing_more_is_written_when_all_know_it() {
    let (mut world, count) = (world(3, &[]), 300);
    calm(&mut world, Span::millis(500));
    for number in 0..count {
        put(&mut world, 1 + number % 3, &format!("k{number}"), "v", Bytes::new());
        deliver_all(&mut world);
    }
    let end = world.now + Span::secs(5);
    while world.now < end {
        world.tick(Span::millis(20));
        deliver_all(&mut world);
    }
    let written = world.log.iter().filter(|line| line.contains(": writes ")).count();
    assert!((2 * 3 * count as usize..2 * 3 * count as usize + 60).contains(&written), "{written}");
    assert_eq!(world.field(1, "logged_dots"), "0");
}

/// A context stands beside its object's dot until the dot's entry goes: everybody has seen the dot,
/// but this replica has not seen all that the context says.
#[test]
fn a_context_outlives_the_entry_that_it_was_stored_with() {
    let mut world = world(3, &[]);
    let count = |world: &mut CausalWorld, field: &str| -> usize {
        world
            .rows(2, "replicas")
            .iter()
            .map(|row| row[field].parse::<usize>().expect("a number"))
            .sum()
    };
    put(&mut world, 1, "lost", "v", Bytes::new());
    world.flights.clear();
    put(&mut world, 1, "k", "v", Bytes::new());
    deliver_all(&mut world);
    // It is told what the others have seen, and not what it lacks.
    for _ in 0..200 {
        world.tick(Span::millis(20));
        while let Some(flight) = world.flights.first() {
            if flight.to == NodeId(2) && flight.name != "SyncA" {
                world.flights.remove(0);
            } else {
                world.deliver(0);
            }
        }
    }
    assert_eq!((count(&mut world, "dot_keys"), count(&mut world, "unstripped")), (0, 1));
    world.crash(2);
    world.restart(2, false);
    assert_eq!(count(&mut world, "unstripped"), 1);
}
