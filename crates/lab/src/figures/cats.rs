//! The figures of CATS: which of them to repeat, and at which size.
//!
//! C. Arad, T. M. Shafaat, S. Haridi: "CATS: Linearizability and Partition Tolerance in Scalable
//! and Self-Organizing Key-Value Stores", §6.

use super::{elastic, load, paired, price, scale, stamps};
use crate::page::{Page, Pages, option};
use quorate_cli::exit::Failure;
use std::path::PathBuf;
use std::time::Duration;

/// The arguments of `lab cats`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Figures 3, 5, 6 and 7 run real hosts on this machine, which share its cores \
                        with the load; figure 4 is simulated. All take about 20 minutes. Each is \
                        written as soon as it is done, and can be repeated by itself; 6 and 7 come \
                        from the same runs.\n\n\
                        Example: quorate-lab cats --figure 6,7 --output /tmp/cats"
)]
pub struct CatsArgs {
    /// The figures to repeat, once for each or with commas between; all if none is given
    #[arg(long = "figure", value_name = "3…7", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u8).range(3..=7))]
    figures: Vec<u8>,
    /// Small and short: it shows that everything works, and says little of speed
    #[arg(long)]
    quick: bool,
    /// Where tables and pictures are written
    #[arg(long, default_value = "docs/lab/cats", value_name = "DIR")]
    output: PathBuf,
    /// Host i of a measured cluster has ports PORT + 10 i + 1 to + 3
    #[arg(long, default_value_t = 7700, value_name = "PORT")]
    port_base: u16,
}

/// How large and how long measurements are.
#[derive(Clone, Debug)]
pub struct Size {
    /// Keys of figures 3, 4, 6 and 7.
    pub keys: u64,
    /// Connections of figure 3.
    pub connections: Vec<usize>,
    /// How long each point of figures 3 and 4 is measured.
    pub point: Duration,
    /// What runs before anything counts.
    pub warm_up: Duration,
    /// Server counts of figure 4.
    pub servers: Vec<usize>,
    /// Simulated milliseconds of each of its points.
    pub simulated_ms: u64,
    /// Keys of figure 5.
    pub elastic_keys: u64,
    /// Time between the steps of figure 5.
    pub step: Duration,
    /// Length of one piece of its time line.
    pub bucket: Duration,
    /// Operations per second of figure 5.
    pub rate: u64,
    /// How many rounds each row of figures 6 and 7 has at least.
    pub rounds_min: usize,
    /// How many it has at most.
    pub rounds_max: usize,
    /// How long each of their runs is.
    pub run: Duration,
    /// What runs before it counts.
    pub run_warm_up: Duration,
}

impl Size {
    /// What is worth keeping.
    #[must_use]
    pub fn full() -> Size {
        Size {
            keys: 30_000,
            connections: vec![1, 2, 4, 8, 16, 32, 64, 128],
            point: Duration::from_secs(5),
            warm_up: Duration::from_millis(500),
            servers: vec![3, 6, 12, 24, 48, 96],
            simulated_ms: 100,
            elastic_keys: 100_000,
            step: Duration::from_secs(20),
            bucket: Duration::from_secs(1),
            rate: 2_000,
            rounds_min: 24,
            rounds_max: 250,
            run: Duration::from_millis(100),
            run_warm_up: Duration::from_millis(25),
        }
    }

    /// What shows that everything works.
    #[must_use]
    pub fn quick() -> Size {
        Size {
            keys: 2_000,
            connections: vec![1, 4, 16],
            point: Duration::from_millis(400),
            warm_up: Duration::from_millis(100),
            servers: vec![3, 6, 12],
            simulated_ms: 5,
            elastic_keys: 2_000,
            step: Duration::from_secs(4),
            bucket: Duration::from_millis(500),
            rate: 300,
            rounds_min: 3,
            rounds_max: 3,
            run: Duration::from_millis(100),
            run_warm_up: Duration::from_millis(20),
        }
    }
}

/// Runs `lab cats`.
///
/// # Errors
/// A cluster could not be started, a measurement failed, or a file could not be written.
pub fn run(args: &CatsArgs) -> Result<(), Failure> {
    let size = if args.quick { Size::quick() } else { Size::full() };
    let is_wanted = |figure: u8| args.figures.is_empty() || args.figures.contains(&figure);
    let origin = origin(args);
    let base = args.port_base;
    let pages = Pages { directory: &args.output, list: &PAGES };
    let keep = |page: Page| pages.keep(&page, &origin);
    if is_wanted(3) {
        keep(load::figure(base, &size)?)?;
    }
    if is_wanted(4) {
        keep(scale::figure(base, &size)?)?;
    }
    if is_wanted(5) {
        keep(elastic::figure(base, &size)?)?;
    }
    if is_wanted(6) || is_wanted(7) {
        let runs = paired::measure(base, &size)?;
        if is_wanted(6) {
            keep(price::overhead(&runs, &stamps::count()?))?;
        }
        if is_wanted(7) {
            keep(price::latency(&runs))?;
        }
    }
    pages.index(FIRST, "")
}

/// Where and how a figure was made.
fn origin(args: &CatsArgs) -> String {
    let quick = if args.quick { " --quick" } else { "" };
    let mut figure = String::new();
    option(&mut figure, "figure", &args.figures);
    let small = match args.quick {
        true => " These runs were so short that the numbers say nothing of speed.",
        false => "",
    };
    let machine = machine("load generator");
    format!("Made by `quorate-lab cats{figure}{quick}` {machine}{small}")
}

/// The machine that hosts share with what loads them, and how busy it is before.
#[must_use]
pub fn machine(load: &str) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let before = load_average(&std::fs::read_to_string("/proc/loadavg").unwrap_or_default());
    let build = match cfg!(debug_assertions) {
        true => " This build is not optimized.",
        false => "",
    };
    format!(
        "on one machine of {cores} cores, which hosts, {load} and whatever else ran there \
         shared.{build}{before}"
    )
}

/// How busy the machine was before anything of this began, from `/proc/loadavg`; nothing if it is
/// not told.
fn load_average(text: &str) -> String {
    let averages: Vec<&str> = text.split(' ').take(3).collect();
    match averages[..] {
        [one, five, fifteen] => format!(
            " When it began, {one}, {five} and {fifteen} processes had been running or waiting, on \
             average over the last 1, 5 and 15 minutes."
        ),
        _ => String::new(),
    }
}

/// The files, and what they show.
const PAGES: [(&str, &str, &str); 5] = [
    ("fig3", "Figure 3", "latency against throughput as load grows, real hosts"),
    ("fig4", "Figure 4", "throughput as servers are added, simulated at measured costs"),
    ("fig5", "Figure 5", "latency while hosts join and leave, real hosts"),
    (
        "fig6",
        "Figure 6",
        "the price of atomicity and of consistent quorums by value size, real hosts",
    ),
    ("fig7", "Figure 7", "latency beside the eventual mode by value size, real hosts"),
];

/// What comes before the list of them.
const FIRST: &str = "# The figures of CATS, repeated\n\n\
    `quorate-lab cats` writes these pages. Shapes can be compared with the paper's, numbers \
    cannot: the paper had a server for each host.\n\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_before_is_told_if_it_is_known() {
        let told = load_average("0.52 1.20 2.03 2/311 4711\n");
        assert!(told.contains("0.52, 1.20 and 2.03"), "{told}");
        assert_eq!(load_average(""), "");
    }
}
