//! Random faults of every kind; the judge sees all nodes.

use super::nemesis::{Nemesis, Tally, is_settled, refresh};
use super::world::{Setup, World};
use quorate_kernel::time::Span;
use std::string::ToString;
use std::vec::Vec;

/// A run in which things go wrong, and then all is well.
pub fn run(seed: u64) -> Tally {
    let founders = [5, 3, 7, 4, 1, 6, 2][seed as usize % 7];
    let jitter = Span::millis([2, 20, 80][seed as usize / 3 % 3]);
    let mut world = World::new(Setup { seed, founders, jitter, is_encoded: true });
    let mut nemesis = Nemesis::default();
    world.trace = std::env::var("ROLL_SEED")
        .ok()
        .filter(|wanted| *wanted == seed.to_string())
        .map(|_| Vec::new());
    world.run_ms(400);
    world.loss_percent = seed % 4 * 5;
    for _ in 0..60 {
        nemesis.act(&mut world);
        let pause = world.rng.below(if seed.is_multiple_of(2) { 300 } else { 2500 });
        world.run_ms(pause);
    }
    nemesis.heal(&mut world);
    // What is late, and what was found while much was wrong, is over by then.
    world.run_ms(30_000);
    refresh(&mut world);
    world.run_until("all agree again", is_settled);
    nemesis.finish(&world)
}

/// How many seeds a test runs: `ROLL_SEEDS` times as many if that is in the environment.
/// `ROLL_SEED` has the steps of one shown if it fails.
pub fn seeds(many: u64) -> core::ops::Range<u64> {
    let factor = std::env::var("ROLL_SEEDS").ok().and_then(|text| text.parse().ok());
    0..factor.unwrap_or(1) * many
}

/// The rare paths that the runs must have taken together.
const MARKS: &[&str] = &[
    "roll/caught_up",
    "roll/classic_round",
    "roll/decided_what_is_not_here",
    "roll/left_outside",
    "roll/promised_before_it_proposed",
    "roll/reinforces",
    "roll/stalled",
    "roll/took_a_whole_configuration",
];

#[test]
fn one_chain_of_configurations_whatever_fails() {
    let mut all = Tally::default();
    let seeds = seeds(60);
    let count = seeds.end as usize;
    for seed in seeds {
        let one = run(seed);
        all.configurations += one.configurations;
        all.joins += one.joins;
        all.leaves += one.leaves;
        all.kicks += one.kicks;
        all.crashes += one.crashes;
        all.pauses += one.pauses;
        all.partitions += one.partitions;
        all.holds += one.holds;
        all.classic += one.classic;
        one.told.into_iter().for_each(|(name, count)| *all.told.entry(name).or_default() += count);
    }
    std::println!("{all:?}");
    assert!(all.configurations > 5 * count as u64 && all.joins > 3 * count, "{all:?}");
    assert!(all.leaves > count && all.kicks > count && all.crashes > 3 * count, "{all:?}");
    assert!(all.pauses > count && all.partitions > count && all.holds > count, "{all:?}");
    assert!(all.classic > count && all.told["kicked"] > count, "{all:?}");
    let mut reached = std::collections::BTreeMap::new();
    quorate_kernel::invariant::probes(&mut |name, count| _ = reached.insert(name, count));
    for mark in MARKS {
        assert!(reached.contains_key(mark), "{mark} is not among {reached:?}");
    }
}
