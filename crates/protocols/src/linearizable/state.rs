//! The engine's state: what is durable and what is volatile, apart, and what must always hold.

use super::coordinate::locate::Unrouted;
use super::coordinate::operations::Operations;
use super::coordinate::preference::Preference;
use super::coordinate::routes::Routes;
use super::coordinate::rtt::RoundTrip;
use super::group::{Group, Progress, Record, Standing};
use super::keys::{Slot, Stored, group_key, left_key, state_bytes, token_of};
use super::message::{Known, Stamp};
use super::refill::fetch::Budget;
use super::replicate::compare::Comparing;
use super::replicate::load::Meter;
use super::replicate::serve::TransferRequest;
use super::replicate::sweep::Sweep;
use super::views::invite::Invitations;
use super::{Context, Linearizable};
use crate::pacing::Pacing;
use crate::quorum::CrashVector;
use crate::reconfigure::Rounds;
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Bound;
use quorate_kernel::arena::Arena;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::mutant;
use quorate_kernel::ring::{Closing, Ring};
use quorate_kernel::time::Time;
use quorate_kernel::view::{Range, View, ViewId};

/// What survives a restart.
#[derive(Debug, Default)]
pub(crate) struct Durable {
    /// The groups this node takes part in, or took part in and may still be asked for.
    pub groups: BTreeMap<GroupId, Group>,
    /// Groups that this node has left, and in which version. It never goes back to an older one,
    /// however late an invitation is: it has voted there.
    pub left: BTreeMap<GroupId, u64>,
    /// With which version the memberships ended whose slots hold data for others.
    pub ended: BTreeMap<(GroupId, Slot), u64>,
    /// Slots and their ranges that were given up and may not be empty yet.
    pub garbage: BTreeSet<(Slot, Range)>,
    /// The highest slot used.
    pub slot: Slot,
    /// Members that told this node that they forgot.
    pub crashes: CrashVector,
}

/// What a restart begins anew.
#[derive(Debug)]
pub(crate) struct Volatile {
    /// Where to send; a hint, never the truth.
    pub routes: Routes,
    /// What this node believes of the ring, once it was told.
    pub ring: Option<Arc<Ring>>,
    /// Whether anybody in it is suspected.
    pub has_suspects: bool,
    /// When it was told last.
    pub ring_at: Time,
    /// Members that forgot, from the durable ones and from every stamp seen.
    pub crashes: CrashVector,
    pub operations: Operations,
    /// Room for the keys and records of operations.
    pub arena: Arena,
    pub unrouted: Unrouted,
    pub invitations: Invitations,
    /// Where this start draws its ballots.
    pub rounds: Option<Rounds>,
    /// How much this node has to do.
    pub meter: Meter,
    /// Where it has how much to do.
    pub weighing: super::replicate::weigh::Weighing,
    /// The last round of any transfer: none is used twice in one start.
    pub round: u64,
    /// How much transfers may fetch.
    pub budget: Budget,
    /// When transfers are looked after next, if a timer is armed for it.
    pub transfers_at: Option<Time>,
    /// What others ask of this node for their transfers.
    pub serving: Pacing<TransferRequest>,
    /// How far slots that were given up are emptied.
    pub sweep: Sweep,
    /// How far what is here was compared with what peers hold.
    pub comparing: Comparing,
    pub rtt: RoundTrip,
    pub preference: Preference,
    pub counters: Counters,
    /// When the groups are maintained next, if a timer is armed for it.
    pub maintain_at: Option<Time>,
    /// When they were maintained last.
    pub maintained_at: Time,
    /// When every group's standing was last told to everybody concerned.
    pub told_at: Option<Time>,
}

/// How operations went, for metrics.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// Gets whose first quorum agreed, or agreed once the remaining reply was in.
    pub reads_in_one_round: u64,
    /// Gets that imposed what they read.
    pub write_backs: u64,
    /// Gets that asked again for a value after digests.
    pub fetches: u64,
    /// Read phases of puts and deletes that led to a write.
    pub queries: u64,
    /// Write phases that reached a quorum.
    pub writes: u64,
    /// Pages of scans merged.
    pub pages: u64,
    /// Questions repeated.
    pub retries: u64,
    /// Operations whose deadline passed.
    pub expired: u64,
    /// Operations refused because too many members are suspected.
    pub failed_fast: u64,
    /// Operations moved to a newer view.
    pub retargets: u64,
    /// Views installed.
    pub installs: u64,
    /// Keys moved by transfers.
    pub moved_keys: u64,
    /// Bytes of keys and records moved by transfers.
    pub moved_bytes: u64,
    /// Tombstones removed.
    pub purged: u64,
    /// Times that this node was asked to learn a group and had too many.
    pub groups_refused: u64,
    /// Records that were missing or older here, and that a comparison or a get brought.
    pub restored: u64,
}

impl Volatile {
    /// Whether the cluster is being shut down: nothing new is begun.
    pub fn is_closing(&self) -> bool {
        self.ring.as_ref().is_some_and(|ring| ring.closing != Closing::No)
    }

    pub fn new(crashes: CrashVector) -> Volatile {
        Volatile {
            routes: Routes::default(),
            ring: None,
            has_suspects: false,
            ring_at: Time(0),
            crashes,
            operations: Operations::default(),
            arena: Arena::default(),
            unrouted: Unrouted::default(),
            invitations: Invitations::default(),
            rounds: None,
            meter: Meter::default(),
            weighing: super::replicate::weigh::Weighing::default(),
            round: 0,
            budget: Budget::default(),
            transfers_at: None,
            serving: Pacing::default(),
            sweep: Sweep::default(),
            comparing: Comparing::default(),
            rtt: RoundTrip::default(),
            preference: Preference::default(),
            counters: Counters::default(),
            maintain_at: None,
            maintained_at: Time(0),
            told_at: None,
        }
    }
}

impl Linearizable {
    /// The group that somebody who aims at a view means.
    pub(super) fn group(&self, view: ViewId) -> Option<&Group> {
        self.durable.groups.get(&view.group)
    }

    /// The same, to be changed.
    pub(super) fn group_mut(&mut self, view: ViewId) -> Option<&mut Group> {
        self.durable.groups.get_mut(&view.group)
    }

    /// How far a group has come here: nowhere, if it is not known.
    pub(super) fn progress(&self, view: ViewId) -> Progress {
        self.group(view).map_or(Progress::default(), Group::progress)
    }

    /// Whether a group's data stands in a slot that was handed out.
    pub(super) fn has_slot(&self, group: &Group) -> bool {
        group.record.slot <= self.durable.slot
    }

    /// The group that follows another in the order of their ids; the first one after none.
    pub(super) fn group_after(&self, last: Option<GroupId>) -> Option<ViewId> {
        let after = last.map_or(Bound::Unbounded, Bound::Excluded);
        let (_, group) = self.durable.groups.range((after, Bound::Unbounded)).next()?;
        Some(group.view.id)
    }

    /// The stamp of a reply to somebody who aims at `asked`, about a token.
    ///
    /// Of a group that this node does not know it says so with a view of version 0 in no group's
    /// name, which no operation aims at.
    ///
    /// Of those that forgot it says what counts for its view: its members. A reply counts for no
    /// other view, and who forgot was heard by a quorum of each view that it is in.
    pub(super) fn stamp(&mut self, asked: ViewId, token: u64) -> Stamp {
        let newest = self.volatile.routes.find(token);
        let hint = newest.filter(|view| view.id.version > asked.version);
        let hint = hint.map(|view| Box::new(View::clone(view)));
        let Some(group) = self.durable.groups.get_mut(&asked.group) else {
            let (view, standing) = (ViewId::default(), Standing::Outside);
            let (known, crashes) = (Known::default(), CrashVector::default());
            return Stamp { view, standing, known, crashes, hint };
        };
        let view = group.view.id;
        let crashes = match mutant!("stamps_say_all") {
            true => self.volatile.crashes.clone(),
            false => self.volatile.crashes.about(group.view.members()),
        };
        assert!(group.stamped <= view.version, "replies are stamped with rising views (I1)");
        group.stamped = view.version;
        let (standing, known) = (group.standing(), group.known());
        Stamp { view, standing, known, crashes, hint }
    }

    /// Writes a group's record, durably before anything stamped with it leaves.
    pub(super) fn persist(group: &Group, cx: &mut Context<'_>) {
        cx.fx.put_state(group_key(group.view.id.group), state_bytes(&group.record));
    }

    /// Takes up a group: a membership, or what a restart has found.
    pub(super) fn take_up(&mut self, record: Record, cx: &mut Context<'_>) {
        let group = Group::new(record);
        Self::persist(&group, cx);
        self.durable.groups.insert(group.view.id.group, group);
    }

    /// Notes, durably, that this node is no member of a group from this version on.
    pub(super) fn note_left(&mut self, group: GroupId, version: u64, cx: &mut Context<'_>) {
        self.durable.left.insert(group, version);
        cx.fx.put_state(left_key(group), state_bytes(&version));
    }

    /// A slot that no membership has used.
    pub(super) fn fresh_slot(&mut self, cx: &mut Context<'_>) -> Slot {
        let next = self.durable.slot.0.checked_add(1);
        self.durable.slot = Slot(next.expect("a node joins groups fewer than 2^32 times"));
        cx.fx.put_state(Slot::key(), state_bytes(&self.durable.slot));
        self.durable.slot
    }

    /// The stored form of a wire key in a group, if the group is known and the key lies in its
    /// range.
    pub(super) fn stored_key(&mut self, view: ViewId, key: &Bytes) -> Option<Bytes> {
        let group = self.durable.groups.get(&view.group)?;
        let (slot, arena) = (group.record.slot, &mut self.volatile.arena);
        group.view.range.contains(token_of(key)).then(|| slot.stored_in(key, arena))
    }

    /// What must hold between two inputs.
    pub(super) fn check_state(&self, me: Option<NodeId>) {
        for group in self.durable.groups.values() {
            if let Some(me) = me {
                group.check(me);
            }
            assert!(self.has_slot(group), "slots are handed out once");
        }
        self.check_ranges();
        self.volatile.operations.check();
    }

    /// No two groups of which this node is a member share a token (I8, as far as one node sees).
    fn check_ranges(&self) {
        let members = self.durable.groups.values().filter(|group| group.is_member());
        let ranges: Vec<Range> = members.map(|group| group.view.range).collect();
        for range in &ranges {
            let at_high = ranges.iter().filter(|other| other.contains(range.high)).count();
            assert_eq!(at_high, 1, "ranges of one node's memberships are disjoint");
        }
    }
}
