//! The evaluation of DottedDB, repeated in the simulator, and a part of it on real hosts.
//!
//! R. Gonçalves, P. S. Almeida, C. Baquero, V. Fonte: "DottedDB: Anti-Entropy without Merkle Trees,
//! Deletes without Tombstones" (SRDS 2017), §V. All but [`real`] is simulated, so load on this
//! machine changes nothing but how long it takes.
//!
//! | module | what it holds |
//! |---|---|
//! | [`size`] | how large and how long |
//! | [`simulated`] | the nodes, machines and clients that are measured, and what they cost |
//! | [`entries`] | Fig. 1: entries of objects' clocks under churn |
//! | [`strip`] | Fig. 2: how long until contexts are stripped |
//! | [`deletes`] | Fig. 3: objects in storage |
//! | [`grid`] | the twelve configurations of Table I |
//! | [`traffic`] | Fig. 4: what anti-entropy sends, and what nodes keep for it |
//! | [`replication`] | Fig. 5: how long replication takes |
//! | [`latency`] | Table II: what clients wait for |
//! | [`marks`] | what the engine is meant to cost |
//! | [`workers`] | several runs at once |
//! | [`real`] | DottedDB's four configurations on real hosts |
//! | [`hosts`], [`updates`], [`probes`] | their cluster, their load, their replication latency |

pub mod deletes;
pub mod entries;
pub mod grid;
pub mod hosts;
pub mod latency;
pub mod marks;
pub mod probes;
pub mod real;
pub mod replication;
pub mod simulated;
pub mod size;
pub mod strip;
pub mod traffic;
pub mod updates;
pub mod workers;

use super::cats::machine;
use super::page::{Page, Pages, option, word};
use hosts::Extent;
use quorate_cli::exit::Failure;
use size::Size;
use std::path::PathBuf;

/// The arguments of `lab dotteddb`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Everything but `real` is simulated, and `real` is made only if it is named: \
                        five hosts on this machine, for about five minutes, which should have \
                        nothing else to do. All others take about ten minutes of one core; \
                        with --keys 500000 figures 4 and 5 and the table take half an hour and \
                        some 2 GB more. Each is written as soon as it is done. Figures 4 and 5 and \
                        the table come from the same runs.\n\n\
                        Example: quorate-lab dotteddb --figure 1,3 --output /tmp/dotteddb"
)]
pub struct DottedArgs {
    /// The figures to repeat, once for each or with commas between: 1 to 5, `table2`, `marks`,
    /// `real`; all that are simulated if none is given
    #[arg(long = "figure", value_name = "FIGURE", value_delimiter = ',')]
    figures: Vec<Figure>,
    /// Small and short: it shows that everything works
    #[arg(long)]
    quick: bool,
    /// Keys of figures 4 and 5 and of the table; the paper has 500000
    #[arg(long, value_name = "COUNT")]
    #[arg(value_parser = clap::value_parser!(u32).range(100..=2_000_000))]
    keys: Option<u32>,
    /// How many runs at once
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Host i of `real` has ports PORT + 10 i + 1 to + 3
    #[arg(long, default_value_t = 7700, value_name = "PORT")]
    port_base: u16,
    /// Where tables and pictures are written
    #[arg(long, default_value = "docs/lab/dotteddb", value_name = "DIR")]
    output: PathBuf,
}

/// What can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Figure {
    #[value(name = "1")]
    Entries,
    #[value(name = "2")]
    Strip,
    #[value(name = "3")]
    Deletes,
    #[value(name = "4")]
    Traffic,
    #[value(name = "5")]
    Replication,
    #[value(name = "table2")]
    Latency,
    #[value(name = "marks")]
    Marks,
    #[value(name = "real")]
    Real,
}

/// The files of the figures, and what they show.
const PAGES: [(&str, &str, &str); 9] = [
    ("fig1", "Figure 1", "entries of objects' clocks while nodes are replaced"),
    ("fig2", "Figure 2", "how long until an object's context is stripped"),
    ("fig3", "Figure 3", "objects in storage while half of the updates are deletes"),
    ("fig4", "Figure 4", "what anti-entropy sends, and what nodes keep for it"),
    ("fig5", "Figure 5", "how long until an update is stored at another replica"),
    ("table2", "Table II", "how long clients wait for an update"),
    ("marks", "Marks", "what the engine is meant to cost, counted"),
    ("real", "Real hosts", "Table II and figures 4 and 5 on five real hosts, smaller"),
    ("500000/README", "The paper's size", "figures 4 and 5 and Table II with 500,000 keys"),
];

/// Runs `lab dotteddb`.
///
/// # Errors
/// A file could not be written, or real hosts failed.
pub fn run(args: &DottedArgs) -> Result<(), Failure> {
    let size = Size::of(args.quick, args.keys);
    let threads = usize::from(args.threads);
    let is_wanted = |figure: Figure| args.figures.is_empty() || args.figures.contains(&figure);
    let (origin, before, small) = (origin(args), machine("clients"), small(args));
    let pages = Pages { directory: &args.output, list: &PAGES };
    let keep = |page: Page| -> Result<(), Failure> {
        let place = if page.name == "real" { &before } else { "in the simulator." };
        pages.keep(&page, &format!("{origin}{place}{small}"))
    };
    if is_wanted(Figure::Entries) {
        keep(entries::figure(&size, threads))?;
    }
    if is_wanted(Figure::Strip) {
        keep(strip::figure(&size, threads))?;
    }
    if is_wanted(Figure::Deletes) {
        keep(deletes::figure(&size, threads))?;
    }
    let of_grid = [Figure::Traffic, Figure::Replication, Figure::Latency];
    if of_grid.into_iter().any(is_wanted) {
        let grid = grid::measure_all(&size, threads);
        if is_wanted(Figure::Traffic) {
            keep(traffic::figure(&size, &grid))?;
        }
        if is_wanted(Figure::Replication) {
            keep(replication::figure(&size, &grid))?;
        }
        if is_wanted(Figure::Latency) {
            keep(latency::table(&size, &grid))?;
        }
    }
    if is_wanted(Figure::Marks) {
        keep(marks::table(&size))?;
    }
    if args.figures.contains(&Figure::Real) {
        let page = real::figure(args.port_base, &Extent::of(args.quick))?;
        keep(page)?;
    }
    pages.index(FIRST, &last())
}

/// How a figure was made.
fn origin(args: &DottedArgs) -> String {
    let quick = if args.quick { " --quick" } else { "" };
    let keys = args.keys.map(|keys| format!(" --keys {keys}")).unwrap_or_default();
    let mut figures = String::new();
    option(&mut figures, "figure", &args.figures.iter().map(word).collect::<Vec<_>>());
    format!("Made by `quorate-lab dotteddb{figures}{quick}{keys}`, ")
}

/// What runs do not show.
fn small(args: &DottedArgs) -> &'static str {
    match args.quick {
        true => " These runs were so small and short that they show nothing but that they work.",
        false => "",
    }
}

/// What comes before the list of the figures.
const FIRST: &str = "# The evaluation of DottedDB, repeated\n\n\
    `quorate-lab dotteddb` writes these pages, all but that of real hosts from the simulator: the \
    engines are those that run, the machines and the network are made up. Of two engines side by \
    side the difference can be compared with the paper's; milliseconds cannot. MerkleDB, the \
    baseline, is part of the code for this only (`crates/merkle`).\n\n";

/// What comes behind it.
fn last() -> String {
    let (model, departures) = (size::model(), size::departures());
    format!("\n## The model\n\n{model}\n\n## What differs from the paper\n\n{departures}\n")
}
