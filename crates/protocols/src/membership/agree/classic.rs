//! Classic rounds: if the fast round does not decide, because members have found different changes
//! or too many are missing, one member after the other coordinates a round.
//!
//! Rounds only rise, and each has one coordinator, by its node id. Which member is the next one in
//! line is hashed from the configuration and the attempt, so that mostly one begins at a time, and
//! no coordinator that is gone is waited for more than once.

use super::super::action::Context;
use super::super::change::Change;
use super::super::message::Body;
use super::super::number::{Digest, ROUND_MAX, Round};
use super::super::roll::Roll;
use super::super::timer::{ROUND_AGAIN, ROUND_STEP, ROUND_STEPS_MAX, ROUND_WAIT};
use super::choose::choose;
use super::instance::Coordinator;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::rng::mix;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::{invariant, mutant, probe};

impl Roll {
    /// There is something to decide: from now on this member waits for the decision.
    pub(super) fn has_something_to_decide(&mut self, cx: &Context<'_>) {
        if self.instance.since.is_none() {
            self.instance.since = Some(cx.now);
            self.instance.begins_at = self.place_in_line(cx.now);
        }
    }

    /// When this member begins a round, if nobody before it has.
    fn place_in_line(&self, now: Time) -> Time {
        let seed = mix(self.configuration().id.digest.0 as u64 ^ mix(self.instance.attempts));
        let key = |node: NodeId| (mix(seed ^ mix(node.0)), node);
        let before = self.configuration().ids().filter(|node| key(*node) < key(self.me)).count();
        let steps = (before as u64).min(ROUND_STEPS_MAX);
        now + ROUND_WAIT + Span(ROUND_STEP.0 * steps)
    }

    /// Begins a round if it is this member's turn; asks again who has not answered.
    pub(in super::super) fn tick_rounds(&mut self, cx: &mut Context<'_>) {
        if self.instance.since.is_none() && self.acceptor.voted.is_some() {
            // It has voted before it was restarted.
            self.has_something_to_decide(cx);
        }
        if self.instance.since.is_none() || self.instance.decided.is_some() {
            return;
        }
        if cx.now >= self.instance.begins_at {
            self.begin_round(cx);
        } else if self.instance.coordinator.as_ref().is_some_and(|one| cx.now >= one.again_at) {
            self.ask_again(cx);
        }
    }

    fn begin_round(&mut self, cx: &mut Context<'_>) {
        self.instance.attempts += 1;
        self.instance.begins_at = self.place_in_line(cx.now);
        let highest = self.instance.highest.max(self.acceptor.promised).max(Round::FAST);
        if highest.number >= ROUND_MAX {
            return;
        }
        let number = if mutant!("roll_one_classic_round") { 2 } else { highest.number + 1 };
        let round = Round { number, coordinator: self.me };
        if !self.acceptor.promise(round) {
            return;
        }
        probe!("roll/classic_round");
        // Its own promise is durable before anybody hears of the round: after a restart it begins
        // a later one, and no round ever has two values.
        if !mutant!("roll_round_not_stored") {
            self.save_acceptor(cx);
        }
        self.instance.highest = round;
        self.instance.heard_before = core::mem::take(&mut self.instance.heard);
        self.instance.coordinator = Some(Coordinator {
            round,
            promises: BTreeMap::new(),
            promises_came: 0,
            chosen: None,
            again_at: cx.now + ROUND_AGAIN,
        });
        self.tell_all(Body::Phase1a { round }, Release::State, cx);
    }

    /// Frames may be lost.
    fn ask_again(&mut self, cx: &mut Context<'_>) {
        let Some(coordinator) = &mut self.instance.coordinator else { return };
        coordinator.again_at = cx.now + ROUND_AGAIN;
        let round = coordinator.round;
        if let Some(value) = coordinator.chosen.clone() {
            return self.tell_all(Body::Phase2a { round, value }, Release::State, cx);
        }
        let promises: BTreeSet<NodeId> = coordinator.promises.keys().copied().collect();
        let everyone = Arc::clone(self.everyone());
        let silent = everyone.iter().copied().filter(|node| !promises.contains(node));
        for node in silent {
            self.tell(node, Body::Phase1a { round }, Release::State, cx);
        }
    }

    /// A classic round begins.
    pub(in super::super) fn on_phase1a(
        &mut self,
        from: Incarnation,
        round: Round,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.configuration().contains(self.me), "who is out has no votes");
        if round.coordinator != from.node {
            return cx.refuse("a round that another coordinates");
        }
        self.hear_round(from.node, round, cx);
        let before = self.acceptor.promised;
        if !self.acceptor.promise(round) {
            return self.tell(from.node, Body::Outbid { round: before }, Release::State, cx);
        }
        invariant!(self.acceptor.promised >= before, "promises only rise");
        if before != round {
            self.save_acceptor(cx);
        }
        // The promise was made already if it comes again; a vote in this very round is no answer.
        let voted = self.acceptor.voted.clone().filter(|(voted, _)| *voted < round);
        if voted.is_none() && self.acceptor.voted.is_some() {
            return;
        }
        let (voted, value) = voted.map_or((Round::NONE, None), |(at, value)| (at, Some(value)));
        let early = mutant!("roll_promises_before_sync");
        let release = if early { Release::Early } else { Release::State };
        self.tell(from.node, Body::Phase1b { round, voted, value }, release, cx);
    }

    /// A member has promised to take part in no earlier round.
    pub(in super::super) fn on_phase1b(
        &mut self,
        from: Incarnation,
        round: Round,
        vote: Option<(Round, Arc<Change>)>,
        cx: &mut Context<'_>,
    ) {
        let (majority, spare) = (self.configuration().majority(), self.configuration().spare());
        let is_sound =
            vote.as_ref().is_none_or(|(_, value)| self.configuration().may_follow(value));
        if !is_sound {
            return cx.refuse("a vote for what cannot follow");
        }
        let wish = self.instance.wish.clone();
        let members = self.configuration().members.len();
        self.hear(from.node, cx);
        let Some(coordinator) = &mut self.instance.coordinator else { return };
        if coordinator.round != round {
            return;
        }
        invariant!(round.coordinator == self.me, "who coordinates a round has begun it");
        // One of each sender, and of this round alone: one that comes twice counts once.
        coordinator.promises.entry(from.node).or_insert(vote);
        coordinator.promises_came += 1;
        invariant!(coordinator.promises.len() <= members, "one of each");
        let twice = mutant!("roll_counts_promises_twice");
        let count = if twice { coordinator.promises_came } else { coordinator.promises.len() };
        if coordinator.chosen.is_some() || count < majority {
            return;
        }
        let Some(value) = choose(&coordinator.promises, spare, wish.as_ref()) else { return };
        coordinator.chosen = Some(Arc::clone(&value));
        // What it rests on is durable at those who have promised; its own promise is too.
        self.tell_all(Body::Phase2a { round, value }, Release::State, cx);
    }

    /// The value of a classic round.
    pub(in super::super) fn on_phase2a(
        &mut self,
        from: Incarnation,
        round: Round,
        value: &Arc<Change>,
        cx: &mut Context<'_>,
    ) {
        if round.coordinator != from.node || !self.configuration().may_follow(value) {
            return cx.refuse("a value that cannot follow, or not of its coordinator");
        }
        self.hear_round(from.node, round, cx);
        let before = self.acceptor.clone();
        if !self.acceptor.vote(round, value) {
            let round = before.promised;
            return self.tell(from.node, Body::Outbid { round }, Release::State, cx);
        }
        invariant!(self.acceptor.promised == round, "a vote is a promise");
        let known = before.voted.as_ref().filter(|(voted, _)| *voted == round);
        if known.is_some_and(|(_, known)| known != value) {
            // No correct coordinator has two.
            self.acceptor = before;
            return cx.refuse("a second value of one round");
        }
        if before != self.acceptor {
            self.save_acceptor(cx);
        }
        invariant!(self.acceptor.voted.is_some(), "it has voted");
        let digest = value.digest();
        let early = mutant!("roll_accepts_before_sync");
        let release = if early { Release::Early } else { Release::State };
        self.tell_all(Body::Phase2b { round, digest }, release, cx);
    }

    /// A member has voted in a classic round.
    pub(in super::super) fn on_phase2b(
        &mut self,
        from: Incarnation,
        round: Round,
        digest: Digest,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.configuration().contains(self.me), "who is out hears no votes");
        self.hear(from.node, cx);
        self.instance.highest = self.instance.highest.max(round);
        let count = self.instance.classic.count(from.node, round, digest);
        invariant!(
            self.instance.classic.len() <= self.configuration().members.len(),
            "one of each"
        );
        if count >= self.configuration().majority() {
            self.decide(digest, cx);
        }
    }

    /// A member takes part in a later round: the next one of this coordinator is behind that.
    pub(in super::super) fn on_outbid(
        &mut self,
        from: Incarnation,
        round: Round,
        cx: &mut Context<'_>,
    ) {
        let before = self.instance.highest;
        self.hear(from.node, cx);
        self.instance.highest = before.max(round);
        invariant!(self.instance.highest >= before, "rounds only rise");
        invariant!(self.instance.since.is_some(), "it waits for a decision");
    }

    /// Somebody coordinates a round: it is not disturbed for a while.
    fn hear_round(&mut self, from: NodeId, round: Round, cx: &Context<'_>) {
        self.hear(from, cx);
        if round > self.instance.highest {
            self.instance.highest = round;
            if from != self.me {
                self.instance.attempts += 1;
                self.instance.begins_at = self.place_in_line(cx.now);
            }
        }
    }
}
