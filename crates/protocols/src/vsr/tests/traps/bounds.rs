//! What a primary takes is bounded.

use super::super::node::Level;
use super::super::world::World;
use crate::vsr::{Action, Context, Op, Refused};
use bytes::Bytes;
use std::vec;
use std::vec::Vec;

/// A few large commands fill a group as well as many small ones do, until they are committed.
#[test]
fn commands_in_flight_are_bounded_by_their_bytes() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, ..] = world.order()[..] else { panic!("three lead in turn") };
    world.crash(a);
    world.nodes[a].in_flight_bytes = 1000;
    world.start(a);
    world.run_until("it leads", |world| world.serving().is_some());
    while world.serving() != Some(a) {
        let serving = world.serving().expect("somebody serves");
        world.crash(serving);
        world.start(serving);
        world.run_until("another leads", |world| world.serving().is_some());
    }
    world.run_ms(200);
    let propose = |world: &mut World, bytes: usize| {
        let mut proposed = Ok(Op(0));
        world.turn(a, |replica, cx: &mut Context<'_>| {
            proposed = replica.propose(Bytes::from(vec![0; bytes]), cx);
            let writes: Vec<&Action> = cx.out.iter().collect();
            assert!(proposed.is_ok() || writes.is_empty(), "nothing was changed");
        });
        proposed
    };
    assert!(propose(&mut world, 400).is_ok() && propose(&mut world, 599).is_ok());
    assert!(propose(&mut world, 5000).is_ok(), "one more always fits");
    assert_eq!(propose(&mut world, 3), Err(Refused::Full));
    world.run_ms(10);
    assert!(propose(&mut world, 3).is_ok(), "they are committed");
    world.settle();
}
