//! `explain`: how one real operation was served.

use crate::config::values::Length;
use crate::exit::{Code, Failure};
use crate::output::{Output, columns};
use clap::Subcommand;
use quorate_gateway::web::http;
use serde_json::Value;
use std::ffi::OsString;
use std::io::{Write, stdout};
use std::os::unix::ffi::OsStrExt;

/// The arguments of `explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: quorate explain get greeting")]
pub struct Args {
    #[command(subcommand)]
    operation: Operation,
}

#[derive(Debug, Subcommand)]
enum Operation {
    /// Read a key, and show coordinator, view, replicas, rounds and times
    #[command(after_help = "Example: quorate explain get greeting --keyspace default")]
    Get(GetArgs),
}

/// The arguments of `explain get`.
#[derive(Debug, clap::Args)]
pub struct GetArgs {
    /// What to read, as it was written
    key: OsString,
    /// The keyspace [default: the first one]
    #[arg(long, value_name = "NAME")]
    keyspace: Option<String>,
    /// The HTTP door of the host that is to coordinate
    #[arg(long, env = "QUORATE_HTTP", default_value = "127.0.0.1:7412", value_name = "ADDRESS")]
    http: String,
    /// How long to wait for the answer
    #[arg(long, default_value = "10s", value_name = "TIME")]
    timeout: Length,
    #[command(flatten)]
    output: Output,
}

/// Runs `explain`.
///
/// # Errors
/// The host cannot be reached, or the read was refused.
pub fn run(args: &Args) -> Result<(), Failure> {
    let Operation::Get(get) = &args.operation;
    let mut path = format!("/explain?key_hex={}", hex(get.key.as_bytes()));
    if let Some(keyspace) = &get.keyspace {
        path += &format!("&keyspace={}", http::encoded(keyspace.as_bytes()));
    }
    let address = get.http.split(',').next().unwrap_or_default();
    let answer = http::get(address, &path, get.timeout.0)
        .map_err(|error| Failure::of_connection(address, &error))?;
    match answer.status {
        200 => {}
        404 => return Err(Failure::new(Code::NotFound, http::error_of(&answer))),
        503 => return Err(Failure::new(Code::NoQuorum, http::error_of(&answer))),
        504 => return Err(Failure::new(Code::Timeout, http::error_of(&answer))),
        _ => return Err(Failure::failed(http::error_of(&answer))),
    }
    if get.output.is_json() {
        return Ok(stdout().write_all(answer.body.as_bytes())?);
    }
    let explained: Value = serde_json::from_str(&answer.body)
        .map_err(|_| Failure::failed(format!("{address}: the answer explains nothing")))?;
    Ok(stdout().write_all(text(&explained).as_bytes())?)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(explained: &Value) -> String {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let view = &explained["view"];
    let members: Vec<String> = view["members"].as_array().into_iter().flatten().map(word).collect();
    let value = match explained["value_bytes"].as_u64() {
        Some(bytes) => format!("{bytes} bytes"),
        None => String::from("absent"),
    };
    let mut text = format!(
        "value        {value}\nposition     {}\ncoordinator  {} in start {}\nview         {} of \
         group {}, after {} up to {}\nmembers      {}\n\n",
        word(&explained["token"]),
        word(&explained["coordinator"]["node"]),
        word(&explained["coordinator"]["start"]),
        word(&view["version"]),
        word(&view["group"]),
        word(&view["low"]),
        word(&view["high"]),
        members.join(" ")
    );
    let steps: Vec<Vec<String>> = explained["steps"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|step| {
            let after = step["after_us"].as_u64().unwrap_or(0);
            let member = step["member"].as_str().unwrap_or("-").to_owned();
            vec![format!("{after} us"), member, word(&step["what"])]
        })
        .collect();
    text.push_str(&columns("", &["AFTER", "MEMBER", "WHAT"], &steps));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_host::ring::report::explanation;
    use quorate_kernel::explanation::{Explanation, Step};
    use quorate_kernel::ids::{Incarnation, NodeId, Start};
    use quorate_kernel::time::Span;
    use quorate_kernel::view::{Range, View, ViewId};

    #[test]
    fn an_explanation_names_coordinator_view_and_steps() {
        let explained = explanation(&Explanation {
            value_bytes: Some(5),
            token: 0xab,
            coordinator: Incarnation { node: NodeId(7), start: Start(2) },
            view: View::new(ViewId::default(), Range::ALL, vec![NodeId(7), NodeId(8)]),
            answered: vec![NodeId(8)],
            steps: vec![Step {
                after: Span::micros(350),
                member: Some(NodeId(8)),
                what: String::from("ReadB"),
            }],
        });
        let text = text(&explained);
        assert!(text.contains("value        5 bytes\nposition     00000000000000ab"), "{text}");
        assert!(text.contains("coordinator  0000000000000007 in start 2"), "{text}");
        assert!(text.contains("350 us  0000000000000008  ReadB"), "{text}");
    }
}
