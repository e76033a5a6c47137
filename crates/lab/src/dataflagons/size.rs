//! How large and how long.

use super::FlagonArgs;
use super::simulated::{Network, Shape};

/// What all figures have in common.
#[derive(Clone, Debug)]
pub struct Size {
    /// Numbers of nodes, ascending.
    pub nodes: Vec<usize>,
    /// How many seeds there are of each run.
    pub seeds: u64,
    /// For how many seconds clients ask.
    pub seconds: u64,
    /// How many clients ask, if not as many as are usual for so many nodes.
    pub clients: Option<usize>,
    /// Of how many keys.
    pub keys: u32,
    /// K of the grid.
    pub fanouts: Vec<usize>,
    /// TTL of the grid.
    pub ttls: Vec<u16>,
    /// Lost messages of the grid, in percent.
    pub losses: Vec<u32>,
    /// Replaced nodes a minute, in percent.
    pub churns: Vec<u32>,
    /// How many replicas must say so.
    pub acks: u8,
    /// How long messages take.
    pub network: Network,
    /// How many runs at once.
    pub threads: usize,
}

fn or<T: Copy>(asked: &[T], full: &[T], quick: &[T], is_quick: bool) -> Vec<T> {
    let usual = if is_quick { quick } else { full };
    if asked.is_empty() { usual.to_vec() } else { asked.to_vec() }
}

impl Size {
    /// What is asked for.
    #[must_use]
    pub fn of(args: &FlagonArgs) -> Size {
        let quick = args.quick;
        let nodes: Vec<usize> = args.nodes.iter().map(|nodes| *nodes as usize).collect();
        let fanouts: Vec<usize> = args.fanouts.iter().map(|it| usize::from(*it)).collect();
        Size {
            nodes: or(&nodes, &[100, 300, 1000], &[20, 40], quick),
            seeds: args.seeds.unwrap_or(if quick { 1 } else { 3 }),
            seconds: args.seconds.unwrap_or(if quick { 10 } else { 30 }),
            clients: args.clients.map(usize::from),
            keys: args.keys,
            fanouts: or(&fanouts, &[4, 8, 11, 18], &[2, 8], quick),
            ttls: or(&args.ttls, &[4, 6, 8, 12, 25], &[2, 8], quick),
            losses: or(&args.losses, &[0, 5, 20], &[0, 20], quick),
            churns: or(&args.churns, &[0, 10, 20, 30, 40, 50], &[0, 50], quick),
            acks: args.acks,
            network: args.network.network(),
            threads: usize::from(args.threads),
        }
    }

    /// A cluster of this size, in this network.
    #[must_use]
    pub fn shape(&self, nodes: usize, seed: u64) -> Shape {
        let usual = Shape::of(nodes, seed);
        let (acks, network, keys) = (self.acks, self.network, self.keys);
        Shape { acks, network, keys, clients: self.clients.unwrap_or(usual.clients), ..usual }
    }

    /// The largest of the first two numbers of nodes: for runs of which there are many.
    #[must_use]
    pub fn middle(&self) -> usize {
        *self.nodes.get(1).unwrap_or(&self.nodes[0])
    }
}
