//! `status`: how hosts are, as they say themselves.

use super::ring;
use crate::config::values::Length;
use crate::exit::{Code, Failure};
use crate::output::{Output, columns};
use quorate_gateway::units::Size;
use quorate_gateway::web::http;
use serde_json::{Value, json};
use std::io::{Write, stdout};

/// The arguments of `status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit code 5 if a host asked cannot be reached or is not ready.\n\
                        Example: quorate status --http 127.0.0.1:7412 --http 127.0.0.1:7422")]
pub struct Args {
    /// The HTTP door of a host; once for each host to ask
    #[arg(long, env = "QUORATE_HTTP", default_value = "127.0.0.1:7412", value_name = "ADDRESS")]
    http: Vec<String>,
    /// How long to wait for each answer
    #[arg(long, default_value = "5s", value_name = "TIME")]
    timeout: Length,
    #[command(flatten)]
    output: Output,
}

/// Runs `status`.
///
/// # Errors
/// [`Code::NoQuorum`] if a host cannot be reached or is not ready; what is known was printed.
pub fn run(args: &Args) -> Result<(), Failure> {
    let mut all_ready = true;
    let mut lines = Vec::new();
    for address in &args.http {
        let status = ask(address, args);
        let status = status.unwrap_or_else(|error| json!({ "http": address, "error": error }));
        all_ready &= status["ready"] == true;
        if args.output.is_json() {
            writeln!(stdout(), "{status}")?;
        } else {
            lines.push(status);
        }
    }
    if !args.output.is_json() {
        write!(stdout(), "{}", text(&lines))?;
    }
    if all_ready { Ok(()) } else { Err(Failure::new(Code::NoQuorum, "not every host is ready")) }
}

fn ask(address: &str, args: &Args) -> Result<Value, String> {
    let answer = http::get(address, "/status", args.timeout.0).map_err(|e| e.to_string())?;
    let mut status: Value = serde_json::from_str(&answer.body)
        .map_err(|_| String::from("the answer is no status; is this an HTTP door?"))?;
    status["http"] = Value::from(address);
    // A host whose core thread is stuck says how it is all the same.
    if let Ok(ring) = http::get(address, "/ring", args.timeout.0)
        && ring.status == 200
    {
        status["ring"] = serde_json::from_str(&ring.body).unwrap_or_default();
    }
    Ok(status)
}

fn text(hosts: &[Value]) -> String {
    let word = |value: &Value| match value {
        Value::Null => String::from("-"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let rows: Vec<Vec<String>> = hosts.iter().map(|host| host_row(host, word)).collect();
    let mut text = columns(
        "",
        &[
            "HOST", "HTTP", "STAGE", "READY", "START", "CLIENTS", "PEERS", "LOG", "TABLES",
            "GARBAGE", "RESP",
        ],
        &rows,
    );
    let keyspaces: Vec<Vec<String>> = hosts
        .iter()
        .flat_map(|host| {
            host["keyspaces"].as_array().into_iter().flatten().map(move |keyspace| {
                let members = format!("{}/{}", keyspace["members_reached"], keyspace["members"]);
                vec![
                    word(&host["host"]),
                    word(&keyspace["name"]),
                    word(&keyspace["engine"]),
                    word(&keyspace["durability"]),
                    word(&keyspace["ready"]),
                    word(&keyspace["view"]),
                    members,
                    word(&keyspace["inflight"]),
                ]
            })
        })
        .collect();
    if !keyspaces.is_empty() {
        let head =
            ["HOST", "KEYSPACE", "ENGINE", "DURABILITY", "READY", "VIEW", "REACHED", "INFLIGHT"];
        text.push('\n');
        text.push_str(&columns("", &head, &keyspaces));
    }
    // Each believes its own; they agree soon after a change.
    if let Some(host) = hosts.iter().find(|host| host["ring"].is_object()) {
        text.push_str(&format!("\nThe ring, as host {} sees it:\n", word(&host["host"])));
        text.push_str(&ring::text(&host["ring"]));
    }
    for host in hosts {
        text.push_str(&troubles(host));
    }
    text
}

/// Hosts that were turned away or cannot be reached, and why: somebody must look at them.
fn troubles(host: &Value) -> String {
    let peers = host["peers"].as_array().into_iter().flatten();
    let trouble = |peer: &Value| {
        let why = peer["trouble"].as_str().filter(|why| !why.is_empty())?;
        Some(format!("\nhost {} has trouble with {}: {why}\n", host["host"], peer["address"]))
    };
    let keyspaces = host["keyspaces"].as_array().into_iter().flatten();
    let refusal = |keyspace: &Value| {
        let count = keyspace["state"]["groups_refused"].as_str().filter(|count| *count != "0")?;
        let (host, name) = (&host["host"], &keyspace["name"]);
        Some(format!("\nhost {host} has all groups of {name} that it can: {count} refusals\n"))
    };
    peers.filter_map(trouble).chain(keyspaces.filter_map(refusal)).collect()
}

fn host_row(host: &Value, word: impl Fn(&Value) -> String) -> Vec<String> {
    if let Some(error) = host["error"].as_str() {
        return vec![String::from("?"), word(&host["http"]), format!("unreachable: {error}")];
    }
    let peers = host["peers"].as_array().map_or(&[][..], Vec::as_slice);
    let up = peers.iter().filter(|peer| peer["up"] == true).count();
    vec![
        word(&host["host"]),
        word(&host["http"]),
        word(&host["stage"]),
        word(&host["ready"]),
        word(&host["start"]),
        word(&host["clients"]),
        format!("{up}/{}", peers.len()),
        size(&host["disk"]["log_bytes"]),
        size(&host["disk"]["table_bytes"]),
        size(&host["disk"]["garbage_bytes"]),
        word(&host["resp"]),
    ]
}

/// Bytes as people read them.
fn size(bytes: &Value) -> String {
    bytes.as_u64().map_or_else(|| String::from("-"), |bytes| Size(bytes).about())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_gateway::admin;
    use quorate_host::samples;
    use quorate_host::samples::shared as sample;

    #[test]
    fn what_a_host_says_is_shown_beside_a_host_that_is_away() {
        let shared = sample();
        shared.peers()[0].set_up(&shared, true);
        shared.log_bytes.set(192 << 20);
        shared.table_bytes.set(1_234_567_890);
        let mut status = admin::status::of(&shared);
        status["http"] = Value::from("127.0.0.1:7412");
        status["ring"] = samples::report().json();
        status["peers"][1]["trouble"] = Value::from("it is a copy");
        let away = json!({ "http": "127.0.0.1:7422", "error": "connection refused" });
        let text = text(&[status, away]);
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[1][..7], ["1", "127.0.0.1:7412", "starting", "false", "4", "0", "1/2"]);
        assert_eq!(lines[1][7..], ["192.0MiB", "1.1GiB", "0B", "-"]);
        assert_eq!(lines[2][..3], ["?", "127.0.0.1:7422", "unreachable:"]);
        assert_eq!(lines[5][..4], ["1", "default", "linearizable", "sync"]);
        assert!(text.contains("\nThe ring, as host 1 sees it:\nHOST"), "{text}");
        assert!(text.contains("trouble with \"127.0.0.1:7431\": it is a copy"), "{text}");
    }
}
