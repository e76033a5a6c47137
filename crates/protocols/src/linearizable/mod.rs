//! Engine `linearizable`: every key an atomic register.
//!
//! From C. Arad, T. M. Shafaat, S. Haridi, "CATS: Linearizability and Partition Tolerance in
//! Scalable and Self-Organizing Key-Value Stores" (SICS T2012:04), called CATS below.
//!
//! # Promise
//! A get returns the value of the last completed put, or of one that is under way; once it has
//! returned a value, no later get returns an older one. Operations end while a majority of the
//! key's group can be reached. A write is acknowledged when a majority holds it as durably as the
//! keyspace promises. A timed-out write may take effect once, at any later time, or never.
//!
//! # Roles
//! **Coordinator**: any node, for the clients that ask it. **Member**: a node of the group's view;
//! it stores records and answers, stamping each reply with its view. A reply counts only if its
//! sender is a member of that view and all counted replies carry the same one: a consistent quorum
//! (CATS §4).
//!
//! ```text
//! put   coordinator ── ReadA(counter) ──▶ members     phase 1: highest timestamp of a quorum
//!                   ◀── ReadB(ts) ───────
//!                   ── WriteA(record) ──▶             phase 2: store it with a higher timestamp
//!                   ◀── WriteB(ok) ──────             sent when the record is durable
//!
//! get   coordinator ── ReadA(value) ────▶ members     done when a majority holds the highest
//!                   ◀── ReadB(record) ───             timestamp; otherwise the record is imposed
//!                  [── WriteA, WriteB ──▶]            with the put's phase 2
//! ```
//!
//! # Invariants
//! - Replies of one node are stamped with rising views (I1, asserted in `stamp`).
//! - The timestamp of a key at a member never goes back (I6, `store`).
//! - All replies counted in one phase carry the same view and come from its members (I7, `accept`).
//! - What a reply shows to a client, or acknowledges, is durable at its sender before it leaves
//!   (the gate; `send_after_key`). Only the timestamp for a put's first phase may leave earlier.
//! - A member whose data is incomplete answers reads with "not yet", never with data.
//! - A write that moves to a newer view repeats the same record and never reads again.
//!
//! # Departures from the paper
//! - Timestamps carry the writer's start and operation number, not the coordinator's id alone.
//! - A write's reply echoes the view it is for and says whether it acknowledges: Algorithm 5 line 7
//!   answers alike in both cases, and a refusal could pass for an acknowledgement after a retry.
//! - Acknowledgements are kept by sender; sets of values would merge equal answers.
//! - Views are compared by version, not by members; a removed member's reply never counts.
//! - A get is done when a *majority* holds the highest timestamp, not only when all of the first
//!   quorum do, and members that hold it count as acknowledged when it is imposed.
//! - Phase 1 may ask a majority before it asks everybody ([`Settings::ask_majority_first`]).
//! - Members may forget (`memory`, `periodic`): see [`refill`] and [`crate::quorum`].
//!
//! # Known limits
//! One group serves the whole keyspace; tombstones are kept; a register has no compare-and-set, so
//! counters and the like need another engine.

pub(crate) mod coordinator;
pub mod engine;
pub(crate) mod index;
pub mod keys;
pub mod message;
pub(crate) mod page;
pub(crate) mod preference;
pub(crate) mod read;
pub mod record;
pub(crate) mod recover;
pub mod refill;
pub(crate) mod replica;
pub(crate) mod rtt;
pub(crate) mod scan;
pub(crate) mod state;
#[cfg(test)]
mod tests;
pub mod timer;
pub(crate) mod views;
pub(crate) mod write;

use alloc::boxed::Box;
use quorate_kernel::lane::{Hosted, Lane};
use quorate_kernel::process;
use quorate_kernel::view::View;

/// What a keyspace of this engine is set to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The view the group was born with.
    pub first_view: View,
    /// The longest value in bytes.
    pub value_bytes_max: usize,
    /// Whether a get asks the other members for timestamps alone and takes the value from the
    /// coordinator's own replica. It spares their stores and the network, and asks a second time
    /// when the own replica is behind.
    pub digest_reads: bool,
    /// Whether phase 1 asks only a majority first, the coordinator itself among it, and the others
    /// when that is late, lacks data or disagrees. It spares the others a third of their work.
    pub ask_majority_first: bool,
}

/// One group's replica and coordinator on one node.
#[derive(Debug)]
pub struct Linearizable {
    settings: Settings,
    durable: state::Durable,
    volatile: state::Volatile,
}

type Context<'a> = process::Context<'a, Linearizable>;

/// The lane of a keyspace of this engine.
#[must_use]
pub fn lane(settings: Settings) -> Box<dyn Lane> {
    Box::new(Hosted::new(Linearizable::new(settings)))
}
