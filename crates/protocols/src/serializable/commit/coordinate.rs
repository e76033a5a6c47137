//! The group that decides: votes, the decision, and telling it (§4.3, Algorithm 2).

use crate::serializable::engine::Context;
use crate::serializable::execute::act::Results;
use crate::serializable::execute::entry::{Counted, Entry};
use crate::serializable::message::{Cause, Message, Outcome};
use crate::serializable::number::{TxId, VoteSeq};
use crate::serializable::primary::in_hand::{Primary, Telling};
use crate::serializable::primary::round::Round;
use crate::serializable::rules::{ACTS_MAX, FORGET_MAX, UNENDED_BYTES_MAX};
use crate::serializable::sound::are_answers;
use crate::serializable::timer::{Again, VOTE};
use alloc::collections::{BTreeMap, btree_map};
use alloc::vec::Vec;
use quorate_kernel::ids::GroupId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::time::Time;

impl Primary {
    /// A transaction that this group decides was heard of: its time runs.
    pub(crate) fn hear_of(&mut self, tx: TxId, groups: &[GroupId], now: Time) {
        let btree_map::Entry::Vacant(place) = self.rounds.entry(tx) else { return };
        let (groups, votes) = (groups.to_vec(), BTreeMap::new());
        let round = place.insert(Round { groups, votes, came: 0, since: now });
        self.held_bytes += round.bytes();
        self.undone_bytes += round.undone_bytes();
    }

    /// Answers whoever asks about a transaction that is decided, or may not be asked of this group;
    /// whether that is so.
    fn is_over(
        &mut self,
        tx: TxId,
        group: GroupId,
        groups: &[GroupId],
        cx: &mut Context<'_>,
    ) -> bool {
        let outcome = match cx.state.recorded(tx) {
            // A commit is told to those whose votes it rests on. Another group has voted on
            // something else of that name, which has ended without it.
            Some(recorded) => Some(match &recorded.outcome {
                Ok(counted) if counted.iter().any(|(of, _)| *of == group) => Ok(()),
                Ok(_) if mutant!("txn_commits_without_vote") => Ok(()),
                Ok(_) => Err(Cause::Forgotten),
                Err(cause) => Err(cause.clone()),
            }),
            // Nobody has decided, or all groups have applied it: whoever still holds locks can only
            // be of the former. It never commits (`decide`), whoever leads, so this needs no entry.
            // But if it is about to be decided, it is told that.
            None if cx.state.is_forgotten(tx) => {
                if self.tail.moves(tx) && !mutant!("txn_forgotten_at_once") {
                    return true;
                }
                Some(Err(Cause::Forgotten))
            }
            None => None,
        };
        let is_mine = groups.first() == Some(&cx.state.group) && group != cx.state.group;
        if let Some(outcome) = outcome.filter(|_| is_mine) {
            cx.send(group, Message::Decision { tx, group: cx.state.group, outcome });
            return true;
        }
        !is_mine
    }

    /// A group votes. Votes of an earlier number than one that was taken back do not count.
    pub(crate) fn on_vote(
        &mut self,
        tx: TxId,
        (group, groups): (GroupId, &[GroupId]),
        (seq, vote): (VoteSeq, Result<Results, Cause>),
        cx: &mut Context<'_>,
    ) {
        if self.is_over(tx, group, groups, cx) {
            return;
        }
        invariant!(cx.state.recorded(tx).is_none(), "what is decided was answered");
        if !self.rounds.contains_key(&tx) && !self.may_hear(tx, cx) {
            // It is sent again.
            return;
        }
        self.hear_of(tx, groups, cx.now);
        let is_taken_back =
            seq < cx.state.first_seq(tx, group) || self.tail.revokes(tx, group, seq);
        if is_taken_back && !mutant!("txn_stale_vote") {
            return;
        }
        let round = self.rounds.get_mut(&tx).expect("it was just heard of");
        if round.groups != groups {
            return;
        }
        let before = round.bytes();
        round.came += usize::from(vote.is_ok());
        let is_newer = round.votes.get(&group).is_none_or(|(has, _)| *has <= seq);
        if is_newer {
            round.votes.insert(group, (seq, vote));
        }
        invariant!(self.held_bytes >= before, "all that is held is counted");
        self.held_bytes = self.held_bytes + round.bytes() - before;
        self.decide(tx, cx);
    }

    /// Decides if there is what to decide on. The decision leaves when it is committed.
    pub(crate) fn decide(&mut self, tx: TxId, cx: &mut Context<'_>) {
        let Some(round) = self.rounds.get(&tx) else { return };
        if self.tail.moves(tx) || cx.state.recorded(tx).is_some() {
            return;
        }
        let groups = round.groups.clone();
        if cx.state.is_forgotten(tx) && !mutant!("txn_forgotten_commits") {
            // Others may have been told so.
            return self.put_decision(tx, groups, Err(Cause::Forgotten), cx);
        }
        let refused = round.votes.values().find_map(|(_, vote)| vote.as_ref().err());
        let has_room = self.may_decide(tx, cx);
        if let Some(cause) = refused.filter(|_| has_room).cloned() {
            return self.put_decision(tx, groups, Err(cause), cx);
        }
        if !has_room {
            self.is_undecided = true;
            return;
        }
        let Some(own) = cx.state.share(tx) else { return };
        let own_seq = cx.state.head.pending[&tx].seq;
        let counted: Option<Vec<Counted>> = groups
            .iter()
            .map(|group| {
                if *group == cx.state.group {
                    let results = own.results.clone();
                    return Some(Counted { group: *group, seq: own_seq, results });
                }
                let (seq, vote) = match round.votes.get(group) {
                    Some((seq, vote)) => (*seq, vote.as_ref().ok()?.clone()),
                    None if mutant!("txn_vote_counted_twice") => {
                        (cx.state.first_seq(tx, *group), Results::new())
                    }
                    None => return None,
                };
                Some(Counted { group: *group, seq, results: vote })
            })
            .collect();
        let has_all = !mutant!("txn_vote_counted_twice") || round.came + 1 >= groups.len();
        let Some(counted) = counted.filter(|_| has_all) else { return };
        // Each group has bounded its own answers; all of them are one entry. A vote of before that
        // is too long by now is in the log, and with it each primary would come here again.
        let is_long = counted.iter().any(|it| !are_answers(&it.results));
        let is_large = counted.iter().map(|it| it.results.len()).sum::<usize>() > ACTS_MAX
            || (is_long && !mutant!("txn_counts_any_answers"));
        let outcome = if is_large { Err(Cause::TooLarge) } else { Ok(counted) };
        self.put_decision(tx, groups, outcome, cx);
    }

    /// What there was no room to decide on is looked at again.
    fn tick_undecided(&mut self, cx: &mut Context<'_>) {
        if core::mem::take(&mut self.is_undecided) {
            let rounds: Vec<TxId> = self.rounds.keys().copied().collect();
            rounds.into_iter().for_each(|tx| self.decide(tx, cx));
        }
    }

    fn put_decision(
        &mut self,
        tx: TxId,
        groups: Vec<GroupId>,
        outcome: Result<Vec<Counted>, Cause>,
        cx: &mut Context<'_>,
    ) {
        if mutant!("txn_decision_early") {
            let told = outcome.as_ref().map(|_| ()).map_err(Clone::clone);
            for to in groups.iter().filter(|group| **group != cx.state.group) {
                let (group, outcome) = (cx.state.group, told.clone());
                cx.send(*to, Message::Decision { tx, group, outcome });
            }
            let ended = match &outcome {
                Ok(_) => Outcome::Committed(Vec::new()),
                Err(cause) => Outcome::Aborted(cause.clone()),
            };
            self.answer(tx, &ended, cx);
        }
        self.propose(Entry::Decided { tx, groups, outcome }, cx);
    }

    /// Tells a decision to the groups that may not have applied it.
    pub(crate) fn tell(&mut self, tx: TxId, cx: &mut Context<'_>) {
        let Some(recorded) = cx.state.recorded(tx) else { return };
        if recorded.groups.is_empty() {
            return;
        }
        let groups = recorded.groups.iter().copied().collect();
        self.tells.insert(tx, Telling { groups, again: Again::after(cx.now) });
        self.send_decision(tx, cx);
    }

    fn send_decision(&mut self, tx: TxId, cx: &mut Context<'_>) {
        let Some(telling) = self.tells.get(&tx) else { return };
        let recorded = cx.state.recorded(tx).expect("a decision stays until all have applied it");
        let outcome = recorded.outcome.as_ref().map(|_| ()).map_err(Clone::clone);
        for to in &telling.groups {
            let (group, outcome) = (cx.state.group, outcome.clone());
            cx.send(*to, Message::Decision { tx, group, outcome });
        }
    }

    /// A group has applied a decision.
    pub(crate) fn on_applied(&mut self, tx: TxId, group: GroupId) {
        let Some(telling) = self.tells.get_mut(&tx) else { return };
        invariant!(!telling.groups.is_empty(), "who has told all tells no more");
        invariant!(!self.applied.contains(&tx), "what all have applied is told to nobody");
        telling.groups.remove(&group);
        if telling.groups.is_empty() {
            self.tells.remove(&tx);
            self.applied.insert(tx);
        }
    }

    /// A group would take its vote back, so that an older transaction can go on. Granted unless it
    /// is decided; logged, so that a later primary counts that vote no more either.
    pub(crate) fn on_revoke_vote(
        &mut self,
        tx: TxId,
        (group, groups): (GroupId, Vec<GroupId>),
        seq: VoteSeq,
        cx: &mut Context<'_>,
    ) {
        if self.is_over(tx, group, &groups, cx) {
            return;
        }
        invariant!(cx.state.recorded(tx).is_none(), "what is decided was answered");
        let is_new = !self.rounds.contains_key(&tx) && !cx.state.head.revoked.contains_key(&tx);
        if is_new && !self.may_hear(tx, cx) {
            // It is asked again.
            return;
        }
        self.hear_of(tx, &groups, cx.now);
        if self.rounds[&tx].groups != groups && !mutant!("txn_revokes_for_others") {
            // It is of another transaction of that name, which ends when this one does.
            return;
        }
        if seq < cx.state.first_seq(tx, group) {
            let granted = Message::RevokeGranted { tx, group: cx.state.group, seq };
            return cx.send(group, granted);
        }
        if self.tail.moves(tx) || self.tail.revokes(tx, group, seq) {
            return;
        }
        let round = self.rounds.get_mut(&tx).expect("it was just heard of");
        let before = round.bytes();
        if round.votes.get(&group).is_some_and(|(has, _)| *has <= seq) {
            round.votes.remove(&group);
        }
        invariant!(self.held_bytes >= before, "all that is held is counted");
        self.held_bytes = self.held_bytes + round.bytes() - before;
        self.propose(Entry::Revoked { tx, groups, group, seq }, cx);
    }

    /// Decides on what lacks votes for too long.
    pub(crate) fn tick_votes(&mut self, cx: &mut Context<'_>) {
        self.tick_undecided(cx);
        let now = cx.now;
        let late: Vec<TxId> = self
            .rounds
            .iter()
            .filter(|(tx, round)| now - round.since >= VOTE && !self.tail.moves(**tx))
            .map(|(tx, _)| *tx)
            .collect();
        for tx in late {
            let groups = self.rounds[&tx].groups.clone();
            self.put_decision(tx, groups, Err(Cause::Timeout), cx);
        }
        let due = self.asks.iter_mut().filter_map(|(tx, again)| again.is_due(now).then_some(*tx));
        let due: Vec<TxId> = due.collect();
        due.into_iter().for_each(|tx| self.send_vote(tx, cx));
    }

    /// Tells aborts no more that some groups do not answer, if there are too many: a group that is
    /// gone for long must not keep others from going on. Whoever still holds locks asks for them.
    fn tell_fewer(&mut self, cx: &Context<'_>) {
        let is_abort = |tx: &TxId| cx.state.recorded(*tx).is_some_and(|it| it.outcome.is_err());
        let aborts: Vec<TxId> =
            self.tells.keys().copied().filter(is_abort).take(FORGET_MAX).collect();
        for tx in aborts {
            self.tells.remove(&tx);
            self.applied.insert(tx);
        }
    }

    /// Tells decisions again, and lets go of those that all groups have applied.
    pub(crate) fn tick_decisions(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        let due: Vec<TxId> = self
            .tells
            .iter_mut()
            .filter_map(|(tx, telling)| telling.again.is_due(now).then_some(*tx))
            .collect();
        due.into_iter().for_each(|tx| self.send_decision(tx, cx));
        if cx.state.head.sizes.unended > UNENDED_BYTES_MAX / 2 {
            self.tell_fewer(cx);
        }
        if self.forgetting.is_none() {
            self.forget(cx);
        }
    }

    /// Lets go of decisions that all groups have applied. They are remembered for clients from then
    /// on, so no more of them at a time than there is room for. Those that clients know need none,
    /// and do not wait for others that do.
    fn forget(&mut self, cx: &mut Context<'_>) {
        let (mut txs, mut bytes) = (Vec::new(), 0);
        let looked: Vec<TxId> = self.applied.iter().copied().take(4 * FORGET_MAX).collect();
        for tx in looked {
            let has_room = !cx.state.head.is_kept(tx)
                || self.may_remember_told(tx, cx)
                || mutant!("txn_forgets_at_once");
            if txs.len() == FORGET_MAX || (!has_room && mutant!("txn_forgets_in_order")) {
                break;
            }
            if !has_room {
                continue;
            }
            self.applied.remove(&tx);
            // It is as long as its answers to count, so only what there is room for is counted.
            let kept = cx.state.head.bytes_kept(tx);
            self.note_ahead(tx, kept, cx);
            bytes += kept;
            self.forgetting = Some(bytes);
            txs.push(tx);
        }
        if !txs.is_empty() {
            self.propose(Entry::Forget { txs }, cx);
        }
    }
}
