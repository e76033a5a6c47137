//! The binary `quorate-lab`.

use mimalloc::MiMalloc;
use std::process::ExitCode;

/// The allocator of `quorate`: what is measured is what runs.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The hosts that are measured are this program too: as `dev` and `server` it is `quorate`.
fn main() -> ExitCode {
    quorate_host::engines::declare(quorate_lab::ENGINES);
    match std::env::args().nth(1).as_deref() {
        Some("dev" | "server") => quorate_cli::run(),
        _ => quorate_lab::run(),
    }
}
