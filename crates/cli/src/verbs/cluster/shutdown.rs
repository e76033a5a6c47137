//! `shutdown`: have all hosts of a cluster finish and end at one time.

use super::membership::ring;
use crate::config::values::Length;
use crate::exit::{Code, Failure};
use crate::output::Output;
use quorate_gateway::web::http;
use serde_json::{Value, json};
use std::io::{Write, stdout};
use std::time::{Duration, Instant};

/// How often a door is tried while its host ends.
const AGAIN: Duration = Duration::from_millis(50);

/// The arguments of `shutdown`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Every host refuses new operations of clients (-SHUTDOWN), finishes what is under \
                  way, syncs and ends; nobody is suspected or replaced meanwhile. Start the hosts \
                  again in any order.\n\nA host that cannot be reached is named and runs on; the \
                  exit code is 1 then.\n\n\
                  Example: quorate shutdown --http 10.0.0.1:7412"
)]
pub struct Args {
    /// The HTTP door of any host
    #[arg(long, env = "QUORATE_HTTP", default_value = "127.0.0.1:7412", value_name = "ADDRESS")]
    http: String,
    /// Also if a keyspace is kept in memory alone, and all of it will be lost
    #[arg(long)]
    force: bool,
    /// How long to wait
    #[arg(long, default_value = "60s", value_name = "TIME")]
    timeout: Length,
    #[command(flatten)]
    output: Output,
}

/// Runs `shutdown`.
///
/// # Errors
/// The host refuses or does not answer, or some hosts were not reached.
pub fn run(args: &Args) -> Result<(), Failure> {
    let address = args.http.split(',').next().unwrap_or_default();
    let deadline = Instant::now() + args.timeout.0;
    let ring = ring(address)?;
    let path = format!("/control/shutdown?force={}", args.force);
    let answer = http::post(address, &path, args.timeout.0)
        .map_err(|error| Failure::of_connection(address, &error))?;
    match answer.status {
        200 => {}
        503 | 504 => return Err(Failure::new(Code::NoQuorum, http::error_of(&answer))),
        _ => return Err(Failure::failed(http::error_of(&answer))),
    }
    let told: Value = serde_json::from_str(&answer.body)
        .map_err(|_| Failure::failed(format!("{address}: the answer is none")))?;
    // The host that was asked ends last.
    while http::connect(address, Duration::from_secs(1)).is_ok() {
        if Instant::now() >= deadline {
            let text = format!("{address} was told to end and still runs; see its log");
            return Err(Failure::new(Code::Timeout, text));
        }
        std::thread::sleep(AGAIN);
    }
    let silent = silent(&ring, &told);
    match args.output.is_json() {
        true => writeln!(stdout(), "{}", json!({ "silent": silent }))?,
        false if silent.is_empty() => writeln!(stdout(), "the cluster is shut down")?,
        false => {}
    }
    if silent.is_empty() {
        return Ok(());
    }
    let text = silent.iter().map(|host| {
        let word = |name: &str| host[name].as_str().unwrap_or_default().to_owned();
        format!("{} at {}", word("node"), word("address"))
    });
    Err(Failure::failed(format!(
        "the other hosts are shut down, but these were not reached: {}; they may run on, so stop \
         them where they are",
        text.collect::<Vec<_>>().join(", ")
    )))
}

/// The hosts that were not reached, with their addresses.
fn silent(ring: &Value, told: &Value) -> Vec<Value> {
    let hosts = ring["hosts"].as_array().map_or(&[][..], Vec::as_slice);
    let nodes = told["silent"].as_array().map_or(&[][..], Vec::as_slice);
    let host = |node: &Value| {
        let known = hosts.iter().find(|known| known["node"] == *node);
        json!({ "node": node, "address": known.map_or(&Value::Null, |known| &known["address"]) })
    };
    nodes.iter().map(host).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_host::samples::report as sample;

    #[test]
    fn who_is_silent_is_named_with_its_address() {
        let told = json!({ "silent": ["0000000000000002", "00000000000000ff"] });
        let silent = silent(&sample().json(), &told);
        assert_eq!(silent[0]["address"], "127.0.0.1:7421");
        assert_eq!(silent[1]["address"], Value::Null, "it came after the ring was asked");
    }
}
