//! `quorate` with one engine more. It is no part of the product: it shows what an engine takes.

use std::process::ExitCode;

fn main() -> ExitCode {
    quorate_host::engines::declare(&[&quorate_counter::ENGINE]);
    quorate_cli::run()
}
