//! What can be asked of the binary: one verb a file.
//!
//! | module | what it holds |
//! |---|---|
//! | [`data`] | `get`, `put`, `del` |
//! | [`scan`] | `scan` |
//! | [`status`] | `status` |
//! | [`ring`], [`explain`] | `ring`, `explain` |
//! | [`membership`], [`rejoin`] | `drain`, `remove`, `rejoin` |
//! | [`keyspace`] | `keyspace create`, `list`, `show`, `alter`, `drop` |
//! | [`shutdown`] | `shutdown` |
//! | [`init`] | `init` |
//! | [`secret`] | `secret make`, `add`, `settle`, `show` |
//! | [`check`] | `check` |
//! | [`server`], `doors` | `server`, and its doors that have threads of their own |
//! | [`join`] | `server --join` |
//! | [`config`] | `config check`, `config show`, `config reference` |
//! | [`meta`] | `completion`, `version`, `exit-codes` |

pub mod check;
pub mod config;
pub mod data;
mod doors;
pub mod explain;
pub mod init;
pub mod join;
pub mod keyspace;
pub mod membership;
pub mod meta;
pub mod rejoin;
pub mod ring;
pub mod scan;
pub mod secret;
pub mod server;
pub mod shutdown;
pub mod status;

use crate::{dev, exit, output};
use clap::{Parser, Subcommand};
use quorate_bench::BenchCommand;
use quorate_sim::args::SimArgs;
use std::process::ExitCode;

/// A replicated key-value store whose keyspaces each say what they promise.
#[derive(Debug, Parser)]
#[command(name = "quorate", version, arg_required_else_help = true, max_term_width = 100)]
#[command(after_help = "Exit codes: `quorate help exit-codes`.")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a cluster on this machine, and stop it on Ctrl-C
    Dev(dev::Args),
    /// Write the data directories of a new cluster
    Init(init::Args),
    /// Run one host from its data directory
    Server(server::Args),
    /// Print the value of a key
    Get(data::GetArgs),
    /// Set the value of a key
    Put(data::PutArgs),
    /// Remove keys
    Del(data::DelArgs),
    /// List keys: all of them, or a range of a keyspace that keeps them in order
    Scan(scan::ScanArgs),
    /// Show how hosts are
    Status(status::Args),
    /// Show the ring: who stands where, and which groups hold which ranges
    Ring(ring::Args),
    /// Show how one operation was served
    Explain(explain::Args),
    /// Make, list, show, alter and drop keyspaces
    Keyspace(keyspace::Args),
    /// Have a host hand over all it holds
    Drain(membership::DrainArgs),
    /// Count a host as gone for good
    Remove(membership::RemoveArgs),
    /// Have all hosts finish and end at one time
    Shutdown(shutdown::Args),
    /// Put a refused data directory aside, so that its host can join as a new one
    Rejoin(rejoin::Args),
    /// Change the cluster's secret while its hosts run
    Secret(secret::Args),
    /// Measure a server that speaks RESP: this one or any other
    #[command(after_help = "Example: quorate bench --endpoints 127.0.0.1:7413,127.0.0.1:7423 \
                            --workload a --duration 10s")]
    Bench(Box<BenchCommand>),
    /// Run simulated clusters under faults, from seeds, and judge what their clients saw
    #[command(after_help = "Example: quorate sim --scenario crash --seeds 0..1000")]
    Sim(Box<SimArgs>),
    /// Judge a recorded history of client operations
    Check(check::Args),
    /// Check or show the configuration, or print its documentation
    Config(config::Args),
    /// Print a completion script for a shell
    Completion(meta::CompletionArgs),
    /// Print the version
    Version(output::Output),
    /// What each exit code means
    #[command(long_about = format!("What each exit code means:\n\n{}", exit::table()))]
    ExitCodes,
}

/// Runs the command line of this process.
#[must_use]
pub fn run() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Dev(args) => dev::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Server(args) => server::run(&args),
        Command::Get(args) => data::get(&args),
        Command::Put(args) => data::put(&args),
        Command::Del(args) => data::del(&args),
        Command::Scan(args) => scan::scan(&args),
        Command::Status(args) => status::run(&args),
        Command::Ring(args) => ring::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Keyspace(args) => keyspace::run(&args),
        Command::Drain(args) => membership::drain(&args),
        Command::Remove(args) => membership::remove(&args),
        Command::Shutdown(args) => shutdown::run(&args),
        Command::Rejoin(args) => rejoin::run(&args),
        Command::Secret(args) => secret::run(&args),
        Command::Bench(bench) => return bench.main(),
        Command::Sim(args) => return quorate_sim::command::main(&args),
        Command::Check(args) => check::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Completion(args) => meta::completion(&args),
        Command::Version(output) => meta::version(&output),
        Command::ExitCodes => meta::exit_codes(),
    };
    exit::end(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_shows_an_example() {
        for command in Cli::command().get_subcommands() {
            let help = command.clone().render_long_help().to_string();
            let is_told = help.contains("Example") || command.get_name() == "exit-codes";
            assert!(is_told, "{} has no example", command.get_name());
        }
    }
}
