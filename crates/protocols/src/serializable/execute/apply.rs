//! Executing entries: the state that every replica has after the same log.
//!
//! Nothing here depends on what an item holds, but for removals that are guarded by what they
//! remove. So a copy whose items are newer than its head becomes right by executing what follows.

use super::act::{Effect, WallMs};
use super::entry::{Change, Counted, Dropped, Entry, Prepared, Share};
use super::head::{Recorded, TakenBack};
use super::items::Stored;
use crate::serializable::message::Cause;
use crate::serializable::moves::bucket_of;
use crate::serializable::number::{Client, TxId, Version, VoteSeq};
use crate::serializable::raw::Raw;
use crate::serializable::state::State;
use crate::vsr::Op;
use alloc::vec::Vec;
use quorate_kernel::ids::GroupId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::process::Table;

/// What a primary is told of an entry that was executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// Where it stands.
    pub op: Op,
    /// What it was about.
    pub what: What,
    /// Keys that may be free now, or have changed.
    pub touched: Vec<Raw>,
}

/// What an entry was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A transaction has ended in this group.
    Ended(TxId),
    /// This group has voted.
    Prepared(TxId),
    /// It has taken its vote back.
    Reverted(TxId),
    /// Another group may take its vote back.
    Revoked {
        /// The transaction.
        tx: TxId,
        /// Whose vote.
        group: GroupId,
        /// Which.
        seq: VoteSeq,
    },
    /// None of these.
    Other,
}

impl State {
    /// Executes an entry.
    pub(crate) fn execute(&mut self, op: Op, entry: Entry, table: &dyn Table) {
        let at = (op, table);
        self.applied = op.0;
        let (what, touched) = match entry {
            Entry::DecidedApplied { tx, outcome, mark, clock } => {
                self.saw(tx.client, mark, clock);
                (What::Ended(tx), self.decided_applied(tx, outcome, at))
            }
            Entry::Prepared(prepared) => {
                self.saw(prepared.rank.tx.client, prepared.mark, prepared.clock);
                (What::Prepared(prepared.rank.tx), self.prepared(prepared))
            }
            Entry::Reverted { tx, seq } => (What::Reverted(tx), self.reverted(tx, seq)),
            Entry::Decided { tx, groups, outcome } => {
                (What::Ended(tx), self.decided(tx, groups, outcome, at))
            }
            Entry::Revoked { tx, groups, group, seq } => {
                self.revoked(tx, groups, group, seq);
                (What::Revoked { tx, group, seq }, Vec::new())
            }
            Entry::Applied { tx, outcome } => (What::Ended(tx), self.applied(tx, outcome, at)),
            Entry::Forget { txs } => {
                txs.into_iter().for_each(|tx| self.forget(tx));
                (What::Other, Vec::new())
            }
            Entry::ClientGone { client } => {
                self.client_gone(client);
                (What::Other, Vec::new())
            }
            Entry::Purge { keys } => (What::Other, self.purge(keys, at)),
            Entry::Expire { clock, keys } => (What::Other, self.expire(keys, clock, at)),
            Entry::Move(step) => {
                self.step(step, at);
                (What::Other, Vec::new())
            }
            Entry::Horizon { counter } => {
                self.head.raise_horizon(counter);
                (What::Other, Vec::new())
            }
        };
        self.executed.push(Executed { op, what, touched });
    }

    /// A primary's clock, and a client's mark.
    fn saw(&mut self, client: Client, mark: u64, clock: WallMs) {
        self.saw_clock(clock);
        self.head.mark(client, mark);
    }

    /// The last clock counts, not the highest ([`crate::serializable::timer::clock`]).
    fn saw_clock(&mut self, clock: WallMs) {
        let highest = self.head.clock.max(clock);
        self.head.clock = if mutant!("txn_highest_clock_counts") { highest } else { clock };
    }

    fn decided_applied(
        &mut self,
        tx: TxId,
        outcome: Result<(Vec<Change>, super::act::Results), Cause>,
        at: (Op, &dyn Table),
    ) -> Vec<Raw> {
        invariant!(!self.head.pending.contains_key(&tx), "it is of this group alone");
        let (outcome, touched) = match outcome {
            Ok((changes, results)) => {
                let is_free = changes.iter().all(|change| !self.locks.is_held(&change.key));
                invariant!(is_free, "what another holds is not changed");
                (Ok(Vec::from([(self.group, results)])), self.change(tx, changes, at))
            }
            Err(cause) => (Err(cause), Vec::new()),
        };
        self.record(tx, Recorded { outcome, groups: Vec::new() });
        touched
    }

    fn prepared(&mut self, prepared: Prepared) -> Vec<Raw> {
        let tx = prepared.rank.tx;
        invariant!(self.recorded(tx).is_none(), "nobody votes on what is decided");
        invariant!(prepared.seq == self.next_seq(tx), "votes are numbered");
        if let Ok(share) = &prepared.vote {
            let mut keys = share.shared.iter().chain(&share.exclusive);
            let are_here = keys.all(|key| self.has(key)) || mutant!("txn_serves_after_release");
            invariant!(are_here, "what is held is here");
            self.locks.lock(tx, share);
        }
        self.head.put_vote(prepared);
        Vec::new()
    }

    /// Removes a vote, and frees its locks.
    fn take_vote(&mut self, tx: TxId) -> Option<Prepared> {
        let prepared = self.head.take_vote(tx)?;
        if let Ok(share) = &prepared.vote {
            self.locks.unlock(tx, share);
        }
        Some(prepared)
    }

    fn reverted(&mut self, tx: TxId, seq: VoteSeq) -> Vec<Raw> {
        let prepared = self.take_vote(tx).expect("a vote is taken back that was given");
        invariant!(prepared.seq == seq, "the vote that is taken back is the last one");
        let share = prepared.vote.expect("only a vote that holds locks is taken back");
        let Prepared { groups, digest, .. } = prepared;
        let taken = TakenBack { next: seq.next(), groups, digest };
        self.head.put_taken_back(tx, taken);
        keys_of(&share)
    }

    fn decided(
        &mut self,
        tx: TxId,
        groups: Vec<GroupId>,
        outcome: Result<Vec<Counted>, Cause>,
        at: (Op, &dyn Table),
    ) -> Vec<Raw> {
        if let Ok(counted) = &outcome {
            let of: Vec<GroupId> = counted.iter().map(|vote| vote.group).collect();
            invariant!(of == groups, "a commit rests on a vote of every group");
            for vote in counted.iter().filter(|vote| vote.group != self.group) {
                let first = self.first_seq(tx, vote.group);
                invariant!(vote.seq >= first, "a vote that was taken back does not count");
            }
        }
        let results = |counted: Counted| (counted.group, counted.results);
        let outcome = outcome.map(|counted| counted.into_iter().map(results).collect());
        let touched = self.end_share(tx, outcome.is_ok(), at);
        let others = groups.into_iter().filter(|group| *group != self.group).collect();
        self.record(tx, Recorded { outcome, groups: others });
        touched
    }

    fn applied(&mut self, tx: TxId, outcome: Result<(), Cause>, at: (Op, &dyn Table)) -> Vec<Raw> {
        let touched = self.end_share(tx, outcome.is_ok(), at);
        self.record(tx, Recorded { outcome: outcome.map(|()| Vec::new()), groups: Vec::new() });
        touched
    }

    /// Does the share of this group if the transaction commits, and frees its locks.
    fn end_share(&mut self, tx: TxId, commits: bool, at: (Op, &dyn Table)) -> Vec<Raw> {
        let share = self.take_vote(tx).and_then(|prepared| prepared.vote.ok());
        invariant!(share.is_some() || !commits, "what commits holds its locks in every group");
        let Some(share) = share else { return Vec::new() };
        let touched = keys_of(&share);
        if commits {
            self.change(tx, share.changes, at);
        }
        touched
    }

    fn revoked(&mut self, tx: TxId, groups: Vec<GroupId>, group: GroupId, seq: VoteSeq) {
        invariant!(self.recorded(tx).is_none(), "after the decision no vote is taken back");
        invariant!(groups.first() == Some(&self.group), "the lowest group decides");
        self.head.revoke(tx, groups, (group, seq.next()));
    }

    fn forget(&mut self, tx: TxId) {
        let is_forgotten = self.is_forgotten(tx);
        let key = (tx.client, tx.counter);
        let Some(recorded) = self.head.take_outcome(key) else { return };
        if !is_forgotten {
            self.head.put_outcome(key, Recorded { groups: Vec::new(), ..recorded });
        }
    }

    /// Whatever it still asks about is answered with "nobody knows" from now on.
    fn client_gone(&mut self, client: Client) {
        let known = self.head.outcomes.range((client, 0)..=(client, u64::MAX));
        if let Some(((_, last), _)) = known.last() {
            let mark = last.saturating_add(1);
            self.head.mark(client, mark);
        }
    }

    /// Remembers how a transaction has ended, if somebody may ask.
    fn record(&mut self, tx: TxId, recorded: Recorded) {
        invariant!(self.recorded(tx).is_none(), "a transaction ends once");
        self.head.drop_taken_back(tx);
        self.head.take_revoked(tx);
        if !self.is_forgotten(tx) || !recorded.groups.is_empty() {
            self.head.put_outcome((tx.client, tx.counter), recorded);
        }
    }

    fn change(
        &mut self,
        tx: TxId,
        changes: Vec<Change>,
        (op, table): (Op, &dyn Table),
    ) -> Vec<Raw> {
        let mut touched = Vec::with_capacity(changes.len());
        for Change { key, version, effect } in changes {
            let is_here = self.has(&key) || mutant!("txn_serves_after_release");
            invariant!(is_here, "only what is here is changed");
            // The floor may have risen since, over the version that an absent key had then.
            let mut version = version.max(self.head.floor.next());
            if mutant!("txn_version_restarts") && self.item(&key, table).content.is_none() {
                version = Version(1);
            }
            let content = match effect {
                Effect::Put { value, expires } => Some((value, expires)),
                Effect::Delete => None,
            };
            let item = Stored { version, op: op.0, writer: tx, content };
            self.items.set(op, key.clone(), item, table);
            touched.push(key);
        }
        touched
    }

    /// The floor and marks of purges rise whatever the items are: in a copy they may be gone
    /// already.
    fn purge(&mut self, keys: Vec<Dropped>, (op, table): (Op, &dyn Table)) -> Vec<Raw> {
        let mut touched = Vec::new();
        for Dropped { key, version, removed_at } in keys {
            if !mutant!("txn_purge_without_floor") {
                self.head.floor = self.head.floor.max(version);
            }
            if !mutant!("txn_purge_leaves_no_mark") {
                self.head.moves.purged.insert(bucket_of(&key), op.0);
            }
            let Some(item) = self.items.get(&key, table) else { continue };
            if item.op == removed_at && item.content.is_none() {
                self.items.drop_key(key.clone());
                touched.push(key);
            }
        }
        touched
    }

    fn expire(
        &mut self,
        keys: Vec<(Raw, Version)>,
        clock: WallMs,
        (op, table): (Op, &dyn Table),
    ) -> Vec<Raw> {
        self.saw_clock(clock);
        let mut touched = Vec::new();
        for (key, guard) in keys {
            let item = self.item(&key, table);
            let is_it = item.version == guard && item.is_expired(clock) && item.op < op.0;
            if is_it && !self.locks.is_held(&key) {
                let version = guard.next();
                let gone = Stored { version, op: op.0, writer: TxId::NONE, content: None };
                self.items.set(op, key.clone(), gone, table);
            }
            // Whoever waits for it looks again, also if another was faster.
            touched.push(key);
        }
        touched
    }
}

fn keys_of(share: &Share) -> Vec<Raw> {
    share.shared.iter().chain(&share.exclusive).cloned().collect()
}
