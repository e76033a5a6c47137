//! `completion`, `version`, `exit-codes`.

use super::Cli;
use crate::exit::{self, Failure};
use crate::output::Output;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::{Write, stdout};

/// The arguments of `completion`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: quorate completion bash > ~/.local/share/bash-completion/\
                        completions/quorate")]
pub struct CompletionArgs {
    shell: Shell,
}

/// Runs `completion`.
///
/// # Errors
/// The output cannot be written.
pub fn completion(args: &CompletionArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "quorate", &mut script);
    Ok(stdout().write_all(&script)?)
}

/// Runs `version`.
///
/// # Errors
/// The output cannot be written.
pub fn version(output: &Output) -> Result<(), Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let disk = quorate_store::directory::FORMAT_VERSION;
    let wire = quorate_kernel::wire::VERSION;
    if output.is_json() {
        let object = serde_json::json!({
            "version": version,
            "disk_format": disk,
            "frame_version": wire,
        });
        writeln!(stdout(), "{object}")?;
    } else {
        writeln!(stdout(), "quorate {version} (disk format {disk}, frame version {wire})")?;
    }
    Ok(())
}

/// Runs `exit-codes`.
///
/// # Errors
/// The output cannot be written.
pub fn exit_codes() -> Result<(), Failure> {
    Ok(write!(stdout(), "{}", exit::table())?)
}
