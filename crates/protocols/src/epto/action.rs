//! What is asked of the caller, and told.

use super::event::Event;
use super::key::{EventKey, LogicalTime, Sequence};
use super::message::Message;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::{EPTO_HORIZON_SOURCES_MAX, EPTO_TIME_MAX};
use serde::{Deserialize, Serialize};

/// One thing to be done, in the order in which they come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends a message. It promises nothing: no disk is waited for.
    Send {
        /// Who shall receive it; never this node.
        to: Vec<NodeId>,
        /// The message, the same for all.
        message: Message,
    },
    /// The next event in the order.
    Deliver {
        /// Its name, and what else is known of it.
        event: Event,
        /// What its source broadcast.
        payload: Bytes,
    },
    /// An event had its turn and nobody sent its payload. It is not delivered here; others may
    /// have delivered it.
    Hole {
        /// Which.
        event: Event,
    },
    /// An event came after later ones were delivered. It is not delivered here.
    Late {
        /// Which.
        event: Event,
    },
    /// Events of a source are missing before one that is delivered. They may come as `Late`; or
    /// they reached nobody, if the source stopped or lost its place.
    Gap {
        /// Whose.
        source: Incarnation,
        /// The first that is missing.
        first: Sequence,
        /// The last that is missing.
        last: Sequence,
    },
    /// This node has missed what it cannot know: it delivers nothing more until it has taken over a
    /// state ([`super::Epto::resume_at`]). What it has broadcast and not delivered may be lost.
    LostPlace,
    /// A peer is too far ahead to be believed; its message changed nothing. The connection on which
    /// it came is to be closed.
    Refuse {
        /// Who.
        peer: NodeId,
    },
}

/// Why something is not broadcast. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BroadcastError {
    /// This node has no place in the order, or its clock may be behind what others deliver.
    Early,
    /// Too many events, or bytes of payloads, wait to be delivered.
    Overload,
    /// The payload is longer than any may be.
    TooLong,
}

/// Why a state is not taken over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResumeError {
    /// Events that were on their way before this node was reachable may be in neither: ask again
    /// when [`super::Epto::may_resume`].
    Early,
    /// Events behind it were dropped here for want of room: a newer state is needed.
    Old,
    /// It is so far ahead of this node's clock that no peer would be believed who says so.
    Far,
}

/// How far a state has come: what a node tells another one with it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Horizon {
    /// The last event that the state has; none if there was none ever.
    pub last: Option<EventKey>,
    /// The clock of the node that tells it.
    pub clock: LogicalTime,
    /// How far it has come with the sources heard last.
    pub sources: Vec<(Incarnation, Sequence)>,
    /// Whether these are all sources that there were.
    pub is_complete: bool,
}

impl Horizon {
    /// Whether a correct peer may have told it.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.last.is_none_or(EventKey::is_sound)
            && self.clock.0 <= EPTO_TIME_MAX
            && self.sources.len() <= EPTO_HORIZON_SOURCES_MAX
            && self.sources.iter().all(|(_, it)| (1..=EPTO_TIME_MAX).contains(&it.0))
    }
}

/// What has happened so far, for an operator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Events that this node has broadcast.
    pub broadcast: u64,
    /// Events delivered.
    pub delivered: u64,
    /// Events that came after later ones were delivered.
    pub late: u64,
    /// Events given up because nobody sent the payload.
    pub holes: u64,
    /// Events that are known to be missing by their source's count.
    pub missing: u64,
    /// Balls sent, one for each target.
    pub balls: u64,
    /// Copies of events in the balls that came.
    pub copies: u64,
    /// Bytes of payloads that came.
    pub payload_bytes: u64,
    /// Payloads that were asked for, those asked for again included.
    pub pulls: u64,
    /// Balls of those that were too far ahead.
    pub clocks_refused: u64,
    /// Copies that found no room.
    pub crowded: u64,
    /// Copies and payloads that were not what they should be.
    pub damaged: u64,
    /// How often this node has lost its place.
    pub places_lost: u64,
}
