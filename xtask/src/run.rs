//! Running other programs: echo the command, time it, turn its failure into a message.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The workspace's root directory, known since this program was built in it.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the root").to_path_buf()
}

/// Where cargo puts what it builds.
pub fn target_directory() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// A cargo command in the root, by the cargo that runs us.
pub fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// Runs `command` with its output on our own, and says how long it took.
pub fn step(title: &str, command: &mut Command) -> Result<(), String> {
    println!("== {title}: {}", line(command));
    let begun = Instant::now();
    let status = command.status().map_err(|error| format!("{title}: cannot run: {error}"))?;
    if !status.success() {
        return Err(format!("{title}: failed with {status}\n  {}", line(command)));
    }
    println!("== {title}: passed in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// The command as one would type it.
pub fn line(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
