//! The catalog: the lane of every node that knows which keyspaces there are.
//!
//! A register cannot decide a race: of two writers of one name both would believe that it is
//! theirs. So the catalog is a chain of decrees, each agreed by [`crate::reconfigure`]'s Paxos with
//! consistent quorums among a few hosts, the system group.
//!
//! # Promise
//! There is one chain: of two hosts that know a decree of some number, both know the same. So of
//! two creations of one name exactly one is decided, the other gets an error that says so; a lane
//! is given once and never again; two sides of a network partition cannot both replace one of a
//! keyspace. While a majority of the system group can be reached, whatever can be done is done. A
//! host that is cut off goes on with the chain as far as it has it.
//!
//! # Roles
//! **Proposer**: the host that an operator asks, or the member of the system group that sees what
//! is due. **Member** of the system group: an acceptor of what follows its newest link.
//! **Learner**: everybody.
//!
//! ```text
//! proposer ── P1A(link, ballot) ─────────▶ members
//!          ◀─ P1B(promise, accepted) ─────          durable first
//!          ── P2A(link, ballot, decree) ─▶
//!          ◀─ P2B(accepted) ──────────────          durable first
//! decided: ── P3A(link, decree) ─────────▶ all hosts
//! a keyspace is made:
//! proposer ── Length ─▶ all that seem to be there   it begins on those that say anything
//! each 1 s    Length ─▶ a random host               it has more: Entries, or Snapshot
//!                                                    it has fewer: Length back
//! ```
//! Each link makes a view of the system group of the next version, mostly with the same members; it
//! is the instance of the consensus on the next link. A decree of new members moves no data: the
//! next link can only be decided by members that have the chain up to there, and they fetch it from
//! whoever asks them.
//!
//! # Invariants
//! - The acceptor belongs to the newest link: both are written in one step.
//! - A link is taken over only after the one before it, or with the whole catalog.
//! - What can follow is judged by the catalog alone ([`Catalog::judge`]), so all members judge
//!   alike. What only engines know ([`quorate_kernel::rules`]) is for the proposer.
//! - A wish is known again by its origin, never by its content.
//! - Nobody is answered before the decree is durable at a majority of the system group, and here.
//!
//! # Departures
//! Phase 3 of the consensus is not awaited: links spread like news, and a member that has accepted
//! what nobody completes does so itself ([`maintain`]), also while an order waits for what members
//! know.
//!
//! # Known limits
//! - [`DECREES_KEPT`](quorate_kernel::limits::DECREES_KEPT) links are kept. Who lacks more gets the
//!   whole catalog, and cannot know what became of its own open wish.
//! - Lanes that were dropped are remembered for ever, at each node, a few bytes each.
//! - A refusal is as of the moment when a majority knew no more than the host that was asked.

mod chain;
mod engine;
mod keys;
mod maintain;
mod message;
mod muster;
mod newcomer;
pub mod orders;
pub mod partitions;
mod recover;
mod state;
#[cfg(test)]
mod tests;
mod timer;

pub use chain::decree::{Decree, Entry, Origin};
pub use chain::fold::Catalog;
pub use message::Message;
pub use timer::Timer;

use alloc::boxed::Box;
use alloc::vec::Vec;
use quorate_kernel::engine::Engine;
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::NewKeyspace;
use quorate_kernel::lane::{Hosted, Lane};
use quorate_kernel::process;
use quorate_kernel::ring::{Ring, Standing};
use quorate_kernel::time::Span;

/// How often a host talks to another one.
const PERIOD: Span = Span::secs(1);

/// What the catalog of a node is set to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The engines of this build.
    pub engines: &'static [&'static Engine],
    /// How the cluster was born, on hosts that it was born with.
    pub founding: Option<Founding>,
    /// The lanes that the directory was made with, ascending.
    pub lanes: Vec<LaneId>,
}

/// A cluster's birth: what all founding hosts know.
#[derive(Clone, Debug)]
pub struct Founding {
    /// The founding hosts and their tokens.
    pub ring: Ring,
    /// The keyspaces in the order of their lanes, each with all its settings.
    pub keyspaces: Vec<NewKeyspace>,
}

/// The catalog of one node.
pub struct CatalogLane {
    settings: Settings,
    state: state::State,
}

type Context<'a> = process::Context<'a, CatalogLane>;

/// The catalog's lane.
#[must_use]
pub fn lane(settings: Settings) -> Box<dyn Lane> {
    Box::new(Hosted::new(CatalogLane::new(settings)))
}

/// How many members the system group should have: five where so many take part, else three.
fn system_size(ring: &Ring) -> usize {
    let up = ring.hosts().iter().filter(|host| host.standing == Standing::Up).count();
    if up >= 5 { 5 } else { 3 }
}
