//! The overlay: the lane of every node that knows who is there, and who is suspected.
//!
//! It composes [`crate::gossip`], [`crate::detector`] and [`crate::ring`] as CATS does (C. Arad,
//! T. M. Shafaat, S. Haridi, SICS T2012:04, Fig. 2), and tells the other lanes of its node what it
//! believes: a [`Ring`](quorate_kernel::ring::Ring) of all hosts, their tokens, their standing and
//! who is suspected.
//!
//! # Promise
//! Everybody hears of a join, a departure, a suspicion and an order, probably and soon; what two
//! nodes believe becomes equal while they can talk. A host that has left never comes back. Nothing
//! else: beliefs may be wrong at any time, and no quorum may rest on them (CATS §5).
//!
//! # Roles
//! Every host plays all of them: **member** (says who it is), **gossiper** (passes on what it
//! hears), **observer** (pings its neighbours on the ring), and, when an operator asks it, the one
//! who gives an order about another host.
//!
//! ```text
//! each 1 s      Shuffle ──▶ oldest neighbour           ◀── ShuffleReply
//! each 0.5 s    Ping ──▶ ring neighbours, at most 10   ◀── Pong            silence: a suspicion
//! each 1 s      Stabilize ──▶ successors               ◀── Neighbours
//! while hot     News ──▶ 3 random peers, each 0.2 s    for log2 n + 2 rounds
//! each 5 s      Digest ──▶ one random host             equal: nothing; else Buckets, Versions,
//!                                                      Missing, Want
//! balance on    Weights ──▶ 3 random peers, each 0.5 s while new
//! each 10 s     Ping ──▶ one random suspect            it answers: compare all, Lookup
//! as lanes ask  Observe ──▶ whom they observe          ◀── Observed
//! a shutdown    Close ──▶ every host                   ◀── Closing, until all end
//! ```
//! So what a node sends does not grow with the cluster; only news does, each once.
//!
//! # Invariants
//! - What a host says of itself is ordered by (start, version), and it alone raises it.
//! - Standing `Left` is above every other for its node id; a host that knows it has left says
//!   nothing of itself again.
//! - A node never suspects itself: it refutes.
//! - A suspicion of others is believed only after its suspect could refute
//!   ([`crate::gossip::doubts`]).
//! - An order is durable where it was given before anybody hears of it.
//! - Every pointer on the ring is of a host that is known and was not suspected when it was taken.
//!
//! # Departures
//! See [`crate::gossip::cyclon`], [`crate::ring`] and [`crate::ring::unification`].
//!
//! # Known limits
//! - At most [`HOSTS_MAX`](quorate_kernel::limits::HOSTS_MAX) hosts are remembered, those that have
//!   left included; marks of those are never dropped.
//! - A `Pong` waits for what the lane has written, so a node whose storage is stuck leaves pings
//!   without an answer once the lane has something to write, and is suspected, at the latest
//!   [`UNANSWERED_MAX`](crate::detector::UNANSWERED_MAX) after what else it sends would have been;
//!   a stuck storage that this lane does not use goes unnoticed.
//! - With `balance` on every host keeps a word of every other, of up to 64 parts of the ring, and
//!   each is told anew once in a while: meant for some hundred hosts.
//! - A host that lanes observe answers whatever its disk does: silence says nothing of that. What a
//!   node asks grows with the peers that its lanes observe, and is seen by no other lane.
//! - A change of load is news: hosts whose load changes all the time keep rumours hot.

pub mod engine;
pub mod keys;
pub(crate) mod learn;
pub mod message;
pub(crate) mod observe;
mod operators;
pub(crate) mod period;
pub(crate) mod recover;
pub(crate) mod router;
pub(crate) mod spread;
pub(crate) mod state;
#[cfg(test)]
mod tests;
pub mod timer;
pub mod tokens;
pub(crate) mod unify;

use crate::gossip::record::Load;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::LaneId;
use quorate_kernel::lane::{Hosted, Lane};
use quorate_kernel::process;
use quorate_kernel::ring::{Door, RingHost, Weighed};

/// What the overlay of a node is set to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where this host's cluster door is.
    pub address: String,
    /// This host's failure zone; empty if none is configured.
    pub zone: String,
    /// Where this host's clients find it.
    pub doors: Vec<Door>,
    /// This host's first tokens on the ring. Later ones are stored.
    pub tokens: Vec<u64>,
    /// The hosts that were known when the directory was made, or seeds to join by. This host may be
    /// among them.
    pub hosts: Vec<RingHost>,
    /// How the load of the ring is evened out, if the host takes part in that.
    pub balance: Option<tokens::weights::Balance>,
}

/// The overlay of one node.
#[derive(Debug)]
pub struct Overlay {
    settings: Settings,
    state: state::State,
    load: Load,
    /// What each lane of the node has to do.
    lanes: BTreeMap<LaneId, Arc<Weighed>>,
}

type Context<'a> = process::Context<'a, Overlay>;

/// The overlay's lane.
#[must_use]
pub fn lane(settings: Settings) -> Box<dyn Lane> {
    Box::new(Hosted::new(Overlay::new(settings)))
}
