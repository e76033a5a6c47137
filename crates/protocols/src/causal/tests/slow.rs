//! Answers that always take longer than one is waited for: a link with little room, or a slow disk.
//! Whoever asks again must still take the answer to what it asked before.

use super::losses::closing::run;
use super::traps::{CausalWorld, bytes, calm, get, put};
use crate::testing::siblings::Move;
use crate::testing::world::{Flight, Setup, World};
use alloc::collections::BTreeMap;
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::time::{Span, Time};
use std::format;
use std::string::ToString;
use std::vec::Vec;

const MOVED: Move = Move { out: 1, into: 4, gone: false };

/// How long messages of one name take.
enum Late {
    Each(Span),
    /// Each sender makes one after the other; those of one moment are one.
    OneByOne(Span),
}

/// Time passes and everything arrives, but messages of one name only after a while.
fn run_slowly(world: &mut CausalWorld, span: Span, (slow, late): (&str, Late)) {
    let (end, mut under_way) = (world.now + span, Vec::<(Time, Flight)>::new());
    let mut last = BTreeMap::<NodeId, (Time, Time)>::new();
    while world.now < end {
        world.tick(Span::millis(20));
        let now = world.now;
        under_way.sort_by_key(|(at, _)| *at);
        let due = under_way.iter().take_while(|(at, _)| *at <= now).count();
        for (_, flight) in under_way.drain(..due) {
            world.flights.push(flight);
            world.deliver(world.flights.len() - 1);
        }
        while !world.flights.is_empty() {
            if world.flights[0].name != slow {
                world.deliver(0);
                continue;
            }
            let flight = world.flights.remove(0);
            let at = match (&late, last.get(&flight.from.node)) {
                (Late::Each(late), _) => now + *late,
                (Late::OneByOne(_), Some((asked, at))) if *asked == now => *at,
                (Late::OneByOne(each), before) => before.map_or(now, |one| one.1.max(now)) + *each,
            };
            last.insert(flight.from.node, (now, at));
            under_way.push((at, flight));
        }
    }
}

/// Three replicas at three hosts, and one more host; of nine keys the first alone knows.
fn first_knows_more() -> CausalWorld {
    let options = ["page=2"].map(|option| option.to_string()).into();
    let mut world: CausalWorld =
        World::new(&Setup { members: 3, spares: 1, options, ..Setup::default() });
    calm(&mut world, Span::secs(1));
    for number in 0..9 {
        put(&mut world, 1, &format!("k{number}"), "v", Bytes::new());
    }
    world.flights.clear();
    (1..=4).for_each(|node| world.place(node, &[MOVED]));
    world.flights.clear();
    world
}

fn ends_although_these_are_late(name: &str) {
    let mut world = first_knows_more();
    run_slowly(&mut world, Span::secs(60), (name, Late::Each(Span::millis(1500))));
    let left = (world.field(4, "joining"), world.field(1, "leaving"));
    assert_eq!(left, ("0".to_string(), "0".to_string()), "joining and leaving");
    for (node, number) in (2..=4).flat_map(|node| (0..9).map(move |number| (node, number))) {
        assert_eq!(get(&mut world, node, &format!("k{number}")).0, [bytes("v")]);
    }
}

#[test]
fn a_newcomer_copies_page_by_page_however_long_a_page_takes() {
    ends_although_these_are_late("ScanB");
}

#[test]
fn what_leaves_is_handed_over_however_long_that_takes() {
    ends_although_these_are_late("HandOver");
}

/// The second has had a partition twice and is asked for both, first for what it left first. It
/// answers one question after the other, also those that were asked again in vain. None of these
/// late pages, which begin where the first scan had come to, is one of the second scan.
#[test]
fn a_late_page_of_one_scan_is_none_of_the_next() {
    let options = ["replicas=2", "partitions=2", "page=2"].map(|option| option.to_string()).into();
    let mut world: CausalWorld =
        World::new(&Setup { members: 2, spares: 2, options, ..Setup::default() });
    let is_lost = |name: &str, from: u64, to: u64| name == "LeftA" && (from, to) == (2, 1);
    for number in 0..4 {
        put(&mut world, 1, &format!("k{number}"), "v", Bytes::new());
    }
    calm(&mut world, Span::secs(2));
    let moves = [(2, 3), (3, 2), (2, 4)].map(|(out, into)| Move { out, into, gone: false });
    for (count, holder) in [(1, 3), (2, 2), (3, 4)] {
        let mut record = world.record(&moves[..count]);
        // By then the third has handed over.
        record.former.retain(|tenure| count < 3 || tenure.node.0 != 3);
        (1..=4).for_each(|node| world.tell(node, &record));
        let end = world.now + Span::secs(20);
        while holder != 4 && world.field(holder, "joining") != "0" {
            assert!(world.now < end, "{holder} never joins: {count} moves");
            run(&mut world, Span::millis(100), is_lost);
        }
    }
    assert_eq!(world.field(2, "leaving"), "2", "both are asked");
    run_slowly(&mut world, Span::secs(200), ("ScanB", Late::OneByOne(Span::millis(2500))));
    assert_eq!((world.field(4, "joining"), world.field(2, "leaving")), ("0".into(), "0".into()));
    for (node, number) in [1, 4].into_iter().flat_map(|node| (0..4).map(move |key| (node, key))) {
        assert_eq!(get(&mut world, node, &format!("k{number}")).0, [bytes("v")], "at {node}");
    }
}
