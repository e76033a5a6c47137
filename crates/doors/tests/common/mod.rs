//! A session over an ordered map, driven by hand.
#![allow(dead_code, reason = "each test file uses a part of it")]

use bytes::{Bytes, BytesMut};
use quorate_doors::resp::{Session, Shared};
use quorate_doors::{
    Clock, Connected, Identity, NoFacts, Opening, Requests, Serving, Session as _,
};
use quorate_kernel::engine::{Capability, Engine, Listing, Placement, Served};
use quorate_kernel::evaluate::{Cell, Items};
use quorate_kernel::expiry::{Expiry, Lifetime, When};
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::{CatalogRefusal, Keyspace};
use quorate_kernel::operation::{Cursor, Operation, Outcome, Refusal};
use quorate_kernel::rng::mix;
use quorate_kernel::time::{Span, Time, WallTime};
use quorate_kernel::watch::Watch;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Operations a session has started, in order.
#[derive(Default)]
pub struct Started(pub Vec<(u32, LaneId, Operation)>, pub Vec<Following>);

/// What a session follows, and no longer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Following {
    Begun(u32, LaneId),
    Ended(u32),
}

impl Requests for Started {
    fn start(&mut self, number: u32, lane: LaneId, operation: Operation, within: Option<Span>) {
        assert_eq!(within, None, "Redis clients have no word for a deadline");
        self.0.push((number, lane, operation));
    }

    fn watch(&mut self, number: u32, lane: LaneId, _: Watch) {
        self.1.push(Following::Begun(number, lane));
    }

    fn unwatch(&mut self, number: u32) {
        self.1.push(Following::Ended(number));
    }
}

/// Keys in the order of their hash tokens, each with its value and its end.
#[derive(Default)]
pub struct Map(BTreeMap<(LaneId, u64, Bytes), Kept>);

/// What a key has, and when it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept(Option<(Bytes, Option<WallTime>)>);

impl Cell for Kept {
    fn value(&self) -> Option<Bytes> {
        self.0.as_ref().map(|(value, _)| value.clone())
    }

    fn put(&mut self, value: &Bytes, expiry: Expiry) -> Result<(), Refusal> {
        let end = match expiry {
            Expiry::Never => None,
            Expiry::Keep => self.0.as_ref().and_then(|(_, end)| *end),
            Expiry::At(at) => Some(at),
        };
        self.0 = Some((value.clone(), end));
        Ok(())
    }

    fn delete(&mut self) {
        self.0 = None;
    }

    fn lifetime(&self) -> Lifetime {
        match &self.0 {
            None => Lifetime::Absent,
            Some((_, end)) => end.map_or(Lifetime::Endless, Lifetime::Until),
        }
    }

    fn expire(&mut self, at: Option<WallTime>, when: When) -> bool {
        let Some((_, end)) = &mut self.0 else { return false };
        let Some(at) = at else { return end.take().is_some() };
        let is_set = match when {
            When::Always => true,
            When::IfNone => end.is_none(),
            When::IfSome => end.is_some(),
            When::IfLater => end.is_some_and(|end| at > end),
            When::IfSooner => end.is_none_or(|end| at < end),
            When::IfSomeAndSooner => end.is_some_and(|end| at < end),
        };
        *end = if is_set { Some(at) } else { *end };
        is_set
    }
}

fn token(key: &[u8]) -> u64 {
    key.iter().fold(7, |sum, byte| mix(sum ^ u64::from(*byte)))
}

impl Map {
    /// What has ended is gone.
    pub fn expire(&mut self, now: WallTime) {
        let is_over = |kept: &Kept| matches!(kept.0, Some((_, Some(end))) if end <= now);
        self.0.retain(|_, kept| !is_over(kept));
    }

    pub fn apply(&mut self, lane: LaneId, operation: Operation) -> Outcome {
        let at = |key: &Bytes| (lane, token(key), key.clone());
        if let Operation::Scan { from, limit } = &operation {
            return self.page(lane, from, *limit as usize);
        }
        let items = Items::of(operation).expect("it is of no value beside another");
        let done = items.evaluate(1 << 20, |key| self.0.get(&at(key)).cloned().unwrap_or_default());
        match done.told.clone() {
            Err(refusal) => Outcome::Refused(refusal),
            Ok(told) => {
                for (key, kept) in done.written() {
                    match kept.0 {
                        Some(_) => drop(self.0.insert(at(&key), kept)),
                        None => drop(self.0.remove(&at(&key))),
                    }
                }
                items.outcome(told)
            }
        }
    }

    fn page(&self, lane: LaneId, from: &Cursor, limit: usize) -> Outcome {
        let (mut keys, mut next) = (Vec::new(), None);
        for (found, token, key) in self.0.keys() {
            if *found == lane && (*token, key) >= (from.token, &from.key) {
                if keys.len() == limit {
                    next = Some(Cursor::at(*token));
                    break;
                }
                keys.push(key.clone());
            }
        }
        Outcome::Page { keys, next }
    }
}

/// A session, its buffer, its operations under way, and the data.
pub struct World {
    pub session: Session,
    pub input: BytesMut,
    pub started: Started,
    pub map: Map,
    pub clock: Clock,
}

/// An engine of plain values, as far as a door is concerned.
pub const REGISTERS: Engine = Engine {
    name: "linearizable",
    placement: Placement::Groups,
    numbers: &[],
    settings: &[],
    can: &[Capability::Values, Capability::Listing],
    listing: Listing { is_complete: true, text: "" },
    quorum: |_| 1,
    token: |_, _| 0,
    mode: |_| "atomic",
    // A door opens nothing.
    open: |_| Err(CatalogRefusal::NotLearnt),
};

/// The same with values side by side.
pub const SIBLINGS: Engine = Engine {
    name: "causal",
    can: &[Capability::Values, Capability::Siblings, Capability::Listing],
    ..REGISTERS
};

/// The same with transactions; no other engine knows of it.
pub const TRANSACTIONS: Engine = Engine {
    name: "transacting",
    can: &[Capability::Values, Capability::Listing, Capability::Transactions],
    ..REGISTERS
};

/// The same with changes in place; no other engine knows of it.
pub const CHANGES: Engine = Engine {
    name: "changing",
    can: &[Capability::Values, Capability::Listing, Capability::Transactions, Capability::Changes],
    ..REGISTERS
};

/// The same with keys that end; no other engine knows of it.
pub const EXPIRY: Engine = Engine {
    name: "expiring",
    can: &[
        Capability::Values,
        Capability::Listing,
        Capability::Transactions,
        Capability::Changes,
        Capability::Expiry,
    ],
    ..REGISTERS
};

const ENGINES: &[&Engine] = &[&REGISTERS, &SIBLINGS];

/// A keyspace of an engine.
pub fn keyspace(name: &str, lane: u32, engine: &'static Engine) -> Option<Served> {
    let settings = BTreeMap::from([("value".to_string(), (1 << 20).to_string())]);
    let keyspace = Keyspace::new(name, LaneId(lane), engine.name, settings, 1);
    Some(Served::new(Arc::new(keyspace), engine, ENGINES))
}

/// The keyspaces of every world.
pub fn keyspaces() -> Vec<Option<Served>> {
    let keyspaces = [("default", 1), ("other", 2)];
    keyspaces.map(|(name, lane)| keyspace(name, lane, &REGISTERS)).to_vec()
}

fn shared() -> Arc<Shared> {
    let identity = Identity {
        version: "0.1.0".into(),
        run_id: "ab".repeat(20),
        process_id: 42,
        started: WallTime(1_700_000_000_000),
        ..Identity::default()
    };
    Shared::new(Opening { identity, facts: Box::new(NoFacts), port: 6379, clients_max: 10_000 })
}

impl Default for World {
    fn default() -> World {
        let (peer, local) = ("127.0.0.1:5".into(), "127.0.0.1:6379".into());
        let connected = Connected { id: 7, seed: 1, peer, local };
        let serving = Arc::new(Serving::new(keyspaces(), true));
        World {
            session: Session::new(connected, shared(), serving),
            input: BytesMut::new(),
            started: Started::default(),
            map: Map::default(),
            clock: Clock { now: Time(5_000_000_000), wall: WallTime(1_700_000_100_250) },
        }
    }
}

impl World {
    /// Keyspaces came or went.
    pub fn set_keyspaces(&mut self, keyspaces: Vec<Option<Served>>) {
        self.session.set_serving(&Arc::new(Serving::new(keyspaces, true)));
    }

    /// Bytes arrive.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.feed();
    }

    pub fn feed(&mut self) {
        self.session.feed(&mut self.input, self.clock, &mut self.started);
        assert!(!self.session.wants_feed(&self.input), "a second call would do nothing");
    }

    /// Ends one of the operations under way, as the map has it.
    pub fn complete(&mut self, index: usize) {
        let (number, lane, operation) = self.started.0.remove(index);
        self.map.expire(self.clock.wall);
        let outcome = self.map.apply(lane, operation);
        self.complete_with(number, outcome);
    }

    /// Ends one operation with this outcome.
    pub fn complete_with(&mut self, number: u32, outcome: Outcome) {
        self.session.complete(number, outcome, self.clock, &mut self.started);
        if self.session.wants_feed(&self.input) {
            self.feed();
        }
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

    /// Ends everything in order and takes all replies.
    pub fn settle(&mut self) -> Vec<u8> {
        let mut replies = self.take().to_vec();
        while !self.started.0.is_empty() {
            self.complete(0);
            replies.extend_from_slice(&self.take());
        }
        replies
    }

    /// Sends an inline command and gives its reply.
    pub fn ask(&mut self, line: &str) -> String {
        self.receive(line.as_bytes());
        self.receive(b"\r\n");
        String::from_utf8_lossy(&self.settle()).into_owned()
    }
}
