//! The project's scripts, in Rust: `cargo xtask COMMAND`.
//!
//! | command | what it does |
//! |---|---|
//! | `tidy` | checks the rules of this code base that a program can check |
//! | `sweep` | builds the simulator and runs every scenario over a range of seeds |
//! | `proto` | writes the code generated from the native API's schema anew |
//! | `mutants` | plants each bug of a list and lets the simulator or a test condemn it |
//! | `clients` | runs the suites of real clients against a cluster of this machine |
//! | `ci` | all of the above after formatting and lints, and every test |

mod ci;
mod clients;
mod mutants;
mod planted;
mod proto;
mod run;
mod sweep;
mod tidy;

use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask COMMAND

  tidy [--no-build] [--tighten]   check the rules of the code base
       --no-build   skip building each pure crate alone
       --tighten    lower the ratchet's exceptions to what they are now
  sweep [ARGUMENT...]             build the simulator and run it; arguments are the
                                  simulator's own (default: --seeds 0..130)
  proto                           write the code of the native API's schema anew
  mutants [NAME...]               run the planted bugs of xtask/mutants.txt (default: all)
  clients [ARGUMENT...]           run the real clients; arguments are those of
                                  tests/clients/run.py
  ci                              everything";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rest = arguments.get(1..).unwrap_or_default();
    let result = match arguments.first().map(String::as_str) {
        Some("tidy") => tidy::command(rest),
        Some("sweep") => sweep::command(rest),
        Some("proto") => proto::command(rest),
        Some("mutants") => mutants::command(rest),
        Some("clients") => clients::command(rest),
        Some("ci") => ci::command(rest),
        Some("help" | "--help" | "-h") | None => {
            println!("{HELP}");
            Ok(())
        }
        Some(other) => Err(format!("there is no command {other}\n{HELP}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
