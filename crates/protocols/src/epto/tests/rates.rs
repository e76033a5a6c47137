//! How rare holes are (E6): a rate over seeds, with a bound, and what it rests on.

use super::judge::Agreement;
use super::shape::{DELTA, Shape};
use super::world::World;
use crate::epto::{Parameters, Scale};

/// Latencies of a network that is much faster than rounds.
const FAST: (u64, u64) = (1, DELTA / 50);

fn run(shape: &Shape, seeds: u64) -> Agreement {
    let mut all = Agreement::default();
    for seed in 0..seeds {
        let mut world = World::new(Shape { seed, ..shape.clone() });
        world.load(6, 5);
        let one = world.settle();
        all = Agreement { pairs: all.pairs + one.pairs, holes: all.holes + one.holes };
    }
    all
}

/// Of a million pairs of a node and an event so many are holes.
fn ppm(agreement: Agreement) -> usize {
    agreement.holes * 1_000_000 / agreement.pairs
}

#[test]
fn the_formulas_leave_no_hole_however_fast_the_network() {
    for latency in [FAST, (DELTA / 20, DELTA * 9 / 10), (DELTA / 2, DELTA * 2)] {
        let agreement = run(&Shape { latency, ..Shape::of(100, 0) }, 2);
        assert_eq!(agreement.holes, 0, "{latency:?}: {agreement:?}");
    }
}

/// Counted by hops, as published, a quarter of all pairs would be holes here.
#[test]
fn fast_hops_make_nothing_old() {
    let agreement = run(&Shape { latency: FAST, ..Shape::of(100, 0).with_loss(50_000) }, 2);
    assert_eq!(agreement.holes, 0, "{agreement:?}");
}

/// The values to which the DataFlagons paper (§4.2) tunes them: few holes, not none for sure.
#[test]
fn the_tuned_values_of_the_paper_leave_few_holes() {
    let mut shape = Shape::of(300, 0);
    (shape.parameters.fanout, shape.parameters.ttl) = (11, 8);
    let agreement = run(&shape, 1);
    assert!(ppm(agreement) < 2000, "{agreement:?}");
}

/// The rate is measured, not assumed: with too few rounds there are holes.
#[test]
fn too_few_rounds_leave_many_holes() {
    let mut shape = Shape::of(100, 0);
    (shape.parameters.fanout, shape.parameters.ttl) = (11, 2);
    let agreement = run(&shape, 1);
    assert!(ppm(agreement) > 100_000, "{agreement:?}");
}

/// Half of the nodes take the cluster for a tenth of what it is, and some change their mind.
#[test]
fn nodes_that_differ_in_their_parameters_agree() {
    for seed in 0..2 {
        let mut world = World::new(Shape::of(100, seed));
        let small = Scale { nodes: 30, exponent: 1, surviving_ppm: 1_000_000 };
        let small = Parameters::of(small);
        for node in world.nodes.iter_mut().step_by(2) {
            node.epto.set_parameters(small);
        }
        world.load(6, 5);
        let usual = world.shape.parameters;
        for node in world.nodes.iter_mut().step_by(4) {
            node.epto.set_parameters(usual);
        }
        world.load(6, 5);
        let agreement = world.settle();
        assert_eq!(agreement.holes, 0, "seed {seed}: {agreement:?}");
    }
}
