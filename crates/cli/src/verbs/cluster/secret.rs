//! `secret`: changes the cluster's secret while its hosts run.

use crate::exit::{Code, Failure};
use crate::output::Output;
use crate::provision::plan;
use quorate_host::proof::{Secrets, fingerprint, secret};
use quorate_store::Secret;
use serde_json::json;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};

/// The arguments of `secret`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A host that runs takes a change within a second or two; `show` says what is \
                        accepted, /status what the host accepts.\n\n\
                        Example, on every host before the next step:\n  \
                        quorate secret make new.secret                          (once)\n  \
                        quorate secret add new.secret --data quorate-data/host-1\n  \
                        quorate secret settle --data quorate-data/host-1"
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Draw a new secret and write it into a new file
    Make {
        /// Where the new secret is written
        file: PathBuf,
    },
    /// Have a host accept the secret of a file too, beside its own
    Add {
        /// Where the secret to accept is written
        file: PathBuf,
        #[command(flatten)]
        host: Host,
    },
    /// Have a host accept the newest of its secrets alone
    Settle(Host),
    /// Show by their fingerprints which secrets a host accepts
    Show {
        #[command(flatten)]
        host: Host,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, clap::Args)]
struct Host {
    /// The host's data directory
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

/// Runs `secret`.
///
/// # Errors
/// A file or directory does not fit; nothing was changed.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Make { file } => make(file),
        Command::Add { file, host } => add(&host.data, file),
        Command::Settle(host) => settle(&host.data),
        Command::Show { host, output } => show(&host.data, output.is_json()),
    }
}

fn make(file: &Path) -> Result<(), Failure> {
    if file.exists() {
        let text = format!("{} is there already; nothing was changed", file.display());
        return Err(Failure::new(Code::Usage, text));
    }
    let fresh = Secret(plan::random()?);
    secret::write_to(file, &[fresh])?;
    writeln!(stdout(), "{} holds the new secret {}", file.display(), fingerprint(&fresh))?;
    Ok(())
}

fn accepted(data: &Path) -> Result<Vec<Secret>, Failure> {
    let identity = quorate_store::identity_of(data)?;
    Ok(Secrets::of(data, &identity)?.accepted().to_vec())
}

fn add(data: &Path, file: &Path) -> Result<(), Failure> {
    let (mut all, fresh) = (accepted(data)?, secret::read(file)?);
    let [fresh] = fresh[..] else {
        let text = format!("{} holds two secrets; give a file with the new one", file.display());
        return Err(Failure::new(Code::Usage, text));
    };
    if !all.contains(&fresh) {
        if all.len() >= secret::SECRETS_MAX {
            let text = format!(
                "{} accepts two secrets already: finish that change first, with `quorate secret \
                 settle`; nothing was changed",
                data.display()
            );
            return Err(Failure::failed(text));
        }
        all.push(fresh);
        secret::write(data, &all)?;
    }
    say(data, &all)
}

fn settle(data: &Path) -> Result<(), Failure> {
    let all = accepted(data)?;
    let newest = &all[all.len() - 1..];
    if all.len() > 1 {
        secret::write(data, newest)?;
    }
    say(data, newest)
}

fn show(data: &Path, is_json: bool) -> Result<(), Failure> {
    let all = accepted(data)?;
    if is_json {
        let names: Vec<String> = all.iter().map(fingerprint).collect();
        writeln!(stdout(), "{}", json!({ "accepted": names }))?;
        return Ok(());
    }
    say(data, &all)
}

fn say(data: &Path, all: &[Secret]) -> Result<(), Failure> {
    let names: Vec<String> = all.iter().map(fingerprint).collect();
    writeln!(stdout(), "{} accepts {}", data.display(), names.join(" and "))?;
    Ok(())
}
