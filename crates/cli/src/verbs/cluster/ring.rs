//! `ring`: who stands where, and which groups hold which ranges.

use crate::config::values::Length;
use crate::exit::Failure;
use crate::output::columns;
use clap::ValueEnum;
use quorate_gateway::web::http;
use serde_json::Value;
use std::io::{Write, stdout};

/// How the ring is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// As tables.
    Text,
    /// As one JSON object.
    Json,
    /// As a picture.
    Svg,
}

/// The arguments of `ring`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: quorate ring --format svg > ring.svg")]
pub struct Args {
    /// The HTTP door of the host to ask; each believes what it has heard
    #[arg(long, env = "QUORATE_HTTP", default_value = "127.0.0.1:7412", value_name = "ADDRESS")]
    http: String,
    /// How long to wait for the answer
    #[arg(long, default_value = "10s", value_name = "TIME")]
    timeout: Length,
    /// How the ring is printed
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Runs `ring`.
///
/// # Errors
/// The host cannot be reached, or does not answer.
pub fn run(args: &Args) -> Result<(), Failure> {
    let path = if args.format == Format::Svg { "/ring.svg" } else { "/ring" };
    let address = args.http.split(',').next().unwrap_or_default();
    let answer = http::get(address, path, args.timeout.0)
        .map_err(|error| Failure::of_connection(address, &error))?;
    if answer.status != 200 {
        return Err(Failure::failed(format!("{address}: {}", http::error_of(&answer))));
    }
    let text = match args.format {
        Format::Text => {
            let ring: Value = serde_json::from_str(&answer.body)
                .map_err(|_| Failure::failed(format!("{address}: the answer is no ring")))?;
            text(&ring)
        }
        Format::Json | Format::Svg => answer.body,
    };
    Ok(stdout().write_all(text.as_bytes())?)
}

/// A ring as tables.
#[must_use]
pub fn text(ring: &Value) -> String {
    let hosts: Vec<Vec<String>> = list(&ring["hosts"])
        .map(|host| {
            vec![
                word(&host["host"]),
                word(&host["node"]),
                word(&host["address"]),
                word(&host["zone"]),
                state(host),
                list(&host["tokens"]).map(word).collect::<Vec<_>>().join(" "),
            ]
        })
        .collect();
    let head = ["HOST", "NODE", "ADDRESS", "ZONE", "STATE", "TOKENS"];
    let mut text = columns("", &head, &hosts);
    text.push_str(&roll(&ring["roll"]));
    for keyspace in list(&ring["keyspaces"]) {
        text.push('\n');
        text.push_str(&format!(
            "Keyspace {}: {} replicas, {} order, {}\n",
            word(&keyspace["name"]),
            word(&keyspace["replicas"]),
            word(&keyspace["order"]),
            word(&keyspace["mode"])
        ));
        text.push_str(&groups(ring, keyspace));
    }
    text
}

fn groups(ring: &Value, keyspace: &Value) -> String {
    let rows: Vec<Vec<String>> = list(&keyspace["groups"])
        .map(|group| {
            let members: Vec<String> =
                list(&group["members"]).map(|member| label(ring, member)).collect();
            vec![
                word(&group["low"]),
                word(&group["high"]),
                word(&group["version"]),
                members.join(" "),
                word(&group["status"]),
                word(&group["role"]),
                word(&group["moving"]),
            ]
        })
        .collect();
    if rows.is_empty() {
        return String::from("  no groups are shown here\n");
    }
    columns("  ", &["AFTER", "UP TO", "VIEW", "MEMBERS", "STATUS", "ROLE", "MOVING"], &rows)
}

/// A member's number if it has one, else its node id.
fn label(ring: &Value, member: &Value) -> String {
    let host = list(&ring["hosts"]).find(|host| host["node"] == *member);
    host.and_then(|host| host["host"].as_u64()).map_or_else(|| word(member), |n| n.to_string())
}

fn state(host: &Value) -> String {
    let mut state = word(&host["standing"]);
    if host["suspected"] == true {
        state.push_str(", suspected");
    }
    if host["on_roll"] == false && host["standing"] != "left" {
        state.push_str(", not on the roll");
    }
    state
}

/// What is to be said of the roll, if one is kept.
fn roll(roll: &Value) -> String {
    let (number, members) = (word(&roll["number"]), word(&roll["members"]));
    let kind = word(&roll["kind"]);
    match &roll["goes_on"] {
        Value::Bool(true) => format!("Roll {number} ({kind}): {members} hosts\n"),
        Value::Bool(false) => format!(
            "Roll {number} ({kind}) stands still at {members} hosts: this host is not on it, or no \
             majority of them answers. Seats follow failure detectors meanwhile.\n"
        ),
        _ => String::new(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => String::from("-"),
        Value::String(text) if text.is_empty() => String::from("-"),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_host::samples::report as sample;

    #[test]
    fn hosts_and_groups_are_listed_in_the_words_of_the_ring() {
        let text = text(&sample().json());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].contains("up, suspected"), "{text}");
        assert!(lines[3].starts_with("-     0000000000000003"), "{text}");
        assert!(lines[3].contains("leaving, not on the roll"), "{text}");
        assert_eq!(lines[4], "Roll 4 (rapid): 2 hosts");
        assert_eq!(lines[6], "Keyspace default: 3 replicas, hash order, atomic");
        assert!(lines[9].contains("1 2 0000000000000003  busy"), "{text}");
    }

    #[test]
    fn a_roll_that_stands_still_says_so_and_none_says_nothing() {
        let json = |goes_on: Option<bool>| {
            let mut report = sample();
            report.roll = goes_on.map(|goes_on| {
                let known = report.roll.clone().expect("the sample has one");
                std::sync::Arc::new(quorate_kernel::roll::Roll { goes_on, ..(*known).clone() })
            });
            text(&report.json())
        };
        let still = json(Some(false));
        assert!(
            still.contains("Roll 4 (rapid) stands still at 2 hosts: this host is not on it"),
            "{still}"
        );
        assert!(!json(None).contains("oll"), "no roll is kept");
    }
}
