//! `config check`, `config show`, `config reference`.

use super::hosts::server::Settings;
use crate::config::{Loaded, show};
use crate::exit::Failure;
use crate::output::Output;
use clap::Subcommand;
use quorate_store::DirectoryError;
use std::io::{Write, stdout};

/// The arguments of `config`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: quorate config show --origin --data quorate-data/host-1")]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Read the configuration as `server` would, and say what is wrong with it
    #[command(after_help = "Exit code 8 if anything is wrong. The data directory need not be \
                            there; if it is, cluster.addresses must fit its hosts.\n\
                            Example: quorate config check --config quorate.toml")]
    Check {
        #[command(flatten)]
        settings: Settings,
    },
    /// Print the settings `server` would run with
    #[command(after_help = "Example: quorate config show --origin")]
    Show {
        /// Say where each value comes from
        #[arg(long)]
        origin: bool,
        #[command(flatten)]
        settings: Settings,
        #[command(flatten)]
        output: Output,
    },
    /// Print a file with every setting, its default and what it means
    #[command(after_help = "Example: quorate config reference > quorate.toml")]
    Reference,
}

/// Runs `config`.
///
/// # Errors
/// [`Code::CheckFailed`](crate::exit::Code::CheckFailed) with what is wrong.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut out = stdout();
    match &args.verb {
        Verb::Check { settings } => {
            let config = Loaded::read(&settings.sources())?.config;
            config.check_exposure()?;
            config.check_doors()?;
            // A file may be checked before its directory is there.
            match quorate_store::identity_of(&config.node.data) {
                Ok(identity) => config.check_addresses(&identity)?,
                Err(DirectoryError::NotInitialised { .. }) => {}
                Err(error) => return Err(error.into()),
            }
            writeln!(out, "ok")?;
        }
        Verb::Show { origin, settings, output } => {
            let loaded = Loaded::read(&settings.sources())?;
            if output.is_json() {
                writeln!(out, "{}", show::as_json(&loaded))?;
            } else {
                write!(out, "{}", show::as_toml(&loaded, *origin))?;
            }
        }
        Verb::Reference => write!(out, "{}", show::reference())?,
    }
    Ok(())
}
