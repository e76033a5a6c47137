//! A member that was left behind: a newer view of its group is known, and nobody can tell the
//! decisions between, because all who knew them have let go or kept only the last ones.
//!
//! Decisions are installed one after the other, since a member's duty as a source belongs to each
//! view; to jump over some is the last resort. Where just one is missing, the newer view itself
//! says which, and it is installed like any other. Otherwise two ways lead on:
//!
//! **It is no member of the newer view.** It leaves: it has acknowledged nothing in the views
//! between, and remains a source of what it acknowledged before. If it lacked data, or forgot, it
//! gets that from a majority of the newer view's members, who have heard all that was complete
//! before, and is a source then.
//!
//! **It is a member there too.** Whether it was one all along is not known: it may have been
//! replaced and chosen again, and tombstones may have been removed meanwhile. So it begins anew, as
//! a newcomer of that view with an empty slot, and gets its data from a majority of the view's
//! members, itself not counted. It does so when so many members have said that they stand in that
//! very view with all data. If this node has lost all that it held (a `memory` keyspace), they need
//! not have all data: it waits for that as a member of that view, beside others that may wait for
//! it, and has nothing to keep for them. This is safe:
//! - *Votes.* What it promised and accepted binds it in the decision that follows its old view
//!   alone. The newer view exists, so that decision was made without what it might still vote; it
//!   votes there no more, as after any install, and has never voted in a decision between, because
//!   only members that have installed a view vote on what follows it.
//! - *Leaving.* It installs a view that was decided, and never goes back (I1). The majority that
//!   stands in the newer view has left every older one, so nothing can still complete there: even
//!   if this node was chosen again in the last change, it comes no earlier than a newcomer may.
//! - *Its old acknowledgements* are not needed. A write that completed in its old view is held by a
//!   majority of that view less this node, and they left that view after they stored it. Any
//!   majority of that view without this node meets them; every newcomer since heard from such a
//!   majority, since this node has listed nothing of that view to anybody; and so any majority of a
//!   later view, this node not counted, has a member that holds the write. In a group of two there
//!   is no such majority: there this node may hold the only copy, keeps it and waits for a third.
//! - *Reads.* Until it has heard from a majority of complete members it answers "not yet". Then it
//!   holds all that completed before the newer view; what completes in that view reaches readers by
//!   quorums of that view, as with any member.

use super::conditions::recent;
use crate::linearizable::group::{Group, Outpaced, Standing, Status};
use crate::linearizable::message::{Known, Message};
use crate::linearizable::refill::gather::is_even;
use crate::linearizable::replicate::replica::remembers;
use crate::linearizable::{Context, Linearizable};
use crate::reconfigure::{Acceptor, InstallQueue};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::probe;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::view::{View, ViewId};

/// How long a member that was left behind asks for decisions before it goes without them.
const OUTPACED_AFTER: Span = Span::secs(2);
/// How often it asks at most: who cannot tell answers with its view, which leads here again.
const ASK_EVERY: Span = Span::millis(200);

impl Linearizable {
    /// Somebody tells of a view. If this node takes itself for a member of the group in an older
    /// one, it asks for the decisions between, and goes without them in the end.
    pub(crate) fn outpaced(&mut self, from: Incarnation, view: &View, cx: &mut Context<'_>) {
        let is_member_there = view.index_of(cx.me.node).is_some();
        let Some(group) = self.group_mut(view.id) else {
            return self.ask_for_a_split(from, view, cx);
        };
        if group.view.id.version >= view.id.version || !may_jump(group, is_member_there) {
            return;
        }
        let first = Outpaced { since: cx.now, asked: None };
        let outpaced = group.outpaced.get_or_insert(first);
        let is_patient = cx.now < outpaced.since + OUTPACED_AFTER;
        if outpaced.asked.is_none_or(|asked| cx.now >= asked + ASK_EVERY) {
            outpaced.asked = Some(cx.now);
            let view = group.view.id;
            // A question promises nothing.
            cx.fx.send_early(from, Message::DecisionsA { view });
        }
        if is_patient {
            return;
        }
        if let Some(change) = group.view.change_to(view) {
            // One change is missing, and the view says which.
            probe!("linearizable/change_derived");
            let follows = group.view.id;
            self.on_decided(from, follows, change, cx);
        } else if is_member_there {
            self.begin_anew(view, cx);
        } else {
            self.leave_behind(view, cx);
        }
    }

    /// Somebody tells of a view of another group that has taken the place of one that this node
    /// takes itself for a member of: that was split meanwhile. All members that it knows of may
    /// have left before, and let go; but who was there when it was split remembers as long as this
    /// node is a member.
    fn ask_for_a_split(&self, from: Incarnation, newer: &View, cx: &mut Context<'_>) {
        let is_gone = |group: &&Group| {
            let mine = &group.view;
            group.is_member()
                && mine.id.version < newer.id.version
                && mine.range.contains(newer.range.high)
        };
        if let Some(group) = self.durable.groups.values().find(is_gone) {
            probe!("linearizable/split_meanwhile");
            // A question promises nothing.
            cx.fx.send_early(from, Message::DecisionsA { view: group.view.id });
        }
    }

    /// Leaves the group: it has gone on without this node.
    fn leave_behind(&mut self, view: &View, cx: &mut Context<'_>) {
        let Some(group) = self.group_mut(view.id) else { return };
        let (was_ready, forgot) = (group.is_source(), !remembers(&group.record.status));
        // What it lacks it gets from members of this view, for those who count on it.
        let lacks = !was_ready && !forgot;
        let mut sources = view.members().to_vec();
        if is_even(view) {
            // Half of them is not enough: they may gather yet. So it counts as one of them.
            sources.push(cx.me.node);
        }
        let lacking = lacks.then_some((sources, view.id));
        probe!("linearizable/left_behind");
        let (slot, last) = (group.record.slot, group.view.id.version + 1);
        group.record.view = view.clone();
        group.view = Arc::new(view.clone());
        let parts = Vec::new();
        group.record.status = Status::Retired { was_ready, forgot, lacking, parts };
        group.record.acceptor = Acceptor::default();
        group.record.owed.clear();
        (group.leaver, group.have_all_gathered) = (None, false);
        group.queue = InstallQueue::default();
        (group.transfer, group.running, group.wished, group.outpaced) = (None, None, None, None);
        group.heard.clear();
        Self::persist(group, cx);
        let view = Arc::clone(&group.view);
        self.note_left(view.id.group, view.id.version, cx);
        // What was decided between is not known: it was a member of its last view, for sure.
        self.note_ended(view.id.group, slot, last, cx);
        self.learn(&view, cx);
        self.begin_transfer(view.id, cx);
        self.tell_now(cx);
    }

    /// Becomes a newcomer of a view of which it is a member, if enough others stand there.
    fn begin_anew(&mut self, view: &View, cx: &mut Context<'_>) {
        let me = cx.me.node;
        let is_memory = self.settings.durability == Durability::Memory;
        let Some(group) = self.group(view.id) else { return };
        let forgot = !remembers(&group.record.status);
        // Or it knows already that nothing was left where it is, and the other has not begun anew
        // since: if it has, that was long ago.
        let lost = &group.record.lost;
        let stands_there = |node| {
            let heard = recent(group, node, cx.now).filter(|_| node != me)?;
            let who = Incarnation { node, start: heard.start };
            let has_lost_all =
                is_memory && (forgot || [cx.me, who].iter().all(|it| lost.contains(it)));
            let counts = match heard.standing {
                Standing::Ready | Standing::Split => true,
                Standing::Busy | Standing::Forgot | Standing::Gathering => has_lost_all,
                Standing::Outside | Standing::Learned => false,
            };
            (heard.version == view.id.version && counts).then_some(heard.known)
        };
        let standing = view.members().iter().filter_map(|node| stands_there(*node));
        let stands: Vec<_> = standing.collect();
        if stands.len() < view.majority() {
            return;
        }
        probe!("linearizable/begun_anew");
        let before = group.record.clone();
        let id: ViewId = view.id;
        let sources = view.members().to_vec();
        // As who invites says it (`refill::epoch`).
        let known = stands.into_iter().fold(group.known(), Known::max);
        self.set_aside(&before, known.generation, cx);
        let slot = self.fresh_slot(cx);
        let status = Status::Busy { sources, since: id, forgot };
        let mut record = Self::newborn(view.clone(), status, slot);
        (record.generation, record.epoch) = (known.generation, known.epoch);
        record.owed = before.owed;
        record.owed.retain(|owed| view.index_of(owed.newcomer).is_some());
        self.take_up(record, cx);
        self.learn(&Arc::new(view.clone()), cx);
        self.begin_transfer(id, cx);
        self.tell_now(cx);
    }
}

/// Whether a node in this condition may go on without the decisions between.
fn may_jump(group: &Group, is_member_there: bool) -> bool {
    match &group.record.status {
        Status::Ready | Status::Gathering | Status::Busy { .. } | Status::Forgot => true,
        // Who was chosen again is invited.
        Status::Retired { parts, .. } => parts.is_empty() && !is_member_there,
        Status::Learner { .. } => false,
    }
}
