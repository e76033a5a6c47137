//! Answers that always take longer than one is waited for: a link with little room, or a slow disk.
//! Whoever asks again must still take the answer to what it asked before.

use super::traps::{CausalWorld, bytes, calm, get, put};
use crate::testing::siblings::Move;
use crate::testing::world::{Flight, Setup, World};
use bytes::Bytes;
use quorate_kernel::time::{Span, Time};
use std::format;
use std::string::ToString;
use std::vec::Vec;

const MOVED: Move = Move { out: 1, into: 4, gone: false };

/// Time passes and everything arrives, but messages of one name only after a while.
fn run_slowly(world: &mut CausalWorld, span: Span, (slow, late): (&str, Span)) {
    let (end, mut under_way) = (world.now + span, Vec::<(Time, Flight)>::new());
    while world.now < end {
        world.tick(Span::millis(20));
        let now = world.now;
        let due = under_way.iter().take_while(|(at, _)| *at <= now).count();
        for (_, flight) in under_way.drain(..due) {
            world.flights.push(flight);
            world.deliver(world.flights.len() - 1);
        }
        while !world.flights.is_empty() {
            match world.flights[0].name == slow {
                true => under_way.push((now + late, world.flights.remove(0))),
                false => world.deliver(0),
            }
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
    run_slowly(&mut world, Span::secs(60), (name, Span::millis(1500)));
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
