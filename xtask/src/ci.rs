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
    together(&[&tests, &|| clients::command(&[]), &simulated])?;
    println!("== ci: passed in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(())
}

/// What uses all cores that there are.
fn simulated() -> Result<(), String> {
    sweep::command(&[])?;
    sweep::test()?;
    mutants::command(&[])
}

/// A row of steps.
type Row<'a> = &'a (dyn Fn() -> Result<(), String> + Sync);

/// Rows side by side: tests with servers wait much of their time, and meanwhile others go on. All
/// are run to their ends, and what stops one of them is told at once.
fn together(rows: &[Row<'_>]) -> Result<(), String> {
    let run = |row: Row<'_>| row().inspect_err(|error| eprintln!("== ci: {error}"));
    let failures: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = rows.iter().map(|row| scope.spawn(move || run(*row))).collect();
        running.into_iter().filter_map(|row| row.join().expect("no row panics").err()).collect()
    });
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// The tests of all crates but the simulator, whose turn comes where its build is shared.
fn tests() -> Result<(), String> {
    let mut command = planted::cargo(&planted::ALL_TESTS)?;
    // A crate that fails hides none of those behind it.
    command.args(["--quiet", "--no-fail-fast"]);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn rows_run_side_by_side_and_both_to_their_ends() {
        let both = Barrier::new(2);
        let meet = || {
            both.wait();
            Ok(())
        };
        together(&[&meet, &meet]).unwrap();
        let fails = || Err("wrong".to_owned());
        let fails_later = || {
            both.wait();
            fails()
        };
        assert_eq!(together(&[&fails, &|| Ok(())]).unwrap_err(), "wrong");
        assert_eq!(together(&[&fails_later, &meet]).unwrap_err(), "wrong");
        assert_eq!(together(&[&fails, &fails, &|| Ok(())]).unwrap_err(), "wrong\nwrong");
    }
}
