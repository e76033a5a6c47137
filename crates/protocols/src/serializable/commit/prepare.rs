//! Commits at the primary: duplicates, queues, locks, and what is put into the log (§4.3,
//! Algorithm 1).

use super::load::{Loaded, keys_of, mismatch, modes_of};
use crate::serializable::engine::Context;
use crate::serializable::execute::act::Results;
use crate::serializable::execute::entry::{Change, Entry, Prepared, Share};
use crate::serializable::execute::evaluate::{Key, evaluate};
use crate::serializable::execute::locks::Mode;
use crate::serializable::message::{Cause, Commit, Message, Outcome, Refused, Reply};
use crate::serializable::number::{Rank, TxId};
use crate::serializable::primary::in_hand::{Primary, Received};
use crate::serializable::raw::Raw;
use crate::serializable::rules;
use crate::serializable::timer::{Again, WAIT};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::Ticket;
use quorate_kernel::invariant;
use quorate_kernel::mutant;

impl Primary {
    /// A client wants to commit. The request may be repeated, and may be late.
    pub(crate) fn on_commit(&mut self, ticket: Ticket, commit: Commit, cx: &mut Context<'_>) {
        if let Err(refused) = rules::check_share(cx.state.group, &commit) {
            return cx.refuse(ticket, refused);
        }
        let (tx, now) = (commit.rank.tx, cx.now);
        let decides = commit.groups[0] == cx.state.group;
        if mutant!("txn_counter_before_outcome")
            && let Err(refused) = self.may_begin(tx, cx)
        {
            return cx.refuse(ticket, refused);
        }
        let is_away = mutant!("txn_moved_before_outcome")
            && self.misplaced(keys_of(&commit), cx) == Some(Refused::Moved);
        if is_away {
            let outcome = Outcome::Aborted(Cause::Moved);
            return cx.reply(ticket, Reply::Outcome { tx, outcome });
        }
        if let Some(outcome) = self.outcome(tx, cx) {
            // How it ended, the group that decides says. But that it takes no part any more, none
            // but this one may know; nor that its share was done, if the other has lost its data.
            let is_known_here = match outcome {
                Outcome::Forgotten { .. } => !mutant!("txn_forgets_in_silence"),
                Outcome::Committed(_) => !mutant!("txn_done_in_silence"),
                _ => false,
            };
            if decides || is_known_here {
                cx.reply(ticket, Reply::Outcome { tx, outcome });
            }
            return;
        }
        if self.is_known_otherwise(&commit, cx) {
            return cx.refuse(ticket, Refused::Reused);
        }
        let has_it = self.received.contains_key(&tx) && !mutant!("txn_request_overwrites");
        let is_pending = cx.state.head.pending.contains_key(&tx);
        if !self.is_under_way(tx, cx)
            && let Err(refused) = self.may_take(&commit, cx)
        {
            return cx.refuse(ticket, refused);
        }
        // Others may have told of it, but not what is to be done: that takes room still.
        if !has_it && !is_pending && self.is_full() && !mutant!("txn_told_of_has_room") {
            return cx.refuse(ticket, Refused::Busy);
        }
        if decides {
            self.tickets.entry(tx).or_default().insert(ticket);
            if commit.groups.len() > 1 {
                self.hear_of(tx, &commit.groups, now);
            }
        }
        if is_pending && !decides {
            self.send_vote(tx, cx);
        }
        if has_it || self.tail.moves(tx) {
            return;
        }
        let modes = Arc::new(modes_of(&commit, self.optimizations.shared_locks));
        let mark = commit.mark.min(tx.counter);
        let commit = Arc::new(Commit { mark, ..commit });
        // Also one that has voted: its vote may be taken back.
        let bytes = commit.size();
        self.held_bytes += bytes;
        let received = Received { commit, modes, bytes, since: now, queued: None };
        if let Some(before) = self.received.insert(tx, received) {
            self.held_bytes -= before.bytes;
        }
        self.try_prepare(tx, cx);
    }

    /// Whether a transaction of this name is under way here with other keys, acts or groups: its
    /// client uses names twice. What has ended is not compared: whoever uses its name is answered
    /// how it ended.
    fn is_known_otherwise(&self, commit: &Commit, cx: &Context<'_>) -> bool {
        if mutant!("txn_names_used_twice") {
            return false;
        }
        let (tx, head) = (commit.rank.tx, &cx.state.head);
        let received = self.received.get(&tx).map(|it| !it.commit.is_same(commit));
        let pending = head.pending.get(&tx).map(|prepared| prepared.digest);
        let taken_back = head.taken_back.get(&tx).map(|taken| taken.digest);
        let voted = pending.or(taken_back).map(|digest| digest != commit.digest());
        let groups = [
            head.revoked.get(&tx).map(|revoked| &revoked.groups),
            self.rounds.get(&tx).map(|round| &round.groups),
        ];
        let is_of_others = groups.into_iter().flatten().any(|groups| *groups != commit.groups);
        received == Some(true) || voted == Some(true) || is_of_others
    }

    /// Looks whether a transaction that this group has not voted on can go on.
    pub(crate) fn try_prepare(&mut self, tx: TxId, cx: &mut Context<'_>) {
        let Some(received) = self.received.get(&tx) else { return };
        if self.tail.moves(tx) || cx.state.head.pending.contains_key(&tx) {
            return;
        }
        if let Some(outcome) = cx.state.outcome(tx) {
            // Its client has said that it knows, while it waited here.
            self.drop_received(tx);
            if self.rounds.contains_key(&tx) && !mutant!("txn_forgets_what_it_decides") {
                // Others may have voted: they are told that it has failed, and so is the client.
                return self.decide(tx, cx);
            }
            return self.answer(tx, &outcome, cx);
        }
        let (commit, modes) = (received.commit.clone(), received.modes.clone());
        let rank = commit.rank;
        if !self.may_propose() {
            // Also if it has to wait for others: they are looked at when it is its turn.
            self.crowded.extend(modes.keys().next().cloned());
            return self.enqueue(rank, cx);
        }
        let has_room = commit.groups.len() == 1 || self.may_vote(cx);
        if !has_room || !self.may_remember(tx, cx) {
            return self.enqueue(rank, cx);
        }
        if self.is_closing(modes.keys()) {
            self.crowded.extend(modes.keys().next().cloned());
            return self.enqueue(rank, cx);
        }
        if self.misplaced(modes.keys(), cx).is_some() {
            return self.vote_no(tx, &commit, Cause::Moved, cx);
        }
        let mut loaded = match self.load(modes.keys(), cx) {
            Ok(loaded) => loaded,
            Err(too_large) => return self.vote_no(tx, &commit, too_large.into(), cx),
        };
        for key in self.expire(loaded.iter(), cx) {
            let gone = self.item(&key, cx);
            loaded.insert(key, gone);
        }
        // Versions only grow, so what does not fit now never will, whoever holds the key.
        let gone = mismatch(&commit, &loaded);
        if let (Some(cause), true) = (&gone, self.optimizations.fast_aborts) {
            return self.vote_no(tx, &commit, cause.clone(), cx);
        }
        let owners = self.owners(tx, &modes, cx);
        let waits = modes.iter().any(|(key, mode)| self.waits_before(rank, key, *mode));
        if !owners.is_empty() || waits {
            self.enqueue(rank, cx);
            return self.revoke_younger(rank, &owners, cx);
        }
        if let Some(cause) = gone {
            return self.vote_no(tx, &commit, cause, cx);
        }
        self.dequeue(tx);
        match self.evaluate(&commit, &modes, &loaded, cx) {
            Ok(share) => self.vote_yes(&commit, share, cx),
            Err(cause) => self.vote_no(tx, &commit, cause, cx),
        }
    }

    /// Who holds keys of a transaction so that it cannot have them.
    fn owners(&self, tx: TxId, modes: &BTreeMap<Raw, Mode>, cx: &Context<'_>) -> BTreeSet<TxId> {
        let mut owners = BTreeSet::new();
        for (key, mode) in modes {
            owners.extend(cx.state.locks.conflicts(key, *mode));
            owners.extend(self.tail.locks.conflicts(key, *mode));
        }
        if mutant!("txn_unlock_before_reverted") {
            owners.retain(|owner| !self.revokes.contains_key(owner));
        }
        invariant!(!owners.contains(&tx), "who holds locks here has voted");
        owners
    }

    /// Whether an older transaction waits for the key, so that this one may not go first.
    fn waits_before(&self, rank: Rank, key: &Raw, mode: Mode) -> bool {
        let Some(queue) = self.queue.get(key) else { return false };
        queue.range(..rank).any(|older| {
            let other = self.received.get(&older.tx).and_then(|it| it.modes.get(key));
            other.is_some_and(|other| !mode.fits(*other)) && !mutant!("txn_barges")
        })
    }

    fn enqueue(&mut self, rank: Rank, cx: &Context<'_>) {
        let received = self.received.get_mut(&rank.tx).expect("only what was received waits");
        received.queued.get_or_insert_with(|| Again::after(cx.now));
        for key in received.modes.keys() {
            self.queue.entry(key.clone()).or_default().insert(rank);
        }
    }

    /// Takes a transaction out of all queues; those behind it look again.
    fn dequeue(&mut self, tx: TxId) {
        let Some(received) = self.received.get_mut(&tx) else { return };
        if received.queued.take().is_none() {
            return;
        }
        let rank = received.commit.rank;
        for key in received.modes.keys() {
            let queue = self.queue.get_mut(key).expect("it waits for all its keys");
            queue.remove(&rank);
            if queue.is_empty() {
                self.queue.remove(key);
            } else {
                self.woken.insert(key.clone());
            }
        }
    }

    /// Forgets what a client has asked for.
    pub(crate) fn drop_received(&mut self, tx: TxId) {
        self.dequeue(tx);
        if let Some(received) = self.received.remove(&tx) {
            self.held_bytes -= received.bytes;
        }
    }

    /// The vote of this group was taken back: the transaction waits again, if it is here.
    pub(crate) fn reverted(&mut self, tx: TxId, cx: &Context<'_>) {
        self.asks.remove(&tx);
        self.revokes.remove(&tx);
        if let Some(received) = self.received.get_mut(&tx) {
            // While it had voted it did not wait.
            if !mutant!("txn_waits_while_it_votes") {
                received.since = cx.now;
            }
            let rank = received.commit.rank;
            self.enqueue(rank, cx);
        }
    }

    /// Younger transactions that hold what this one waits for are asked to give way (§4.4). Each
    /// younger one is, not only if all are, as the paper has it: the oldest transaction of all goes
    /// on either way, and nobody has to look again when an older owner is gone.
    fn revoke_younger(&mut self, rank: Rank, owners: &BTreeSet<TxId>, cx: &mut Context<'_>) {
        for owner in owners {
            let Some(prepared) = cx.state.head.pending.get(owner) else { continue };
            if prepared.rank < rank || self.tail.moves(*owner) {
                continue;
            }
            let (seq, coordinator) = (prepared.seq, prepared.groups[0]);
            if coordinator == cx.state.group {
                self.propose(Entry::Reverted { tx: *owner, seq }, cx);
                continue;
            }
            let now = cx.now;
            let is_new = !self.revokes.contains_key(owner);
            let again = self.revokes.entry(*owner).or_insert_with(|| Again::after(now));
            if is_new || again.is_due(now) {
                let (group, groups) = (cx.state.group, prepared.groups.clone());
                cx.send(coordinator, Message::RevokeVote { tx: *owner, group, groups, seq });
            }
        }
    }

    /// What the acts do to the keys as the tail leaves them.
    fn evaluate(
        &self,
        commit: &Commit,
        modes: &BTreeMap<Raw, Mode>,
        loaded: &Loaded,
        cx: &Context<'_>,
    ) -> Result<Share, Cause> {
        let mut keys: BTreeMap<Raw, Key> = BTreeMap::new();
        let (mut results, mut bytes, mut made) = (Results::new(), 0, 0_usize);
        let value_max = usize::try_from(commit.value_max).unwrap_or(usize::MAX);
        for (key, act) in &commit.acts {
            let has = keys.entry(key.clone()).or_insert_with(|| Key::of(loaded[key].clone()));
            let (before, was_changed) = (has.bytes(), has.is_changed);
            match evaluate(act, &mut has.content, has.item.version, value_max) {
                Ok((done, is_changed)) => {
                    made = made.saturating_add(has.note(&done, is_changed));
                    results.push(Ok(done));
                }
                Err(error) if commit.goes_on => results.push(Err(error)),
                Err(error) => {
                    return Err(Cause::Act { key: key.clone(), error, by: has.item.writer });
                }
            }
            let is_first = has.is_changed && !was_changed;
            bytes = bytes + has.bytes() - before + if is_first { key.len() } else { 0 };
            // At once: few acts can make many long values, or one again and again.
            if bytes > rules::BYTES_MAX || made > rules::MADE_BYTES_MAX {
                return Err(Cause::TooLarge);
            }
        }
        let floor = cx.state.head.floor.max(self.tail.floor());
        let is_last = |has: &Key| !has.item.version.max(floor).has_next() && has.is_changed;
        if keys.values().any(is_last) && !mutant!("txn_last_version_stays") {
            return Err(Cause::Exhausted);
        }
        let changes: Vec<Change> = keys
            .into_iter()
            .filter_map(|(key, has)| {
                let version = has.item.version.max(floor).next();
                Some(Change { key, version, effect: has.effect(self.clock)? })
            })
            .collect();
        let of = |asked: Mode| {
            let keys = modes.iter().filter(|(_, mode)| **mode == asked);
            keys.map(|(key, _)| key.clone()).collect()
        };
        let (shared, exclusive) = (of(Mode::Shared), of(Mode::Exclusive));
        Ok(Share { shared, exclusive, changes, results })
    }

    fn vote_yes(&mut self, commit: &Commit, share: Share, cx: &mut Context<'_>) {
        let (tx, mark, clock) = (commit.rank.tx, commit.mark, self.clock);
        if commit.groups.len() == 1 {
            let outcome = Ok((share.changes, share.results));
            return self.propose(Entry::DecidedApplied { tx, outcome, mark, clock }, cx);
        }
        self.vote(commit, Ok(share), cx);
    }

    fn vote(&mut self, commit: &Commit, vote: Result<Share, Cause>, cx: &mut Context<'_>) {
        let prepared = Prepared {
            rank: commit.rank,
            groups: commit.groups.clone(),
            seq: cx.state.next_seq(commit.rank.tx),
            vote,
            digest: commit.digest(),
            mark: commit.mark,
            clock: self.clock,
        };
        self.propose(Entry::Prepared(prepared), cx);
    }

    /// The transaction cannot commit. That is logged, so that no repeated request commits it; and
    /// what it rests on may be in the tail.
    fn vote_no(&mut self, tx: TxId, commit: &Commit, cause: Cause, cx: &mut Context<'_>) {
        self.dequeue(tx);
        if commit.groups.len() == 1 {
            let (mark, clock) = (commit.mark, self.clock);
            let outcome = Err(cause);
            self.propose(Entry::DecidedApplied { tx, outcome, mark, clock }, cx);
        } else if commit.groups[0] == cx.state.group {
            let groups = commit.groups.clone();
            self.propose(Entry::Decided { tx, groups, outcome: Err(cause) }, cx);
        } else {
            self.vote(commit, Err(cause), cx);
        }
    }

    /// What waits is tried again: what it has asked of others may be lost. What waits too long has
    /// failed if it is of this group alone. If several groups are in it, the round of the one that
    /// decides says so; but that one may never have heard of it, so it is forgotten here. If the
    /// log has of it that a vote was taken back, that ends with another vote
    /// ([`Primary::tick_taken_back`]).
    pub(crate) fn tick_queue(&mut self, cx: &mut Context<'_>) {
        let (now, group) = (cx.now, cx.state.group);
        let is_late = |received: &&mut Received| {
            let groups = &received.commit.groups;
            let ends_here = groups.len() == 1 || groups[0] != group;
            ends_here && received.queued.is_some() && now - received.since >= WAIT
        };
        let late = self.received.values_mut().filter(is_late).map(|it| it.commit.clone());
        // What ends it may be on its way already.
        let late: Vec<Arc<Commit>> =
            late.filter(|commit| !self.tail.moves(commit.rank.tx)).collect();
        let mut most = self.give_up_most();
        for commit in late {
            let tx = commit.rank.tx;
            let taken = cx.state.head.taken_back.get(&tx);
            if commit.groups.len() == 1 {
                self.vote_no(tx, &commit, Cause::Timeout, cx);
            } else if (taken.is_none() || most > 0) && !mutant!("txn_waits_for_nobody") {
                self.drop_received(tx);
                if let Some(taken) = taken.cloned() {
                    most -= 1;
                    self.give_up(tx, taken, cx);
                }
            }
        }
        let is_due = |it: &mut Received| it.queued.as_mut().is_some_and(|again| again.is_due(now));
        let due = self.received.iter_mut().filter_map(|(tx, it)| is_due(it).then_some(*tx));
        let due: Vec<TxId> = due.collect();
        due.into_iter().for_each(|tx| self.try_prepare(tx, cx));
    }
}
