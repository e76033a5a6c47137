//! The simulator on its own; the server's `quorate sim` is the same command.

use clap::Parser;
use quorate_sim::args::SimArgs;
use std::process::ExitCode;

/// Runs simulated clusters under faults and judges what their clients saw.
#[derive(Parser)]
#[command(name = "quorate-sim", version)]
struct Command {
    #[command(flatten)]
    args: SimArgs,
}

fn main() -> ExitCode {
    quorate_sim::command::main(&Command::parse().args)
}
