//! What a node tells its lanes: news of the node itself, and of its other lanes.
//!
//! A lane says which topics it hears ([`crate::process::Process::HEARS`]); the node knows nothing
//! of what they mean to it.

use crate::ids::{Incarnation, LaneId, NodeId};
use crate::keyspace::{Keyspace, Keyspaces, Settlement};
use crate::observe::Observation;
use crate::ring::{Ring, Weighed};
use crate::roll::Roll;
use crate::time::Time;
use alloc::sync::Arc;

/// What news can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// [`News::Ring`].
    Ring,
    /// [`News::Roll`].
    Roll,
    /// [`News::Heard`].
    Heard,
    /// [`News::Keyspace`].
    Keyspace,
    /// [`News::Keyspaces`].
    Keyspaces,
    /// [`News::Settled`].
    Settled,
    /// [`News::Load`].
    Load,
    /// [`News::TurnEnd`].
    TurnEnd,
    /// [`News::Unlinked`].
    Unlinked,
    /// [`News::Observe`].
    Observe,
    /// [`News::Silence`].
    Silence,
    /// [`News::Unread`].
    Unread,
}

/// One piece of news.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// What this node believes of the ring has changed. A hint: it may be wrong at any time.
    Ring(&'a Arc<Ring>),
    /// The roll that this node knows has changed. Never told where none is kept.
    Roll(&'a Arc<Roll>),
    /// Which hosts were heard, on any lane, since this was last told, and when. It is told before
    /// each timer of whoever hears it, which one lane may. A host that was heard was there; whether
    /// it hears is not known.
    Heard(&'a [(Incarnation, Time)]),
    /// The catalog has changed the keyspace of this lane: a setting, or who holds a partition.
    Keyspace(&'a Arc<Keyspace>),
    /// Which keyspaces there are, durably: after their lanes were opened, changed and dropped.
    Keyspaces(&'a Arc<Keyspaces>),
    /// A lane of this node has done what the catalog waits for at a partition that the node was
    /// given by the decree of this number.
    Settled {
        /// The one that serves the keyspace on this node.
        lane: LaneId,
        /// Its index in the keyspace.
        partition: u32,
        /// The decree.
        since: u64,
        /// What it has done.
        settlement: Settlement,
    },
    /// A lane of this node says how much it has to do; nothing once it is closed.
    Load {
        /// Whose load it is.
        lane: LaneId,
        /// How much.
        load: &'a Arc<Weighed>,
    },
    /// The turn ends, and this lane was called in it. What it sends to itself now arrives in the
    /// same turn, and the end is told again. For who has one message carry all that a turn brought:
    /// a batch that grows with the load.
    TurnEnd,
    /// A connection to this node has ended: its process may be gone, or it may be back already. A
    /// hint: a connection also ends when nothing has happened to the node, and does not end when
    /// its machine is silent.
    Unlinked(NodeId),
    /// A lane of this node says which peers it observes, in place of those it said before; none
    /// once it is closed.
    Observe {
        /// The one that observes.
        lane: LaneId,
        /// The peers.
        observation: &'a Observation,
    },
    /// A peer that this lane observes is silent, or its silence is over. A hint: it may be wrong at
    /// any time. A peer is taken to be there until it is told otherwise; once a lane has asked, it
    /// is told who is silent already. One that it observes no more may be told once after it.
    Silence {
        /// One of those that this lane has asked to observe.
        peer: NodeId,
        /// Whether it is back.
        is_over: bool,
    },
    /// What clients have said since then may not have been handed on by this host: its disk does
    /// not keep up, or it was halted and has many to read. Told before the timers of a turn, in
    /// each turn in which it lags by [`crate::limits::UNREAD_FOR`] or more. A client from which
    /// nothing has come since then need not be silent.
    Unread(Time),
}

impl News<'_> {
    /// What it is about.
    #[must_use]
    pub fn topic(&self) -> Topic {
        match self {
            News::Ring(_) => Topic::Ring,
            News::Roll(_) => Topic::Roll,
            News::Heard(_) => Topic::Heard,
            News::Keyspace(_) => Topic::Keyspace,
            News::Keyspaces(_) => Topic::Keyspaces,
            News::Settled { .. } => Topic::Settled,
            News::Load { .. } => Topic::Load,
            News::TurnEnd => Topic::TurnEnd,
            News::Unlinked(_) => Topic::Unlinked,
            News::Observe { .. } => Topic::Observe,
            News::Silence { .. } => Topic::Silence,
            News::Unread(_) => Topic::Unread,
        }
    }
}
