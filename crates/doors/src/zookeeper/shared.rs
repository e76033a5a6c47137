//! What all connections of the door share, and which keyspace they work on.

use super::counters::Counters;
use super::session::Session;
use crate::door::{self, Connected, Door, Opening, Protocol, Shortage};
use crate::host::{Facts, Identity, Serving};
use alloc::boxed::Box;
use alloc::sync::Arc;
use bytes::Bytes;
use quorate_kernel::engine::{Capability, Served};

/// The name of the keyspace that is taken if several have trees.
const PREFERRED: &[u8] = b"coordination";

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
}

impl Shared {
    fn new(opening: Opening) -> Arc<Shared> {
        let Opening { identity, facts, port, clients_max } = opening;
        let counters = Counters::default();
        Arc::new(Shared { identity, facts, port, clients_max, counters })
    }
}

/// The door, open.
struct ZooKeeper(Arc<Shared>);

impl Protocol for ZooKeeper {
    fn open(&mut self, connected: Connected, serving: &Arc<Serving>) -> Box<dyn door::Session> {
        Box::new(Session::new(connected, Arc::clone(&self.0), Arc::clone(serving)))
    }

    /// Nothing: there is no answer but to a request, and a client tries another host when its
    /// connection ends.
    fn turn_away(&self, _: &Shortage) -> Bytes {
        Bytes::new()
    }
}

/// The keyspace that clients work on: the one named `coordination` if it has a tree, else the first
/// that has one. Clients have no word to choose another.
pub(super) fn tree(serving: &Serving) -> Option<&Served> {
    let is_tree = |served: &&Served| served.can(Capability::Tree);
    let preferred = serving.named(PREFERRED).map(|(_, served)| served).filter(is_tree);
    preferred.or_else(|| serving.open().map(|(_, served)| served).find(is_tree))
}
