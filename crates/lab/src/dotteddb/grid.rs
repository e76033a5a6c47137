//! The twelve configurations of Table I: objects per leaf, state changed between exchanges, loss.

use super::simulated::{Findings, Run, measure};
use super::size::Size;
use super::workers;
use quorate_merkle::Merkle;
use quorate_protocols::causal::Causal;

/// One configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// The letters of the paper, behind the engine's.
    pub name: &'static str,
    /// How many objects a leaf has; none of DottedDB, which has no leaves.
    pub per_leaf: Option<u32>,
    /// How much of the state changes between two exchanges, in percent.
    pub changed: u64,
    /// How many messages of replication on write are lost, in percent.
    pub lost: u32,
}

const fn dotted(name: &'static str, changed: u64, lost: u32) -> Configuration {
    Configuration { name, per_leaf: None, changed, lost }
}

const fn merkle(name: &'static str, leaf: u32, changed: u64, lost: u32) -> Configuration {
    Configuration { name, per_leaf: Some(leaf), changed, lost }
}

/// All of them, in the order of Table II.
pub const CONFIGURATIONS: [Configuration; 12] = [
    dotted("D HH", 10, 100),
    dotted("D HL", 10, 10),
    dotted("D LH", 1, 100),
    dotted("D LL", 1, 10),
    merkle("M HHH", 1000, 10, 100),
    merkle("M HHL", 1000, 10, 10),
    merkle("M HLH", 1000, 1, 100),
    merkle("M HLL", 1000, 1, 10),
    merkle("M LHH", 1, 10, 100),
    merkle("M LHL", 1, 10, 10),
    merkle("M LLH", 1, 1, 100),
    merkle("M LLL", 1, 1, 10),
];

impl Configuration {
    /// Between two exchanges that a node begins, in microseconds: the time in which this share of
    /// the keys is updated.
    #[must_use]
    pub fn sync_us(&self, size: &Size) -> u64 {
        let (keys, rate) = size.grid;
        self.interval_us(u64::from(keys), rate)
    }

    /// The same for so many keys, and updates per second.
    #[must_use]
    pub fn interval_us(&self, keys: u64, rate: u64) -> u64 {
        keys * self.changed * 10_000 / rate
    }

    /// How many children the nodes of trees have: as many squared leaves as there shall be.
    #[must_use]
    pub fn width(&self, size: &Size) -> u32 {
        let of_tree = size.grid.0 / u32::from(size.nodes);
        let leaves = of_tree / self.per_leaf.unwrap_or(1);
        let width = f64::from(leaves).sqrt().round() as u32;
        width.clamp(1, 1024)
    }

    /// What it is run with.
    #[must_use]
    pub fn run(&self, size: &Size) -> Run {
        let (keys, rate) = size.grid;
        let (intervals, seconds) = size.grid_length;
        let sync_us = self.sync_us(size);
        let seconds = seconds.max((intervals * sync_us).div_ceil(1_000_000));
        Run {
            loss_ppm: self.lost * 10_000,
            sync_us,
            width: self.width(size),
            is_watched: true,
            bucket_s: seconds,
            ..size.run(keys, rate, seconds)
        }
    }

    /// Whether it is one of DottedDB.
    #[must_use]
    pub fn is_dotted(&self) -> bool {
        self.per_leaf.is_none()
    }
}

/// What was found of each configuration, in their order.
#[must_use]
pub fn measure_one(configuration: &Configuration, size: &Size) -> Findings {
    eprintln!("figures 4 and 5, table II: {}", configuration.name);
    let run = configuration.run(size);
    match configuration.is_dotted() {
        true => measure::<Causal>(&run),
        false => measure::<Merkle>(&run),
    }
}

/// Runs the grid.
#[must_use]
pub fn measure_all(size: &Size, threads: usize) -> Vec<Findings> {
    workers::all(&CONFIGURATIONS, threads, |configuration| measure_one(configuration, size))
}

/// How the grid was run.
#[must_use]
pub fn note(size: &Size) -> String {
    let (keys, rate) = size.grid;
    let runs = CONFIGURATIONS.map(|it| it.run(size));
    let intervals = [0, 2].map(|at| runs[at].sync_us as f64 / 1e6);
    let lengths = [0, 2].map(|at| runs[at].seconds);
    format!(
        "{} nodes, {keys} keys (the paper: 500,000), {rate} updates per second. The letters are \
         those of Table I. State changed H: 10 % of the keys are updated between two exchanges of \
         a node, which is every {} s; L: 1 %, every {} s. Message loss H: all messages of \
         replication on write are lost, so none is sent; L: 10 %. Objects per leaf, MerkleDB's \
         first letter, H: 1000, L: 1; a tree here has {} keys, so that its width is {} or {}, \
         squared as many leaves. Contexts are stripped every second. Measured for {} s with H and \
         {} s with L (the paper: 20 minutes).",
        size.nodes,
        intervals[0],
        intervals[1],
        keys / u32::from(size.nodes),
        CONFIGURATIONS[4].width(size),
        CONFIGURATIONS[8].width(size),
        lengths[0],
        lengths[1],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_and_trees_are_those_of_the_paper() {
        let size = Size::of(false, Some(500_000));
        let seconds = |at: usize| CONFIGURATIONS[at].sync_us(&size) / 1_000_000;
        assert_eq!((seconds(0), seconds(2)), (20, 2));
        let width = |at: usize| CONFIGURATIONS[at].width(&size);
        assert_eq!((width(4), width(8)), (3, 88), "9 and 7744 leaves for 7812 keys");
        assert_eq!(CONFIGURATIONS[0].run(&size).seconds, 240);
    }
}
