//! Samples of what a host tells, for the tests of this crate and of those above it.

use crate::Served;
use crate::engines;
use crate::metrics::{DoorCells, KeyspaceCells, PeerCells, Shared};
use crate::ring::{KeyspaceReport, Report, Row};
use quorate_kernel::engine;
use quorate_kernel::ids::{ClusterId, Incarnation, LaneId, NodeId, Start};
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::roll::{Kind, Roll};
use std::sync::Arc;

/// A keyspace with the defaults of its engine but for these settings.
///
/// # Panics
/// This build has no such engine, or it does not take the settings.
#[must_use]
pub fn served(name: &str, engine: &str, set: &[(&str, &str)], lane: LaneId) -> Served {
    let engines = engines::all();
    let engine = engine::find(engines, engine).expect("an engine of this build");
    let set = set.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let settings = engine.complete(&set.collect()).expect("good settings");
    let keyspace = Arc::new(Keyspace::new(name, lane, engine.name, settings, 1));
    let entry = engine::Served::new(keyspace, engine, engines);
    let cells = Arc::new(KeyspaceCells::new(&entry));
    Served { entry, cells }
}

/// Host 1 of three, with one keyspace of all three.
#[must_use]
pub fn shared() -> Shared {
    let keyspace = served("default", engines::usual(), &[], LaneId::KEYSPACES).cells;
    let peer =
        |host: u32| PeerCells::new(host, NodeId(u64::from(host)), &format!("127.0.0.1:74{host}1"));
    let me = (1, NodeId(1), Start(4));
    let shared = Shared::new(ClusterId(0xc1), me, vec![peer(2), peer(3)]);
    shared.set_keyspaces(vec![keyspace]);
    shared
}

/// Opens its doors, the one of clients on port 2.
pub fn open_doors(shared: &Shared) {
    let address = |text: &str| text.parse().expect("an address");
    let resp = DoorCells::new("resp", address("127.0.0.1:2"));
    shared.doors_open(address("127.0.0.1:1"), vec![Arc::new(resp)]);
}

/// Three hosts with a token each, of which the second is suspected and the third leaves, and
/// their three groups.
#[must_use]
pub fn report() -> Report {
    let quarter = 1_u64 << 62;
    let host = |number: u64| RingHost {
        who: Incarnation { node: NodeId(number), start: Start(1) },
        address: format!("127.0.0.1:74{number}1"),
        zone: String::new(),
        tokens: vec![number * quarter],
        standing: if number == 3 { Standing::Leaving } else { Standing::Up },
        is_suspected: number == 2,
        doors: Vec::new(),
    };
    let group = |number: u64, status: &str| -> Row {
        let low = if number == 1 { 3 } else { number - 1 } * quarter;
        vec![
            ("group", format!("{number:016x}")),
            ("low", format!("{low:016x}")),
            ("high", format!("{:016x}", number * quarter)),
            ("version", String::from("4")),
            ("members", [1, 2, 3].map(|node| NodeId(node).to_string()).join(",")),
            ("status", status.to_owned()),
            ("role", String::from("member")),
        ]
    };
    let nodes = vec![NodeId(1), NodeId(2)];
    let roll = Roll { kind: Kind::Rapid, number: 4, nodes, goes_on: true };
    Report {
        me: NodeId(1),
        ring: Arc::new(Ring::new(9, (1..=3).map(host).collect())),
        roll: Some(Arc::new(roll)),
        numbers: vec![(NodeId(1), 1), (NodeId(2), 2)],
        keyspaces: vec![KeyspaceReport {
            entry: served("default", engines::usual(), &[], LaneId::KEYSPACES).entry,
            groups: vec![group(1, "ready"), group(2, "busy"), group(3, "ready")],
        }],
    }
}
