//! Engine `causal`: always writable; concurrent values are kept, never lost, never invented.
//!
//! From R. Gonçalves, P. S. Almeida, C. Baquero, V. Fonte, "DottedDB: Anti-Entropy without Merkle
//! Trees, Deletes without Tombstones" (SRDS 2017), called DottedDB below.
//!
//! # Promise
//! A get returns all values that nobody has replaced, as far as the replicas asked know, and a
//! context. A put or delete replaces exactly what its context covers: what its client has seen. So
//! writes that have not seen each other are kept side by side. Any one replica that can be reached
//! is enough (`r = w = 1`). A write is acknowledged when `w` replicas hold it as durably as the
//! keyspace promises; replicas that can reach each other become equal within a few sync intervals.
//! When all know of a delete nothing is left of the key. A timed-out write may have taken effect.
//!
//! # Roles
//! A keyspace has a fixed number of **partitions**; a **map** says which host holds each, and each
//! key is at `replicas` of them for ever ([`map`]). A **replica** is a partition's data on a host,
//! with a clock of its own ([`replicate::replica`]); its **actor** names it, and never again once
//! some of its data was lost. **Coordinator** of a get: any node; of a put: a replica, because only
//! what has the data may issue the dot (T12). **Joining**: a replica that copies from all its
//! peers. **Leaving**: one whose partition another host has now; it hands over what nobody else may
//! have.
//!
//! ```text
//! get   coordinator ── ReadA ─────────▶ replicas     none if it is one itself and r = 1
//!                   ◀── ReadB(object) ─              the first r are merged
//! put   node        ── WriteA ────────▶ replica      only if the node is none itself
//!       coordinator: fetch, discard the context, add the dot, store
//!                   ── Replicate ─────▶ others       none if replicate_on_write is off and w = 1
//!                   ◀── Replicated ────              only asked for if w > 1
//! scan  coordinator ── ListA ─────────▶ replicas     none if it is one itself
//!                   ◀── ListB(keys) ──               the first that serves
//! sync  replica     ── SyncA(clock) ──▶ peer         every interval one peer, in shuffled rounds
//!                   ◀── SyncB(objects, clock) ──     what the asker lacks
//!                   ── SyncB(objects, clock) ──▶     what the peer lacks; pages follow each other
//! join  replica     ── ScanA ─────────▶ each peer    page by page; without peers the former holder
//!                   ◀── ScanB(objects, clock) ──
//! leave replica     ── HandOver ──────▶ a replica    each key that has entries in the dot-key map
//!                   ── LeftA ─────────▶ peers' hosts it says nothing more
//!                   ◀── LeftB ─────────
//! start node        ── MapA ──────────▶ itself       when all that the start wrote is durable
//! map   node        ── MapA ──────────▶ node         who sees a newer version asks for it
//!                   ◀── MapB ──────────
//! ```
//!
//! # Invariants
//! - A replica's own entry has no gaps, its base is the last counter issued, and no counter is
//!   issued twice (D1; `reserved`, and births).
//! - A clock never says "seen" of an update of a key that the replica holds unless the stored
//!   object has it as a version or covers it (D2; T3, T4, T8, T20).
//! - An entry of the dot-key map goes only when every replica of the key has seen the dot (D3).
//! - A dot never carries two values (D4, asserted in `merge`).
//! - A version goes only if a context covers it that a client got with it, or with another dot of
//!   the same write (D5).
//! - What is shown, sent or acknowledged is durable first. Contexts are counters that may rest on
//!   other keys' unsynced updates; counters above `reserved` are never shown, so that is safe.
//! - Objects and the log entry with their dots are in one batch and lost together (T4); from the
//!   latter the clock and contexts are put together after a restart ([`replicate::dot_log`]).
//!
//! # Departures from the paper
//! - A put discards what the client's context covers first, and adds its dot afterwards; printed
//!   it is the other way round, which loses siblings (T1).
//! - Filling takes in every actor that is, or ever was, at a replica partition of the key (T2).
//! - Partitions are fixed and no ring: a replica's keys never change (T3).
//! - A delete stores no version; dots travel beside objects (T6).
//! - Rows of the watermark are what peers tell of themselves, and an entry of the dot-key map waits
//!   for the replicas of its key only ([`crate::dots::watermark`], T7).
//! - Exchanges go both ways, in shuffled rounds, and concern former actors too (T5). They leave out
//!   what replication on write is still bringing ([`anti_entropy::in_flight`]).
//! - An actor that is gone for good is closed when all its peers have told all, and then speaks for
//!   all earlier ones of its partition, which leave clocks and contexts ([`handover::retire`]).
//! - A newcomer copies by scanning, and keeps what its peers have witnessed ([`handover::join`],
//!   T8). Where it has no peers it scans the former holder ([`handover::former`]).
//! - After a loss of power a replica goes on with what is on disk, as a new actor ([`recover`]).
//!
//! # Known limits
//! A catalog must wait until a newcomer has joined before it gives away another partition with the
//! same keys. The dot-key map grows while a replica is away. A replica that is
//! gone for good and comes back loses what it alone had: `gone` in the map says so of it. A
//! write that a client repeats without a name makes a sibling (T13); with one it is the same write
//! ([`replicate::twins`], [`replicate::names`]), but where it waits at a node for the replica, its
//! client sends it to another within a second, what it wrote is replaced, and the replica restarts
//! or its partition moves, all in that second. What a replica knows by a witness alone it does
//! not tell who scans it: when all that have seen a delete have forgotten (`memory`) one after the
//! other, a former holder that was cut off all that time brings the old value back, everywhere.

pub mod anti_entropy;
pub(crate) mod codec;
mod coordinate;
pub mod engine;
mod handover;
pub mod keys;
pub mod map;
pub mod message;
#[cfg(any(test, feature = "testing"))]
mod observed;
pub mod page;
pub(crate) mod recover;
pub mod replicate;
pub mod rules;
pub(crate) mod state;
#[cfg(test)]
mod tests;
pub mod timer;
pub mod token;

use alloc::boxed::Box;
use map::{Map, Shape};
use quorate_kernel::ids::Incarnation;
use quorate_kernel::lane::{Hosted, Lane};
use quorate_kernel::limits::{
    CLOCK_RANGES_MAX, LIST_KEYS_MAX, WRITE_NAMES_MAX, WRITES_REMEMBERED_MAX,
};
use quorate_kernel::process;
use quorate_kernel::time::Span;
pub use rules::ENGINE;
use token::Tokens;

/// What a keyspace of this engine is set to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many partitions and replicas; never changes.
    pub shape: Shape,
    /// The oldest map that this host knows of; none if it has heard of none.
    pub first_map: Option<Map>,
    /// The version of the map that the keyspace was born with: who holds a partition since then has
    /// nothing to copy.
    pub born: u64,
    /// How many replicas answer a get that does not say.
    pub r: u8,
    /// How many replicas hold a write before it is acknowledged.
    pub w: u8,
    /// Between two exchanges that a replica begins.
    pub sync_interval: Span,
    /// Between two passes over objects that have a context.
    pub strip_interval: Span,
    /// Whether a write is sent to the other replicas at once, or is left to anti-entropy; then `w`
    /// must be 1.
    pub replicate_on_write: bool,
    /// Whether a get sends what it merged to replicas that were behind.
    pub read_repair: bool,
    /// From how many siblings of a key on it is counted; nothing is refused or dropped.
    pub siblings_warn: usize,
    /// What a get without a context answers where there are siblings.
    pub plain: Plain,
    /// The longest value in bytes.
    pub value_bytes_max: usize,
    /// Makes and reads the contexts that clients carry.
    pub tokens: Tokens,
    /// How much one message tells, and how much is remembered.
    pub limits: Limits,
}

/// How much one message tells, and how much is remembered. A small simulated world reaches the ends
/// of pages with small ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many bytes of objects a page of an exchange or of a scan holds before it is closed.
    pub page_bytes: usize,
    /// The most keys of a page of a scan.
    pub scan_keys: usize,
    /// The most ranges of isolated counters of one actor that a clock tells in one message.
    pub clock_ranges: usize,
    /// The most names of writes that all replicas of a host remember.
    pub names: usize,
    /// The most writes that other nodes forwarded whose endings a host remembers.
    pub writes: usize,
    /// The longest rest between two exchanges of replicas with nothing to tell, in intervals; with
    /// 1 they never rest, as in the paper.
    pub backoff_intervals: u64,
    /// How many dots the log may have that are not needed, beside as many as are, before those that
    /// are needed are written anew.
    pub spare_dots: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            page_bytes: message::PAGE_BYTES,
            scan_keys: LIST_KEYS_MAX,
            clock_ranges: CLOCK_RANGES_MAX,
            names: WRITE_NAMES_MAX,
            writes: WRITES_REMEMBERED_MAX,
            backoff_intervals: anti_entropy::backoff::INTERVALS_MAX,
            spare_dots: replicate::dot_log::SPARE_DOTS,
        }
    }
}

impl Settings {
    /// What is usual, for a shape and a cluster's tokens.
    #[must_use]
    pub fn usual(shape: Shape, first_map: Option<Map>, tokens: Tokens) -> Settings {
        Settings {
            shape,
            first_map,
            born: 1,
            r: 1,
            w: 1,
            sync_interval: Span::millis(100),
            strip_interval: Span::secs(1),
            replicate_on_write: true,
            read_repair: false,
            siblings_warn: 16,
            plain: Plain::Error,
            value_bytes_max: quorate_kernel::limits::VALUE_BYTES_DEFAULT,
            tokens,
            limits: Limits::default(),
        }
    }

    /// What contradicts itself, if anything does.
    #[must_use]
    pub fn problem(&self) -> Option<&'static str> {
        let replicas = self.shape.replicas;
        if !(1..=replicas).contains(&u16::from(self.r)) {
            Some("r must be 1 to the number of replicas")
        } else if !(1..=replicas).contains(&u16::from(self.w)) {
            Some("w must be 1 to the number of replicas")
        } else if !self.replicate_on_write && self.w > 1 {
            Some("without replication on write only one copy can be acknowledged")
        } else if self.first_map.as_ref().is_some_and(|map| !map.fits(self.shape)) {
            Some("the map is not of this shape")
        } else {
            None
        }
    }
}

/// What a get that cannot show siblings does where there are some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Plain {
    /// It says that there are, and chooses none.
    #[default]
    Error,
    /// It shows one, everywhere the same: that with the highest counter. Of two writes at one
    /// replica that is the later one; of two at different replicas it may be either.
    Newest,
}

/// The replicas and the coordinator of one keyspace on one node.
#[derive(Debug)]
pub struct Causal {
    settings: Settings,
    /// Who this node is, once it has started.
    me: Option<Incarnation>,
    durable: state::Durable,
    volatile: state::Volatile,
}

type Context<'a> = process::Context<'a, Causal>;

/// The lane of a keyspace of this engine.
#[must_use]
pub fn lane(settings: Settings) -> Box<dyn Lane> {
    Box::new(Hosted::new(Causal::new(settings)))
}
