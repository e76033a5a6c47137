//! The evaluation of SCONEKV, repeated with the engine `serializable`.
//!
//! J. Gonçalves, M. Matos, R. Rodrigues, "SCONEKV: a Scalable, Strongly Consistent Key-Value
//! Store", §6. Figures 5 to 9, 12 and 13 run real hosts on this machine; 10, 11, and 12 once more,
//! are simulated, with stated costs. No page has both.
//!
//! | module | what it holds |
//! |---|---|
//! | [`size`] | how large and how long |
//! | [`paper`] | what the paper says |
//! | [`real`] | one run of transactions on real hosts |
//! | [`engine`] | engines that do one thing as the paper does it |
//! | [`ycsb`] | Fig. 5 to 9: throughput and goodput against clients |
//! | [`ablations`] | one thing after the other is switched |
//! | [`marks`] | how many transactions three hosts commit, and what a second group costs |
//! | [`clients`], [`terminals`], [`scale`] | Fig. 10 to 12: simulated clients; goodput as nodes are added |
//! | [`tpcc`] | Fig. 12: TPC-C |
//! | [`crash`] | Fig. 13: a host crashes |
//! | [`gaps`] | what each client waits for when a host is killed |

pub mod ablations;
pub mod clients;
pub mod crash;
pub mod engine;
pub mod gaps;
pub mod marks;
pub mod paper;
pub mod real;
pub mod scale;
pub mod size;
pub mod terminals;
pub mod tpcc;
pub mod ycsb;

use super::cats::machine;
use super::page::{Page, Pages, option, word};
use clap::ValueEnum;
use quorate_cli::exit::Failure;
use quorate_kernel::storage::Durability;
use size::Size;
use std::path::PathBuf;

/// The arguments of `lab sconekv`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Figures 10, 11 and 12-simulated are simulated, all others run real hosts on this \
                        machine, which should have nothing else to do. Each is written as soon as \
                        it is done. An aborted transaction of figure 8, or tables of figures 12 \
                        and 13 that are not consistent, end it with an error.\n\n\
                        Example: quorate-lab sconekv --figure 5,8 --clients 1,16 --output /tmp/s"
)]
pub struct SconekvArgs {
    /// What to repeat, once for each or with commas between; all if none is given
    #[arg(long = "figure", value_name = "FIGURE", value_delimiter = ',')]
    figures: Vec<Figure>,
    /// Small and short: it shows that everything works, and says little of speed
    #[arg(long)]
    quick: bool,
    /// Numbers of clients of figures 5 to 9 and of the marks
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    clients: Vec<u32>,
    /// How long each run on real hosts is measured, in seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: Option<u64>,
    /// Real hosts, with three replicas of each key and as many groups as they fill; marks and gaps
    /// have numbers of their own
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(3..=16))]
    hosts: Option<u32>,
    /// How durable keyspaces of real hosts are: sync, periodic=MS or memory
    #[arg(long, default_value = "sync", value_name = "LEVEL")]
    durability: Durability,
    /// Numbers of simulated nodes
    #[arg(long, value_name = "COUNT", value_delimiter = ',')]
    #[arg(value_parser = clap::value_parser!(u32).range(scale::REPLICAS as i64..=200))]
    nodes: Vec<u32>,
    /// How many simulated runs at once
    #[arg(long, default_value_t = 1, value_name = "COUNT")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: u16,
    /// Host i has ports PORT + 10 i + 1 to + 4
    #[arg(long, default_value_t = 7700, value_name = "PORT")]
    port_base: u16,
    /// Where tables and pictures are written
    #[arg(long, default_value = "docs/lab/sconekv", value_name = "DIR")]
    output: PathBuf,
}

/// What can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Figure {
    #[value(name = "5")]
    Update,
    #[value(name = "6")]
    Uniform,
    #[value(name = "7")]
    Read,
    #[value(name = "8")]
    ReadOnly,
    #[value(name = "9")]
    Modify,
    #[value(name = "ablations")]
    Ablations,
    #[value(name = "marks")]
    Marks,
    #[value(name = "10")]
    ScaleUpdate,
    #[value(name = "11")]
    ScaleRead,
    #[value(name = "12")]
    Tpcc,
    #[value(name = "12-simulated")]
    ScaleTpcc,
    #[value(name = "13")]
    Crash,
    #[value(name = "gaps")]
    Gaps,
}

/// The files, and what they show.
const PAGES: [(&str, &str, &str); 13] = [
    ("fig5", "Figure 5", "workload A, half updates: throughput, goodput and aborts; real hosts"),
    ("fig6", "Figure 6", "the same with zipfian and uniform keys; real hosts"),
    ("fig7", "Figure 7", "workload B, one update in twenty; real hosts"),
    ("fig8", "Figure 8", "workload C, reads alone: no aborts; real hosts"),
    ("fig9", "Figure 9", "workload F, read-modify-write; real hosts"),
    ("ablations", "Switched", "one thing after the other; real hosts"),
    (
        "marks",
        "Marks",
        "how many transactions three hosts commit, what a second group costs; real hosts",
    ),
    ("fig10", "Figure 10", "workload A as nodes are added; simulated"),
    ("fig11", "Figure 11", "workload B as nodes are added; simulated"),
    ("fig12", "Figure 12", "TPC-C; real hosts"),
    ("fig12-simulated", "Figure 12, simulated", "TPC-C as nodes are added; simulated"),
    ("fig13", "Figure 13", "throughput around the crash of a host; real hosts"),
    ("gaps", "Gaps", "what each client waits for when a host is killed; real hosts"),
];

/// Runs `lab sconekv`.
///
/// # Errors
/// A cluster did not start, a run failed, what must hold does not, or a file could not be written.
pub fn run(args: &SconekvArgs) -> Result<(), Failure> {
    let size = Size::of(args);
    let is_wanted = |figure: Figure| args.figures.is_empty() || args.figures.contains(&figure);
    let pages = Pages { directory: &args.output, list: &PAGES };
    let words = words(args);
    let origin = origin(args, &words, &machine("clients"));
    let keep = |page: Page| pages.keep(&page, &origin);
    let ycsb = [
        (Figure::Update, 5),
        (Figure::Uniform, 6),
        (Figure::Read, 7),
        (Figure::ReadOnly, 8),
        (Figure::Modify, 9),
    ];
    let wanted = ycsb.into_iter().filter(|(figure, _)| is_wanted(*figure));
    let numbers: Vec<u8> = wanted.map(|(_, number)| number).collect();
    ycsb::figures(&size, &numbers, keep)?;
    if is_wanted(Figure::Ablations) {
        keep(ablations::figure(&size)?)?;
    }
    if is_wanted(Figure::Marks) {
        keep(marks::figure(&size)?)?;
    }
    let scales = [(Figure::ScaleUpdate, 10), (Figure::ScaleRead, 11), (Figure::ScaleTpcc, 12)];
    for (figure, number) in scales {
        if is_wanted(figure) {
            let page = scale::figure(&size, number, usize::from(args.threads))?;
            pages.keep(&page, &self::origin(args, &words, SIMULATED))?;
        }
    }
    if is_wanted(Figure::Tpcc) {
        keep(tpcc::figure(&size)?)?;
    }
    if is_wanted(Figure::Crash) {
        keep(crash::figure(&size)?)?;
    }
    if is_wanted(Figure::Gaps) {
        keep(gaps::figure(&size)?)?;
    }
    pages.index(FIRST, NOTES)
}

const SIMULATED: &str =
    "in the simulator; the same command gives the same numbers on every machine.";

/// The options that change what is found.
fn words(args: &SconekvArgs) -> String {
    let mut words = String::new();
    option(&mut words, "figure", &args.figures.iter().map(word).collect::<Vec<_>>());
    words.push_str(if args.quick { " --quick" } else { "" });
    option(&mut words, "clients", &args.clients);
    option(&mut words, "seconds", args.seconds.as_slice());
    option(&mut words, "hosts", args.hosts.as_slice());
    let durability = Some(args.durability).filter(|level| *level != Durability::Sync);
    option(&mut words, "durability", durability.as_slice());
    option(&mut words, "nodes", &args.nodes);
    words
}

/// How a figure was made.
fn origin(args: &SconekvArgs, words: &str, place: &str) -> String {
    let small = match args.quick {
        true => " These runs were so small and short that they show nothing but that they work.",
        false => "",
    };
    format!("Made by `quorate-lab sconekv{words}` {place}{small}")
}

/// What comes before the list of the figures.
const FIRST: &str = "# The evaluation of SCONEKV, repeated\n\n\
    `quorate-lab sconekv` writes these pages. The engine is `serializable`, as hosts serve it, \
    unless a row says otherwise; the clients of real hosts are native ones (gRPC), but for those \
    of the gaps (RESP). The paper is J. Gonçalves, M. Matos, R. \
    Rodrigues: \"SCONEKV: a Scalable, Strongly Consistent Key-Value Store\", and what is said of \
    it is from the text of its §6. Shapes can be compared with the paper's, numbers cannot: it had \
    machines for its hosts and one for its clients.\n\n";

/// What comes behind it.
const NOTES: &str = "
## How it is counted

- A transaction has five operations. A client reads each key when it is first named, one after the
  other, and then asks for the commit, which rests on all that was read (§4.2). Ours rests on values
  where the paper's rests on versions: a key that was changed and changed back is not noticed. All
  values that are written here differ.
- A transaction is *aborted* if something that it had read was changed before its commit. Clients of
  YCSB do not try it again; those of TPC-C do.
- *Throughput* counts the operations of all transactions that have ended, *goodput* those of
  transactions that were committed.
- *Failed* is what was refused for another reason, or of which nobody knows how it ended.
- What is measured and what is simulated never stand in one table.

## What is not here

- Cassandra and CockroachDB.
- The paper's optimizations of §5, one by one: those that ours has are no switches (see *Switched*).
";
