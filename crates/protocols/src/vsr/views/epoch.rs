//! Epochs: other members, by an entry that the present ones commit (Viewstamped Replication
//! Revisited, §7).
//!
//! Newcomers copy the state before the change is proposed. It is the last entry of its epoch; the
//! next one's members begin with the log up to it, each when it has executed it. Who was removed
//! tells them until a majority has.

use crate::vsr::action::{Context, Event, Refused};
use crate::vsr::message::Message;
use crate::vsr::number::{Epoch, Op, ViewNumber};
use crate::vsr::state::{Replica, Status};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::VSR_LEARNER_LAG_MAX;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::Time;

impl Replica {
    /// Wishes for other members: one more, one less, or a whole set. The primary brings newcomers
    /// up to date and then proposes the change. A wish is forgotten with the view, and when another
    /// one comes; [`Event::Members`] tells that it has come true.
    ///
    /// # Errors
    /// This node cannot propose; nothing was changed.
    ///
    /// # Panics
    /// The members are not ascending, or too many, or none.
    pub fn wish(&mut self, members: &[NodeId]) -> Result<(), Refused> {
        assert!(
            crate::vsr::configuration::are_members(members),
            "members ascend, within the limit"
        );
        let is_done = *members == *self.head.configuration.members;
        let closing = self.closing().is_some();
        let primary = self.primary.as_mut().ok_or(Refused::NotPrimary)?;
        if closing {
            return Err(Refused::Closing);
        }
        primary.wish = (!is_done).then(|| Arc::from(members));
        primary.learned.retain(|node, _| members.binary_search(node).is_ok());
        Ok(())
    }

    /// Brings newcomers up to date, and proposes the change once they are.
    pub(super) fn tick_wish(&mut self, cx: &mut Context<'_>) {
        let newcomers = self.newcomers();
        if !newcomers.is_empty() {
            // A beat promises nothing.
            cx.send(&newcomers, self.beat(), Release::Early);
        }
        self.ask_who_lags(cx);
        let (commit, view) = (self.commit, self.head.view);
        let may_close = self.may_propose().is_ok() && self.can_go_on_as_wished(cx.now);
        let Some(primary) = &mut self.primary else { return };
        let has_copied = |node: &NodeId| {
            let learned = primary.learned.get(node).copied();
            learned.is_some_and(|end| commit.since(end) <= VSR_LEARNER_LAG_MAX)
        };
        if !may_close || !(newcomers.iter().all(has_copied) || mutant!("votes_before_it_copied")) {
            return;
        }
        if let Some(members) = primary.wish.take() {
            self.append(crate::vsr::Entry::members(view, &members), cx);
        }
    }

    /// Whether a majority of the members that are wished for is there and has nearly all: the next
    /// epoch could commit nothing without. Newcomers have copied by then.
    fn can_go_on_as_wished(&self, now: Time) -> bool {
        let Some(members) = self.primary.as_ref().and_then(|primary| primary.wish.as_ref()) else {
            return false;
        };
        let is_there = |node: &&NodeId| {
            let is_new = !self.head.configuration.contains(**node);
            **node == self.me || is_new || (self.is_heard(**node, now) && !self.lags(**node))
        };
        let there = members.iter().filter(is_there).count();
        there > members.len() / 2 || mutant!("closes_for_the_absent")
    }

    /// Whether a member lacks much of what is committed, as far as it has acknowledged that. Who
    /// has acknowledged nothing in this view may still copy the state.
    fn lags(&self, node: NodeId) -> bool {
        let acked = self.primary.as_ref().and_then(|primary| primary.acked.get(&node));
        let lacks_much = |end: &Op| self.commit.since(*end) > VSR_LEARNER_LAG_MAX;
        acked.map_or(!mutant!("silence_acknowledges"), lacks_much)
    }

    /// Asks members that are wished for, and seem to lag, how far their logs are. Who has this
    /// view's log has said so when it got it; that may have been lost, and where nothing is
    /// proposed nothing else follows.
    fn ask_who_lags(&self, cx: &mut Context<'_>) {
        let wish = self.primary.as_ref().and_then(|primary| primary.wish.as_ref());
        let members = wish.iter().flat_map(|members| members.iter().copied());
        let is_asked = |node: &NodeId| {
            let is_other = *node != self.me && self.head.configuration.contains(*node);
            is_other && self.is_heard(*node, cx.now) && self.lags(*node)
        };
        let asked: Arc<[NodeId]> = members.filter(is_asked).collect();
        if !asked.is_empty() && !mutant!("asks_no_laggard") {
            cx.send(&asked, self.start_view(), Release::Lane);
        }
    }

    /// Who is wished for and is no member: they copy what is committed. Those of a change that is
    /// under way too.
    fn newcomers(&self) -> Arc<[NodeId]> {
        let Some(primary) = &self.primary else { return Arc::from([]) };
        let wished = primary.wish.iter().flat_map(|members| members.iter().copied());
        let learning = primary.learned.keys().copied();
        let mut nodes: Vec<NodeId> = wished.chain(learning).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.retain(|node| !self.head.configuration.contains(*node));
        nodes.into()
    }

    /// The last beat of an epoch: its entry is committed, and who hears this begins the next.
    pub(crate) fn send_last_beat(&self, cx: &mut Context<'_>) {
        if self.primary.is_none() {
            return;
        }
        let mut nodes = self.others().to_vec();
        nodes.extend(self.newcomers().iter());
        let nodes: Arc<[NodeId]> = nodes.into();
        if !nodes.is_empty() {
            // What is committed rests on a majority, not on this node's disk.
            cx.send(&nodes, self.beat(), Release::Early);
        }
    }

    /// A beat reaches who is no member: there may be more to copy.
    pub(super) fn hear_as_learner(
        &mut self,
        source: NodeId,
        view: ViewNumber,
        commit: Op,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.status == Status::Learner, "members follow a view");
        if view.epoch < self.epoch() {
            return self.tell_epoch(source, cx);
        }
        if self.holds_what_was_lost(view, commit) {
            self.start_over(cx);
        }
        if commit > self.commit || view.epoch > self.epoch() || self.install.is_some() {
            self.ask(source, cx);
        } else {
            self.tell_learned(source, cx);
        }
    }

    /// Tells a primary how far this newcomer's log is, durably.
    pub(crate) fn tell_learned(&mut self, primary: NodeId, cx: &mut Context<'_>) {
        if self.install.is_none() && self.is_settled() {
            cx.send(primary, Message::Learned { end: self.commit }, Release::Lane);
        }
    }

    /// A newcomer has come so far.
    pub(crate) fn on_learned(&mut self, from: Incarnation, end: Op, _cx: &mut Context<'_>) {
        let newcomers = self.newcomers();
        invariant!(!newcomers.contains(&self.me), "the primary is no newcomer");
        if newcomers.contains(&from.node)
            && let Some(primary) = &mut self.primary
        {
            // It may have forgotten, and begun anew: what it has told last counts.
            let learned = primary.learned.entry(from.node).or_default();
            *learned = if mutant!("learned_never_falls") { end.max(*learned) } else { end };
        }
        invariant!(self.newcomers().len() == newcomers.len(), "only who is wished for learns");
    }

    /// A tick of who is no member: as long as it owes that, it tells the members that their epoch
    /// has begun, and has what they lack.
    pub(crate) fn tick_learner(&mut self, cx: &mut Context<'_>) {
        if self.head.owes && !mutant!("removed_stops_serving") {
            let others = self.others();
            // What is committed rests on a majority, not on this node's disk.
            cx.send(&others, Message::StartEpoch { epoch: self.epoch() }, Release::Early);
        }
    }

    /// An epoch has begun.
    pub(crate) fn on_start_epoch(&mut self, from: Incarnation, epoch: Epoch, cx: &mut Context<'_>) {
        invariant!(self.head.view.epoch == self.epoch(), "a view is of the members' epoch");
        // A copy that is under way has taken the place of the state that the epoch began with, and
        // is not complete: until it is, this node has nothing that another may drop.
        let has_state = self.install.is_none() || mutant!("has_begun_amid_a_copy");
        let has_begun = self.takes_part() && self.head.lost.is_none() && has_state;
        if epoch > self.epoch() {
            // What it has said of its log in this epoch says nothing of what it has in that one.
            self.recovery.answers.remove(&from.node);
            self.ask(from.node, cx);
        } else if epoch < self.epoch() || has_begun {
            // Who asks of an earlier epoch has missed how this one began, and may drop nothing of
            // that; and who was not removed by its first entry does not have it.
            let configuration = &self.head.configuration;
            let is_owed = epoch == self.epoch() && configuration.has_removed(from.node);
            let is_any = !configuration.contains(from.node) && mutant!("any_question_frees");
            if self.head.is_held && (is_owed || is_any) {
                // Durable before it is told: who was removed may drop what it has.
                self.head.is_held = false;
                self.save(cx);
            }
            let message = Message::EpochStarted { epoch: self.epoch() };
            cx.send(from.node, message, Release::Lane);
        } else if self.head.has_forgotten && self.log.end() < self.head.configuration.since {
            // Who was removed has what the epoch began with.
            self.ask(from.node, cx);
        }
        invariant!(self.log.end() >= self.commit, "a question cuts nothing off");
    }

    /// The first primary of the epoch waits until its epoch is durable: a proposal that leaves
    /// before could be made otherwise after a restart that knows nothing of it.
    pub(crate) fn start_epoch(&mut self, cx: &mut Context<'_>) {
        let is_first = self.head.view == ViewNumber::first(self.epoch());
        if is_first && self.known_primary() == Some(self.me) {
            let message = Message::EpochStarted { epoch: self.epoch() };
            let release = Release::Lane;
            let may_be_early = mutant!("epoch_led_before_sync");
            cx.send(self.me, message, if may_be_early { Release::Early } else { release });
        }
    }

    /// A member is in this epoch.
    pub(crate) fn on_epoch_started(
        &mut self,
        from: Incarnation,
        epoch: Epoch,
        cx: &mut Context<'_>,
    ) {
        let first = ViewNumber::first(epoch);
        if from.node == self.me {
            let is_waiting = self.status == Status::ViewChange && self.head.view == first;
            if is_waiting && self.known_primary() == Some(self.me) && self.election_is_open() {
                invariant!(self.head.normal == first, "an epoch begins with the log up to it");
                self.enter(self.log.end(), Vec::new(), cx);
            }
            return;
        }
        if !self.head.owes || epoch < self.epoch() {
            return;
        }
        invariant!(self.status == Status::Learner, "only who was removed owes");
        if self.head.configuration.contains(from.node) {
            self.started.insert(from.node);
        }
        // A later epoch has begun where a majority of this one had ended it.
        if epoch > self.epoch() || self.started.len() >= self.head.configuration.majority() {
            probe!("vsr/released");
            self.head.owes = false;
            self.save(cx);
            cx.tell(Event::Released);
        }
    }

    fn election_is_open(&self) -> bool {
        self.election.chosen.is_none()
    }
}
