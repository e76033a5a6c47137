//! The simulator sweep: every scenario over a range of seeds, in the simulator's own profile.

use crate::run;
use std::path::Path;
use std::process::Command;

/// The seeds that `ci` runs; a longer sweep is `make soak SEEDS=A..B`.
const SEEDS_DEFAULT: &str = "0..400";
/// The simulator's package.
pub const PACKAGE: &str = "quorate-sim";
/// The profile of a sweep; planted bugs have one that compiles faster.
const PROFILE: &str = "sim";

/// `cargo xtask sweep [ARGUMENT...]`.
pub fn command(arguments: &[String]) -> Result<(), String> {
    build(&run::target_directory(), PROFILE, None)?;
    let mut simulator = simulator(&run::target_directory(), PROFILE);
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
    run::step("simulator's tests", &mut run::cargo(&arguments))
}

/// Builds the simulator into `target` by `profile`. With a `wrapper`, the crates of this workspace
/// (and only they) are compiled through it.
pub fn build(target: &Path, profile: &str, wrapper: Option<&Path>) -> Result<(), String> {
    let arguments = ["build", "--quiet", "--profile", profile, "--package", PACKAGE];
    let mut command = run::cargo(&arguments);
    command.env("CARGO_TARGET_DIR", target);
    if let Some(wrapper) = wrapper {
        command.env("RUSTC_WORKSPACE_WRAPPER", wrapper);
    }
    run::step("simulator", &mut command)
}

/// The simulator that [`build`] left in `target`, ready to be given arguments.
pub fn simulator(target: &Path, profile: &str) -> Command {
    let mut command = Command::new(target.join(profile).join(PACKAGE));
    command.current_dir(run::root());
    command
}
