//! Tests of the baseline.
//!
//! | file | what it holds |
//! |---|---|
//! | [`marks`] | what it costs, and that it converges |
//! | [`show`] | messages and writes in readable form |
//! | [`wire`] | every message is read back, and any bytes are survived |

mod marks;
mod show;
mod wire;

use super::Merkle;
use quorate_protocols::testing::run_scripts;

#[test]
fn every_script_shows_what_it_says() {
    run_scripts::<Merkle>(concat!(env!("CARGO_MANIFEST_DIR"), "/src/scripts"));
}
