//! What is done now and then for every group: saying how it stands here, catching up, letting go of
//! what nobody needs any more (CATS §5, Garbage Collector).

use super::conditions::recent;
use crate::linearizable::group::{Heard, Owed, Standing, Status};
use crate::linearizable::message::{Beat, Message};
use crate::linearizable::timer::Timer;
use crate::linearizable::{Context, Linearizable};
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::BEATS_MAX;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::view::{View, ViewId};

/// How often news of peers may lead to a maintenance between two that are due.
const NEWS_PER_MAINTENANCE: u64 = 16;
/// After this a learner that nobody asks for gives up what it copied: who is done is
/// asked for only now and then, who is not may wait for sources that hold nothing any more.
const LEARNED_IDLE: Span = Span::secs(60);
const LEARNING_IDLE: Span = Span::secs(10);
/// After this a member that has said nothing of a view may have left it.
const UNHEARD: Span = Span::secs(5);

impl Linearizable {
    /// Makes sure that the groups are maintained at this time at the latest.
    pub(crate) fn maintain_at(&mut self, at: Time, cx: &mut Context<'_>) {
        if self.volatile.maintain_at.is_none_or(|armed| at < armed) {
            self.volatile.maintain_at = Some(at);
            cx.fx.arm(Timer::Maintain, at);
        }
    }

    /// Something has changed that others wait for: they are told on the next occasion.
    pub(crate) fn tell_now(&mut self, cx: &mut Context<'_>) {
        self.volatile.told_at = None;
        self.maintain_at(cx.now, cx);
    }

    /// It is time to maintain the groups.
    pub(crate) fn on_maintain(&mut self, cx: &mut Context<'_>) {
        (self.volatile.maintain_at, self.volatile.maintained_at) = (None, cx.now);
        let pace = self.settings.pace;
        let is_due = self.volatile.told_at.is_none_or(|told| cx.now >= told + pace.beat);
        if is_due {
            self.volatile.told_at = Some(cx.now);
            self.beat(cx);
        }
        let (mut is_busy, mut last) = (false, None);
        while let Some(view) = self.group_after(last) {
            last = Some(view.group);
            is_busy |= self.maintain_group(view, cx);
        }
        self.propose_all(cx);
        self.maintain_comparison(cx);
        self.tell_load(cx);
        self.sweep_rest(cx);
        if is_busy || self.volatile.ring.is_some() {
            self.maintain_at(cx.now + pace.maintain, cx);
        }
    }

    /// Tells everybody concerned how this node stands in its groups, one frame for each node.
    fn beat(&mut self, cx: &mut Context<'_>) {
        let mut beats: Vec<(NodeId, Beat)> = Vec::new();
        for group in self.durable.groups.values() {
            if super::install::is_split(group) {
                // Who still asks is answered.
                continue;
            }
            let (members, owed) = (group.view.members(), &group.record.owed);
            let newcomers = owed.iter().map(|owed| owed.newcomer).enumerate();
            let is_first = |(place, node): &(usize, NodeId)| {
                !members.contains(node) && owed[..*place].iter().all(|one| one.newcomer != *node)
            };
            let newcomers = newcomers.filter(is_first).map(|(_, node)| node);
            let others =
                members.iter().copied().chain(newcomers).filter(|node| *node != cx.me.node);
            let beat = group.beat();
            beats.extend(others.map(|node| (node, beat)));
        }
        // The sort is stable: for each node the groups stay in their order.
        beats.sort_by_key(|(node, _)| *node);
        for list in beats.chunk_by(|(one, _), (other, _)| one == other) {
            for part in list.chunks(BEATS_MAX) {
                // What a beat says is recorded as protocol state, and data before it.
                let part: Vec<Beat> = part.iter().map(|(_, beat)| *beat).collect();
                cx.fx.send(list[0].0, Message::Beats(part));
            }
        }
    }

    /// How a peer stands in groups that both know.
    pub(crate) fn on_beats(&mut self, from: Incarnation, beats: Vec<Beat>, cx: &mut Context<'_>) {
        let (mut replies, mut has_news) = (Vec::new(), false);
        for beat in beats {
            let Some(group) = self.group_mut(beat.view) else {
                self.tell_stranger(from, &beat, cx);
                continue;
            };
            let progress = group.progress();
            let Beat { view, standing, known, asks } = beat;
            let (start, version) = (from.start, view.version);
            let heard = Heard { start, version, standing, known, at: cx.now };
            let before = group.heard.insert(from.node, heard);
            let is_news = before.is_none_or(|before| {
                (before.version, before.standing) != (heard.version, heard.standing)
            });
            // The next step may have waited for just that.
            let is_awaited = group.wished.is_some() || !group.is_member();
            has_news |= is_news && is_awaited;
            let (mine, installed) = (group.view.id, group.installed().id.version);
            let is_learner = group.is_learner();
            if asks || super::install::is_split(group) && standing != Standing::Split {
                // An answer asks nothing, or two could answer each other for ever.
                replies.push(Beat { asks: false, ..group.beat() });
            }
            if view.version > installed && !is_learner {
                // A question promises nothing.
                cx.fx.send_early(from, Message::DecisionsA { view: mine });
            } else if view.version < installed && standing != Standing::Learned {
                self.on_decisions_asked(from, view, cx);
            }
            if !mutant!("beats_without_epoch") {
                self.come_to_epoch(view, known.epoch, cx);
            }
            self.come_to_generation(view, known.generation, cx);
            invariant!(progress.is_behind(self.progress(view)), "no group goes back");
        }
        invariant!(replies.len() <= BEATS_MAX, "what is answered fits one frame");
        if !replies.is_empty() {
            cx.fx.send(from, Message::Beats(replies));
        }
        if has_news {
            // Not each time: what is told on that occasion may be news to the other again.
            let soon = self.volatile.maintained_at
                + Span(self.settings.pace.maintain.0 / NEWS_PER_MAINTENANCE);
            self.maintain_at(cx.now.max(soon), cx);
        }
    }

    /// A peer takes this node for one of a group that it does not know any more.
    fn tell_stranger(&self, to: Incarnation, beat: &Beat, cx: &mut Context<'_>) {
        if !matches!(beat.standing, Standing::Learned | Standing::Outside) {
            self.tell_who_goes_on(to, beat.view, cx);
        }
    }

    /// Tells of the newest view of a group that is known here, if it is newer than the peer's.
    pub(crate) fn tell_who_goes_on(&self, to: Incarnation, view: ViewId, cx: &mut Context<'_>) {
        let newest = self.volatile.routes.of(view.group);
        if let Some(newest) = newest.filter(|newest| newest.id.version > view.version) {
            // A hint.
            cx.fx.send_early(to, Message::LocateB { view: View::clone(newest) });
        }
    }

    /// Maintains one group; returns whether it must be maintained again soon.
    fn maintain_group(&mut self, view: ViewId, cx: &mut Context<'_>) -> bool {
        self.forget_debts(view, cx);
        let Some(group) = self.group(view) else { return false };
        let is_learner = group.is_learner();
        let is_owing = !group.record.owed.is_empty() && !is_learner;
        // Who has left invites too: the members that stay may be too few for the newcomer. But not
        // each time: who is invited in vain tells at once, and that leads here again.
        if is_owing && cx.now >= group.touched + self.settings.pace.maintain {
            self.invite_owed(view, cx);
        }
        let Some(group) = self.group(view) else { return false };
        match &group.record.status {
            Status::Retired { parts, .. } if parts.is_empty() => {
                if !mutant!("leavers_seek_nobody") {
                    self.seek_members(view, cx);
                }
                self.release(view, cx)
            }
            Status::Retired { .. } => self.maintain_parent(view, cx),
            Status::Learner { is_done, .. } => {
                let idle = if *is_done { LEARNED_IDLE } else { LEARNING_IDLE };
                let is_vain = self.is_leaving(cx.me.node) && !mutant!("leaver_learns");
                if is_vain || cx.now >= group.touched + idle {
                    self.let_go(view, cx);
                }
                true
            }
            _ => {
                self.seek_members(view, cx);
                self.decide_alone(view, cx);
                self.release_kept(view, cx);
                if let Some(group) = self.group_mut(view) {
                    group.note_gathered(cx);
                }
                self.maintain_purge(view, cx) || is_owing
            }
        }
    }

    /// Asks who holds a group's range, if some other member has long said nothing of its view:
    /// perhaps the group has gone on, and those who knew have let go of it and forgotten, or are
    /// gone. Who has left waits for them too.
    fn seek_members(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let Some(group) = self.group_mut(view) else { return };
        let is_heard = |node: &NodeId| {
            let heard = recent(group, *node, cx.now);
            *node == cx.me.node || heard.is_some_and(|said| said.version == group.view.id.version)
        };
        if group.view.members().iter().all(is_heard) {
            group.unheard = None;
        } else if cx.now >= *group.unheard.get_or_insert(cx.now) + UNHEARD {
            probe!("linearizable/members_sought");
            let token = group.view.range.high;
            self.seek_news(token, cx);
        }
    }

    /// Newcomers that hold everything are owed nothing more; nor are those that were replaced since
    /// the group was split, as one is whose directory was lost: nobody of that name will come.
    ///
    /// One that was replaced before it came is owed its invitation until it has come, or every
    /// member holds everything. Who replaced it needs a majority of the view that it was chosen
    /// for, and one of the others may have forgotten: then what it would have heard is missing
    /// (CATS §4.1, the data chain), although those who have it are there.
    fn forget_debts(&mut self, view: ViewId, cx: &mut Context<'_>) {
        let Linearizable { durable, volatile, .. } = self;
        let Some(group) = durable.groups.get_mut(&view.group) else { return };
        let before = group.record.owed.len();
        let (heard, is_split) = (&group.heard, super::install::is_split(group));
        let (range, version) = (group.view.range, group.view.id.version);
        let mut others = group.view.members().iter().filter(|node| **node != cx.me.node);
        let is_over = group.is_whole() && others.all(|node| group.is_settled(*node));
        let is_member = |node| group.view.index_of(node).is_some();
        let is_replaced = |owed: &Owed| owed.next.id.version < version && !is_member(owed.newcomer);
        let mut owed = core::mem::take(&mut group.record.owed);
        owed.retain(|owed| {
            let word = heard.get(&owed.newcomer);
            let is_done = word.is_some_and(|word| {
                word.version >= owed.next.id.version
                    && matches!(word.standing, Standing::Ready | Standing::Split)
            });
            let has_come = word.is_some_and(|word| {
                word.version > owed.next.id.version && word.standing == Standing::Outside
            });
            let is_expected = || volatile.routes.expects(&range, owed.newcomer).is_some();
            let is_needless =
                is_replaced(owed) && is_over || has_come && (is_split || is_replaced(owed));
            !is_done && !is_needless && (!is_split || is_expected())
        });
        group.record.owed = owed;
        if group.record.owed.len() != before {
            Self::persist(group, cx);
        }
    }

    /// A node that has left a group keeps its data until every member of the newest view it knows
    /// holds everything: a newcomer may need it. Returns whether it still waits.
    fn release(&mut self, view: ViewId, cx: &mut Context<'_>) -> bool {
        let Some(group) = self.group(view) else { return false };
        let is_free = group.view.members().iter().all(|node| group.is_settled(*node));
        if is_free || mutant!("release_at_once") {
            probe!("linearizable/released");
            self.let_go(view, cx);
            return false;
        }
        true
    }
}
