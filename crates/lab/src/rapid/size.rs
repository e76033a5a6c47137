//! How large and how often.

use super::RapidArgs;

/// What all figures have in common.
#[derive(Clone, Debug)]
pub struct Size {
    /// Numbers of nodes, ascending.
    pub nodes: Vec<usize>,
    /// How many seeds there are of each run.
    pub seeds: u64,
    /// How many runs at once.
    pub threads: usize,
    /// Fig. 11: of how many members each chooses whom it hears of in an order of its own.
    pub hearers: usize,
}

impl Size {
    /// What is asked for.
    #[must_use]
    pub fn of(args: &RapidArgs) -> Size {
        let asked = args.nodes.iter().map(|nodes| *nodes as usize);
        let usual: &[usize] = if args.quick { &[16, 50] } else { &[100, 300, 1000] };
        let nodes = if args.nodes.is_empty() { usual.to_vec() } else { asked.collect() };
        let seeds = args.seeds.unwrap_or(if args.quick { 2 } else { 5 });
        let hearers = if args.quick { 10 } else { 50 };
        Size { nodes, seeds, threads: usize::from(args.threads), hearers }
    }
}
