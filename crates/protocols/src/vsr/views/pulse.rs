//! The group's own pulse: beats of the primary, and who doubts that there is one.

use crate::vsr::action::{Action, Context};
use crate::vsr::message::Message;
use crate::vsr::number::{Op, ViewNumber};
use crate::vsr::state::{Replica, Status};
use crate::vsr::timer::{DEAF, DOUBT, DOUBT_KEPT, DOUBT_MAX, DOUBT_STEP};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};

/// Who was heard when, and who doubts. Volatile.
#[derive(Debug)]
pub struct Pulse {
    /// When the primary of the view was heard last, or the view began.
    since: Time,
    /// How many views have begun in a row without one that started.
    attempts: u32,
    /// Whether this node doubts that its view has a primary.
    is_doubting: bool,
    /// Which view each other member would begin, and when it said so.
    doubts: BTreeMap<NodeId, (ViewNumber, Time)>,
    /// Since when it is listened to.
    pub begun: Time,
    /// When each member was heard last that has not forgotten.
    pub heard: BTreeMap<NodeId, Time>,
    /// When this member had last executed all that its primary had told to be committed.
    pub executed: Option<Time>,
    /// What the view began with: a primary may not know yet that it is committed.
    pub took_over: Op,
    /// When time has passed last.
    ticked: Time,
}

impl Pulse {
    /// Nobody was heard yet.
    pub fn new(now: Time) -> Pulse {
        Pulse {
            since: now,
            attempts: 0,
            is_doubting: false,
            doubts: BTreeMap::new(),
            begun: now,
            heard: BTreeMap::new(),
            executed: None,
            took_over: Op::default(),
            ticked: now,
        }
    }

    /// A view begins.
    pub fn begin(&mut self, now: Time) {
        self.since = now;
        self.attempts += 1;
        self.is_doubting = false;
    }

    /// The primary of the view is there.
    pub fn hear_primary(&mut self, now: Time) {
        self.since = now;
        self.is_doubting = false;
    }

    /// Time has passed. What was heard before is old if the node has stood still.
    pub fn tick(&mut self, now: Time) {
        if now - self.ticked > DEAF {
            self.executed = None;
        }
        self.ticked = now;
    }

    /// The view has started here, with a log that ends there.
    pub fn start(&mut self, now: Time, end: Op) {
        self.hear_primary(now);
        self.took_over = end;
        self.attempts = 0;
        self.doubts.clear();
    }

    /// This node has a reason to doubt at once.
    pub fn doubt(&mut self) {
        self.is_doubting = true;
    }
}

impl Replica {
    /// A connection to a host has ended: if it is the primary's, nobody waits to doubt it.
    pub fn on_unlinked(&mut self, peer: NodeId, cx: &mut Context<'_>) {
        let is_reason = !self.settings.by_membership && self.known_primary() == Some(peer);
        if self.status == Status::Normal && is_reason {
            self.pulse.doubt();
            self.spread_doubt(cx);
            self.consider(cx);
        }
    }

    /// The primary is there.
    pub(crate) fn on_beat(
        &mut self,
        from: Incarnation,
        view: ViewNumber,
        (commit, end, held): (Op, Op, Op),
        round: u64,
        cx: &mut Context<'_>,
    ) {
        if self.status == Status::Learner {
            return self.hear_as_learner(from.node, view, commit, cx);
        }
        if !self.follows(from, view, cx) || from.node == self.me {
            return;
        }
        invariant!(self.head.normal == view, "who follows a view has its log");
        invariant!(self.primary.is_none(), "a view has one primary");
        // It says no more than where this node is now: see `Message::BeatOk`.
        cx.send(from.node, Message::BeatOk { view, round }, Release::Early);
        self.held = held;
        self.commit_as_told(commit, cx);
        if end > self.log.end() {
            probe!("vsr/behind_a_beat");
            self.ask(from.node, cx);
        }
        // An acknowledgement may have been lost.
        self.owes_ack |= commit < self.log.end() && self.status == Status::Normal;
    }

    /// A member follows this primary.
    pub(crate) fn on_beat_ok(
        &mut self,
        from: Incarnation,
        view: ViewNumber,
        round: u64,
        cx: &mut Context<'_>,
    ) {
        if view != self.head.view || self.primary.is_none() {
            return;
        }
        invariant!(self.status == Status::Normal, "only a normal replica leads");
        if round > self.reads.round() {
            return cx.out.push(Action::Refuse("nobody confirms a round that was not sent"));
        }
        if self.head.configuration.contains(from.node) {
            self.reads.confirm(from.node, round);
            self.answer_reads(cx);
        }
        invariant!(self.primary.is_some(), "to hear a member ends no view");
    }

    /// A member hears no primary, and would begin a view.
    pub(crate) fn on_start_view_change(
        &mut self,
        from: Incarnation,
        at: ViewNumber,
        view: ViewNumber,
        cx: &mut Context<'_>,
    ) {
        if view.epoch > self.epoch() {
            return self.ask(from.node, cx);
        }
        invariant!(at < view, "a doubt is about a view that follows");
        if self.is_behind(from.node, view, cx) || !self.head.configuration.contains(from.node) {
            return;
        }
        self.pulse.doubts.insert(from.node, (view, cx.now));
        invariant!(self.pulse.doubts.len() <= self.head.configuration.members.len(), "one of each");
        // Who leads the view says itself that it is over.
        let is_over = self.known_primary() == Some(from.node) && view > self.head.view;
        if is_over && self.takes_part() {
            probe!("vsr/primary_gives_up");
            self.pulse.doubt();
            self.spread_doubt(cx);
        }
        if at > self.head.view && self.takes_part() {
            // A majority has begun that view, and its primary may be gone: without the others the
            // sender could never go on.
            probe!("vsr/joins_a_view");
            self.begin_view(at, cx);
        }
        self.consider(cx);
        invariant!(self.head.view.epoch == view.epoch, "doubts begin no epoch");
    }

    /// A tick of the primary: it is there, unless it hears no majority.
    pub(crate) fn tick_primary(&mut self, cx: &mut Context<'_>) {
        if self.hears_majority(cx.now) {
            self.pulse.hear_primary(cx.now);
        } else if cx.now - self.pulse.since > DEAF {
            // The members may hear it and not be heard: then nothing is committed any more, and
            // nobody doubts while it beats.
            probe!("vsr/deaf_primary");
            self.pulse.doubt();
            self.spread_doubt(cx);
            return self.consider(cx);
        }
        let beat = self.beat();
        let others = self.others();
        if !others.is_empty() {
            // A beat promises nothing.
            cx.send(&others, beat, Release::Early);
        }
        self.tick_wish(cx);
    }

    /// What the primary says every tick.
    pub(crate) fn beat(&self) -> Message {
        Message::Beat {
            view: self.head.view,
            commit: self.commit,
            end: self.log.end(),
            round: self.reads.round(),
            held: self.held(),
        }
    }

    /// A tick of who does not lead.
    pub(crate) fn tick_member(&mut self, cx: &mut Context<'_>) {
        if self.has_reason_to_doubt(cx.now) {
            self.pulse.doubt();
        }
        if self.pulse.is_doubting {
            self.spread_doubt(cx);
            self.consider(cx);
        }
        if self.status == Status::ViewChange {
            self.tick_view_change(cx);
        }
    }

    /// Whether the primary is silent for too long; or, where groups go by the membership, removed.
    /// Who is between two views waits for no removal: nobody may be left who leads the next one.
    fn has_reason_to_doubt(&self, now: Time) -> bool {
        let goes_by_silence = !self.settings.by_membership || mutant!("vsr_goes_by_silence");
        if goes_by_silence || self.status != Status::Normal {
            return now - self.pulse.since > self.patience();
        }
        self.known_primary().is_some_and(|primary| self.removed.contains(&primary))
    }

    /// For how long this member waits for its primary: the one who would be the next waits least.
    fn patience(&self) -> Span {
        let view = self.head.view;
        let rank = self.head.configuration.rank(self.group, view.next(), self.me);
        let doubled = DOUBT.0 << self.pulse.attempts.min(8);
        let start = if self.status == Status::Normal { DOUBT.0 } else { doubled.min(DOUBT_MAX.0) };
        Span(start + DOUBT_STEP.0 * rank)
    }

    /// The view that this node would begin: none if it has no doubt.
    fn target(&self) -> Option<ViewNumber> {
        let told = self.pulse.doubts.values().map(|(view, _)| *view);
        let own = self.pulse.is_doubting && self.takes_part();
        own.then(|| told.fold(self.head.view.next(), ViewNumber::max))
    }

    /// Tells the members of a doubt. It promises nothing.
    fn spread_doubt(&mut self, cx: &mut Context<'_>) {
        let others = self.others();
        if let Some(view) = self.target().filter(|_| !others.is_empty()) {
            cx.send(&others, Message::StartViewChange { at: self.head.view, view }, Release::Early);
        }
    }

    /// Begins a view if a majority would.
    fn consider(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        self.pulse.doubts.retain(|_, (_, at)| now - *at <= DOUBT_KEPT);
        let Some(target) = self.target() else { return };
        let told = self.pulse.doubts.values().map(|(view, _)| *view);
        let mut views: Vec<ViewNumber> = told.chain([target]).collect();
        views.sort_unstable_by(|one, other| other.cmp(one));
        let majority = self.head.configuration.majority();
        if let Some(view) = views.get(majority - 1).filter(|view| **view > self.head.view) {
            self.begin_view(*view, cx);
        }
    }

    /// Whether a majority of the members was heard lately, this node included if it takes part.
    fn hears_majority(&self, now: Time) -> bool {
        let heard = self.others().len() - self.silent(now).len();
        heard + usize::from(self.takes_part()) >= self.head.configuration.majority()
    }

    pub(crate) fn is_heard(&self, node: NodeId, now: Time) -> bool {
        self.pulse.heard.get(&node).is_some_and(|at| now - *at <= DEAF)
    }

    /// Members that have left the cluster and say nothing any more: nobody waits for them. One that
    /// speaks is there, whatever was told of it, and after a start all have some time to. Where
    /// links refuse a host that was removed, it is not heard, and this only waits that long.
    pub(crate) fn gone(&self, now: Time) -> BTreeSet<NodeId> {
        if now - self.pulse.begun <= DEAF && !mutant!("gone_before_heard") {
            return BTreeSet::new();
        }
        self.left.iter().copied().filter(|node| !self.is_heard(*node, now)).collect()
    }

    /// The other members that were not heard lately, or have forgotten.
    fn silent(&self, now: Time) -> Vec<NodeId> {
        self.others().iter().copied().filter(|node| !self.is_heard(*node, now)).collect()
    }

    /// Whether this member follows a primary that was heard lately. Members that follow hear no
    /// others; and a primary beats while it hears a majority of them.
    fn follows_one_heard(&self, now: Time) -> bool {
        let primary = self.primary_of(self.head.view);
        let is_heard = primary.is_some_and(|node| self.is_heard(node, now));
        let follows = match self.status {
            Status::Normal => true,
            // It fetches the log of a view that has started.
            Status::ViewChange => self.has_started,
            Status::Recovering | Status::Learner => false,
        };
        follows && is_heard && !mutant!("followers_wait_for_followers")
    }

    /// Whether it has lately executed all that was committed then: it leads, or a primary has told
    /// it how far that is. A primary that is cut off tells that for as long as it beats, so what is
    /// here is older by so much. Who stood still for long may have heard what was said long ago.
    #[must_use]
    pub fn is_current(&self, now: Time) -> bool {
        let is_late = |at: Time| now - at > DEAF && !mutant!("vsr_current_for_good");
        let has_all = self.is_serving() || mutant!("vsr_current_when_elected");
        let leads = self.primary.is_some() && has_all && self.hears_majority(now);
        let follows = self.pulse.executed.is_some_and(|at| !is_late(at));
        self.status == Status::Normal && (leads || follows) && !is_late(self.pulse.ticked)
    }

    /// The other members that this group waits for to go on: none while a majority is there. Who
    /// is no member hears one of them at most, and waits for none.
    ///
    /// A member that has forgotten is waited for like one that is gone. Where so many have that the
    /// others are no majority, the group stands still, and this says so ([`super`], Known limits).
    #[must_use]
    pub fn waits_for(&self, now: Time) -> Vec<NodeId> {
        let is_led = self.hears_majority(now) || self.follows_one_heard(now);
        let goes_on = (is_led && !self.is_voting_on_losses()) || self.status == Status::Learner;
        if goes_on { Vec::new() } else { self.silent(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_executed_before_a_node_stood_still_is_old() {
        let at = |ms| Time(Span::millis(ms).0);
        let mut pulse = Pulse::new(at(0));
        pulse.executed = Some(at(10));
        pulse.tick(at(400));
        assert!(pulse.executed.is_some());
        pulse.executed = Some(at(801));
        pulse.tick(at(801));
        assert_eq!(pulse.executed, None, "it may be what was said long ago");
    }
}
