//! The load generator alone, without the rest of the product.

use std::process::ExitCode;

use clap::Parser;
use quorate_bench::BenchCommand;

/// Measure a server that speaks RESP.
#[derive(Parser)]
struct Program {
    #[command(flatten)]
    command: BenchCommand,
}

fn main() -> ExitCode {
    Program::parse().command.main()
}
