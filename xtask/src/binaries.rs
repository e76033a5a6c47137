//! The tests of all crates but the simulator, several binaries at once.
//!
//! Much of the time of tests with real processes is waiting. `cargo test` runs one binary after the
//! other, so that nobody works meanwhile; here as many run as there are cores, the largest first:
//! they take the longest.

use crate::{planted, run};
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread::available_parallelism;
use std::time::Instant;

/// The variable by which the harness of Rust's tests is told how many run side by side.
const THREADS: &str = "RUST_TEST_THREADS";
const TESTS_PER_CORE: usize = 2;

/// Builds and runs them; the output of what fails is shown whole.
pub fn command() -> Result<(), String> {
    let begun = Instant::now();
    let binaries = planted::tests(None)?.largest_first();
    println!("== tests: built in {:.1} s", begun.elapsed().as_secs_f64());
    let cores = available_parallelism().map_or(1, usize::from);
    let (rest, failed) = (Mutex::new(binaries.into_iter()), Mutex::new(Vec::new()));
    let next = || rest.lock().expect("no thread panics").next();
    let work = || {
        while let Some(mut binary) = next() {
            // Whoever sets the number decides.
            if std::env::var_os(THREADS).is_none() {
                binary.env(THREADS, (TESTS_PER_CORE * cores).to_string());
            }
            if let Err(message) = try_binary(&mut binary) {
                failed.lock().expect("no thread panics").push(message);
            }
        }
    };
    std::thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    let failed = failed.into_inner().expect("no thread panics");
    if !failed.is_empty() {
        return Err(format!("tests: {} binaries failed\n{}", failed.len(), failed.join("\n")));
    }
    println!("== tests: passed in {:.1} s", begun.elapsed().as_secs_f64());
    run::step("tests in documents", planted::cargo(&planted::ALL_TESTS)?.args(["--quiet", "--doc"]))
}

/// Runs one binary; says in a line what it did, or returns all that it said.
fn try_binary(binary: &mut Command) -> Result<(), String> {
    let begun = Instant::now();
    let title = run::line(binary);
    let output = binary.output().map_err(|error| format!("{title}: cannot run: {error}"))?;
    let said = said(&output);
    if !output.status.success() {
        return Err(format!("{title}: failed with {}\n{said}", output.status));
    }
    let result = said.lines().rev().find(|line| line.starts_with("test result: "));
    let result = result.ok_or_else(|| format!("{title}: ran no test\n{said}"))?;
    println!("{title}: {result} ({:.1} s)", begun.elapsed().as_secs_f64());
    Ok(())
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn a_binary_that_fails_or_runs_nothing_is_told_with_all_it_said() {
        assert_eq!(try_binary(&mut shell("echo test result: ok.")), Ok(()));
        let failed = try_binary(&mut shell("echo one; echo two >&2; exit 3")).unwrap_err();
        for part in ["exit status: 3", "one", "two"] {
            assert!(failed.contains(part), "{failed}");
        }
        let silent = try_binary(&mut shell("echo nothing")).unwrap_err();
        assert!(silent.contains("ran no test"), "{silent}");
        let missing = try_binary(&mut Command::new("/no/such/binary")).unwrap_err();
        assert!(missing.contains("cannot run"), "{missing}");
    }
}
