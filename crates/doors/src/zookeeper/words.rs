//! Four-letter words: what people and probes ask in place of a first frame, on a connection of its
//! own. The texts are ZooKeeper's. What a host cannot know has no line, unless clients insist.

use super::counters::Counts;
use super::shared::{Shared, tree};
use crate::host::Serving;
use alloc::format;
use alloc::string::String;
use core::fmt::Write;

/// The version of ZooKeeper whose clients are served; they choose by it what they may ask.
pub const ZOOKEEPER_VERSION: &str = "3.9.0";

/// When this software was built. Builds tell no time, so that they can be repeated: this is the one
/// that stands for none. Go's client reads no answer without it.
const BUILT: &str = "01/01/1970 00:00 UTC";

const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";

/// Words that ZooKeeper knows and this door has no answer to: they need what only engines know, or
/// would change what is counted.
const UNKNOWN: [&[u8; 4]; 10] =
    [b"crst", b"dirs", b"dump", b"gtmk", b"hash", b"srst", b"stmk", b"wchc", b"wchp", b"wchs"];

/// One connection, as it is listed.
pub(super) struct Line {
    /// Its number among all of the host.
    pub id: u64,
    /// Where its client is.
    pub peer: String,
}

/// What a word answers; none if it is none.
pub(super) fn answer(
    word: [u8; 4],
    shared: &Shared,
    serving: &Serving,
    asking: &Line,
) -> Option<String> {
    if UNKNOWN.contains(&&word) {
        let word = String::from_utf8_lossy(&word);
        return Some(format!("{word} is not executed because it is not in the whitelist.\n"));
    }
    let is_serving = shared.facts.is_ready() && tree(serving).is_some();
    let text = match &word {
        b"ruok" => return Some(String::from("imok")),
        b"isro" if is_serving => return Some(String::from("rw")),
        b"isro" => return Some(String::from("null")),
        b"envi" => return Some(environment(shared)),
        b"srvr" => server(shared, serving, None),
        b"stat" => server(shared, serving, Some(asking)),
        b"mntr" => monitor(shared, serving),
        b"conf" => configuration(shared),
        b"cons" => clients(shared, asking) + "\n",
        _ => return None,
    };
    Some(if is_serving { text } else { String::from(NOT_SERVING) })
}

fn version(shared: &Shared) -> String {
    format!("{ZOOKEEPER_VERSION}-quorate-{}", shared.identity.version)
}

/// How many nodes the tree has, if this host has one.
fn nodes(shared: &Shared, serving: &Serving) -> Option<u64> {
    shared.facts.shown(tree(serving)?.keyspace.lane, "nodes")
}

/// Whether this host leads the tree's group, or follows; what has no group, or is not known, is a
/// server that stands alone, as far as clients are concerned.
fn mode(shared: &Shared, serving: &Serving) -> &'static str {
    let shown = |name| shared.facts.shown(tree(serving)?.keyspace.lane, name);
    match (shown("groups"), shown("groups_led")) {
        (Some(1..), Some(1..)) => "leader",
        (Some(1..), Some(0)) => "follower",
        _ => "standalone",
    }
}

fn server(shared: &Shared, serving: &Serving, listing: Option<&Line>) -> String {
    let Counts { received, sent, outstanding, newest, latency_ms } = shared.counters.counts();
    let [least, average, most] = latency_ms;
    let mut text = format!("Zookeeper version: {}, built on {BUILT}\n", version(shared));
    if let Some(asking) = listing {
        text += "Clients:\n";
        text += &clients(shared, asking);
        text += "\n";
    }
    let connections = shared.facts.clients();
    let _ = write!(
        text,
        "Latency min/avg/max: {least}/{average}/{most}\nReceived: {received}\nSent: {sent}\n\
         Connections: {connections}\nOutstanding: {outstanding}\nZxid: {newest:#x}\nMode: {}\n",
        mode(shared, serving)
    );
    if let Some(nodes) = nodes(shared, serving) {
        let _ = writeln!(text, "Node count: {nodes}");
    }
    text
}

fn monitor(shared: &Shared, serving: &Serving) -> String {
    let Counts { received, sent, outstanding, latency_ms, .. } = shared.counters.counts();
    let [least, average, most] = latency_ms;
    let mut text = format!("zk_version\t{}\n", version(shared));
    let connections = shared.facts.clients();
    let numbers = [
        ("min_latency", least),
        ("avg_latency", average),
        ("max_latency", most),
        ("packets_received", received),
        ("packets_sent", sent),
        ("num_alive_connections", connections),
        ("outstanding_requests", outstanding),
    ];
    let nodes = nodes(shared, serving).map(|nodes| ("znode_count", nodes));
    for (name, number) in numbers.into_iter().chain(nodes) {
        let _ = writeln!(text, "zk_{name}\t{number}");
    }
    let _ = writeln!(text, "zk_server_state\t{}", mode(shared, serving));
    text
}

fn environment(shared: &Shared) -> String {
    let identity = &shared.identity;
    format!(
        "Environment:\nzookeeper.version={}\nquorate.cluster={}\nquorate.node={}\n",
        version(shared),
        identity.cluster,
        identity.node
    )
}

fn configuration(shared: &Shared) -> String {
    let Shared { port, clients_max, .. } = shared;
    format!("clientPort={port}\nmaxCnxns={clients_max}\n")
}

/// All connections, a line each: of others what the host says of them.
fn clients(shared: &Shared, asking: &Line) -> String {
    let mut text = format!(" /{}[0](queued=0,recved=1,sent=0)\n", asking.peer);
    shared.facts.other_clients(asking.id, &mut |line| {
        text += line;
        text += "\n";
    });
    text
}
