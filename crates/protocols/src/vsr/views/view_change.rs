//! The view change (Viewstamped Replication Revisited, §4.2).
//!
//! A majority that doubts begins a view: it takes part in no earlier one, and tells the view's
//! primary which log it has. Logs stay where they are; the primary fetches what it lacks of the one
//! it chooses, and tells by one position which log the view starts with.

use crate::vsr::action::{Action, Context};
use crate::vsr::keys::Head;
use crate::vsr::log::entry::Entry;
use crate::vsr::losses;
use crate::vsr::message::Message;
use crate::vsr::number::{Op, Position, ViewNumber};
use crate::vsr::state::{Primary, Replica, Status, Vote};
use alloc::vec::Vec;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;

impl Replica {
    /// Begins a view that has not started, as far as is known: votes for a log.
    pub(crate) fn begin_view(&mut self, view: ViewNumber, cx: &mut Context<'_>) {
        invariant!(!self.head.has_forgotten, "who has forgotten has no vote");
        self.raise(view, cx);
        self.vote(cx);
    }

    /// Tells the primary of the view which log this node has. The view, the last normal one and the
    /// log are durable then.
    fn vote(&mut self, cx: &mut Context<'_>) {
        let Some(primary) = self.known_primary() else { return };
        let Head { view, normal, lost, .. } = self.head;
        let normal = if mutant!("normal_is_view") { view } else { normal };
        let (end, commit) = (self.log.end(), self.commit);
        let message = match lost.filter(|_| self.lacks_end()) {
            Some(lost) => Message::DoViewChangeWithoutEnd { view, normal, end, commit, lost },
            None => Message::DoViewChange { view, normal, end, commit, lost },
        };
        let release = Release::Lane;
        let may_be_early = mutant!("vote_before_sync");
        cx.send(primary, message, if may_be_early { Release::Early } else { release });
    }

    /// A member has begun a view that this node leads if it starts.
    pub(crate) fn on_do_view_change(
        &mut self,
        from: Incarnation,
        view: ViewNumber,
        vote: Vote,
        cx: &mut Context<'_>,
    ) {
        if view.epoch > self.epoch() {
            return self.ask(from.node, cx);
        }
        let is_member = self.head.configuration.contains(from.node);
        if self.is_behind(from.node, view, cx) || !self.is_member() || !is_member {
            return;
        }
        if self.primary_of(view) != Some(self.me) || vote.normal > view {
            return cx.out.push(Action::Refuse("a vote is for the primary of its view"));
        }
        if self.head.has_forgotten {
            return;
        }
        if view > self.head.view {
            self.begin_view(view, cx);
        }
        if self.status == Status::Normal {
            return self.tell_start(from.node, cx);
        }
        invariant!(self.head.view == view, "votes are for the view that this node has begun");
        self.election.votes.insert(from.node, vote);
        if self.election.chosen.is_none() {
            self.choose(cx);
        }
        // The view may have started with the entry that ends its epoch committed.
        invariant!(self.head.view >= view, "an election goes back to no view");
    }

    /// Chooses the log of the view once a majority has voted: of the latest normal view, and of
    /// those the longest. What was committed is in it. Where members have lost data, [`losses`]
    /// says when that is known.
    fn choose(&mut self, cx: &mut Context<'_>) {
        // Its own vote has come back when its view is durable. Else a restart could forget that it
        // has led this view, and lead it again from another log: what left early meanwhile would
        // stand at the same place of the same view.
        let is_durable =
            self.election.votes.contains_key(&self.me) || mutant!("leads_before_own_vote");
        let settings = (&self.head.configuration, self.settings.durability);
        let gone = self.gone(cx.now);
        let choice = losses::choose(&self.election.votes, (self.me, &gone), settings);
        let Some(choice) = choice.filter(|_| is_durable) else { return };
        self.election.chosen = Some(choice.node);
        self.election.is_earlier = choice.is_earlier;
        self.election.loses = choice.loses;
        if choice.node == self.me {
            let end = self.log.end();
            self.enter(self.without_end(end), Vec::new(), cx);
        } else {
            probe!("vsr/log_of_another");
            self.ask(choice.node, cx);
        }
    }

    /// Up to where the log here counts for the view that it is chosen for, if it is equal to the
    /// chosen one up to here.
    pub(crate) fn without_end(&self, op: Op) -> Op {
        let last = self.closing().filter(|last| *last <= op && *last > self.commit);
        last.filter(|_| self.election.is_earlier).map_or(op, Op::before)
    }

    /// A tick in a view that has begun and not started here.
    pub(super) fn tick_view_change(&mut self, cx: &mut Context<'_>) {
        if !self.has_started {
            self.vote(cx);
        }
        if let Some(chosen) = self.election.chosen {
            self.ask(chosen, cx);
        } else if self.known_primary() == Some(self.me) {
            // Whose vote was waited for may have left.
            self.choose(cx);
        }
    }

    /// The whole log of the view is here: up to `matched` it was, and these follow. What else was
    /// there is cut off in the same step.
    pub(crate) fn enter(&mut self, matched: Op, entries: Vec<Entry>, cx: &mut Context<'_>) {
        invariant!(self.status != Status::Normal, "a view is entered once");
        invariant!(matched >= self.commit, "what is committed stays");
        self.log.truncate(matched, cx.out);
        for entry in entries {
            self.log.append(entry, cx.out);
        }
        self.end_epoch_of_losses(cx);
        self.head.normal = self.head.view;
        self.head.end = self.log.end();
        self.head.has_forgotten = false;
        self.head.lost = None;
        self.save(cx);
        self.status = Status::Normal;
        self.stage = None;
        self.recovery = crate::vsr::state::Recovery::default();
        self.has_started = true;
        self.pulse.start(cx.now, self.log.end());
        let votes = core::mem::take(&mut self.election).votes;
        if self.known_primary() == Some(self.me) {
            self.lead(cx);
            let told = votes.values().map(|vote| vote.commit).max();
            self.commit_to(told.unwrap_or_default(), cx);
        } else {
            self.owes_ack = true;
        }
    }

    /// This node leads its view from now on.
    pub(crate) fn lead(&mut self, cx: &mut Context<'_>) {
        invariant!(self.known_primary() == Some(self.me), "a view has one primary");
        invariant!(self.primary.is_none(), "a view is led once");
        self.primary = Some(Primary::new(self.log.last()));
        self.reads.begin();
        let others = self.others();
        if !others.is_empty() {
            cx.send(&others, self.start_view(), Release::Lane);
        }
        self.serve(cx);
    }

    /// A member may have missed that the view has started.
    fn tell_start(&mut self, to: NodeId, cx: &mut Context<'_>) {
        if to != self.me {
            cx.send(to, self.start_view(), Release::Lane);
        }
    }

    /// The view has started: who has its log acknowledges it.
    pub(super) fn start_view(&self) -> Message {
        let primary = self.primary.as_ref().expect("the primary tells that its view has started");
        Message::StartView { view: self.head.view, last: primary.began, commit: self.commit }
    }

    /// A view has started with a log that ends like this.
    pub(crate) fn on_start_view(
        &mut self,
        from: Incarnation,
        view: ViewNumber,
        last: Position,
        commit: Op,
        cx: &mut Context<'_>,
    ) {
        let was_normal = self.status == Status::Normal && self.head.view == view;
        if from.node == self.me || !self.may_start(from, view, cx) {
            return;
        }
        invariant!(self.primary.is_none(), "a view has one primary");
        if was_normal {
            self.owes_ack = true;
            return self.commit_to(commit, cx);
        }
        if last.op >= self.commit && self.log.has(last) {
            self.enter(last.op, Vec::new(), cx);
            self.commit_to(commit, cx);
        } else {
            probe!("vsr/started_without_its_log");
            self.ask(from.node, cx);
        }
        invariant!(self.head.view >= view, "a replica goes back to no view");
    }

    /// Whether a view that has started concerns this replica; then it is in that view.
    fn may_start(&mut self, from: Incarnation, view: ViewNumber, cx: &mut Context<'_>) -> bool {
        if view.epoch > self.epoch() || self.status == Status::Recovering {
            // The one needs its epoch first, the other goes by the recovery protocol.
            return self.follows(from, view, cx);
        }
        if self.is_behind(from.node, view, cx) || !self.is_member() {
            return false;
        }
        if self.primary_of(view) != Some(from.node) {
            cx.out.push(Action::Refuse("a view is started by its primary"));
            return false;
        }
        if view > self.head.view {
            self.raise(view, cx);
        }
        self.hear_started(cx);
        true
    }
}

impl Replica {
    /// The view that this replica is in has started: its primary was heard.
    pub(crate) fn hear_started(&mut self, cx: &mut Context<'_>) {
        self.has_started = true;
        self.pulse.hear_primary(cx.now);
        if self.status == Status::ViewChange && mutant!("truncate_first") {
            // The paper's §5.2: what is not known to be committed goes before the log is here.
            self.log.truncate(self.commit, cx.out);
        }
    }
}

impl Primary {
    /// The primary of a view whose log ends like this.
    pub(crate) fn new(began: Position) -> Primary {
        Primary {
            began,
            is_serving: false,
            sent: began.op,
            told: Op(0),
            asked: Op(0),
            acked: Default::default(),
            wish: None,
            learned: Default::default(),
            in_flight: Default::default(),
            in_flight_bytes: 0,
        }
    }
}
