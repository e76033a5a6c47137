//! The evaluation of DataFlagons, repeated in the simulator, with what the paper does not count.
//!
//! J. Ribeiro, N. Machado, F. Maia, M. Matos: "Totally Ordered Replication for Massive Scale
//! Key-Value Stores" (DAIS 2018), §4. The engine is the one that hosts run
//! ([`quorate_protocols::epidemic`]); the network and the disks are made up, so load on this
//! machine changes nothing but how long it takes and what [`marks`] says of speed.
//!
//! | module | what it holds |
//! |---|---|
//! | [`size`] | how large and how long |
//! | [`simulated`] | the nodes, clients and judges |
//! | [`mod@run`] | one run, and what was found |
//! | [`marks`] | what a node and a round cost, against the number of nodes |
//! | [`grid`] | Fig. 10: holes and stale reads for K, TTL and loss |
//! | [`churn`] | Fig. 7: what is delivered while nodes are replaced |
//! | [`divergence`] | Fig. 3: two values for one version |
//! | [`latency`] | Fig. 8 and 9: what clients wait for, and messages for each request |
//! | [`growth`] | four times as many nodes within a minute |
//! | [`memory`] | what a node keeps in memory |

pub mod churn;
pub mod divergence;
pub mod grid;
pub mod growth;
pub mod latency;
pub mod marks;
pub mod memory;
pub mod run;
pub mod simulated;
pub mod size;

use super::cats::machine;
use super::page::{Page, Pages, fixed, option, word};
use clap::ValueEnum;
use quorate_cli::exit::Failure;
use simulated::Network;
use size::Size;
use std::path::PathBuf;

/// The arguments of `lab dataflagons`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "All is simulated, with the engine that hosts run. Each figure is written as \
                        soon as it is done.\n\n\
                        Example: quorate-lab dataflagons --figure 10 --nodes 100 --ttl 4,8 \
                        --fanout 8,11 --loss 0,20 --seeds 5 --output /tmp/dataflagons"
)]
pub struct FlagonArgs {
    /// What to repeat, once for each or with commas between; all but `memory` if none is given.
    /// 10 is the grid of K, TTL and loss
    #[arg(long = "figure", value_name = "FIGURE", value_delimiter = ',')]
    figures: Vec<Figure>,
    /// The grid of K, TTL and loss alone, as `--figure 10`
    #[arg(long, conflicts_with = "figures")]
    grid: bool,
    /// Small and short: it shows that everything works
    #[arg(long)]
    quick: bool,
    /// Numbers of nodes; the grid and churn take the second, or the only one
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(8..=20_000))]
    nodes: Vec<u32>,
    /// How many seeds each run of the grid and of churn has
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,
    /// For how many simulated seconds clients ask
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: Option<u64>,
    /// How many clients ask; one for ten nodes, 4 at least and 100 at most, if not given
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=1000))]
    clients: Option<u16>,
    /// Of how many keys
    #[arg(long, default_value_t = 100, value_name = "COUNT")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    keys: u32,
    /// K of the grid: to how many others a ball goes
    #[arg(long = "fanout", value_name = "K", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=42))]
    fanouts: Vec<u8>,
    /// TTL of the grid, in rounds
    #[arg(long = "ttl", value_name = "ROUNDS", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=128))]
    ttls: Vec<u16>,
    /// Lost messages of the grid, in percent
    #[arg(long = "loss", value_name = "PERCENT", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=75))]
    losses: Vec<u32>,
    /// Replaced nodes a minute, in percent
    #[arg(long = "churn", value_name = "PERCENT", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=100))]
    churns: Vec<u32>,
    /// How many replicas must say so before a client is answered; the paper has 1
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=6))]
    acks: u8,
    /// How long messages take
    #[arg(long, value_enum, default_value_t = Place::Wide)]
    network: Place,
    /// How many runs at once
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Where tables and pictures are written
    #[arg(long, default_value = "docs/lab/dataflagons", value_name = "DIR")]
    output: PathBuf,
}

/// Where nodes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Place {
    /// All over the world, as in the paper: median 120 ms
    Wide,
    /// In one region: median 20 ms
    Region,
    /// In one room: median 1 ms
    Room,
}

impl Place {
    fn network(self) -> Network {
        match self {
            Place::Wide => Network::WIDE,
            Place::Region => Network::REGION,
            Place::Room => Network::ROOM,
        }
    }
}

/// What can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Figure {
    #[value(name = "marks")]
    Marks,
    #[value(name = "10")]
    Grid,
    #[value(name = "3")]
    Divergence,
    #[value(name = "7")]
    Churn,
    #[value(name = "8")]
    Latency,
    #[value(name = "growth")]
    Growth,
    #[value(name = "memory")]
    Memory,
}

/// The files, and what they show.
const PAGES: [(&str, &str, &str); 7] = [
    ("marks", "Marks", "what a node and a round cost, against the number of nodes"),
    ("fig10", "Figure 10", "holes and stale strong reads for K, TTL and loss"),
    ("fig3", "Figure 3", "two clients write the same version of a key"),
    ("fig7", "Figure 7", "what is delivered while nodes are replaced"),
    ("fig8", "Figures 8 and 9", "what clients wait for, and messages for each request"),
    ("growth", "Growth", "four times as many nodes within a minute"),
    ("memory", "Memory", "what a node keeps, against the number of nodes"),
];

/// Runs `lab dataflagons`.
///
/// # Errors
/// A file could not be written.
pub fn run(args: &FlagonArgs) -> Result<(), Failure> {
    let size = Size::of(args);
    let is_wanted = |figure: Figure| match args.grid {
        true => figure == Figure::Grid,
        // What is resident is of one process: it says nothing behind other runs.
        false if args.figures.is_empty() => figure != Figure::Memory,
        false => args.figures.contains(&figure),
    };
    let origin = origin(args);
    let pages = Pages { directory: &args.output, list: &PAGES };
    type Make = fn(&Size) -> Page;
    let figures: [(Figure, Make); 7] = [
        (Figure::Memory, memory::figure),
        (Figure::Marks, marks::figure),
        (Figure::Grid, grid::figure),
        (Figure::Divergence, divergence::figure),
        (Figure::Churn, churn::figure),
        (Figure::Latency, latency::figure),
        (Figure::Growth, growth::figure),
    ];
    for (figure, make) in figures {
        if is_wanted(figure) {
            pages.keep(&make(&size), &origin)?;
        }
    }
    pages.index(FIRST, NOTES)
}

/// How a figure was made.
fn origin(args: &FlagonArgs) -> String {
    let mut words = String::new();
    option(&mut words, "figure", &args.figures.iter().map(word).collect::<Vec<_>>());
    for (flag, is_set) in [(" --grid", args.grid), (" --quick", args.quick)] {
        words.push_str(if is_set { flag } else { "" });
    }
    option(&mut words, "nodes", &args.nodes);
    option(&mut words, "seeds", args.seeds.as_slice());
    option(&mut words, "seconds", args.seconds.as_slice());
    option(&mut words, "clients", args.clients.as_slice());
    option(&mut words, "keys", Some(args.keys).filter(|keys| *keys != 100).as_slice());
    option(&mut words, "fanout", &args.fanouts);
    option(&mut words, "ttl", &args.ttls);
    option(&mut words, "loss", &args.losses);
    option(&mut words, "churn", &args.churns);
    option(&mut words, "acks", Some(args.acks).filter(|acks| *acks != 1).as_slice());
    let network = if args.network == Place::Wide { Vec::new() } else { vec![args.network] };
    option(&mut words, "network", &network.iter().map(word).collect::<Vec<_>>());
    let small = match args.quick {
        true => " These runs were so small and short that they show nothing but that they work.",
        false => "",
    };
    let machine = machine("other work");
    format!(
        "Made by `quorate-lab dataflagons{words}`, in the simulator: the engine is the one that \
         hosts run, the network is made up. Speeds are those of a core {machine}{small}"
    )
}

/// A share with its interval, in millionths.
fn millionths(hits: u64, of: u64) -> [String; 3] {
    let found = super::statistics::proportion(hits, of);
    [found.mean, found.low, found.high].map(|share| fixed(share * 1e6, 1))
}

/// Milliseconds within which a share of all ended.
fn quantile(times: &super::dotteddb::simulated::run::Times, share: f64) -> String {
    times.quantile(share).map_or("-".to_owned(), |micros| fixed(micros as f64 / 1e3, 0))
}

/// What comes before the list of the figures.
const FIRST: &str = "# The evaluation of DataFlagons, repeated\n\n\
    `quorate-lab dataflagons` writes these pages from the simulator. The engine is the one that \
    hosts run; no host is around it, and the network is made up: log-normal latencies with the \
    median and the tail of the paper's traces (120 ms, one in a hundred above 480 ms), unless \
    another one is named. Nodes have as much time as they need.\n\n";

/// What all pages have in common.
const NOTES: &str = "
## How it is counted

- A *hole* is an event that a node has not delivered although it delivered earlier and later ones,
  and some other node delivered it. Pairs are events and nodes that should have delivered them. What
  comes with a snapshot is not missed.
- A *word* is what one replica says of a strong read at its event; it is *stale* if it is not the
  last write of the key that the order has before that event: it is older, or was sent twice and
  done again by a replica that had missed the first time. A client that is content with one
  acknowledgement sees the first word. A *stale read* is an answer that is.
- A read is *behind* if it is older than a write of the key that was acknowledged before it began.
  The order may have it so: clocks are logical, and the clients here hand no tokens back.
- Intervals are Wilson's, 95 %, over all pairs, words or reads of all seeds. Holes of one event hang
  together, so the intervals are too narrow; the lowest and the highest seed stand beside them.
- Messages are counted once for each receiver, bytes as frames.

## What differs from the paper

- A ttl counts rounds, not hops, and an event is delivered when it is TTL + 2 rounds old. Payloads
  travel apart from balls. Views have 40 entries, so that K others can be chosen.
- Nodes are replaced at random and evenly in time, not balanced over slices, and the cluster does
  not wait in between.
- K and TTL follow the formulas of EpTO with c = 2 unless the page says otherwise.
";
