//! Both ends of a transfer's questions: what a source answers, and what becomes of its lists.

use super::gather::{enough, is_even};
use super::held::{heads_of, newest_of};
use super::transfer::{Quorums, Transfer};
use crate::linearizable::group::{Group, Standing, Status};
use crate::linearizable::keys::{Stored, state_bytes, token_of};
use crate::linearizable::message::{Beat, Bounds, Message, Stamp};
use crate::linearizable::replicate::serve::TransferRequest;
use crate::linearizable::wire::page;
use crate::linearizable::{Context, Linearizable};
use crate::quorum::{CrashVector, refill_quorum};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::FETCH_BYTES_MAX;
use quorate_kernel::mutant;
use quorate_kernel::operation::Cursor;
use quorate_kernel::probe;
use quorate_kernel::storage::Durability;
use quorate_kernel::view::{View, ViewId};

impl Group {
    /// Prepares a transfer for the case that nobody is left to ask ([`super::amnesia`]).
    fn expect_loss(&mut self, transfer: &mut Transfer, is_lasting: bool, me: Incarnation) {
        transfer.lasting = is_lasting;
        transfer.is_member_refill = self.record.status == Status::Forgot && !is_lasting;
        if is_lasting {
            // Whom it concerned then may not be all that it concerns now.
            self.record.lost.clear();
        } else if self.record.lost.contains(&me) {
            transfer.hear_last_left(&self.record.lost, me.node);
        }
        transfer.ask_members(self.view.members(), me.node);
    }
}

impl Transfer {
    /// A loss is found out with all members, or it might be counted into an epoch that is there;
    /// those that have come since too.
    pub fn ask_members(&mut self, members: &[NodeId], me: NodeId) {
        for node in members.iter().filter(|node| **node != me) {
            if self.add_source(*node) {
                self.ask_again();
            }
        }
    }
}

impl Linearizable {
    /// Whether a node that forgot has lost the last interval alone.
    pub(crate) fn is_lasting(&self) -> bool {
        matches!(self.settings.durability, Durability::Periodic { .. })
    }

    /// Begins the transfer that a group's status asks for, if it asks for one.
    pub(crate) fn begin_transfer(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let me = cx.me.node;
        let is_lasting = self.is_lasting();
        // An answer to an earlier transfer says nothing of this one, nor confirms anything.
        let round = self.volatile.round + 1;
        let Some(group) = self.durable.groups.get_mut(&view.group) else { return };
        let others = |members: &[NodeId]| -> Vec<NodeId> {
            members.iter().copied().filter(|node| *node != me).collect()
        };
        let of_the_view = || {
            let others = others(group.view.members());
            // In a group of one nobody else holds anything.
            let needed = refill_quorum(&group.view).min(others.len());
            (others, needed)
        };
        let (staying, leaver) = (of_the_view().0, group.leaver);
        let with_leaver = || -> Vec<NodeId> { staying.iter().copied().chain(leaver).collect() };
        let majority_of = |members: &[NodeId]| (others(members), members.len() / 2 + 1);
        let enough_of = |members: &[NodeId]| (others(members), enough(members, me));
        let (id, majority) = (group.view.id, group.view.majority());
        let asked: Option<(ViewId, Quorums, bool)> = match &group.record.status {
            Status::Ready
            | Status::Retired { forgot: false, lacking: None, .. }
            | Status::Learner { is_done: true, .. } => None,
            Status::Retired { forgot: false, lacking: Some((sources, since)), .. } => {
                Some((*since, vec![enough_of(sources)], false))
            }
            Status::Retired { forgot: true, lacking, .. } => {
                let sources = lacking.as_ref().map(|(sources, _)| enough_of(sources));
                let quorums = sources.into_iter().chain([majority_of(group.view.members())]);
                Some((id, quorums.collect(), true))
            }
            Status::Learner { sources, .. } => Some((id, vec![majority_of(sources)], false)),
            Status::Busy { sources, since, forgot: false } => {
                Some((*since, vec![enough_of(sources)], false))
            }
            // What members hold now: of one that has come back since, what it kept of its earlier
            // membership lacks what it acknowledged with this node. As many as in any refill hold
            // what was there before too. Who was a source then is asked whether a copy is left.
            Status::Busy { sources, since, forgot: true }
                if since.version < id.version && of_the_view().1 > 0 =>
            {
                Some((id, vec![(others(sources), 0), of_the_view()], true))
            }
            Status::Busy { sources, since, forgot: true } => {
                Some((*since, vec![enough_of(sources), of_the_view()], true))
            }
            Status::Forgot => Some((id, vec![of_the_view()], true)),
            // It is one of them itself.
            Status::Gathering => Some((id, vec![(with_leaver(), majority - 1)], false)),
        };
        let mut transfer = asked.map(|(since, quorums, forgot)| {
            let transfer = Transfer::new(round, since, &group.view.range, quorums, forgot);
            match &group.record.status {
                Status::Forgot | Status::Busy { forgot: true, .. }
                    if is_even(&group.view) && !group.have_all_gathered =>
                {
                    transfer.or_whole(with_leaver(), majority)
                }
                _ => transfer,
            }
        });
        if let Some(transfer) = transfer.as_mut().filter(|_| group.lacks_data()) {
            group.expect_loss(transfer, is_lasting, cx.me);
        }
        let begun = transfer.as_ref().map(|transfer| transfer.round);
        group.transfer = transfer;
        self.volatile.round = begun.unwrap_or(self.volatile.round);
        self.go_on(view, cx);
    }

    /// Everything is here.
    pub(crate) fn end_transfer(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let Some(group) = self.group_mut(view) else { return };
        probe!("linearizable/transferred");
        match &mut group.record.status {
            Status::Learner { is_done, .. } => *is_done = true,
            Status::Retired { was_ready, forgot, lacking, .. } => {
                (*was_ready, *forgot, *lacking) = (true, false, None);
            }
            Status::Busy { since, .. }
                if since.version < group.view.id.version && is_even(&group.view) =>
            {
                group.record.status = Status::Gathering;
            }
            status => *status = Status::Ready,
        }
        Self::persist(group, cx);
        match group.record.status {
            Status::Gathering => self.begin_transfer(view, cx),
            _ => group.transfer = None,
        }
        self.tell_now(cx);
    }

    /// A node that lacks data asks this one to list what it holds.
    pub(crate) fn on_list(
        &mut self,
        asker: Incarnation,
        (round, since): (u64, ViewId),
        (epoch, forgot): (u64, bool),
        from: Cursor,
        cx: &mut Context<'_>,
    ) {
        if forgot && self.durable.crashes.raise(asker.node, asker.start) {
            probe!("linearizable/peer_forgot");
            self.volatile.crashes.raise(asker.node, asker.start);
            cx.fx.put_state(CrashVector::key(), state_bytes(&self.durable.crashes));
        }
        let (durable, volatile) = (&self.durable.crashes, &self.volatile.crashes);
        let is_heeded = volatile.of(asker.node) >= durable.of(asker.node);
        invariant!(is_heeded, "who is known to have forgotten is not counted");
        let before = self.progress(since);
        self.come_to_epoch(since, epoch, cx);
        invariant!(before.is_behind(self.progress(since)), "no epoch goes back");
        self.on_question(asker, TransferRequest::List { round, since, from }, cx);
    }

    /// Answers a question; returns about how many bytes were handled for it.
    pub(crate) fn answer_question(
        &mut self,
        asker: Incarnation,
        question: TransferRequest,
        cx: &mut Context<'_>,
    ) -> usize {
        match question {
            TransferRequest::List { round, since, from } => {
                self.answer_list(asker, round, since, from, cx)
            }
            TransferRequest::Fetch { round, since, page } => {
                self.answer_fetch(asker, (round, since), page, cx)
            }
            TransferRequest::Compare { .. } | TransferRequest::Records { .. } => {
                self.answer_comparison(asker, question, cx)
            }
        }
    }

    fn answer_list(
        &mut self,
        asker: Incarnation,
        round: u64,
        since: ViewId,
        from: Cursor,
        cx: &mut Context<'_>,
    ) -> usize {
        let mut stamp = self.stamp(since, from.token);
        // The asker may be in a view that this node does not know.
        stamp.crashes.clone_from(&self.volatile.crashes);
        let list_keys = self.settings.pace.list_keys;
        let (group, held) = (self.group(since), self.held_since(since));
        // Before this node has left the older view, something may still complete there.
        let token = from.token;
        let has_left = move |group: &&Group| {
            group.view.id.version >= since.version && group.view.range.contains(token)
        };
        let (mut handled, mut is_source) = (0, false);
        let message = match group.filter(has_left).zip(held) {
            Some((group, (slots, complete))) => {
                is_source = complete;
                if is_source && !mutant!("sources_tell_what_they_heard") {
                    // Not what it has heard since.
                    stamp.known = group.record.known();
                }
                if group.record.status == Status::Gathering {
                    stamp.standing = Standing::Gathering;
                }
                // The asker may know that what a source that forgot holds is all there is.
                let range = &group.view.range;
                let (page, next) = heads_of(&slots, range, (&from, list_keys), cx);
                if next.is_some() {
                    probe!("linearizable/transfer_of_pages");
                }
                // To look through a page takes about as long as to copy some times as much.
                handled = page.len() * 4;
                let lost = group.record.lost.clone();
                let bounds = Box::new(Bounds { from, next });
                Message::ListB { round, since, stamp, is_source, bounds, lost, page }
            }
            None => {
                let (page, next, lost) = (Bytes::new(), Some(from.clone()), Vec::new());
                let bounds = Box::new(Bounds { from, next });
                Message::ListB { round, since, stamp, is_source: false, bounds, lost, page }
            }
        };
        // It rests on the view that is installed, and on what this node has acknowledged, which is
        // durable. That a record is shown whose write is not yet, promises nothing: the asker has
        // nothing until it has the record itself.
        cx.fx.send_after_state(asker, message);
        // In `periodic` one whose memberships are over, and that lacks nothing more, is heard as
        // one that lacks data, and not waited for: what it holds is part of what is left.
        let is_over = self.is_lasting() && !is_source && !mutant!("silent_once_over");
        if let Some(group) = self.group(since).filter(has_left)
            && (group.lacks_data() || is_over && group.is_asked())
            && (!is_source || mutant!("takes_back_what_it_kept"))
        {
            let asked = group.transfer.iter().flat_map(|transfer| &transfer.sources);
            let awaits = asked.map(|source| source.node).collect();
            // As above; and the start that it speaks of began with what is on disk.
            let epoch = group.record.epoch;
            cx.fx.send_after_state(asker, Message::Lacks { round, since, awaits, epoch });
        }
        handled
    }

    /// A source listed what it holds.
    pub(crate) fn on_list_reply(
        &mut self,
        from: Incarnation,
        (round, since, stamp): (u64, ViewId, &Stamp),
        (is_source, lost): (bool, Vec<Incarnation>),
        (bounds, entries): (Bounds, Bytes),
        cx: &mut Context<'_>,
    ) {
        self.volatile.crashes.merge(&stamp.crashes);
        if let Some(hint) = &stamp.hint {
            self.learn(&Arc::new(View::clone(hint)), cx);
        }
        let Some((view, _)) = self.transfer_of(since) else { return };
        let before = self.progress(view);
        self.come_to_epoch(view, stamp.known.epoch, cx);
        self.come_to_generation(view, stamp.known.generation, cx);
        if is_source {
            self.take_age(view, stamp.known.generation, cx);
        }
        if self.group(view).is_some_and(|group| stamp.known.epoch == group.record.epoch) {
            self.on_told_of_loss(view, lost, cx);
        }
        invariant!(before.is_behind(self.progress(view)), "no group goes back");
        let newest = self.volatile.round;
        let Some(group) = self.group_mut(view) else { return };
        let is_counted = group.transfer.as_ref().is_none_or(|it| it.round <= newest);
        invariant!(is_counted, "rounds come from one counter");
        if stamp.view == ViewId::default() && group.view.index_of(from.node).is_none() {
            return self.hear_nothing(from, (round, since), (view, bounds), cx);
        }
        let has_left = stamp.view.group == since.group && stamp.view.version >= since.version;
        if is_ahead(group, from.node, stamp) {
            probe!("linearizable/ahead_after_loss");
            let view = group.view.id;
            // A question promises nothing.
            return cx.fx.send_early(from, Message::DecisionsA { view });
        }
        let is_outlived = stamp.known.generation.enforces_less(group.known().generation);
        if is_outlived && !is_source {
            // What it has kept may be older than tombstones that were removed: it gives that up
            // when it hears of this generation.
            let beat = Beat { asks: false, ..group.beat() };
            return cx.fx.send(from, Message::Beats(vec![beat]));
        }
        let is_of_epoch = stamp.known.epoch == group.record.epoch;
        // Who is ready in a later view need not have gathered in this one.
        let holds_all = stamp.standing == Standing::Ready && stamp.view == since;
        if has_left
            && is_of_epoch
            && let Some(transfer) = group.transfer.as_mut().filter(|t| t.first_round <= round)
        {
            let is_news = is_source && transfer.note_whole(from);
            // What it listed before its data was complete may arrive late.
            let is_heard = is_source || transfer.hears_lacking(from);
            if !is_heard || !is_source && transfer.is_whole(from.node) {
                return;
            }
            transfer.list((from.node, holds_all), bounds, entries);
            self.go_on(view, cx);
            if is_news {
                self.compare_words(view, cx);
            }
        }
    }

    /// A source is no member: it was chosen and never came, or it was let go. It has nothing and
    /// gets nothing.
    fn hear_nothing(
        &mut self,
        from: Incarnation,
        (round, since): (u64, ViewId),
        (view, bounds): (ViewId, Bounds),
        cx: &mut Context<'_>,
    ) {
        let Some(group) = self.group_mut(view) else { return };
        let epoch = group.record.epoch;
        let is_last_left =
            [cx.me, from].iter().all(|concerned| group.record.lost.contains(concerned));
        if is_last_left && let Some(transfer) = &mut group.transfer {
            let bounds = Bounds { next: None, ..bounds };
            transfer.list((from.node, false), bounds, Bytes::new());
            self.go_on(view, cx);
        }
        self.on_source_lacks(from, (round, since), (&[], epoch), cx);
    }

    /// Records that a node lacks, as many as make one piece of work.
    fn answer_fetch(
        &mut self,
        asker: Incarnation,
        (round, since): (u64, ViewId),
        entries: Bytes,
        cx: &mut Context<'_>,
    ) -> usize {
        let Some((group, (slots, _))) = self.group(since).zip(self.held_since(since)) else {
            return 0;
        };
        let mut page = BytesMut::with_capacity(entries.len().max(FETCH_BYTES_MAX));
        for (key, _) in page::entries(entries) {
            if page.len() >= FETCH_BYTES_MAX {
                break;
            }
            if group.view.range.contains(token_of(&key))
                && let Some(record) = newest_of(&slots, &key, cx)
            {
                page::push(&mut page, &key, record.bytes());
            }
        }
        let handled = page.len();
        let page = page.freeze();
        // Records are handed on as their writers sent them, here durable or not: the asker counts
        // what it has stored itself.
        cx.fx.send_early(asker, Message::FetchB { round, since, page });
        handled
    }
}

/// Whether a member of this one's view is beyond it, after a loss: whoever it has invited since may
/// be in the epoch before ([`super::epoch`]).
fn is_ahead(group: &Group, from: NodeId, stamp: &Stamp) -> bool {
    let is_after_loss = group.transfer.as_ref().is_some_and(|it| !it.lost.is_empty());
    let has_gone_on =
        stamp.view.version > group.view.id.version || stamp.standing == Standing::Split;
    let is_member = group.view.index_of(from).is_some();
    let asks = !mutant!("leaver_stays_behind") || group.is_member();
    is_after_loss && is_member && has_gone_on && asks
}
