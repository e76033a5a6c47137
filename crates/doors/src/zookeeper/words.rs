//! Four-letter words: what people and probes ask in place of a first frame, on a connection of its
//! own. The texts are ZooKeeper's. What a host cannot know has no line, unless clients insist.

use super::connections::Connection;
use super::counters::Counts;
use super::shared::{Shared, tree};
use crate::host::{Serving, Stored};
use alloc::format;
use alloc::string::String;
use core::fmt::Write;

/// The version of ZooKeeper whose clients are served; they choose by it what they may ask.
pub const ZOOKEEPER_VERSION: &str = "3.9.0";

/// When this software was built. Builds tell no time, so that they can be repeated: this is the one
/// that stands for none. Go's client reads no answer without it.
const BUILT: &str = "01/01/1970 00:00 UTC";

const NOT_SERVING: &str = "This ZooKeeper instance is not currently serving requests\n";

/// Words that ZooKeeper knows and this door has no answer to. Some would change what is counted.
/// `dump`, `wchc` and `wchp` need what only engines know, and tell names of nodes to whoever
/// connects, whatever their access lists say: ZooKeeper answers them only where its whitelist has
/// them.
const UNKNOWN: [&[u8; 4]; 8] =
    [b"crst", b"dump", b"gtmk", b"hash", b"srst", b"stmk", b"wchc", b"wchp"];

/// What a word answers; none if it is none.
pub(super) fn answer(
    word: [u8; 4],
    shared: &Shared,
    serving: &Serving,
    asking: &Connection,
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
        b"cons" => shared.connections.lines(asking.id(), false) + "\n",
        b"dirs" => directories(shared),
        b"wchs" => watches(shared, serving),
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

fn server(shared: &Shared, serving: &Serving, listing: Option<&Connection>) -> String {
    let Counts { received, sent, outstanding, newest, latency_ms } = shared.counters.counts();
    let [least, average, most] = latency_ms;
    let mut text = format!("Zookeeper version: {}, built on {BUILT}\n", version(shared));
    if let Some(asking) = listing {
        text += "Clients:\n";
        text += &shared.connections.lines(asking.id(), true);
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
    let shown = |of, name| {
        let number = tree(serving).and_then(|it| shared.facts.shown(it.keyspace.lane, of));
        number.map(|number| (name, number))
    };
    let more = [shown("watches", "watch_count"), shown("quotas_exceeded", "quotas_exceeded")];
    let more = more.into_iter().flatten();
    for (name, number) in numbers.into_iter().chain(nodes).chain(more) {
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

/// What tables take on the disk, and what the log does. They are of all keyspaces of the host:
/// those share one directory.
fn directories(shared: &Shared) -> String {
    let stored = shared.facts.stored().map(|Stored { table_bytes, log_bytes }| {
        format!("datadir_size: {table_bytes}\nlogdir_size: {log_bytes}\n")
    });
    stored.unwrap_or_default()
}

/// What all clients of this host watch, at whatever door; nothing while it is not known.
fn watches(shared: &Shared, serving: &Serving) -> String {
    let shown = |name| shared.facts.shown(tree(serving)?.keyspace.lane, name).or(Some(0));
    let [clients, nodes, all] =
        ["watchers", "watched_nodes", "watches"].map(|name| shown(name).unwrap_or(0));
    format!("{clients} connections watching {nodes} paths\nTotal watches:{all}\n")
}
