//! The binary `quorate`.

use mimalloc::MiMalloc;
use std::process::ExitCode;

/// Values are allocated on one thread and freed on another; this allocator is built for that.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    quorate_cli::run()
}
