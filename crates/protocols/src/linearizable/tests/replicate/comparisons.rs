//! Members that compare what they hold, in the background, and get what they missed.

use crate::linearizable::Linearizable;
use crate::linearizable::message::Message;
use crate::linearizable::tests::traps::schedule;
use crate::testing::script;
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::FETCH_BYTES_MAX;
use quorate_kernel::operation::Operation;
use quorate_kernel::process::Process;
use quorate_kernel::time::Span;
use std::format;
use std::string::ToString;
use std::vec;
use std::vec::Vec;

/// A member that was away gets the writes it missed, although nobody touches their keys: a get that
/// meets it then finds the value at a majority, and has nothing to impose.
#[test]
fn a_member_that_was_away_gets_what_it_missed() {
    schedule(
        "nodes 3 first 100 brisk comparing
         ring all 1:1 2:2 3:3
         given put 1 k old
         # told put k old: written
         run 200ms
         cut 3
         given put 1 k a
         # told put k a: written
         given put 2 l b
         # told put l b: written
         run 1s
         mend 3
         run 2s
         show 3 records_restored
         # last 3: records_restored 2
         crash 1
         get 2 k
         run 100ms
         # told get k: value a
         show 2 rounds_write_back
         # last 2: rounds_write_back 0",
    );
}

/// A member that missed a delete hears of it, so that the tombstone can go.
#[test]
fn a_tombstone_that_one_member_missed_goes() {
    schedule(
        "nodes 3 first 100 brisk comparing
         given put 1 k a
         # told put k a: written
         ring all 1:1 2:2 3:3
         run 200ms
         cut 3
         given delete 2 k
         # told delete k: deleted 1
         run 1s
         mend 3
         run 5s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         show 3 tombstones_purged
         # last 3: tombstones_purged 1
         given get 3 k
         # told get k: nothing",
    );
}

/// So does the one that leads the removal and has no tombstone itself.
#[test]
fn a_tombstone_that_the_leader_missed_goes() {
    schedule(
        "nodes 3 first 100 brisk comparing
         given put 1 k a
         # told put k a: written
         ring all 1:1 2:2 3:3
         run 200ms
         cut 1
         given delete 2 k
         # told delete k: deleted 1
         run 200ms
         mend 1
         run 5s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         show 3 tombstones_purged
         # last 3: tombstones_purged 1",
    );
}

/// A record that was read for a comparison before a tombstone came, and arrives when the tombstone
/// is gone, is refused.
#[test]
fn what_was_read_before_a_removal_is_not_restored() {
    let step = "tick 20ms\n drop RecordsA\n deliver all\n".repeat(13);
    let (before, after) = (
        "nodes 3 first 100 brisk hasty comparing
         ring all 1:1 2:2 3:3
         run 100ms
         cut 3
         given put 1 k a
         # told put k a: written
         mend 3
         run 380ms
         tick 20ms
         deliver CompareA
         deliver CompareB
         drop RecordsA 3->2
         deliver RecordsA 3->1
         delay RecordsB
         deliver all
         given delete 2 k
         # told delete k: deleted 1\n",
        "show 3 tombstones_purged
         # last 3: tombstones_purged 1
         release
         deliver RecordsB
         show 3 records_restored
         # last 3: records_restored 0
         given get 3 k
         # told get k: nothing",
    );
    schedule(&[before, &step, after].concat());
}

/// While a newcomer is awaited nothing is compared.
#[test]
fn nothing_is_compared_while_a_group_changes() {
    let run = |change: &str| {
        let text = format!(
            "Comparisons, and none.\n
nodes 3 spare 1 first 100 brisk comparing
crash 4
{change}
ring all 1:1 2:2 3:3
{}",
            "tick 20ms\ndeliver all\n".repeat(40)
        );
        script::run::<Linearizable>(&text).expect("a schedule")
    };
    assert!(run("").contains("CompareA"));
    let changed = run("view 1 2 1 2 4\nview 2 2 1 2 4");
    assert!(!changed.contains("CompareA"), "{changed}");
}

/// More keys than one piece has, of which a member missed some, here and there, and others are only
/// there: pieces follow each other, and everybody has everything in the end.
#[test]
fn every_record_of_many_pieces_arrives() {
    let options = Vec::from(["brisk".to_string(), "comparing".to_string()]);
    let setup = Setup { members: 3, first: Some(100), options, ..Setup::default() };
    let mut world: World<Linearizable> = World::new(&setup);
    for n in 0..2000_u32 {
        let key = Bytes::from(format!("key {n}"));
        let value = Bytes::from(format!("value {n}"));
        world.request(1, Operation::put(key, value), Span::secs(60));
        while !world.flights.is_empty() {
            // The third misses a long stretch, and one of ten elsewhere.
            let is_missed = n < 900 || n % 10 == 0;
            let is_lost = is_missed && world.flights[0].name == "WriteA";
            let is_lost = is_lost && world.flights[0].to.0 == 3;
            if is_lost { drop(world.flights.remove(0)) } else { world.deliver(0) }
        }
    }
    let hosts = crate::linearizable::tests::random::rings::up(&[(1, 1), (2, 2), (3, 3)]);
    for id in 1..=3 {
        world.announce(id, &hosts, quorate_kernel::ring::Closing::No);
    }
    let missed = 900 + (900..2000).filter(|n| n % 10 == 0).count();
    let end = world.now + Span::secs(30);
    while world.field(3, "records_restored") != missed.to_string() && world.now < end {
        world.tick(Span::millis(20));
        while !world.flights.is_empty() {
            world.deliver(0);
        }
    }
    assert_eq!(world.field(3, "records_restored"), missed.to_string());
    assert_eq!(world.field(1, "records_restored"), "0", "it had everything");
}

/// A question for many records was asked twice and is answered twice, each time with the first of
/// them.
#[test]
fn a_second_answer_to_a_question_skips_no_key() {
    const COUNT: usize = 3 * FETCH_BYTES_MAX / 2000;
    let options = Vec::from(["brisk".to_string(), "comparing".to_string()]);
    let setup = Setup { members: 3, first: Some(100), options, ..Setup::default() };
    let mut world: World<Linearizable> = World::new(&setup);
    let value = Bytes::from(vec![7; 960]);
    for n in 0..COUNT {
        let put = Operation::put(Bytes::from(format!("key {n}")), value.clone());
        world.request(1, put, Span::secs(60));
        while !world.flights.is_empty() {
            let is_lost = world.flights[0].name == "WriteA" && world.flights[0].to.0 == 3;
            if is_lost { drop(world.flights.remove(0)) } else { world.deliver(0) }
        }
    }
    let hosts = crate::linearizable::tests::random::rings::up(&[(1, 1), (2, 2), (3, 3)]);
    for id in 1..=3 {
        world.announce(id, &hosts, quorate_kernel::ring::Closing::No);
    }
    let (mut asked, end) = (0, world.now + Span::secs(30));
    while world.now < end && world.field(3, "records_restored") != COUNT.to_string() {
        world.tick(Span::millis(20));
        while !world.flights.is_empty() {
            let flight = &world.flights[0];
            // Nobody compares a second time.
            if flight.name == "CompareA" && asked > 0 {
                world.flights.remove(0);
                continue;
            }
            match flight.name {
                "RecordsA" => asked += 1,
                "RecordsB" => {
                    world.flights.insert(1, flight.clone());
                    world.deliver(0);
                }
                _ => (),
            }
            world.deliver(0);
        }
    }
    assert!(asked > 2, "an answer has a part of them");
    assert_eq!(world.field(3, "records_restored"), COUNT.to_string());
}

/// A member says that it compared up to a place where the group has no data: nobody goes on there.
#[test]
fn a_comparison_does_not_go_on_outside_of_the_range() {
    let options = Vec::from(["brisk".to_string(), "comparing".to_string()]);
    let setup = Setup { members: 2, options, ..Setup::default() };
    let mut world: World<Linearizable> = World::new(&setup);
    for node in 1..=2 {
        world.split(node, 1, 0xa000_0000_0000_0000);
    }
    let hosts =
        crate::linearizable::tests::random::rings::up(&[(0xa000_0000_0000_0000, 1), (u64::MAX, 2)]);
    for node in 1..=2 {
        world.announce(node, &hosts, quorate_kernel::ring::Closing::No);
    }
    let mut forged = 0;
    while forged < 8 {
        world.tick(Span::millis(20));
        while !world.flights.is_empty() {
            let flight = world.flights.remove(0);
            let is_question = flight.name == "CompareA" && flight.to == NodeId(2);
            let question = is_question.then(|| flight.body.decode::<Message>());
            let Some(Ok(Message::CompareA { round, view, .. })) = question else {
                world.flights.insert(0, flight);
                world.deliver(0);
                continue;
            };
            forged += 1;
            let upto = Bytes::copy_from_slice(&u64::MAX.to_be_bytes());
            let answer = Message::CompareB { round, view, page: Bytes::new(), upto };
            let from = Incarnation { node: NodeId(2), start: Start(1) };
            world.step(1, |process, cx| process.on_message(from, answer, cx));
        }
    }
}
