//! The suites of real clients, against the binaries that the tests of this workspace are run with:
//! with every assertion, and nothing more to build.

use crate::{planted, run};
use std::process::Command;

/// `cargo xtask clients [ARGUMENT...]`.
pub fn command(arguments: &[String]) -> Result<(), String> {
    let mut build = planted::cargo(&planted::ALL_TESTS)?;
    run::step("servers for clients", build.args(["--quiet", "--no-run"]))?;
    let binary = run::target_directory().join("debug").join("quorate");
    let mut suites = Command::new("python3");
    suites.current_dir(run::root()).arg("tests/clients/run.py").arg("--binary").arg(binary);
    run::step("clients", suites.args(arguments))
}
