//! The binary `quorate`.

use std::process::ExitCode;

fn main() -> ExitCode {
    quorate_server::cli::run()
}
