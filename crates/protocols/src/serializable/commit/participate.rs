//! A group that votes and does what the coordinator decides.

use crate::serializable::engine::Context;
use crate::serializable::execute::entry::{Entry, Prepared};
use crate::serializable::execute::head::TakenBack;
use crate::serializable::message::{Cause, Message};
use crate::serializable::number::{Rank, TxId, VoteSeq};
use crate::serializable::primary::in_hand::Primary;
use crate::serializable::rules::{FORGET_MAX, IN_HAND_MAX};
use crate::serializable::timer::{Again, WAIT};
use alloc::vec::Vec;
use quorate_kernel::ids::GroupId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;

impl Primary {
    /// The vote of this group is committed: it may be told.
    pub(crate) fn voted(&mut self, tx: TxId, cx: &mut Context<'_>) {
        // An older transaction that waits for its locks can ask for them now.
        if let Some(share) = cx.state.share(tx) {
            let keys = share.shared.iter().chain(&share.exclusive);
            self.woken.extend(keys.filter(|key| self.queue.contains_key(*key)).cloned());
        }
        match cx.state.head.pending.get(&tx).and_then(|prepared| prepared.groups.first()) {
            Some(coordinator) if *coordinator == cx.state.group => self.decide(tx, cx),
            Some(_) => self.send_vote(tx, cx),
            None => {}
        }
    }

    /// Sends the vote; until there is a decision it is sent again, and is the question for one: who
    /// holds locks cannot decide alone, and asks for ever.
    pub(crate) fn send_vote(&mut self, tx: TxId, cx: &mut Context<'_>) {
        let Some(prepared) = cx.state.head.pending.get(&tx) else {
            self.asks.remove(&tx);
            return;
        };
        let coordinator = prepared.groups[0];
        invariant!(coordinator != cx.state.group, "the coordinator has its own vote");
        let vote = match &prepared.vote {
            Ok(share) => Ok(share.results.clone()),
            Err(cause) => Err(cause.clone()),
        };
        let now = cx.now;
        self.asks.entry(tx).or_insert_with(|| Again::after(now));
        let (group, groups, seq) = (cx.state.group, prepared.groups.clone(), prepared.seq);
        cx.send(coordinator, Message::Vote { tx, group, groups, seq, vote });
    }

    /// The coordinator tells how a transaction ends. Whoever has applied it says so, however often
    /// it is told.
    pub(crate) fn on_decision(
        &mut self,
        tx: TxId,
        coordinator: GroupId,
        outcome: Result<(), Cause>,
        cx: &mut Context<'_>,
    ) {
        if self.tail.moves(tx) {
            // What is in flight is the decision, or ends with one that is told again.
            return;
        }
        let pending = cx.state.head.pending.get(&tx);
        let taken_back = cx.state.head.taken_back.get(&tx);
        let voted = pending.map(|it| &it.groups).or(taken_back.map(|it| &it.groups));
        let is_other = voted.is_some_and(|groups| groups.first() != Some(&coordinator));
        if is_other && !mutant!("txn_any_coordinator_decides") {
            // It is of another transaction of that name, which this group has not voted on. What
            // it has voted on may be committed elsewhere already. When that has ended here, nothing
            // else of that name is voted on, and whoever tells this again is answered.
            probe!("serializable/decision_of_another");
            return;
        }
        // The client may have said that it knows before this group does.
        let has_voted = voted.is_some();
        if !has_voted && cx.state.outcome(tx).is_some() {
            self.drop_received(tx);
            return cx.send(coordinator, Message::Applied { tx, group: cx.state.group });
        }
        // What waits here has its room, and leaves it.
        let is_in_hand = self.received.contains_key(&tx) && !mutant!("txn_full_keeps_aborted");
        if !has_voted && !is_in_hand && !self.may_end(tx, cx) {
            return;
        }
        let is_ready = pending.is_some_and(|prepared| prepared.vote.is_ok());
        let outcome = if outcome.is_ok() && !is_ready {
            // Either this primary is deposed and does not know yet: the vote is in a later view's
            // log, and what it proposes is never committed. Or it has executed all that is left of
            // the log, and the vote was lost with the group's data: that is logged, so that the
            // coordinator need not tell it for ever.
            probe!("serializable/decision_behind");
            if mutant!("txn_told_for_ever") {
                return;
            }
            Err(Cause::Lost)
        } else {
            outcome
        };
        invariant!(cx.state.recorded(tx).is_none(), "what has ended was answered");
        invariant!(is_ready || outcome.is_err(), "only what was prepared commits");
        self.owed.insert(tx, coordinator);
        if outcome.is_err() && pending.is_none() && mutant!("txn_abort_not_remembered") {
            self.drop_received(tx);
            return cx.send(coordinator, Message::Applied { tx, group: cx.state.group });
        }
        self.drop_received(tx);
        let outcome = outcome.map_err(Cause::without_key);
        self.propose(Entry::Applied { tx, outcome }, cx);
    }

    /// The coordinator will not count that vote: its locks are given up, as soon as that is logged.
    /// Another group cannot promise that: this group's half would be missing of what is committed.
    pub(crate) fn on_revoke_granted(
        &mut self,
        tx: TxId,
        coordinator: GroupId,
        seq: VoteSeq,
        cx: &mut Context<'_>,
    ) {
        let Some(prepared) = cx.state.head.pending.get(&tx) else { return };
        let is_other = prepared.groups.first() != Some(&coordinator);
        if is_other && !mutant!("txn_any_coordinator_grants") {
            return;
        }
        let is_it = prepared.vote.is_ok() && (prepared.seq == seq || mutant!("txn_stale_grant"));
        if !is_it || self.tail.moves(tx) {
            return;
        }
        let seq = prepared.seq;
        invariant!(cx.state.recorded(tx).is_none(), "what is pending has not ended");
        invariant!(!self.tail.moves(tx), "of a transaction one entry is in flight");
        self.propose(Entry::Reverted { tx, seq }, cx);
    }

    /// Gives up transactions whose votes were taken back, and that no client has asked this primary
    /// for in the time that one may wait. What was received of them went with an earlier primary.
    pub(crate) fn tick_taken_back(&mut self, cx: &mut Context<'_>) {
        let (now, state) = (cx.now, cx.state);
        let taken_back = &state.head.taken_back;
        let waits = |tx: &TxId| taken_back.contains_key(tx) && !self.received.contains_key(tx);
        self.unasked.retain(|tx, _| waits(tx));
        let late: Vec<TxId> = taken_back
            .iter()
            .filter(|(tx, taken)| {
                // What this group decides itself ends with its round.
                let decides = taken.groups.first() == Some(&state.group);
                let is_asked = self.received.contains_key(*tx) || self.tail.moves(**tx);
                !decides
                    && !is_asked
                    && now - *self.unasked.entry(**tx).or_insert(now) >= WAIT
                    && !mutant!("txn_later_primary_waits")
            })
            .map(|(tx, _)| *tx)
            .collect();
        for tx in late.into_iter().take(self.give_up_most()) {
            self.give_up(tx, taken_back[&tx].clone(), cx);
        }
    }

    /// How many may be given up now: some at a time, and none while the log does not take them.
    pub(super) fn give_up_most(&self) -> usize {
        let is_endless = mutant!("txn_gives_up_into_a_full_tail");
        let in_hand = if is_endless { 0 } else { self.tail.len() };
        let most = if mutant!("txn_gives_up_all_at_once") { usize::MAX } else { FORGET_MAX };
        most.min(IN_HAND_MAX.saturating_sub(in_hand))
    }

    /// Votes no where a vote was taken back and no other has followed: it is asked about until the
    /// group that decides has answered, and then it has ended here. Without it, what was taken back
    /// would stay for ever where that group has not kept that it may be, or is told no more how it
    /// has decided.
    pub(crate) fn give_up(&mut self, tx: TxId, taken: TakenBack, cx: &mut Context<'_>) {
        if mutant!("txn_taken_back_stays") {
            return;
        }
        invariant!(!self.tail.moves(tx), "of a transaction one entry is in flight");
        invariant!(!cx.state.head.pending.contains_key(&tx), "its vote was taken back");
        let TakenBack { next, groups, digest } = taken;
        // A vote that holds no locks gives way to nobody, so its priority is not looked at.
        let rank = Rank { priority: tx.counter, tx };
        let (vote, mark, clock) = (Err(Cause::Timeout), 0, self.clock);
        let prepared = Prepared { rank, groups, seq: next, vote, digest, mark, clock };
        self.propose(Entry::Prepared(prepared), cx);
    }
}
