//! The simulator on its own; the server's `quorate sim` is the same command.

use clap::Parser;
use mimalloc::MiMalloc;
use quorate_sim::args::SimArgs;
use std::process::ExitCode;

/// Frames are small and short-lived; this allocator is built for that.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

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
