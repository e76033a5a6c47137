//! `drain` and `remove`: take a host out of the cluster, and wait until nothing rests on it.

use crate::config::values::Length;
use crate::exit::{Code, Failure};
use crate::output::Output;
use quorate_gateway::web::http;
use serde_json::{Value, json};
use std::io::{Write, stderr, stdout};
use std::time::{Duration, Instant};

/// How often the ring is looked at while a command waits.
const AGAIN: Duration = Duration::from_millis(250);

/// What has become of a host that was drained.
const DRAINED: &str = "drained";

/// What both commands need.
#[derive(Debug, clap::Args)]
pub struct Target {
    /// The host: its node id, the address of its cluster door, or its number
    host: String,
    /// The HTTP door of any host; of several, the first
    #[arg(long, env = "QUORATE_HTTP", value_delimiter = ',', default_value = "127.0.0.1:7412")]
    #[arg(value_name = "ADDRESS")]
    http: Vec<String>,
    /// Do not wait until no group has the host as a member, nor needs it if it was drained
    #[arg(long)]
    no_wait: bool,
    /// How long to wait; what was begun goes on afterwards
    #[arg(long, default_value = "10m", value_name = "TIME")]
    timeout: Length,
    #[command(flatten)]
    output: Output,
}

impl Target {
    /// Says what has become of the node: in `text`, or as the word `state`.
    fn tell(&self, node: &str, state: &str, text: &str) -> Result<(), Failure> {
        match self.output.is_json() {
            true => writeln!(stdout(), "{}", json!({ "node": node, "state": state }))?,
            false => writeln!(stdout(), "{text}")?,
        }
        Ok(())
    }
}

/// The arguments of `drain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "When it ends, the host is a member of nothing, keeps nothing that others \
                        need, and is given nothing again: it can be stopped and removed. Until \
                        then, leave it running: what only it and one other host have is still \
                        being copied. Each place goes to a host that has copied the data ahead, \
                        if there is one; without one the group is smaller from then on. While a \
                        member of a group, or the host itself, does not answer, the command waits \
                        and says for whom; remove a host that is gone for good.\n\n\
                        Example: quorate drain 127.0.0.1:7431")]
pub struct DrainArgs {
    #[command(flatten)]
    target: Target,
    /// Have the host take part again
    #[arg(long)]
    undo: bool,
}

/// The arguments of `remove`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "For a host that is gone for good: its node id never comes back. Drain one \
                        that still runs first.\n\n\
                        Example: quorate remove 00f3a90b8c1d2e4f"
)]
pub struct RemoveArgs {
    #[command(flatten)]
    target: Target,
    /// Remove it although groups lose their majority or keys their last replica: WHAT THE HOST
    /// ALONE HOLDS IS GIVEN UP FOR GOOD
    #[arg(long)]
    lose_data: bool,
}

/// Runs `drain`.
///
/// # Errors
/// The cluster refuses, does not answer, or is not done in time.
pub fn drain(args: &DrainArgs) -> Result<(), Failure> {
    let node = find(&args.target)?;
    order(&args.target, &format!("/control/drain?node={node}&undo={}", args.undo))?;
    if args.undo {
        return args.target.tell(&node, "up", &format!("node {node} takes part again"));
    }
    finish(&args.target, &node, DRAINED, "; it can be stopped and removed")
}

/// Runs `remove`.
///
/// # Errors
/// The cluster refuses, does not answer, or is not done in time.
pub fn remove(args: &RemoveArgs) -> Result<(), Failure> {
    let node = find(&args.target)?;
    if args.lose_data {
        let text = "what this host alone holds is given up for good";
        writeln!(stderr(), "--lose-data: {text}")?;
    }
    let path = format!("/control/remove?node={node}&lose_data={}", args.lose_data);
    order_within(&args.target, &path, args.target.timeout.0)?;
    finish(&args.target, &node, "removed", "")
}

/// What a host says of the ring.
///
/// # Errors
/// It does not answer, or not so that it can be read.
pub fn ring(address: &str) -> Result<Value, Failure> {
    let answer = http::get(address, "/ring", Duration::from_secs(10))
        .map_err(|error| Failure::of_connection(address, &error))?;
    if answer.status != 200 {
        return Err(Failure::failed(format!("{address}: {}", http::error_of(&answer))));
    }
    serde_json::from_str(&answer.body)
        .map_err(|_| Failure::failed(format!("{address}: the answer is no ring")))
}

/// The node id of the host that is meant: the order must not depend on an address that moves.
fn find(target: &Target) -> Result<String, Failure> {
    let ring = ring(&target.http[0])?;
    meant(&ring, &target.host).ok_or_else(|| {
        let hosts = ring["hosts"].as_array().into_iter().flatten();
        let known: Vec<&str> = hosts.filter_map(|known| known["address"].as_str()).collect();
        let text = format!("no host {}; the ring has {}", target.host, known.join(", "));
        Failure::new(Code::NotFound, text)
    })
}

/// The node id of the host that is called so. One that was removed and has joined again at its
/// address is known as both: the one that is there is meant.
fn meant(ring: &Value, host: &str) -> Option<String> {
    // Written as the ring shows it, as the host that is asked takes it.
    let number: Option<u64> = host.parse().ok().filter(|number: &u64| number.to_string() == host);
    let is_meant = |known: &&Value| {
        known["node"] == host
            || known["address"] == host
            || (number.is_some() && known["host"].as_u64() == number)
    };
    let hosts = ring["hosts"].as_array().into_iter().flatten();
    let meant: Vec<&Value> = hosts.filter(is_meant).collect();
    let is_there = meant.iter().find(|known| known["standing"] != "left");
    is_there.or(meant.first()).and_then(|known| known["node"].as_str()).map(str::to_owned)
}

fn order(target: &Target, path: &str) -> Result<(), Failure> {
    order_within(target, path, Duration::from_secs(30))
}

fn order_within(target: &Target, path: &str, within: Duration) -> Result<(), Failure> {
    let address = &target.http[0];
    let answer = http::post(address, path, within)
        .map_err(|error| Failure::of_connection(address, &error))?;
    match answer.status {
        200 => Ok(()),
        503 | 504 => Err(Failure::new(Code::NoQuorum, http::error_of(&answer))),
        _ => Err(Failure::failed(http::error_of(&answer))),
    }
}

/// Waits until no group of the cluster has the node as a member, nor needs it any more if it was
/// drained, and tells how far it has come.
fn finish(target: &Target, node: &str, done: &str, advice: &str) -> Result<(), Failure> {
    if target.no_wait {
        return target.tell(node, "noted", &format!("noted; node {node} is on its way out"));
    }
    let deadline = Instant::now() + target.timeout.0;
    let mut last = String::new();
    loop {
        let left = left(&holds(&target.http[0], node)?, done == DRAINED);
        let Some(left) = left else {
            return target.tell(node, done, &format!("node {node} is {done}{advice}"));
        };
        if Instant::now() >= deadline {
            let text = format!(
                "node {node} {left} after {}; it goes on, see `quorate status`",
                target.timeout
            );
            return Err(Failure::new(Code::Timeout, text));
        }
        if last != left {
            writeln!(stderr(), "node {node} {left}")?;
            last = left;
        }
        std::thread::sleep(AGAIN);
    }
}

/// What all groups of the cluster say of a node.
fn holds(address: &str, node: &str) -> Result<Value, Failure> {
    let answer = http::get(address, &format!("/holds?node={node}"), Duration::from_secs(60))
        .map_err(|error| Failure::of_connection(address, &error))?;
    if answer.status != 200 {
        return Err(Failure::failed(format!("{address}: {}", http::error_of(&answer))));
    }
    serde_json::from_str(&answer.body)
        .map_err(|_| Failure::failed(format!("{address}: the answer is none")))
}

/// What a node still is in the way of leaving; none if nothing. One that `may_be_needed`, as it
/// was drained and not removed, waits for others too.
fn left(holds: &Value, may_be_needed: bool) -> Option<String> {
    let groups = holds["groups"].as_u64().unwrap_or(0);
    let word = |part: &Value, name: &str| part[name].as_str().unwrap_or_default().to_owned();
    let list = |name: &str| holds[name].as_array().cloned().unwrap_or_default();
    let silent = list("unknown").into_iter().map(|part| {
        let whose = match part["keyspace"].as_str() {
            Some(name) => format!("keyspace {name}"),
            None => String::from("the catalog"),
        };
        let (from, why) = (word(&part, "from"), word(&part, "why"));
        format!("the groups of {whose} from {from} on do not answer ({why})")
    });
    let awaited = list("awaited").into_iter().filter(|_| may_be_needed).map(|part| {
        let (host, what) = (word(&part, "host"), word(&part, "what"));
        format!("host {host} {what} ({} groups)", part["groups"])
    });
    let parts: Vec<String> = awaited.chain(silent).collect();
    match (groups, parts.is_empty()) {
        (0, true) => None,
        (0, false) => Some(format!("waits: {}", parts.join(", "))),
        (_, true) => Some(format!("is a member of {groups} groups")),
        (_, false) => Some(format!("is a member of {groups} groups, and {}", parts.join(", "))),
    }
}

/// The groups that a host knows, of all keyspaces.
pub fn groups(ring: &Value) -> impl Iterator<Item = &Value> {
    let keyspaces = ring["keyspaces"].as_array().into_iter().flatten();
    keyspaces.flat_map(|keyspace| keyspace["groups"].as_array().into_iter().flatten())
}

/// How many groups that a host knows have the node as a member.
#[must_use]
pub fn groups_of(ring: &Value, node: &str) -> usize {
    let is_member = |group: &&Value| {
        group["members"].as_array().is_some_and(|members| members.iter().any(|m| m == node))
    };
    groups(ring).filter(is_member).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_host::samples::report as sample;
    use quorate_kernel::ids::NodeId;

    #[test]
    fn a_node_is_counted_where_it_is_a_member() {
        let ring = sample().json();
        assert_eq!(groups_of(&ring, &NodeId(3).to_string()), 3);
        assert_eq!(groups_of(&ring, &NodeId(4).to_string()), 0);
        assert_eq!(groups_of(&Value::Null, "x"), 0);
    }

    #[test]
    fn of_two_at_one_address_the_one_that_is_there_is_meant() {
        let address = "10.0.0.4:7411";
        let host = |node: &str, host: u64, standing: &str| {
            let mut known = json!({ "node": node, "host": host, "standing": standing });
            known["address"] = address.into();
            known
        };
        let hosts = [host("a1", 4, "left"), host("b2", 5, "up"), host("c3", 6, "left")];
        let ring = json!({ "hosts": hosts });
        let meant = |name: &str| meant(&ring, name);
        assert_eq!(meant("10.0.0.4:7411").as_deref(), Some("b2"));
        assert_eq!(meant("5").as_deref(), Some("b2"));
        assert_eq!(meant("a1").as_deref(), Some("a1"), "its id is its own");
        assert_eq!(meant("6").as_deref(), Some("c3"), "a removal may be asked for again");
        assert_eq!((meant("7"), meant("10.0.0.5:7411")), (None, None));
        assert_eq!((meant("05"), meant("+5")), (None, None), "hosts take no such number");
    }

    #[test]
    fn what_is_unknown_is_not_taken_for_nothing() {
        let unknown = serde_json::json!([{ "keyspace": "k", "from": "00", "why": "no quorum" }]);
        let said = |groups: u64, unknown: &Value| {
            left(&serde_json::json!({ "groups": groups, "unknown": unknown }), true)
        };
        let none = Value::Array(Vec::new());
        assert_eq!(said(0, &none), None);
        assert_eq!(said(2, &none).as_deref(), Some("is a member of 2 groups"));
        let text = said(0, &unknown).expect("it cannot be said to be gone");
        assert!(text.contains("keyspace k from 00 on do not answer (no quorum)"), "{text}");
    }

    #[test]
    fn who_is_drained_waits_for_those_that_need_it_and_who_is_removed_does_not() {
        let holds = serde_json::json!({
            "groups": 0,
            "unknown": [],
            "awaited": [{ "host": "04", "what": "has yet to get data", "groups": 2 }],
        });
        let text = left(&holds, true).expect("it is needed");
        assert_eq!(text, "waits: host 04 has yet to get data (2 groups)");
        assert_eq!(left(&holds, false), None);
    }
}
