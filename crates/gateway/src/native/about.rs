//! What is told of hosts, keyspaces and the ring.

use super::keyspaces::{self, Keyspace, Keyspaces};
use crate::admin::health;
use quorate_api::v1;
use quorate_host::engines;
use quorate_host::metrics::{Shared, Stage};
use quorate_host::ring::report::{self, Row, cell};
use quorate_host::ring::{KeyspaceReport, Report};
use quorate_kernel::engine::{self, Capability};
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::Keyspace as Record;
use quorate_kernel::rules::Alter;

/// The cells of a group that have fields of their own.
const FIELDS: [&str; 6] = ["group", "low", "high", "version", "members", "status"];

/// The keyspaces as this host sees them.
pub fn keyspaces(all: &Keyspaces) -> Vec<v1::Keyspace> {
    all.iter().map(keyspace).collect()
}

fn keyspace(keyspace: &Keyspace) -> v1::Keyspace {
    let record = keyspace.keyspace();
    v1::Keyspace {
        name: record.name.clone(),
        engine: record.engine.clone(),
        durability: record.durability().to_string(),
        replicas: u32::try_from(record.replicas()).unwrap_or(u32::MAX),
        value_bytes_max: record.value_bytes_max() as u64,
        order: keyspaces::order(keyspace).into(),
        scan: Some(keyspaces::promise(keyspace)),
        is_ready: keyspace.cells.is_ready(),
        mode: keyspace.entry.mode().to_owned(),
        can: keyspace.entry.engine.can.iter().map(|can| capability(*can).into()).collect(),
    }
}

fn capability(capability: Capability) -> v1::Capability {
    match capability {
        Capability::Values => v1::Capability::Values,
        Capability::Siblings => v1::Capability::Siblings,
        Capability::Replies => v1::Capability::Replies,
        Capability::Listing => v1::Capability::Listing,
        Capability::Explaining => v1::Capability::Explaining,
        Capability::Transactions => v1::Capability::Transactions,
        Capability::Changes => v1::Capability::Changes,
        Capability::Expiry => v1::Capability::Expiry,
        Capability::Tree => v1::Capability::Tree,
        Capability::Receipts => v1::Capability::Receipts,
    }
}

/// How a keyspace is set, and what of that may be altered.
pub fn details(record: &Record) -> v1::KeyspaceDetails {
    let engine = engine::find(engines::all(), &record.engine);
    let setting = |setting: &quorate_kernel::rules::Setting| {
        let (is_alterable, altering) = match setting.alter {
            Alter::Live(what) | Alter::Later(what) | Alter::Synced(what) => (true, what),
            Alter::Never(why) => (false, why),
        };
        // What it says nothing of it has as it was before it could be set.
        let said = Some(record.setting(setting.name)).filter(|value| !value.is_empty());
        v1::Setting {
            name: setting.name.to_owned(),
            value: said.unwrap_or(setting.default).to_owned(),
            default_value: setting.default.to_owned(),
            is_alterable,
            altering: altering.to_owned(),
        }
    };
    let partitions = (0..).zip(&record.partitions).map(|(partition, place)| v1::Partition {
        partition,
        node: place.node.0,
        since: place.since,
        is_settled: place.is_settled,
    });
    v1::KeyspaceDetails {
        name: record.name.clone(),
        engine: record.engine.clone(),
        number: record.lane.0 - LaneId::KEYSPACES.0,
        settings: engine.iter().flat_map(|engine| engine.settings).map(setting).collect(),
        created: record.created,
        changed: record.changed,
        partitions: partitions.collect(),
    }
}

/// How the host is.
pub fn status(me: v1::Coordinator, all: &Keyspaces, shared: &Shared) -> v1::StatusResponse {
    let stage = match shared.stage() {
        Stage::Starting => v1::Stage::Starting,
        Stage::Serving => v1::Stage::Serving,
        Stage::Stopping => v1::Stage::Stopping,
    };
    let peers = shared.peers();
    let peer = |cells: &quorate_host::metrics::PeerCells| v1::Peer {
        node: cells.node.0,
        host: cells.host(),
        address: cells.address(),
        is_up: cells.is_up(),
    };
    v1::StatusResponse {
        cluster: shared.cluster.to_string(),
        coordinator: Some(me),
        host: shared.host,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        stage: stage.into(),
        is_ready: health::is_ready(shared),
        uptime_seconds: shared.began.elapsed().as_secs(),
        keyspaces: keyspaces(all),
        peers: peers.iter().map(|cells| peer(cells)).collect(),
    }
}

/// What this host believes of the ring, as the native interface says it.
pub fn ring(report: &Report) -> v1::RingResponse {
    let hosts = report.ring.hosts().iter().map(|host| v1::RingHost {
        node: host.who.node.0,
        start: host.who.start.0,
        address: host.address.clone(),
        zone: host.zone.clone(),
        tokens: host.tokens.clone(),
        standing: report::standing(host.standing).to_owned(),
        is_suspected: host.is_suspected,
        doors: host.doors.iter().map(door).collect(),
    });
    let groups = |keyspace: &KeyspaceReport| {
        let name = keyspace.entry.keyspace.name.clone();
        keyspace.groups.iter().map(|row| group(&name, row)).collect::<Vec<_>>()
    };
    v1::RingResponse {
        hosts: hosts.collect(),
        groups: report.keyspaces.iter().flat_map(groups).collect(),
    }
}

fn door(door: &quorate_kernel::ring::Door) -> v1::Door {
    v1::Door { name: door.name.clone(), address: door.address.clone() }
}

fn group(keyspace: &str, row: &Row) -> v1::Group {
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap_or(0);
    let others = row.iter().filter(|(name, _)| !FIELDS.contains(name));
    v1::Group {
        keyspace: keyspace.to_owned(),
        group: hex(cell(row, "group")),
        low: hex(cell(row, "low")),
        high: hex(cell(row, "high")),
        version: cell(row, "version").parse().unwrap_or(0),
        members: cell(row, "members").split(',').filter(|it| !it.is_empty()).map(hex).collect(),
        status: cell(row, "status").to_owned(),
        details: others.map(|(name, text)| ((*name).to_owned(), text.clone())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cells_of_a_group_have_fields_or_names() {
        let text = |name, text: &str| (name, text.to_owned());
        let row = vec![
            text("group", "00000000000000ff"),
            text("low", "0000000000000001"),
            text("high", "8000000000000000"),
            text("version", "3"),
            text("members", "000000000000000a,000000000000000b"),
            text("status", "ready"),
            text("role", "member"),
        ];
        let group = group("default", &row);
        assert_eq!((group.group, group.low, group.high, group.version), (255, 1, 1 << 63, 3));
        assert_eq!((group.members, group.status.as_str()), (vec![10, 11], "ready"));
        assert_eq!(group.details.get("role").map(String::as_str), Some("member"));
        assert_eq!(group.details.len(), 1);
    }
}
