//! A connection, its buffer, and what it has asked of the engine.

use crate::wire;
use bytes::{Bytes, BytesMut};
use quorate_doors::zookeeper::DOOR;
use quorate_doors::{
    Clock, Connected, Facts, Identity, Opening, Protocol, Requests, Serving, Session, Stored,
};
use quorate_kernel::engine::{Capability, Engine, Listing, Placement, Served};
use quorate_kernel::ids::{ClusterId, LaneId, NodeId};
use quorate_kernel::keyspace::{CatalogRefusal, Keyspace};
use quorate_kernel::limits::CLIENT_OPERATIONS_MAX;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::time::{Span, Time, WallTime};
use quorate_kernel::tree::{
    Act, Ask, Changed, Connect, Failure, SessionEvent, SessionId, Stat, Told, TreeReply, What, Zxid,
};
use quorate_kernel::watch::{Event, Watch};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The session that is opened.
pub const SESSION: SessionId = SessionId(0x0100_0000_0000_002a);
/// Its password.
pub const PASSWORD: [u8; 16] = *b"0123456789abcdef";

/// What a connection has asked of the engine, in order.
#[derive(Default)]
pub struct Asked {
    pub operations: Vec<(u32, LaneId, Ask)>,
    pub watches: Vec<(u32, LaneId, Connect)>,
    pub unwatched: Vec<u32>,
}

impl Requests for Asked {
    fn start(&mut self, number: u32, lane: LaneId, operation: Operation, within: Option<Span>) {
        assert_eq!(within, None, "ZooKeeper's clients have no word for a deadline");
        let Operation::Tree(ask) = operation else { panic!("{operation:?}") };
        self.operations.push((number, lane, *ask));
        assert!(self.operations.len() + self.watches.len() <= CLIENT_OPERATIONS_MAX);
    }

    fn watch(&mut self, number: u32, lane: LaneId, watch: Watch) {
        let Watch::Session(connect) = watch else { panic!("{watch:?}") };
        self.watches.push((number, lane, connect));
    }

    fn unwatch(&mut self, number: u32) {
        self.unwatched.push(number);
    }
}

/// A host that follows, and knows of 12 nodes and another client.
pub struct Known;

impl Facts for Known {
    fn clients(&self) -> u64 {
        2
    }

    fn shown(&self, lane: LaneId, name: &str) -> Option<u64> {
        let shown = [
            ("groups", 1),
            ("groups_led", 0),
            ("nodes", 12),
            ("watchers", 2),
            ("watched_nodes", 4),
            ("watches", 5),
            ("quotas_exceeded", 1),
        ];
        let found = shown.into_iter().find(|(of, _)| *of == name && lane == LaneId(2));
        found.map(|(_, number)| number)
    }

    fn stored(&self) -> Option<Stored> {
        Some(Stored { table_bytes: 70_000, log_bytes: 1 << 20 })
    }

    fn other_clients(&self, id: u64, each: &mut dyn FnMut(&str)) {
        assert_eq!(id, 7);
        each(" /10.0.0.2:9[0](queued=0,recved=3,sent=3)");
    }
}

/// An engine of trees, as far as a door is concerned.
pub const TREES: Engine = Engine {
    name: "trees",
    placement: Placement::Groups,
    numbers: &[],
    settings: &[],
    can: &[Capability::Tree],
    listing: Listing { is_complete: true, text: "" },
    quorum: |_| 1,
    token: |_, _| 0,
    mode: |_| "atomic",
    // A door opens nothing.
    open: |_| Err(CatalogRefusal::NotLearnt),
};

/// One of plain values.
pub const REGISTERS: Engine = Engine { name: "registers", can: &[Capability::Values], ..TREES };

/// A keyspace of an engine.
pub fn keyspace(name: &str, lane: u32, engine: &'static Engine) -> Option<Served> {
    let settings = BTreeMap::from([("value".to_string(), (1 << 20).to_string())]);
    let keyspace = Keyspace::new(name, LaneId(lane), engine.name, settings, 1);
    Some(Served::new(Arc::new(keyspace), engine, &[&TREES, &REGISTERS]))
}

/// The door, open on a host.
pub fn door(facts: Box<dyn Facts + Send + Sync>) -> Box<dyn Protocol> {
    let identity = Identity {
        version: "0.1.0".into(),
        cluster: ClusterId(1),
        node: NodeId(2),
        ..Identity::default()
    };
    (DOOR.open)(Opening { identity, facts, port: 2181, clients_max: 10_000 })
}

/// A connection.
pub struct World {
    pub door: Box<dyn Protocol>,
    pub session: Box<dyn Session>,
    pub input: BytesMut,
    pub asked: Asked,
    pub clock: Clock,
}

impl Default for World {
    fn default() -> World {
        World::serving(vec![keyspace("default", 1, &REGISTERS), keyspace("trees", 2, &TREES)])
    }
}

impl World {
    /// On a host with these keyspaces.
    pub fn serving(keyspaces: Vec<Option<Served>>) -> World {
        World::at(door(Box::new(Known)), keyspaces)
    }

    /// At a door of a host with these keyspaces.
    pub fn at(mut door: Box<dyn Protocol>, keyspaces: Vec<Option<Served>>) -> World {
        let (peer, local) = ("10.0.0.1:5".into(), "10.0.0.9:2181".into());
        let connected = Connected { id: 7, seed: 1, peer, local };
        let session = door.open(connected, &Arc::new(Serving::new(keyspaces, true)));
        let clock = Clock { now: Time(5_000_000_000), wall: WallTime(1_700_000_100_250) };
        let (input, asked) = (BytesMut::new(), Asked::default());
        World { door, session, input, asked, clock }
    }

    /// A connection with a session.
    pub fn open() -> World {
        let mut world = World::default();
        world.receive(&wire::frame(CONNECT));
        world.tell(opened());
        assert_eq!(wire::split(&world.take()).0.len(), 1);
        world
    }

    /// Bytes arrive.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.feed();
    }

    fn feed(&mut self) {
        self.session.feed(&mut self.input, self.clock, &mut self.asked);
        assert!(!self.session.wants_feed(&self.input), "a second call would do nothing");
    }

    /// The one act that was asked for since the last was answered.
    pub fn act(&self) -> &Act {
        let [(_, lane, ask)] = &self.asked.operations[..] else { panic!("one is in hand") };
        assert_eq!((*lane, ask.session), (LaneId(2), Some(SESSION)));
        &ask.act
    }

    /// Ends one of the operations in hand.
    pub fn complete(&mut self, index: usize, outcome: Outcome) {
        let (number, ..) = self.asked.operations.remove(index);
        self.complete_number(number, outcome);
    }

    /// Ends the operation of this number.
    pub fn complete_number(&mut self, number: u32, outcome: Outcome) {
        self.session.complete(number, outcome, self.clock, &mut self.asked);
        if self.session.wants_feed(&self.input) {
            self.feed();
        }
    }

    /// The watch of the session has an answer.
    pub fn tell(&mut self, outcome: Outcome) {
        let (number, ..) = *self.asked.watches.last().expect("a session was asked for");
        self.complete_number(number, outcome);
    }

    /// Takes what waits for the client.
    pub fn take(&mut self) -> Bytes {
        let bytes = self.session.output().to_bytes();
        self.session.output().advance(bytes.len());
        if self.session.wants_feed(&self.input) {
            self.feed();
        }
        bytes
    }

    /// Sends a request, which asks this of the engine, and is answered by it and so to the client.
    pub fn one(&mut self, request: &[u8], act: &Act, told: Result<Told, Failure>, answer: &[u8]) {
        self.receive(request);
        assert_eq!(self.act(), act);
        self.complete(0, replied(9, told));
        assert_eq!(hex(&self.take()), hex(answer), "{act:?}");
    }

    /// Sends a request, which is answered without the engine.
    pub fn at_once(&mut self, request: &[u8], answer: &[u8]) {
        self.receive(request);
        assert!(self.asked.operations.is_empty(), "{:?}", self.asked.operations);
        assert_eq!(hex(&self.take()), hex(answer));
    }

    /// Whether the connection ends and nothing more is written.
    pub fn is_over(&mut self) -> bool {
        self.session.is_closing() && self.take().is_empty() && !self.session.wants_input()
    }
}

/// Bytes as text, for errors that can be read.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a new client asks first.
pub const CONNECT: &[wire::Field<'_>] = &[
    ("protocol version", "00000000"),
    ("last zxid seen", "0000000000000000"),
    ("time-out", "00002710"),
    ("session", "0000000000000000"),
    ("password", "00000010 00000000000000000000000000000000"),
    ("read only", "00"),
];

/// The session is open.
pub fn opened() -> Outcome {
    let (session, password, timeout_ms) = (SESSION, PASSWORD, 10_000);
    let opened = SessionEvent::Open { session, password, timeout_ms, opening: 1 };
    Outcome::More(vec![Event::Session(opened)])
}

/// A node was changed.
pub fn changed(path: &str, what: What) -> Outcome {
    let changed = Changed { zxid: Zxid(7), path: path.to_string(), what };
    Outcome::More(vec![Event::Session(SessionEvent::Changed(changed))])
}

/// An answer of the engine.
pub fn replied(zxid: u64, told: Result<Told, Failure>) -> Outcome {
    Outcome::Tree(Box::new(TreeReply { zxid: Zxid(zxid), told }))
}

/// The engine refuses.
pub fn refused(why: Refusal) -> Outcome {
    Outcome::Refused(why)
}

/// A stat whose fields all differ.
pub fn stat() -> Stat {
    Stat {
        czxid: Zxid(1),
        mzxid: Zxid(2),
        ctime: 3,
        mtime: 4,
        version: 5,
        cversion: 6,
        aversion: -1,
        ephemeral_owner: SESSION,
        data_length: 8,
        children: 9,
        pzxid: Zxid(10),
    }
}

/// The same on the wire.
pub const STAT: &[wire::Field<'_>] = &[
    ("czxid", "0000000000000001"),
    ("mzxid", "0000000000000002"),
    ("ctime", "0000000000000003"),
    ("mtime", "0000000000000004"),
    ("version", "00000005"),
    ("cversion", "00000006"),
    ("aversion", "ffffffff"),
    ("ephemeral owner", "010000000000002a"),
    ("data length", "00000008"),
    ("children", "00000009"),
    ("pzxid", "000000000000000a"),
];
