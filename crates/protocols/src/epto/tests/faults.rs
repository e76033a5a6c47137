//! Whatever goes wrong, order and integrity hold, each hole is known to its node, and holes are as
//! rare as the fault allows.

use super::shape::{DELTA, Fault, Kept, Shape};
use super::world::World;
use crate::epto::BroadcastError;

fn ttl(world: &World) -> u64 {
    u64::from(world.shape.parameters.ttl)
}

#[test]
fn losses_leave_no_holes_when_the_fanout_follows_them() {
    for lost_ppm in [10_000, 50_000, 200_000] {
        for seed in 0..2 {
            let mut world = World::new(Shape::of(60, seed).with_loss(lost_ppm));
            world.load(5, 3);
            let agreement = world.settle();
            assert_eq!(agreement.holes, 0, "{lost_ppm} ppm lost, seed {seed}: {agreement:?}");
        }
    }
}

#[test]
fn a_node_that_is_slow_for_ten_rounds_has_no_holes() {
    for seed in 0..2 {
        let mut world = World::new(Shape::of(100, seed));
        world.load(2, 2);
        world.fault(Fault::Spike(5, 10));
        world.load(12, 1);
        let agreement = world.settle();
        assert_eq!(agreement.holes, 0, "seed {seed}: {agreement:?}");
    }
}

/// What it finds in its queue is late: it says so, takes over a state, and goes on from there.
#[test]
fn who_stood_still_loses_its_place_and_takes_over_a_state() {
    for kept in [Kept::All, Kept::Nothing] {
        for seed in 0..2 {
            let mut world = World::new(Shape::of(30, seed));
            let rounds = 5 * ttl(&world);
            world.load(4, 2);
            world.fault(Fault::Pause(7, rounds, kept));
            world.load(rounds, 1);
            world.load(ttl(&world) * 2, 1);
            assert_eq!(world.judge.nodes[7].places_lost, 1, "seed {seed}");
            let agreement = world.settle();
            assert!(world.judge.nodes[7].is_there, "it has a place again");
            assert_eq!(agreement.holes, 0, "seed {seed}: {agreement:?}");
        }
    }
}

/// Whoever has the event relays it; whether the payload can be had decides about all alike.
#[test]
fn who_stops_after_one_ball_to_one_peer_leaves_nobody_behind() {
    for seed in 0..4 {
        let mut world = World::new(Shape::of(60, seed));
        world.load(4, 2);
        world.fault(Fault::StopAfterOneBall(9));
        world.load(4, 2);
        let agreement = world.settle();
        assert_eq!(agreement.holes, 0, "seed {seed}: {agreement:?}");
        let holes = world.judge.nodes.iter().filter(|told| !told.named.is_empty()).count();
        assert!(holes == 0 || holes >= 59, "seed {seed}: {holes} nodes gave it up");
    }
}

#[test]
fn a_clock_that_is_far_ahead_is_refused_by_all() {
    for seed in 0..2 {
        let mut world = World::new(Shape::of(60, seed));
        world.load(4, 2);
        world.fault(Fault::Bomb(9));
        world.load(4, 2);
        let agreement = world.settle();
        assert!(world.refused >= 17, "each that it reached tells its caller");
        assert_eq!(agreement.holes, 0, "seed {seed}: {agreement:?}");
        let highest = world.judge.broadcast.keys().map(|key| key.time.0).max();
        assert!(highest < Some(1000), "nobody's clock has followed");
    }
}

/// Both sides go on. Nothing is delivered twice or out of order, and nobody's hole is silent.
#[test]
fn a_divided_network_heals_with_holes_that_are_known() {
    for seed in 0..2 {
        let mut world = World::new(Shape::of(40, seed));
        let rounds = 2 * ttl(&world);
        world.load(4, 2);
        world.fault(Fault::Divide(20, rounds));
        world.load(rounds, 1);
        world.load(8, 2);
        let agreement = world.settle();
        assert!(agreement.holes > 0, "each side has missed what the other one ordered");
        let last = world.judge.broadcast.keys().next_back().expect("there are some");
        let have_last = world.judge.nodes.iter().filter(|told| told.delivered.last() == Some(last));
        assert_eq!(have_last.count(), 40, "seed {seed}: all go on together");
    }
}

#[test]
fn who_starts_again_waits_before_it_broadcasts_and_takes_over_a_state() {
    for seed in 0..2 {
        let mut world = World::new(Shape::of(60, seed));
        world.load(10, 1);
        world.fault(Fault::Restart(11));
        assert_eq!(world.broadcast(11), Err(BroadcastError::Early));
        world.load(ttl(&world), 1);
        assert_eq!(world.broadcast(11), Err(BroadcastError::Early), "it has no place yet");
        world.load(10 + u64::from(world.shape.parameters.hold_rounds), 2);
        assert!(world.nodes[11].epto.has_place() && world.broadcast(11).is_ok());
        let agreement = world.settle();
        assert_eq!(agreement.holes, 0, "seed {seed}: {agreement:?}");
    }
}

/// Churn, losses, spikes and short latencies together.
#[test]
fn everything_together_breaks_no_order() {
    for seed in 0..2 {
        let mut shape = Shape::of(60, seed).with_loss(50_000);
        shape.latency = (1, DELTA * 14 / 10);
        let mut world = World::new(shape);
        for step in 0..6 {
            world.load(6, 3);
            world.fault(Fault::Spike(step, 10));
            world.fault(Fault::Pause(10 + step, 5 + 8 * step as u64, Kept::Nothing));
            world.fault(Fault::Restart(20 + step));
            world.fault(Fault::Stop(30 + step));
            world.fault(Fault::Bomb(40));
        }
        world.load(2 * ttl(&world), 3);
        let agreement = world.settle();
        let rate = agreement.holes * 1000 / agreement.pairs;
        assert!(rate <= 1, "seed {seed}: {agreement:?}");
    }
}
