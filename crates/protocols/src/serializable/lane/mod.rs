//! The lane: what makes the groups of a keyspace, and who asks for its clients, one process.
//!
//! ```text
//! client ─▶ host ── Ask ──▶ primary of each group      any host serves any client: it takes the
//!                ◀─ Told ──                            paper's client's part (§4.2)
//! primary ── Between ──▶ primary of another group      votes, decisions
//! replica ── Log ──────▶ replicas                      of all groups, once a turn
//! host    ◀─ Leads ──                                  a hint of where a primary is
//!         ── WhoLeads ─▶ members of a group            one that is no member says that it leads it
//! ```
//!
//! # What it promises
//! A get shows what is current at one moment after it was asked; with `reads=any` what only reads
//! may show what was so a little before. A put or a delete is a transaction of one key. A
//! transaction of several items is done at one moment, or not at all, whichever groups it touches.
//! Who was told that the outcome is unknown may find either; the host goes on to ask how it ended,
//! so that the groups can forget it, and tells whoever comes with the token that its client was
//! given (`clients/ended.rs`).
//! A listing shows what is current in one group at one moment, page by page.
//!
//! # Placement
//! A key is of one of 256 buckets, by its hash; neighbouring buckets are of one group. The first
//! groups are as many as the setting says, and their founders are chosen from the hosts that the
//! catalog's record names. When the setting is altered, the first group notes who founds those that
//! are added, and buckets move, a few at a time ([`super::moves`]). Where they are primaries tell
//! all hosts; who asks the wrong group is told where a bucket has gone.
//!
//! # Why a retry is safe
//! A transaction that is asked for again has the same name, so groups know it. It is given up only
//! when the coordinator has said how it ended. A new attempt, with a new name and the rank of the
//! first, is made only when the one before is known to have changed nothing. Below `sync` the
//! coordinator may say so of what it has lost: where another group has said that it has done its
//! share, nothing is tried again.
//!
//! # Seats
//! Each group has members of its own. Its primary wishes for others when a host joins, leaves or
//! fails for a minute, one at a time; the group decides (`groups/wish.rs`). Who was removed keeps
//! what it has until a majority of the next members has it, and drops it then; which epoch has
//! begun it never forgets.
//!
//! # Who is believed
//! A host speaks for a group if it is a member as far as is known. Who the members are is believed
//! of those that were known, one change after the other, and of the replica here (`routes.rs`). A
//! question is answered by whoever was asked. Whoever is not believed yet says it again, so a
//! newcomer that leads is heard as soon as a member has said that it is one.
//!
//! # Known limits
//! - All this protects from hosts that are confused or late, not from malicious ones: members are
//!   believed what they say of their group, and its log believes any host that names a later epoch
//!   ([`crate::vsr`]). The hosts of a cluster are trusted not to lie.
//! - A host that knows no member of a group that is still there finds it after three seconds.
//! - A group that was added, and of whose founders a majority is gone before they have begun it,
//!   never begins: buckets that it should have stay where they are.
//! - A group that has no bucket any more stays, with its members, for those who ask how what it has
//!   decided has ended. It is used again when there are to be as many.
//! - A host that reaches a group no more for a minute, and then asks how a transaction ended, is
//!   told that nobody knows (`groups/gone.rs`).
//! - Groups are rebalanced one after the other, by what their primaries know of each other: one
//!   that cannot change its members holds up those with higher numbers.
//! - A host whose clock is more than a day ahead of a group's is told that the outcome of what it
//!   writes there is unknown.
//! - A log keeps about a thousand entries whatever they have of bytes, and more while a member is
//!   away: about 64 MiB, which all groups of a keyspace share. A start reads them all.
//! - What keys have is bounded for each transaction and each read, and not for all that one input
//!   wakes: clients that ask much may make a primary silent for longer than others wait.
//! - If the clocks of a group's hosts were more than a day ahead while much was remembered, what is
//!   written there ends as unknown until time has come there.
//! - Below `sync`, versions that were lost with all members come again. Whoever has read one before
//!   the loss, and commits after others have made the same version anew, is not told.
//! - What is read of several groups is committed after some tries; where it changes more often than
//!   that takes, its client is told at the deadline that no quorum answered.
//! - Names that were given while the clock was days ahead are asked for until time has come there.
//! - A newcomer that was given up keeps what it has copied for a minute.
//! - What a host drops it drops in one turn.
//!
//! | file | what it holds |
//! |---|---|
//! | `places/` | keys, groups, founders, where primaries are, and what seems out of reach |
//! | `message.rs` | frames |
//! | `run.rs`, `timer.rs` | inputs |
//! | `groups/` | a group here: replica, member and seats, what is asked, and who is gone |
//! | `clients/` | what clients of this host have in hand |
//! | `parts.rs` | who holds what, for operators |

mod clients;
mod groups;
mod message;
mod parts;
mod places;
mod run;
#[cfg(test)]
mod tests;
mod timer;

pub use crate::groups::FAILED;
use crate::groups::{Examinations, Hosts, Outbox, Routes, founders};
use crate::sealed::Sealer;
use crate::serializable::settings::is_any;
use crate::serializable::{ENGINE, Optimizations};
use crate::vsr::Kept;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use clients::in_hand::Clients;
use groups::hosted::Hosted;
pub use groups::purge::PURGED;
pub use message::Message;
use places::homes::Homes;
pub use places::place::{BUCKETS, Shape};
use quorate_kernel::engine::Opening;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::keyspace::CatalogRefusal;
use quorate_kernel::lane::{Hosted as Adapter, Lane};
use quorate_kernel::process;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::{Span, Time};

/// What a keyspace of this engine is set to.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The founders of each group; without any there is nobody to ask.
    pub founders: Vec<Arc<[NodeId]>>,
    /// How many members a group should have.
    pub replicas: usize,
    /// How many groups should share the buckets; 0 is as many as have founders.
    pub groups: u64,
    /// How long a member is suspected before another host takes its seat.
    pub failed: Span,
    /// How durable the data is.
    pub durability: Durability,
    /// The longest value in bytes.
    pub value_bytes_max: usize,
    /// How old tombstones are when they are dropped.
    pub purged: Span,
    /// What each log keeps of what was executed, for members that lag.
    pub kept: Kept,
    /// Signs what clients ask with how their transactions ended.
    pub sealer: Sealer,
    /// Whether what is read first is read of any replica, which may be behind. What is committed
    /// rests on versions, so it is tried again where they were old (the paper's `any`).
    pub reads_any: bool,
    /// How groups lock, and when they abort. All that there is, but to measure what it is worth.
    pub optimizations: Optimizations,
    /// Whether transactions that only read are committed as those that write (§6.1), to measure
    /// what it saves that they are not. Not so of keyspaces of the engine.
    pub commits_reads: bool,
    /// Whether groups doubt a primary because the roll has removed it, as the paper's do, and not
    /// because it is silent, to measure what that takes ([`crate::vsr::Settings::by_membership`]).
    /// Not so of keyspaces of the engine.
    pub by_membership: bool,
}

/// What logs keep of what was executed: while all members are there as much as may be on its way to
/// them, else what a host that was away for some seconds lacks. All groups share these bytes.
const KEPT: Kept = Kept { entries: 1024, bytes: 64 * 1024 * 1024 };
/// Each group has so many of them at least.
const KEPT_BYTES_LEAST: usize = 1024 * 1024;

impl Settings {
    /// What a keyspace is set to as the catalog has it.
    ///
    /// # Errors
    /// A setting cannot be read.
    pub fn of(opening: &Opening<'_>) -> Result<Settings, CatalogRefusal> {
        let Opening { keyspace, pace, .. } = opening;
        ENGINE.check(&keyspace.settings)?;
        ENGINE.check(&keyspace.founding)?;
        let founding = keyspace.founding.get("groups");
        let groups = founding.and_then(|text| text.parse().ok()).unwrap_or(0);
        let founders =
            founders(&keyspace.birth, keyspace.founding_replicas(), groups, BUCKETS as usize);
        let wanted: usize = keyspace.setting("groups").parse().unwrap_or(0);
        let bytes = KEPT.bytes / founders.len().max(wanted).max(1);
        let bytes = bytes.max(KEPT_BYTES_LEAST);
        Ok(Settings {
            founders,
            replicas: keyspace.replicas(),
            groups: keyspace.setting("groups").parse().unwrap_or(0),
            failed: pace.get("failed").map_or(FAILED, Span::millis),
            purged: pace.get("purged").map_or(PURGED, Span::millis),
            durability: keyspace.durability(),
            value_bytes_max: keyspace.value_bytes_max(),
            kept: Kept { entries: pace.get("kept").unwrap_or(KEPT.entries), bytes },
            sealer: Sealer::new(opening.signing_key, b"end"),
            reads_any: is_any(&keyspace.settings),
            optimizations: Optimizations::default(),
            commits_reads: false,
            by_membership: false,
        })
    }
}

/// A keyspace on one node.
#[derive(Debug)]
pub struct Serializable {
    settings: Settings,
    homes: Homes,
    groups: BTreeMap<GroupId, Hosted>,
    routes: Routes,
    clients: Clients,
    /// What operators have asked.
    examining: Examinations,
    hosts: Hosts,
    outbox: Outbox,
    /// Groups that this turn has called.
    touched: BTreeSet<GroupId>,
    /// Groups that have something left for the next turn.
    late: BTreeSet<GroupId>,
    /// Groups that have more to execute.
    resumed: BTreeSet<GroupId>,
    /// Whether the turn is ending: what is put into a log now is sent in the next one.
    is_ending: bool,
    /// How many questions of others were taken here in this start: names of tickets.
    tickets: u64,
    /// When the last tick was.
    ticked: Time,
    counters: Counters,
}

/// What has happened since the start.
#[derive(Debug, Default)]
struct Counters {
    /// Times that a group here went on with less than was acknowledged.
    losses: u64,
    /// Transactions that were tried again after a conflict.
    conflicts: u64,
    /// Questions that were asked again for want of an answer.
    retries: u64,
    /// Operations whose deadline has passed.
    expired: u64,
}

type Context<'a> = process::Context<'a, Serializable>;

impl Serializable {
    /// The engine before its start.
    #[must_use]
    pub fn new(settings: Settings) -> Serializable {
        let shape = Shape::new(settings.founders.len() as u64);
        let mut routes = Routes::default();
        for (group, members) in shape.groups().zip(&settings.founders) {
            routes.found(group, members);
        }
        let mut homes = Homes::new(shape);
        homes.want(settings.groups);
        Serializable {
            settings,
            homes,
            groups: BTreeMap::new(),
            routes,
            clients: Clients::default(),
            examining: Examinations::default(),
            hosts: Hosts::default(),
            outbox: Outbox::default(),
            touched: BTreeSet::new(),
            late: BTreeSet::new(),
            resumed: BTreeSet::new(),
            is_ending: false,
            tickets: 0,
            ticked: Time(0),
            counters: Counters::default(),
        }
    }
}

/// The lane of a keyspace of this engine.
#[must_use]
pub fn lane(settings: Settings) -> Box<dyn Lane> {
    Box::new(Adapter::new(Serializable::new(settings)))
}
