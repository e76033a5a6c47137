//! What a host says of itself and its cluster, as JSON.

use super::health;
use quorate_host::metrics::{KeyspaceCells, PeerCells, Shared, Stage};
use quorate_store::SlowStep;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The status of the host at this moment.
#[must_use]
pub fn of(shared: &Shared) -> Value {
    let doors = shared.doors();
    let clients = doors.iter().flat_map(|doors| doors.clients.iter());
    let mut status = json!({
        "cluster": shared.cluster.to_string(),
        "host": shared.host,
        "node": shared.node.to_string(),
        "start": shared.start.0,
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "time_us": micros(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()),
        "uptime_seconds": shared.began.elapsed().as_secs(),
        "stage": match shared.stage() {
            Stage::Starting => "starting",
            Stage::Serving => "serving",
            Stage::Stopping => "stopping",
        },
        "ready": health::is_ready(shared),
        "cluster_address": doors.as_ref().map(|doors| doors.cluster.to_string()),
        "clients": clients.clone().map(|door| door.clients.get()).sum::<u64>(),
        "unsynced_bytes": shared.unsynced_bytes.get(),
        "disk": {
            "log_bytes": shared.log_bytes.get(),
            "table_bytes": shared.table_bytes.get(),
            "garbage_bytes": shared.garbage_bytes.get(),
            "slow_steps": shared.slow_steps.list().iter().map(slow_step).collect::<Vec<_>>(),
            "longest_step_micros": micros(shared.slow_steps.longest()),
        },
        "keyspaces": shared.keyspaces().iter().map(|k| keyspace(k, shared)).collect::<Vec<_>>(),
        "peers": shared.peers().iter().map(|cells| peer(cells)).collect::<Vec<_>>(),
    });
    for door in clients {
        status[door.name] = Value::from(door.address.to_string());
    }
    status
}

fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

fn slow_step(it: &SlowStep) -> Value {
    let (at_us, us) = (micros(it.at), micros(it.length));
    json!({ "step": it.step.name(), "at_us": at_us, "us": us, "bytes": it.bytes })
}

fn keyspace(cells: &KeyspaceCells, shared: &Shared) -> Value {
    let (reached, needed) = shared.reach(cells);
    let shown: serde_json::Map<String, Value> = cells
        .shown()
        .into_iter()
        .map(|(name, text)| (name.to_owned(), Value::from(text)))
        .collect();
    json!({
        "name": cells.name(),
        "engine": cells.engine(),
        "durability": cells.durability().to_string(),
        "ready": cells.is_ready(),
        "view": cells.view_version.get(),
        "members": cells.view_members.get(),
        "members_reached": reached,
        "members_needed": needed,
        "inflight": cells.inflight.get(),
        "groups": cells.groups.get(),
        "groups_busy": cells.groups_busy.get(),
        "moved_keys": cells.moved_keys.get(),
        "moved_bytes": cells.moved_bytes.get(),
        "sent_bytes": cells.sent_bytes.get(),
        "state": shown,
    })
}

fn peer(cells: &PeerCells) -> Value {
    json!({
        "host": cells.host(),
        "node": cells.node.to_string(),
        "address": cells.address(),
        "up": cells.is_up(),
        "trouble": cells.trouble(),
        "frames_dropped": cells.frames_dropped.get(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_host::samples::shared as sample;
    use quorate_store::Step;

    #[test]
    fn a_starting_host_shows_no_doors_and_is_not_ready() {
        let shared = sample();
        shared.peers()[0].set_up(&shared, true);
        shared.slow_steps.note(Step::Write, Duration::from_nanos(7_900));
        shared.keyspaces()[0].show(vec![("operations", String::from("3"))]);
        let (at, length) = (Duration::from_secs(3), Duration::from_micros(5600));
        shared.slow_steps.keep(SlowStep { at, length, step: Step::Sync, bytes: 4096 });
        let status = of(&shared);
        assert_eq!(status["cluster"], "000000000000000000000000000000c1");
        assert_eq!(status["node"], "0000000000000001");
        assert_eq!(status["start"], 4);
        assert_eq!(status["stage"], "starting");
        assert_eq!(status["ready"], false);
        assert_eq!(status["resp"], Value::Null);
        assert_eq!(status["keyspaces"][0]["name"], "default");
        assert_eq!(status["keyspaces"][0]["members_reached"], 2);
        assert_eq!(status["keyspaces"][0]["state"]["operations"], "3");
        assert_eq!(status["peers"][0]["up"], true);
        assert_eq!(status["disk"]["longest_step_micros"], 7);
        assert_eq!(status["peers"][1]["up"], false);
        let slow = json!([{ "step": "sync", "at_us": 3_000_000, "us": 5600, "bytes": 4096 }]);
        assert_eq!(status["disk"]["slow_steps"], slow);
        assert!(status["time_us"].as_u64().is_some_and(|now| now > 3_005_600), "since 1970");
    }
}
