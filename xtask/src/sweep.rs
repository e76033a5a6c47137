//! The simulator sweep: every scenario over a range of seeds, in the simulator's own profile, with
//! the planted bugs compiled in and none of them in force.

use crate::{planted, run};
use std::process::Command;

/// The seeds that `ci` runs; a longer sweep is `make soak SEEDS=A..B`.
const SEEDS_DEFAULT: &str = "0..130";
/// The simulator's package.
pub const PACKAGE: &str = "quorate-sim";
const PROFILE: &str = "sim";

/// `cargo xtask sweep [ARGUMENT...]`.
pub fn command(arguments: &[String]) -> Result<(), String> {
    build()?;
    let mut simulator = simulator();
    if arguments.is_empty() {
        simulator.args(["--seeds", SEEDS_DEFAULT, "--require-probes"]);
    } else {
        simulator.args(arguments);
    }
    run::step("sweep", &mut simulator)
}

/// The simulator's own tests, by the profile of a sweep: it has every assertion and overflow check
/// of the usual one, what it needs is built for the sweep already, and they simulate ten times
/// faster.
pub fn test() -> Result<(), String> {
    let arguments = ["test", "--quiet", "--profile", PROFILE, "--package", PACKAGE];
    run::step("simulator's tests", &mut planted::cargo(&arguments)?)
}

/// Builds the simulator.
pub fn build() -> Result<(), String> {
    let arguments = ["build", "--quiet", "--profile", PROFILE, "--package", PACKAGE];
    run::step("simulator", &mut planted::cargo(&arguments)?)
}

/// The simulator that [`build`] left, ready to be given arguments.
pub fn simulator() -> Command {
    let mut command = Command::new(run::target_directory().join(PROFILE).join(PACKAGE));
    command.current_dir(run::root());
    command
}
