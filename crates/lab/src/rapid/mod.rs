//! The evaluation of Rapid, repeated in the simulator with our roll.
//!
//! L. Suresh et al., "Stable and Consistent Membership at Scale with Rapid" (USENIX ATC 2018), §7.
//! The state machine is [`quorate_protocols::membership`], on which no lane stands yet; machines
//! and the network are made up, so times say how often the protocol waits for whom, and numbers of
//! configurations say whether it keeps the paper's promises.
//!
//! | module | what it holds |
//! |---|---|
//! | [`size`] | how large and how often |
//! | [`simulated`] | the nodes, faults and judges |
//! | [`paper`] | what the paper says |
//! | [`join`] | Fig. 5 to 7, Table 1: many come at once |
//! | [`faults`] | Fig. 8 to 10, Table 2: crashes, flip-flops, one-way loss |
//! | [`cut`] | Fig. 11: H and L |

pub mod cut;
pub mod faults;
pub mod join;
pub mod paper;
pub mod simulated;
pub mod size;

use super::page::{Page, Pages, fixed, option, word};
use clap::ValueEnum;
use quorate_cli::exit::Failure;
use size::Size;
use std::path::PathBuf;

/// The arguments of `lab rapid`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "All is simulated, with the roll of `protocols/membership`. Each figure is \
                        written as soon as it is done. A thousand nodes take minutes.\n\n\
                        Example: quorate-lab rapid --figure 10 --nodes 100 --output /tmp/rapid"
)]
pub struct RapidArgs {
    /// What to repeat, once for each or with commas between; all if none is given
    #[arg(long = "figure", value_name = "FIGURE", value_delimiter = ',')]
    figures: Vec<Figure>,
    /// Small: it shows that everything works
    #[arg(long)]
    quick: bool,
    /// Numbers of nodes; figure 11 takes the last
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(8..=2000))]
    nodes: Vec<u32>,
    /// How many seeds each run has; figure 11 has four times as many
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: Option<u64>,
    /// How many runs at once
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Where tables and pictures are written
    #[arg(long, default_value = "docs/lab/rapid", value_name = "DIR")]
    output: PathBuf,
}

/// What can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Figure {
    #[value(name = "5")]
    Join,
    #[value(name = "8")]
    Crashes,
    #[value(name = "9")]
    Flips,
    #[value(name = "10")]
    Loss,
    #[value(name = "11")]
    Cut,
}

/// The files, and what they show.
const PAGES: [(&str, &str, &str); 5] = [
    ("fig5", "Figures 5 to 7, Table 1", "all nodes but one come at once"),
    ("fig8", "Figure 8, Table 2", "one percent crash at one moment; bytes sent"),
    ("fig9", "Figure 9", "one percent hear nothing for 20 s, everything for 20 s, and so on"),
    ("fig10", "Figure 10", "80 % one-way loss at one percent"),
    ("fig11", "Figure 11", "how often members cut differently, for H and L"),
];

/// Runs `lab rapid`.
///
/// # Errors
/// A file could not be written.
pub fn run(args: &RapidArgs) -> Result<(), Failure> {
    let size = Size::of(args);
    let origin = origin(args);
    let pages = Pages { directory: &args.output, list: &PAGES };
    type Make = fn(&Size) -> Page;
    let figures: [(Figure, Make); 5] = [
        (Figure::Join, join::figure),
        (Figure::Crashes, faults::crashes),
        (Figure::Flips, faults::flips),
        (Figure::Loss, faults::loss),
        (Figure::Cut, cut::figure),
    ];
    for (figure, make) in figures {
        if args.figures.is_empty() || args.figures.contains(&figure) {
            pages.keep(&make(&size), &origin)?;
        }
    }
    pages.index(FIRST, &format!("\n## How it is counted\n\n{}\n{NOTES}", simulated::costs::words()))
}

/// How a figure was made.
fn origin(args: &RapidArgs) -> String {
    let mut words = String::new();
    option(&mut words, "figure", &args.figures.iter().map(word).collect::<Vec<_>>());
    option(&mut words, "nodes", &args.nodes);
    option(&mut words, "seeds", args.seeds.as_slice());
    let small =
        if args.quick { " These runs are small: they show only that they work." } else { "" };
    words.push_str(if args.quick { " --quick" } else { "" });
    format!(
        "Made by `quorate-lab rapid{words}`, in the simulator; the same command gives the same \
         numbers on every machine.{small}"
    )
}

/// What several runs had: the mean, the lowest and the highest.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Spread {
    mean: f64,
    low: f64,
    high: f64,
}

impl Spread {
    /// Of these; not a number of none.
    fn of(samples: &[f64]) -> Spread {
        if samples.is_empty() {
            return Spread { mean: f64::NAN, low: f64::NAN, high: f64::NAN };
        }
        Spread {
            mean: samples.iter().sum::<f64>() / samples.len() as f64,
            low: samples.iter().copied().fold(f64::INFINITY, f64::min),
            high: samples.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// The lowest and the highest, of counts.
    fn whole(self) -> String {
        match self.low == self.high {
            true => fixed(self.low, 0),
            false => format!("{:.0}..{:.0}", self.low, self.high),
        }
    }
}

/// Seconds in a table; a dash if no run had any.
fn seconds(seconds: f64) -> String {
    if seconds.is_nan() { "-".to_owned() } else { fixed(seconds, 2) }
}

/// What comes before the list of the figures.
const FIRST: &str = "# The evaluation of Rapid, repeated\n\n\
    `quorate-lab rapid` writes these pages from the simulator. The state machine is the roll of \
    `crates/protocols/src/membership`, run as a lane of a host would run it; no lane stands on it \
    yet, and no host is around it here. The paper is L. Suresh, D. Malkhi, P. Gopalan, I. Porto \
    Carreiro, Z. Lokhandwala: \"Stable and Consistent Membership at Scale with Rapid\" (USENIX \
    ATC 2018), and what is said of it is from its text and tables in §7.\n\n";

/// What all pages have in common.
const NOTES: &str = "
- A *configuration* counts when the first node has installed it. In every run each node's
  configurations are compared with all others': two of one number that differ end the run.
- A *sound* node is one that no fault was made for. A *size* is how many members a sound node that
  is a member counts when it is asked; each is asked once a second, as in the paper, a tenth of them
  every tenth of a second. `0` sound ones removed is the promise; the column shows if it is broken.
- Bytes are those of frames, once for each receiver. There is no acknowledgement below them, and no
  encryption.
- The roll is not quite Rapid. An alert and a vote go to each member, in place of the paper's
  gossip: all bytes of a change together grow with the square of the members. Its other departures
  are listed in `crates/protocols/src/membership/mod.rs`.

## What is not here

- Figures 1, 12 and 13, and the memory of processes. Memberlist, ZooKeeper and Akka: what the paper
  says of them stands beside ours in words.
- Rapid-C, with three nodes that keep the roll for others: the roll has no such way.
";
