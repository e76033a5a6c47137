//! All of CI: if it passes on your desk, it passes there.

use crate::{binaries, clients, mutants, run, sweep, tidy};
use std::time::Instant;

/// `cargo xtask ci`.
pub fn command(arguments: &[String]) -> Result<(), String> {
    if let Some(argument) = arguments.first() {
        return Err(format!("ci takes no argument, got {argument}"));
    }
    let begun = Instant::now();
    run::step("format", &mut run::cargo(&["fmt", "--all", "--check"]))?;
    run::step("lints", &mut run::cargo(&CLIPPY))?;
    tidy::command(&[])?;
    binaries::command()?;
    sweep::command(&[])?;
    sweep::test()?;
    mutants::command(&[])?;
    clients::command(&[])?;
    println!("== ci: passed in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

const CLIPPY: [&str; 7] =
    ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
