//! MerkleDB, the baseline that DottedDB is measured against. **Only the lab uses it; no keyspace
//! can choose it.**
//!
//! From the evaluation of R. Gonçalves, P. S. Almeida, C. Baquero, V. Fonte, "DottedDB:
//! Anti-Entropy without Merkle Trees, Deletes without Tombstones" (SRDS 2017), §III-A and §V-B: the
//! same store as [`quorate_protocols::causal`], with a dotted version vector for each key in place
//! of the node clock, and hash trees in place of its comparison. Partitions, map, client contexts
//! and the form of objects and pages are those of that engine, so what differs in a measurement is
//! what differs in the paper.
//!
//! # Promise
//! That of `causal`, at another price: an object keeps the name of every actor that ever wrote it,
//! a deleted one stays as a tombstone, a replica keeps a tree for each group of replicas it belongs
//! to, and two replicas learn where they differ from the trees.
//!
//! ```text
//! get   coordinator ── ReadA ────▶ replicas    none if it is one itself and r = 1
//!                   ◀── ReadB ────
//! put   node        ── WriteA ───▶ replica     only if the node is none itself
//!                   ◀── WriteB ───
//!       coordinator ── Replicate ▶ others      none if replicate_on_write is off
//! sync  replica     ── Roots ────▶ peer        every interval one peer, in shuffled rounds
//!                   ◀── Buckets ──             of trees that differ: the hashes below the root
//!                   ── Leaves ───▶             of inner nodes that differ: those of their leaves
//!                   ◀── Keys ─────             of leaves that differ: keys with hashes
//!                   ── Repair ───▶             of keys that differ: the asker's objects
//!                   ◀── Repair ───             what the peer has made of them
//! map   node        ── MapA ─────▶ node        who sees a newer version asks for it
//!                   ◀── MapB ─────
//! ```
//!
//! # Invariants
//! - An object's context covers its whole past; no entry of it is ever dropped.
//! - Counters are per key; a replica that may have lost data goes on as another actor, so no dot is
//!   used twice.
//! - Each stored object is in the tree of its group under the hash of its bytes.
//!
//! # Known limits
//! A write is acknowledged when its coordinator holds it (`w = 1`). A host that gives a partition
//! up hands nothing over. A tree is not stored; it is built again at a start. A forwarded write
//! that meets no replica is refused at once, and one that is repeated is not answered again.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod engine;
pub mod exchange;
pub mod keys;
pub mod message;
pub mod replica;
pub mod rules;
pub(crate) mod serve;
#[cfg(test)]
mod tests;
pub mod tree;
pub(crate) mod write;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use quorate_kernel::lane::{Hosted, Lane};
use quorate_kernel::process;
use quorate_kernel::time::Span;
use quorate_protocols::causal::map::{Map, Shape};
use quorate_protocols::causal::token::Tokens;
use quorate_protocols::dots::dot::Partition;

/// What a keyspace of the baseline is set to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How many partitions and replicas.
    pub shape: Shape,
    /// The map the keyspace was born with; none on a host that joined later.
    pub first_map: Option<Map>,
    /// How many replicas answer a get that does not say.
    pub r: u8,
    /// Between two exchanges that a replica begins.
    pub sync_interval: Span,
    /// Whether a write is sent to the other replicas at once.
    pub replicate_on_write: bool,
    /// How many children the nodes of trees have; there are as many squared leaves.
    pub width: u32,
    /// The longest value in bytes.
    pub value_bytes_max: usize,
    /// Makes and reads the contexts that clients carry.
    pub tokens: Tokens,
}

impl Settings {
    /// What is usual: trees of 10,000 leaves.
    #[must_use]
    pub fn usual(shape: Shape, first_map: Option<Map>, tokens: Tokens) -> Settings {
        Settings {
            shape,
            first_map,
            r: 1,
            sync_interval: Span::millis(500),
            replicate_on_write: true,
            width: 100,
            value_bytes_max: quorate_kernel::limits::VALUE_BYTES_DEFAULT,
            tokens,
        }
    }
}

/// The replicas and the coordinator of one keyspace on one node.
#[derive(Debug)]
pub struct Merkle {
    settings: Settings,
    map: Option<Map>,
    /// The highest birth used.
    birth: u32,
    replicas: BTreeMap<Partition, replica::Replica>,
    operations: serve::Operations,
    /// Forwarded writes that were begun here.
    remembered: write::Remembered,
    /// Objects that anti-entropy has changed here.
    repaired: u64,
}

type Context<'a> = process::Context<'a, Merkle>;

/// The lane of a keyspace of the baseline.
#[must_use]
pub fn lane(settings: Settings) -> Box<dyn Lane> {
    Box::new(Hosted::new(Merkle::new(settings)))
}
