//! Names of nodes, lanes, log positions and pending requests.

use crate::mutant;
use core::fmt;
use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident($raw:ty);)*) => { $(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        pub struct $name(pub $raw);
    )* };
}
ids! {
    /// A cluster for its whole life: 128 random bits drawn by `quorate init`.
    ClusterId(u128);
    /// A node for its whole life: 64 random bits. Never reused: a wiped directory gets a new id.
    NodeId(u64);
    /// How many times a node's directory was opened to serve; raised and synced before the first
    /// frame of each start leaves.
    Start(u32);
    /// One protocol instance on a node: the overlay, or a keyspace's engine.
    LaneId(u32);
    /// A replication group; views of one group are ordered by version.
    GroupId(u64);
    /// The number of a batch in a node's log. Everything at or below a synced Lsn survives a crash.
    Lsn(u64);
    /// A log of a lane: entries that are read by their place and given up from the first on.
    LogId(u64);
    /// The place of an entry in its log.
    LogIndex(u64);
    /// Names one pending client request on the node that accepted it.
    Ticket(u64);
}

/// A node during one of its starts. Ballots, timestamps and request ids carry it, so that nothing
/// volatile can collide across a restart.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Incarnation {
    /// Which node.
    pub node: NodeId,
    /// Which of its starts.
    pub start: Start,
}

impl LaneId {
    /// The lane of every node that keeps the ring.
    pub const OVERLAY: LaneId = LaneId(0);
    /// The lane of every node that keeps the catalog of keyspaces.
    pub const CATALOG: LaneId = LaneId(1);
    /// Tells clients what happens to keyspaces and hosts.
    pub const EVENTS: LaneId = LaneId(2);
    /// The lane of every node that keeps the roll, where it is kept.
    pub const ROLL: LaneId = LaneId(3);
    /// The first lane of a keyspace; those below are kept for what every node has.
    pub const KEYSPACES: LaneId = LaneId(16);
    /// No lane: frames of it are between the two ends of a connection.
    pub const LINK: LaneId = LaneId(u32::MAX);
}

impl Start {
    /// The start that follows this one. The server and the simulator both count with it.
    #[must_use]
    pub fn next(self) -> Start {
        if mutant!("start_reused") && self.0 > 0 {
            return self;
        }
        Start(self.0.checked_add(1).expect("a directory is opened fewer than 2^32 times"))
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.node, self.start.0)
    }
}
