//! Writes the code that is generated from the native API's schema anew.
//!
//! The work is done by the test that also checks that the committed code is current, so that what
//! generates it is built only for that: `xtask/tests/proto.rs`.

use crate::run;

/// `cargo xtask proto`.
pub fn command(arguments: &[String]) -> Result<(), String> {
    if let Some(argument) = arguments.first() {
        return Err(format!("proto takes no argument, got {argument}"));
    }
    let arguments = ["test", "--quiet", "--package", "xtask", "--test", "proto"];
    run::step("generate", run::cargo(&arguments).env("QUORATE_PROTO", "write"))
}
