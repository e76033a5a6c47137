//! Engine `linearizable`: every key an atomic register on a self-organizing ring.
//!
//! From C. Arad, T. M. Shafaat, S. Haridi, "CATS: Linearizability and Partition Tolerance in
//! Scalable and Self-Organizing Key-Value Stores" (SICS T2012:04), called CATS below.
//!
//! # Promise
//! A get returns the value of the last completed put, or of one that is under way; once it has
//! returned a value, no later get returns an older one. Operations end while a majority of the
//! key's group can be reached, also while hosts join, leave and fail. A write is acknowledged when
//! a majority holds it as durably as the keyspace promises. A timed-out write may take effect once,
//! at any later time, or never.
//!
//! # Roles
//! **Coordinator**: any node, for the clients that ask it. **Member**: a node of a group's view; it
//! stores the records of the group's range and answers, stamping each reply with its view. A reply
//! counts only if its sender is a member of that view and all counted replies carry the same one: a
//! consistent quorum (CATS §4). **Proposer**: the member closest to the range; it walks the group
//! towards what the ring asks for. **Newcomer**, **learner**, **source**: see below.
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
//!
//! view  proposer    ── Learn ───────────▶ newcomer    copy first (unless a member is suspected)
//!                   ── P1A, P2A ────────▶ members     consensus of the old view on the next
//!                   ── P3A ─────────────▶ members     install it: from now on they answer for it
//!       old members ── Invite ──────────▶ newcomer    it installs when no majority is left there
//!       newcomer    ── ListA, FetchA ───▶ sources     old members list, the newest is fetched
//!       newcomer    ── Beats(ready) ────▶ members
//! ```
//!
//! # Invariants
//! - Replies of one node in one group are stamped with rising views (I1, asserted in `stamp`).
//! - At most one change follows a view (I2; [`crate::reconfigure`], and the install queue).
//! - A newcomer installs its view only when so many of the old members have left theirs that the
//!   others are no majority, and says that it is ready only when a majority of them has listed
//!   everything to it, or half of an even number (I3).
//! - The timestamp of a key at a member never goes back (I6, `store`).
//! - All replies counted in one phase carry the same view and come from its members (I7, `accept`).
//! - Ranges of one node's memberships are disjoint (I8, `check_ranges`).
//! - What a reply shows to a client, or acknowledges, is durable at its sender before it leaves
//!   (the gate; `send_after_key`). Only the timestamp for a put's first phase may leave earlier.
//! - A member whose data is incomplete answers reads with "not yet", never with data.
//! - A write that moves to a newer view repeats the same record and never reads again.
//! - Data of an earlier membership is never taken for data of a later one: each has a slot.
//!
//! # Departures from the paper
//! - Timestamps carry the writer's start and operation number, not the coordinator's id alone.
//! - A write's reply echoes the view it is for and says whether it acknowledges: Algorithm 5 line 7
//!   answers alike in both cases, and a refusal could pass for an acknowledgement after a retry.
//! - Acknowledgements are kept by sender; sets of values would merge equal answers.
//! - Views are compared by version, not by members; a removed member's reply never counts. A split
//!   goes on with the parent's version, so versions only rise along the history of a token.
//! - A get is done when a *majority* holds the highest timestamp, not only when all of the first
//!   quorum do, and members that hold it count as acknowledged when it is imposed.
//! - Phase 1 may ask a majority before it asks everybody ([`Settings::ask_majority_first`]).
//! - Members may forget (`memory`, `periodic`): see [`refill::amnesia`] and [`crate::quorum`].
//! - The closest *member* proposes, not the node that the ring makes responsible: a newcomer that
//!   is responsible has no view to propose for (`propose`).
//! - Old members invite the newcomer themselves; Algorithm 1 lets the coordinator do it, who may be
//!   dead by then. Half of an even number is enough (`invite`).
//! - Of two members, one of which was removed from the cluster, the other decides alone (`alone`).
//! - A newcomer copies the data before it is made a member, so that the group is short of a replica
//!   only for what changed meanwhile; and only one change is under way at a time (`propose`).
//! - A node that left and is chosen again keeps what it held for those who still need it
//!   (`former`). A membership that was decided and revoked before it began is gone through all the
//!   same, so that whoever follows it can hear what it would have heard (`invite`).
//! - A page of a scan reads each of its keys like a get (`scan`); the paper has no scans.
//! - Deletes leave tombstones, which are removed (`purge`); the paper has no deletes.
//! - Members compare what they hold, and get what they missed (`compare`).
//!
//! # Known limits
//! Groups are split but never merged, as in the paper: a token that leaves the ring leaves a
//! boundary, which tokens that come later take again where it is near. A member more than 64 views
//! behind cannot follow them and begins anew; in a group of two it waits for a third member first
//! (`outpaced`). Of a group that was split the record stays while any host of the ring is silent,
//! who may ask for it or come to it (`parents`); of a group that was left, its name and one number
//! stay for good.
//! A register has no compare-and-set, so counters and the like need another engine.

mod coordinate;
pub mod engine;
pub mod group;
pub mod keys;
pub mod message;
pub mod record;
mod recover;
mod refill;
mod replicate;
pub mod rules;
pub(crate) mod state;
#[cfg(test)]
mod tests;
pub mod timer;
mod views;
mod wire;

use crate::order::Order;
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::lane::{Hosted, Lane};
use quorate_kernel::limits::LIST_KEYS_MAX;
use quorate_kernel::process;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::view::View;
pub use rules::ENGINE;

/// What a keyspace promises of each key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// An atomic register.
    #[default]
    Atomic,
    /// The newest write by the wall clock, in the end (CATS §6.4). It exists to measure what
    /// atomicity costs; a keyspace is in one mode for good.
    Eventual,
}

/// How often things are looked after. CATS gives no values.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two looks at the groups.
    pub maintain: Span,
    /// Between two words to co-members.
    pub beat: Span,
    /// How long a member must be suspected before it is replaced; a planned change waits a tenth.
    pub settle: Span,
    /// Between two removals of tombstones, and how long one waits for operations to end; far longer
    /// than any operation may take.
    pub purge: Span,
    /// Between the beginnings of two passes in which a node compares what it holds with its peers;
    /// 0 is never.
    pub compare: Span,
    /// Between two words to the overlay on how much there is to do.
    pub weigh: Span,
    /// Whether parts of the ring are weighed for the load balancer.
    pub is_weighing: bool,
    /// The most keys that a member looks through for one message of a transfer, of a comparison or
    /// of a removal of tombstones: [`LIST_KEYS_MAX`], less where a small world shall see several.
    pub list_keys: usize,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            maintain: Span::millis(250),
            beat: Span::secs(1),
            settle: Span::secs(2),
            purge: Span::secs(60),
            compare: Span::secs(60),
            weigh: Span::secs(10),
            is_weighing: false,
            list_keys: LIST_KEYS_MAX,
        }
    }
}

/// What a keyspace of this engine is set to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The views the keyspace was born with; none on a host that joined later.
    pub first_views: Vec<View>,
    /// How many members a group should have.
    pub replicas: usize,
    /// How keys lie on the ring.
    pub order: Order,
    /// What is promised of each key.
    pub mode: Mode,
    /// What a member that forgot may still hold ([`refill::amnesia`]).
    pub durability: Durability,
    /// The longest value in bytes.
    pub value_bytes_max: usize,
    /// Whether a get asks the other members for timestamps alone and takes the value from the
    /// coordinator's own replica. It spares their stores and the network, and asks a second time
    /// when the own replica is behind.
    pub digest_reads: bool,
    /// Whether phase 1 asks only a majority first, the coordinator itself among it, and the others
    /// when that is late, lacks data or disagrees. It spares the others a third of their work.
    pub ask_majority_first: bool,
    /// How many bytes of records a second one node's transfers may fetch; 0 is no limit.
    pub transfer_bytes_per_second: u64,
    /// How often things are looked after.
    pub pace: Pace,
}

/// The replicas and the coordinator of one keyspace on one node.
#[derive(Debug)]
pub struct Linearizable {
    settings: Settings,
    /// Who this node is, once it has started.
    me: Option<NodeId>,
    durable: state::Durable,
    volatile: state::Volatile,
}

type Context<'a> = process::Context<'a, Linearizable>;

/// The lane of a keyspace of this engine.
#[must_use]
pub fn lane(settings: Settings) -> Box<dyn Lane> {
    Box::new(Hosted::new(Linearizable::new(settings)))
}
