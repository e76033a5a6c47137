//! All of CI: if it passes on your desk, it passes there.

use crate::{clients, mutants, planted, run, sweep, tidy};
use std::thread::available_parallelism;
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
    tests()?;
    sweep::command(&[])?;
    sweep::test()?;
    mutants::command(&[])?;
    clients::command(&[])?;
    println!("== ci: passed in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// The tests of all crates but the simulator, whose turn comes where its build is shared.
fn tests() -> Result<(), String> {
    let mut command = planted::cargo(&planted::ALL_TESTS)?;
    command.arg("--quiet");
    // Most of the time of tests with real processes is waiting, so more of them than there are
    // cores run side by side. Whoever sets the number decides.
    if std::env::var_os(THREADS).is_none() {
        let cores = available_parallelism().map_or(1, usize::from);
        command.env(THREADS, (TESTS_PER_CORE * cores).to_string());
    }
    run::step("tests", &mut command)
}

/// The variable by which the harness of Rust's tests is told how many run side by side.
const THREADS: &str = "RUST_TEST_THREADS";
const TESTS_PER_CORE: usize = 2;

const CLIPPY: [&str; 7] =
    ["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"];
