//! What can be asked of the binary: one verb a file.
//!
//! | module | what it holds |
//! |---|---|
//! | [`data::values`] | `get`, `put`, `del` |
//! | [`data::scan`] | `scan` |
//! | [`tree`] | `tree ls`, `get`, `set`, `create`, `delete`, `stat`, `watch` |
//! | [`cluster::status`] | `status` |
//! | [`cluster::ring`], [`data::explain`] | `ring`, `explain` |
//! | [`cluster::membership`], [`hosts::rejoin`] | `drain`, `remove`, `rejoin` |
//! | [`cluster::keyspace`] | `keyspace create`, `list`, `show`, `alter`, `drop` |
//! | [`cluster::shutdown`] | `shutdown` |
//! | [`hosts::init`] | `init` |
//! | [`cluster::secret`] | `secret make`, `add`, `settle`, `show` |
//! | [`check`] | `check` |
//! | [`hosts::server`], `doors` | `server`, and its doors that have threads of their own |
//! | [`hosts::join`] | `server --join` |
//! | [`config`] | `config check`, `config show`, `config reference` |
//! | [`meta`] | `completion`, `version`, `exit-codes` |

pub mod check;
pub mod cluster;
pub mod config;
pub mod data;
pub mod hosts;
pub mod meta;
pub mod tree;

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
    Init(hosts::init::Args),
    /// Run one host from its data directory
    Server(hosts::server::Args),
    /// Print the value of a key
    Get(data::values::GetArgs),
    /// Set the value of a key
    Put(data::values::PutArgs),
    /// Remove keys
    Del(data::values::DelArgs),
    /// List keys: all of them, or a range of a keyspace that keeps them in order
    Scan(data::scan::ScanArgs),
    /// Work on the tree of a keyspace that has one, as ZooKeeper's clients do
    Tree(tree::Args),
    /// Show how hosts are
    Status(cluster::status::Args),
    /// Show the ring: who stands where, and which groups hold which ranges
    Ring(cluster::ring::Args),
    /// Show how one operation was served
    Explain(data::explain::Args),
    /// Make, list, show, alter and drop keyspaces
    Keyspace(cluster::keyspace::Args),
    /// Have a host hand over all it holds
    Drain(cluster::membership::DrainArgs),
    /// Count a host as gone for good
    Remove(cluster::membership::RemoveArgs),
    /// Have all hosts finish and end at one time
    Shutdown(cluster::shutdown::Args),
    /// Put a refused data directory aside, so that its host can join as a new one
    Rejoin(hosts::rejoin::Args),
    /// Change the cluster's secret while its hosts run
    Secret(cluster::secret::Args),
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
        Command::Init(args) => hosts::init::run(&args),
        Command::Server(args) => hosts::server::run(&args),
        Command::Get(args) => data::values::get(&args),
        Command::Put(args) => data::values::put(&args),
        Command::Del(args) => data::values::del(&args),
        Command::Scan(args) => data::scan::scan(&args),
        Command::Tree(args) => tree::run(&args),
        Command::Status(args) => cluster::status::run(&args),
        Command::Ring(args) => cluster::ring::run(&args),
        Command::Explain(args) => data::explain::run(&args),
        Command::Keyspace(args) => cluster::keyspace::run(&args),
        Command::Drain(args) => cluster::membership::drain(&args),
        Command::Remove(args) => cluster::membership::remove(&args),
        Command::Shutdown(args) => cluster::shutdown::run(&args),
        Command::Rejoin(args) => hosts::rejoin::run(&args),
        Command::Secret(args) => cluster::secret::run(&args),
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
    use clap::error::ErrorKind;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn directories_that_settings_cannot_name_are_refused() {
        for args in [
            &["server", "--data"][..],
            &["config", "check", "--data"],
            &["rejoin", "--data"],
            &["dev", "--data"],
            &["init", "--host", "a", "--output"],
        ] {
            let args = ["quorate"].iter().chain(args).map(OsString::from);
            let wrong = OsString::from_vec(b"data-\xff".to_vec());
            let refused = Cli::try_parse_from(args.chain([wrong])).expect_err("it is no text");
            assert_eq!(refused.kind(), ErrorKind::ValueValidation, "{refused}");
            assert!(refused.to_string().contains("is no UTF-8"), "{refused}");
        }
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
