//! `quorate` with one engine more. It is no part of the product: it shows what an engine takes.

use quorate_counter::ENGINE;
use quorate_kernel::engine::Engine;
use quorate_protocols::{causal, linearizable};
use std::process::ExitCode;

/// Those of the product, and one line for the counter.
const ENGINES: &[&Engine] = &[&linearizable::ENGINE, &causal::ENGINE, &ENGINE];

fn main() -> ExitCode {
    quorate_host::engines::declare(ENGINES);
    quorate_cli::run()
}
