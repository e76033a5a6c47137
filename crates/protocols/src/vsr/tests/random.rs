//! Random faults of every kind; the judge sees all nodes.

use super::nemesis::{Faults, Nemesis, Tally};
use super::node::Level;
use super::world::{Setup, World};
use crate::vsr::{Kept, Replica, Status};
use quorate_kernel::ids::NodeId;
use quorate_kernel::time::Span;
use std::string::ToString;
use std::vec::Vec;

fn setup(seed: u64, level: Level) -> Setup {
    Setup {
        seed,
        members: [3, 4, 5, 1, 2, 3][seed as usize % if level == Level::Sync { 6 } else { 3 }],
        spares: 2,
        level,
        kept: Kept {
            entries: [4, 16, 64][seed as usize % 3],
            bytes: [0, 0, 2000, 20_000][seed as usize / 5 % 4],
        },
        clients: [3, 8][seed as usize / 2 % 2],
        jitter: Span::millis([2, 10, 40][seed as usize / 3 % 3]),
    }
}

/// A run in which things go wrong, and then all is well.
pub fn run(seed: u64, level: Level, faults: Faults) -> Tally {
    let mut setup = setup(seed, level);
    if faults.wipes {
        setup.members = 3 + seed % 2 * 2;
    }
    let mut world = World::new(setup);
    let mut nemesis = Nemesis::new(faults);
    world.trace = std::env::var("VSR_SEED")
        .ok()
        .filter(|wanted| *wanted == seed.to_string())
        .map(|_| std::vec::Vec::new());
    world.run(Span::millis(400));
    world.loss_percent = seed % 4 * 5;
    for _ in 0..60 {
        nemesis.act(&mut world);
        let pause = world.rng.below(if seed.is_multiple_of(2) { 40 } else { 160 });
        world.run(Span::millis(pause));
    }
    nemesis.heal(&mut world);
    end(&mut world);
    nemesis.finish(&world)
}

/// Nothing goes wrong any more: it goes on, and all is as it should be.
pub fn end(world: &mut World) {
    let before = world.judge.acknowledged.len();
    world.run(Span::secs(6));
    settle(world, before);
}

/// Clients are served again, and everybody ends with the same.
fn settle(world: &mut World, before: usize) {
    let seed = world.setup.seed;
    assert!(world.judge.acknowledged.len() > before + 5, "seed {seed}: it goes on");
    let last = world.judge.last();
    world.stop_clients();
    world.run(Span::secs(1));
    for node in 0..world.nodes.len() {
        if !world.is_up(node) || !world.members.contains(&NodeId(node as u64 + 1)) {
            continue;
        }
        let (applied, status) = (world.replica(node).applied(), world.replica(node).status());
        assert_eq!(status, Status::Normal, "seed {seed}: {} takes part", node + 1);
        assert!(applied >= last, "seed {seed}: {} has executed all", node + 1);
        let machine = std::mem::take(&mut world.nodes[node].machine);
        world.judge.at_rest(node as u64 + 1, applied, &machine);
    }
    let owing = world.nodes.iter().filter_map(|node| node.replica.as_ref()).any(Replica::owes);
    assert!(!owing, "seed {seed}: who was removed is let go");
    let verdict = world.judge.verdict();
    assert!(verdict.is_none(), "seed {seed}: judge: {verdict:?}");
}

/// Runs many seeds; returns what they have done together.
pub fn run_many(seeds: core::ops::Range<u64>, level: Level, faults: Faults) -> Tally {
    let mut all = Tally::default();
    for seed in seeds {
        let one = run(seed, level, faults);
        all.acknowledged += one.acknowledged;
        all.reads += one.reads;
        all.crashes += one.crashes;
        all.wiped += one.wiped;
        all.losses += one.losses;
        all.holds += one.holds;
        all.pauses += one.pauses;
        all.partitions += one.partitions;
        all.epochs += one.epochs;
        one.told.into_iter().for_each(|(name, count)| *all.told.entry(name).or_default() += count);
    }
    all
}

/// How many seeds a test runs: `VSR_SEEDS` times as many if that is in the environment. `VSR_SEED`
/// has the steps of one shown if it fails.
pub fn seeds(many: u64) -> core::ops::Range<u64> {
    let factor = std::env::var("VSR_SEEDS").ok().and_then(|text| text.parse().ok());
    0..factor.unwrap_or(1) * many
}

const CALM: Faults = Faults { changes: false, wipes: false, losses: false };
const CHANGES: Faults = Faults { changes: true, ..CALM };

#[test]
fn one_log_whatever_fails() {
    let tally = run_many(seeds(15), Level::Sync, CALM);
    std::println!("{tally:?}");
    assert!(tally.acknowledged > 15 * 50 && tally.reads > 15 * 20, "{tally:?}");
    assert!(tally.crashes > 15 && tally.pauses > 15 && tally.partitions > 15, "{tally:?}");
    assert!(tally.holds > 15 && tally.told["deposed"] > 2, "{tally:?}");
    for met in ["a one-way cut", "a frame of an earlier start", "a frame twice"] {
        assert!(tally.told[met] > 15, "{tally:?}");
    }
}

#[test]
fn one_log_while_members_change() {
    let tally = run_many(seeds(15), Level::Sync, CHANGES);
    std::println!("{tally:?}");
    assert!(tally.epochs > 15 && tally.told["released"] > 7, "{tally:?}");
}

#[test]
fn one_log_while_disks_are_taken_away() {
    let tally = run_many(seeds(10), Level::Sync, Faults { wipes: true, ..CHANGES });
    std::println!("{tally:?}");
    assert!(tally.wiped > 5 && tally.epochs > 10, "{tally:?}");
}

#[test]
fn one_log_where_members_forget() {
    for level in [Level::Memory, Level::Periodic] {
        let tally = run_many(seeds(10), level, CHANGES);
        std::println!("{tally:?}");
        assert!(tally.crashes > 10 && tally.acknowledged > 10 * 50, "{tally:?}");
    }
}

#[test]
fn one_log_where_members_forget_and_disks_are_taken_away() {
    for level in [Level::Memory, Level::Periodic] {
        let tally = run_many(seeds(8), level, Faults { wipes: true, ..CHANGES });
        std::println!("{tally:?}");
        assert!(tally.wiped > 2 && tally.crashes > 5, "{tally:?}");
        assert!(tally.told["a wish amid a recovery"] > 0, "{tally:?}");
    }
}

/// Seeds that have found something: few of those who were removed need have what all others forgot,
/// and a copy must not come after they have gone on.
#[test]
fn what_was_found_stays_mended() {
    for seed in [33, 103] {
        run(seed, Level::Memory, Faults { losses: true, ..CHANGES });
    }
}

/// What is acknowledged after a loss is kept, and what outlives it outside is not mixed with it.
#[test]
fn one_log_again_after_all_members_forgot() {
    for level in [Level::Periodic, Level::Memory] {
        let tally = run_many(seeds(10), level, Faults { losses: true, ..CHANGES });
        std::println!("{tally:?}");
        assert!(tally.losses > 5 && tally.told["lost"] > 15, "{tally:?}");
    }
}

/// The rare paths that the runs must have taken together; two more have tests of their own.
const MARKS: &[&str] = &[
    "vsr/behind_a_beat",
    "vsr/copied",
    "vsr/deaf_primary",
    "vsr/drops_a_source",
    "vsr/entries_of_a_later_view",
    "vsr/gap",
    "vsr/goes_on_with_what_is_left",
    "vsr/joins_a_view",
    "vsr/log_of_another",
    "vsr/logs_differ",
    "vsr/primary_gives_up",
    "vsr/recovers",
    "vsr/released",
    "vsr/removed",
    "vsr/started_without_its_log",
    "vsr/starts_over",
];

/// Runs like those of the tests above, beside which this one may find most marks reached already.
#[test]
fn the_runs_take_every_rare_path() {
    let losses = Faults { losses: true, ..CHANGES };
    let missing = || {
        let mut missing: Vec<&str> = MARKS.to_vec();
        let mut drop = |name, _| missing.retain(|mark| *mark != name);
        quorate_kernel::invariant::probes(&mut drop);
        missing
    };
    for seed in seeds(60) {
        if missing().is_empty() {
            return;
        }
        run(seed, Level::Sync, CHANGES);
        run(seed, Level::Sync, Faults { wipes: true, ..CHANGES });
        run(seed, Level::Memory, losses);
        run(seed, Level::Periodic, losses);
    }
    assert!(missing().is_empty(), "no run has reached {:?}", missing());
}
