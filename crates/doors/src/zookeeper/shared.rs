//! What all connections of the door share, and which keyspace they work on.

use super::connections::Connections;
use super::counters::Counters;
use super::session::Session;
use crate::door::{self, Connected, Door, Opening, Protocol, Shortage};
use crate::host::{Facts, Identity, Serving};
use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use bytes::Bytes;
use quorate_kernel::engine::{Capability, Served};

/// The door for ZooKeeper's clients.
pub const DOOR: Door = Door {
    name: "zookeeper",
    clients: "ZooKeeper clients",
    port: 7415,
    open: |opening| Box::new(ZooKeeper(Shared::new(opening))),
};

/// What all connections share.
pub(super) struct Shared {
    pub identity: Identity,
    pub facts: Box<dyn Facts + Send + Sync>,
    pub port: u16,
    pub clients_max: u64,
    pub counters: Counters,
    pub connections: Connections,
}

impl Shared {
    fn new(opening: Opening) -> Rc<Shared> {
        let Opening { identity, facts, port, clients_max } = opening;
        let (counters, connections) = (Counters::default(), Connections::default());
        Rc::new(Shared { identity, facts, port, clients_max, counters, connections })
    }
}

/// The door, open.
struct ZooKeeper(Rc<Shared>);

impl Protocol for ZooKeeper {
    fn open(&mut self, connected: Connected, serving: &Arc<Serving>) -> Box<dyn door::Session> {
        Box::new(Session::new(connected, Rc::clone(&self.0), Arc::clone(serving)))
    }

    /// Nothing: there is no answer but to a request, and a client tries another host when its
    /// connection ends.
    fn turn_away(&self, _: &Shortage) -> Bytes {
        Bytes::new()
    }
}

/// The keyspace that clients work on: the first one that has a tree. Clients have no word to choose
/// another.
pub(super) fn tree(serving: &Serving) -> Option<&Served> {
    let mut open = serving.open().map(|(_, served)| served);
    open.find(|served| served.can(Capability::Tree))
}
