//! Engine `epidemic`: very many nodes, no leader, no list of members; one order with high
//! probability.
//!
//! From J. Ribeiro, N. Machado, F. Maia, M. Matos, "Totally Ordered Replication for Massive Scale
//! Key-Value Stores" (DAIS 2018), which puts DataFlasks (Maia et al., SRDS 2014) on EpTO
//! ([`crate::epto`]) and calls it DataFlagons.
//!
//! # Promise
//! Always: two replicas that do the same two writes do them in the same order; a version names one
//! value everywhere; replicas that hear of each other become equal, and then have for each key the
//! newest write of those that any of them has. A write is acknowledged when `acks` replicas have it
//! as durably as the keyspace promises, or all members of a slice that has fewer; the receipt says
//! how many.
//!
//! With high probability, at level `strong`: a read returns the last write before it in the one
//! order. That is not linearizable. A replica that has missed an event does not know it until a
//! later one of the same source arrives; meanwhile `acks` replicas that have all missed it could
//! answer. How often is counted, not promised.
//!
//! | level | reads | writes |
//! |---|---|---|
//! | `none` | of any replica that has it | of values of a version that clients choose the one with the larger hash wins |
//! | `eventual` | of any replica | in the one order |
//! | `strong` | in the one order, of `acks` replicas at the same event | in the one order |
//!
//! # Roles
//! The **entry** is the node that a client asks; it broadcasts, and counts what replicas say.
//! **Replicas** of a key are the members of its slice ([`crate::slices`]). Everybody else relays.
//!
//! ```text
//! ordered  entry ── EpTO ───────▶ everybody     requests of one node and round are one event
//!          entry ◀── Did ──────── replicas      when the event has its turn, durably
//! flask    node  ── Flask ──────▶ the slice     by known members of it, or by a few neighbours
//!          entry ◀── Flasked ──── replicas
//! repair   a     ── Compare ────▶ b             Equal, or Leaves, Listed, Records both ways
//! holes    node  ── MissingA ───▶ a member      MissingB: what missing events did
//! join     node  ── SnapshotA ──▶ two members   SnapshotB, page by page
//! copies   node  ── CopyA ──────▶ a member      CopyB: of what it has a copy ([`repair`])
//! lists    entry ── ListA ──────▶ a member      ListB: a page of keys ([`listings`])
//! views    node  ── Shuffle ────▶ a neighbour   ShuffleReply; Members to two of the slice
//! ```
//!
//! # Invariants
//! - A node does events in strictly ascending order of their keys, each at most once (E1, E2).
//! - A version is the name of the event that wrote it, never a count (E4).
//! - A request is done by the first of its events in the order; the others are told what it did.
//! - Who joins, stood still, or has a larger range answers nothing of what it has not taken over.
//! - Who may have forgotten whether a request was done does not do it when it is sent again.
//! - A read is answered by what was written before it only: who has later writes says nothing.
//! - A value, its version, its request and the last event are in one batch.
//!
//! # Departures from the paper
//! - Replicas count by name, and as many as `acks` says: one acknowledgement proves one copy.
//! - Strong reads want answers of the same event; the first answer may come from a hole.
//! - Requests of one node and round share an event, no key written twice in it.
//! - Repair compares sums of ranges, not lists of all keys.
//! - A request without order goes to known members of its slice, or to a few neighbours; the paper
//!   has all neighbours told, by each of whom all of theirs would be.
//!
//! # Known limits
//! Names of keys and requests are in memory; values are not. A request that is broadcast twice
//! where a replica has missed the first event is done twice there; the later version wins. While
//! the network is divided both sides go on; when it heals the larger versions win, and the writes
//! of the other side are holes that repair fills. That a source's first or last event is missing is
//! not seen, nor one that comes so late that it is forgotten: repair finds what it wrote.
//! Tombstones are purged by the age of their event; who was away for longer drops what it has, and
//! so it is with a range that was given up for longer. A node that was told of others and hears
//! none of them is ready for nothing.

pub mod adapt;
pub mod engine;
pub mod flask;
pub mod keys;
pub mod listings;
pub mod message;
pub mod ordered;
pub mod pending;
mod recover;
pub mod repair;
pub mod replica;
mod rules;
mod said;
mod show;
pub mod state;
#[cfg(test)]
mod tests;
pub mod timer;
pub mod token;

use crate::slices::estimate::Bounds;
use alloc::sync::Arc;
use quorate_kernel::limits::{CYCLON_VIEW_MAX, EPTO_EVENTS_MAX, EPTO_FANOUT_MAX, EPTO_TTL_MAX};
use quorate_kernel::process;
use quorate_kernel::time::Span;

pub use rules::ENGINE;

/// By which way requests go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Without order.
    None,
    /// Writes in the one order.
    Eventual,
    /// Reads and writes in the one order.
    #[default]
    Strong,
}

/// What a keyspace of this engine is set to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// By which way requests go.
    pub level: Level,
    /// What slices shall be like.
    pub bounds: Bounds,
    /// How many replicas must say so before a request is answered; no more than a slice shall have.
    pub acks: u8,
    /// The time of a round (δ): longer than nearly all messages take.
    pub round: Span,
    /// How many neighbours a node keeps.
    pub view: usize,
    /// The c of the paper on EpTO: holes become rarer like n^−c.
    pub exponent: u8,
    /// How many balls of a million arrive.
    pub surviving_ppm: u32,
    /// The paper's K, where it is tuned by hand (section 4.2); none to follow the formula.
    pub fanout: Option<usize>,
    /// The paper's TTL, likewise, in rounds.
    pub ttl: Option<u16>,
    /// How many events may wait for their turn at most; none for as many as limits allow.
    pub events: Option<usize>,
    /// For how much logical time requests are remembered.
    pub window: u64,
    /// For how much logical time tombstones are kept.
    pub grace: u64,
    /// Every how many rounds a node compares what it has with a member.
    pub repair_rounds: u64,
    /// For how many rounds a range is kept that a node has no more.
    pub keep_rounds: u64,
    /// Where this node is found.
    pub address: Arc<str>,
    /// Makes what clients are given of places in the order.
    pub tokens: token::Tokens,
}

impl Settings {
    /// What is usual, at a level.
    #[must_use]
    pub fn usual(level: Level) -> Settings {
        let bounds = Bounds::USUAL;
        Settings {
            level,
            bounds,
            acks: u8::try_from(bounds.replicas_min / 2 + 1).expect("slices are small"),
            round: Span::millis(125),
            view: 40,
            exponent: 2,
            surviving_ppm: 1_000_000,
            fanout: None,
            ttl: None,
            events: None,
            window: 1 << 20,
            grace: 1 << 22,
            repair_rounds: 4,
            keep_rounds: 400,
            address: "".into(),
            tokens: token::Tokens::with_key([0; 32]),
        }
    }

    /// What contradicts itself, if anything does.
    #[must_use]
    pub fn problem(&self) -> Option<&'static str> {
        if !self.bounds.is_sound() {
            Some("a slice must be allowed twice as many members as it shall have at least")
        } else if !(1..=self.bounds.replicas_min).contains(&u16::from(self.acks)) {
            Some("acks must be 1 to the fewest members of a slice")
        } else if self.round.0 < 1_000 || self.repair_rounds == 0 {
            Some("rounds and periods must take some time")
        } else if !(3..=CYCLON_VIEW_MAX).contains(&self.view) {
            Some("there must be some neighbours, and not too many")
        } else if self.fanout.is_some_and(|fanout| !(1..=EPTO_FANOUT_MAX).contains(&fanout))
            || self.ttl.is_some_and(|ttl| !(1..=EPTO_TTL_MAX).contains(&ttl))
        {
            Some("events must be told to somebody for some rounds, and not too many")
        } else if self.events.is_some_and(|events| !(2..=EPTO_EVENTS_MAX).contains(&events)) {
            Some("some events must have room to wait, and not too many")
        } else if self.window > self.grace {
            Some("requests must not be remembered for longer than tombstones")
        } else {
            None
        }
    }
}

/// One node's part in a keyspace.
#[derive(Debug)]
pub struct Epidemic {
    settings: Settings,
    state: state::State,
}

type Context<'a> = process::Context<'a, Epidemic>;
