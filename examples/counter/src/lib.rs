//! Engine `counter`: every key a counter that all hosts have, and any host adds to.
//!
//! From M. Shapiro, N. Preguiça, C. Baquero, M. Zawirski, "A Comprehensive Study of Convergent and
//! Commutative Replicated Data Types" (INRIA RR-7506, 2011), Specification 6, a counter that grows;
//! a delete takes away what its host has heard of.
//!
//! # Promise
//! A put of a number adds it; a get returns the sum of all that this host has heard of, or nothing
//! if nothing is left. An addition is acknowledged when this host has it on disk. It is counted
//! once, and deleted only by a delete on a host that had heard of it. Hosts that can reach each
//! other come to equal sums within some seconds.
//!
//! A transaction is done on the host that is asked, at one moment or not at all: a put adds, a get
//! and a check see the sums that this host has heard of, with what the items before have done. So
//! all operations on keys that only one host is asked for have one order that respects time. Its
//! additions outlive a crash together. Another host takes them in together too, unless it missed
//! the message: then it hears of the keys one page after the other.
//!
//! # Invariants
//! - An incarnation adds under its own name alone, so that nobody else raises what it has added.
//! - What was added and what was deleted under a name only grows, and no more is deleted than was
//!   added: so telling merges by the higher of both, in any order and as often as it likes.
//!
//! ```text
//! put, delete   host ── Tallies(key, tally) ─▶ all others     when it is durable
//! transaction   host ── Tallies(changed) ────▶ all others     when all of it is durable
//! each 0.5 s    host ── Tallies(page) ───────▶ a random one
//! ```

mod engine;
mod tally;

use engine::Counter;
use quorate_kernel::engine::{Capability, Engine, Listing, Placement};
use quorate_kernel::lane::Hosted;
use quorate_kernel::rules::{Alter, Setting, Takes};

/// The engine.
pub const ENGINE: Engine = Engine {
    name: "counter",
    placement: Placement::Everywhere,
    can: &[Capability::Values, Capability::Transactions],
    listing: Listing { is_complete: false, text: "there are no listings" },
    quorum: |_| 1,
    token: |_, _| 0,
    mode: |_| "eventual",
    open: |_| Ok(Box::new(Hosted::new(Counter::default()))),
    numbers: &[],
    settings: &[
        Setting { name: "replicas", takes: Takes::Word(&["1"]), default: "1", alter: NEVER },
        Setting {
            name: "durability",
            takes: Takes::Word(&["sync"]),
            default: "sync",
            alter: NEVER,
        },
        Setting { name: "value", takes: Takes::Whole(1, 20), default: "20", alter: NEVER },
    ],
};

/// One acknowledges, so an addition must be on its disk; a number of 64 bits has 20 digits.
const NEVER: Alter = Alter::Never("every host has all of it, synced, as numbers of 64 bits");
