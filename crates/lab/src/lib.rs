//! Measurements that repeat those of the papers, and write tables and pictures.
//!
//! Each figure is one command: it starts the clusters it needs from this executable, on loopback
//! and in a temporary directory, and stops them again. What is measured on real hosts and what is
//! simulated never stand in one table. Nothing here asserts a time.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cats`] | which figures of CATS to repeat, and at which size |
//! | [`dotteddb`] | the evaluation of DottedDB, simulated, and a part of it on real hosts |
//! | [`dataflagons`] | the evaluation of DataFlagons, simulated: what it costs, and what it misses |
//! | [`rapid`] | the evaluation of Rapid, simulated, with our roll |
//! | [`sconekv`] | the evaluation of SCONEKV, on real hosts and simulated |
//! | [`load`] | Fig. 3: latency against throughput as load grows |
//! | [`scale`], [`calibrate`] | Fig. 4: many servers, simulated at costs measured on real ones |
//! | [`service`] | hosts with one core each, as it simulates them |
//! | [`elastic`] | Fig. 5: hosts join and leave under constant load |
//! | [`paired`], [`price`] | Fig. 6 and 7: the price of atomicity, by paired runs |
//! | [`quorums`] | the engine of their keyspaces: with consistent quorums or without |
//! | [`stamps`] | what the stamps of consistent quorums cost, by counting |
//! | [`moved`], [`killed`] | one host joins, is drained or is killed under load, step by step |
//! | [`door`] | what proof and encryption between hosts cost |
//! | [`copy`] | the plain copy that a move is measured against |
//! | [`background`] | load while something happens to the cluster |
//! | [`statistics`] | means and their confidence intervals |
//! | [`cluster`] | a real cluster for a measurement |
//! | [`page`] | tables and pictures as files |

pub mod background;
pub mod cluster;
pub mod copy;
pub mod dataflagons;
pub mod door;
pub mod dotteddb;
mod figures;
pub mod killed;
pub mod moved;
pub mod page;
pub mod quorums;
pub mod rapid;
pub mod sconekv;
pub mod service;
pub mod statistics;

pub use figures::{calibrate, cats, elastic, load, paired, price, scale, stamps};

use clap::Parser;
use quorate_cli::exit;
use quorate_kernel::engine::Engine;
use quorate_sim::args::SimArgs;
use std::process::ExitCode;

/// What the hosts that are measured serve beside the engines of the product.
pub const ENGINES: &[&Engine] = &[
    &quorums::ENGINE,
    &sconekv::engine::LOGGED_READS,
    &sconekv::engine::BY_MEMBERSHIP,
    &sconekv::engine::SLOW_ABORTS,
    &sconekv::engine::ONE_LOCK,
];

/// What scenarios can name beside the engines of the product.
pub const SIMULATED: &[&Engine] = &[&quorums::ENGINE, &quorate_merkle::rules::MERKLE];

/// Repeats papers' measurements with this program's engines, and writes tables and pictures.
#[derive(Debug, Parser)]
#[command(name = "quorate-lab", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Example: quorate-lab cats --figure 3 --quick --output /tmp/cats\n\n\
                        `dev` and `server` are those of `quorate`: the hosts are this program.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Repeat the figures of the CATS paper
    Cats(cats::CatsArgs),
    /// Repeat the evaluation of the DottedDB paper in the simulator, and a part on real hosts
    Dotteddb(dotteddb::DottedArgs),
    /// Repeat the evaluation of the DataFlagons paper in the simulator, and count holes
    Dataflagons(dataflagons::FlagonArgs),
    /// Repeat the evaluation of the Rapid paper in the simulator: mass joins, crashes, one-way loss
    Rapid(rapid::RapidArgs),
    /// Repeat the evaluation of the SCONEKV paper: transactions on real hosts, and simulated
    Sconekv(sconekv::SconekvArgs),
    /// Have one host join, or drain one, under load: what clients see, and how long it takes
    Join(moved::JoinArgs),
    /// What the proof and the encryption between hosts cost
    Door(door::DoorArgs),
    /// Kill one host under load: how long until every key has all its replicas again
    Kill(killed::KillArgs),
    /// Run simulated clusters under faults, as `quorate sim` does, also of engines of the lab
    #[command(after_help = "Example: quorate-lab sim --seeds 0..100 --scenario \
                            crates/lab/scenarios/merkle.toml")]
    Sim(Box<SimArgs>),
}

/// Runs the command line of this process.
#[must_use]
pub fn run() -> ExitCode {
    quorate_sim::engines::declare(SIMULATED);
    let measured = match &Cli::parse().command {
        Command::Cats(args) => cats::run(args),
        Command::Dotteddb(args) => dotteddb::run(args),
        Command::Dataflagons(args) => dataflagons::run(args),
        Command::Rapid(args) => rapid::run(args),
        Command::Sconekv(args) => sconekv::run(args),
        Command::Join(args) => moved::run(args),
        Command::Door(args) => door::run(args),
        Command::Kill(args) => killed::run(args),
        Command::Sim(args) => return quorate_sim::command::main(args),
    };
    exit::end(measured)
}
