//! `INFO`: the fields tools look for, section by section.

use super::{Cx, Handled, is};
use crate::resp::requests::frame::Command;
use crate::resp::shared::REDIS_VERSION;
use alloc::string::String;
use core::fmt::Write;

const NANOS: u64 = 1_000_000_000;

/// Writes the fields of one section.
type Section = fn(&Cx<'_>, &mut Fields);

const SECTIONS: &[(&str, Section)] = &[
    ("Server", server),
    ("Clients", clients),
    ("Memory", memory),
    ("Persistence", persistence),
    ("Stats", stats),
    ("Replication", replication),
    ("Cluster", cluster),
    ("Keyspace", keyspace),
    ("Quorate", quorate),
];

/// Lines of `name:value`.
#[derive(Default)]
struct Fields(String);

impl Fields {
    fn field(&mut self, name: &str, value: impl core::fmt::Display) {
        let _ = write!(self.0, "{name}:{value}\r\n");
    }
}

/// `INFO [section ...]`.
pub(super) fn info(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let asked = || command.args().skip(1);
    let is_all = command.len() == 1
        || asked().any(|name| ["all", "default", "everything"].iter().any(|all| is(name, all)));
    let mut text = Fields::default();
    for (name, section) in SECTIONS {
        if is_all || asked().any(|asked| is(asked, name)) {
            if !text.0.is_empty() {
                text.0.push_str("\r\n");
            }
            let _ = write!(text.0, "# {name}\r\n");
            section(cx, &mut text);
        }
    }
    Ok(cx.encoded(|out| out.verbatim(&text.0)))
}

fn server(cx: &Cx<'_>, out: &mut Fields) {
    let identity = &cx.shared.identity;
    let uptime = (cx.clock.wall.0 - identity.started.0).max(0) / 1000;
    out.field("redis_version", REDIS_VERSION);
    out.field("redis_mode", "standalone");
    out.field("arch_bits", usize::BITS);
    out.field("process_id", identity.process_id);
    out.field("run_id", &identity.run_id);
    out.field("tcp_port", cx.shared.port);
    out.field("server_time_usec", cx.clock.wall.0.saturating_mul(1000));
    out.field("uptime_in_seconds", uptime);
    out.field("uptime_in_days", uptime / 86_400);
    out.field("quorate_version", &identity.version);
    out.field("quorate_cluster", identity.cluster);
    out.field("quorate_node", identity.node);
}

fn clients(cx: &Cx<'_>, out: &mut Fields) {
    out.field("connected_clients", cx.shared.facts.clients());
    out.field("cluster_connections", 0);
    out.field("maxclients", cx.shared.clients_max);
    out.field("blocked_clients", 0);
}

fn memory(cx: &Cx<'_>, out: &mut Fields) {
    let used = cx.shared.facts.memory_bytes();
    out.field("used_memory", used);
    out.field("used_memory_rss", used);
    out.field("maxmemory", 0);
    out.field("maxmemory_policy", "noeviction");
}

fn persistence(cx: &Cx<'_>, out: &mut Fields) {
    out.field("loading", u8::from(!cx.shared.facts.is_ready()));
    out.field("rdb_changes_since_last_save", 0);
    out.field("rdb_bgsave_in_progress", 0);
    out.field("aof_enabled", u8::from(cx.serving.is_durable()));
}

fn stats(cx: &Cx<'_>, out: &mut Fields) {
    let facts = &cx.shared.facts;
    let seconds = (cx.clock.now.0 / NANOS).max(1);
    out.field("total_connections_received", facts.connections_total());
    let operations = facts.operations_total();
    out.field("total_commands_processed", operations);
    out.field("mean_ops_per_sec", operations / seconds);
    out.field("expired_keys", 0);
    out.field("evicted_keys", 0);
}

fn replication(_cx: &Cx<'_>, out: &mut Fields) {
    out.field("role", "master");
    out.field("connected_slaves", 0);
}

fn cluster(_cx: &Cx<'_>, out: &mut Fields) {
    out.field("cluster_enabled", 0);
}

/// Redis tells how many keys each database has, but for empty ones. How many a keyspace has over
/// all hosts, no host knows without asking: `DBSIZE` asks.
fn keyspace(_cx: &Cx<'_>, _out: &mut Fields) {}

/// What each keyspace is, by its name.
fn quorate(cx: &Cx<'_>, out: &mut Fields) {
    for (_, served) in cx.serving.open() {
        let (name, engine) = (&served.keyspace.name, served.engine.name);
        let order = served.order();
        let _ = write!(out.0, "keyspace_{name}:engine={engine},order={order}\r\n");
    }
}
