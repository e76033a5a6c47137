//! The small part of a group's state, which is copied in one turn, and about how large it is.
//!
//! A copy's head is one message, and what is stored of it one value. So it is bounded, at the
//! primary, by what it puts into the log: on new transactions it votes when there is room
//! ([`crate::serializable::rules::UNENDED_BYTES_MAX`]), it decides when there is room for what the
//! groups answer ([`crate::serializable::rules::DECIDED_ROOM_BYTES`]), and what is remembered for
//! clients is dropped from the oldest on ([`crate::serializable::rules::REMEMBERED_BYTES_MAX`]);
//! what is ahead of time, from the furthest on ([`crate::serializable::rules::AHEAD_BYTES_MAX`]).

use super::act::{ActError, Done, Effect, Results, WallMs};
use super::entry::{Change, Counted, Entry, Prepared, Share};
use crate::serializable::message::Cause;
use crate::serializable::moves::Moves;
use crate::serializable::number::{Client, TxId, Version, VoteSeq};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::GroupId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use serde::{Deserialize, Serialize};

/// How a transaction has ended, remembered for its client and for groups that ask.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// What is answered, or why nothing was changed.
    pub outcome: Result<Vec<(GroupId, Results)>, Cause>,
    /// At the coordinator: groups that may not have applied it yet.
    pub groups: Vec<GroupId>,
}

/// A vote that was taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenBack {
    /// The number of the next vote.
    pub next: VoteSeq,
    /// All groups of the transaction.
    pub groups: Vec<GroupId>,
    /// What was asked of this group, in short.
    pub digest: u64,
}

/// What the coordinator knows of votes that were taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// All groups of the transaction.
    pub groups: Vec<GroupId>,
    /// Of each group, the first vote that counts.
    pub first: BTreeMap<GroupId, VoteSeq>,
}

/// About how many bytes parts of a head take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sizes {
    /// What is of transactions that have not ended everywhere.
    pub unended: usize,
    /// What is remembered of those that have, and of clients.
    pub remembered: usize,
}

/// The part of the state that is small, and copied in one turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// The version of keys that were never there, or whose tombstones were dropped.
    pub floor: Version,
    /// The clock of the primary whose entry was executed last, of those that tell one.
    pub clock: WallMs,
    /// Votes without a decision.
    pub pending: BTreeMap<TxId, Prepared>,
    /// Votes of this group that were taken back, of transactions that are not decided.
    pub taken_back: BTreeMap<TxId, TakenBack>,
    /// Votes of other groups that count no more, of transactions that this one decides.
    pub revoked: BTreeMap<TxId, Revoked>,
    /// How transactions have ended, by client and counter.
    pub outcomes: BTreeMap<(Client, u64), Recorded>,
    /// Of each client, the lowest counter whose end it may not know; above the horizon.
    pub marks: BTreeMap<Client, u64>,
    /// Of transactions with lower counters nothing is remembered but what groups may ask for.
    pub horizon: u64,
    /// Buckets that have moved; written behind the rest, if there are any.
    #[serde(skip)]
    pub moves: Moves,
    /// About how large it is; it follows from the rest.
    #[serde(skip)]
    pub sizes: Sizes,
}

/// About how many bytes a mark takes.
const MARK_BYTES: usize = 20;

/// About how many bytes the groups of a transaction take, with its name.
pub fn of_groups(groups: &[GroupId]) -> usize {
    8 * groups.len() + 64
}

/// About how many bytes the answers of acts take.
pub fn of_results(results: &Results) -> usize {
    let of = |result: &Result<Done, ActError>| match result {
        Ok(Done::Float(text)) => text.len() + 4,
        _ => 12,
    };
    results.iter().map(of).sum()
}

/// About how many bytes the answers of some groups take.
fn of_answers<'a>(all: impl Iterator<Item = &'a Results>) -> usize {
    all.map(|results| of_results(results) + 8).sum()
}

/// About how many bytes a reason takes.
pub fn of_cause(cause: &Cause) -> usize {
    match cause {
        Cause::Version { key, .. } | Cause::Act { key, .. } => key.len() + 64,
        _ => 4,
    }
}

fn of_share(share: &Share) -> usize {
    let of_keys = share.shared.iter().chain(&share.exclusive).map(|key| key.len() + 4);
    let of_changes = share.changes.iter().map(|change| match &change.effect {
        Effect::Put { value, .. } => change.key.len() + value.len() + 32,
        Effect::Delete => change.key.len() + 32,
    });
    of_keys.chain(of_changes).sum::<usize>() + of_results(&share.results)
}

/// About how many bytes a vote takes.
pub fn of_vote(prepared: &Prepared) -> usize {
    of_groups(&prepared.groups) + prepared.vote.as_ref().map_or_else(of_cause, of_share)
}

fn of_recorded(recorded: &Recorded) -> usize {
    let of = |all: &Vec<(GroupId, Results)>| of_answers(all.iter().map(|(_, results)| results));
    of_groups(&recorded.groups) + recorded.outcome.as_ref().map_or_else(of_cause, of)
}

fn of_revoked(revoked: &Revoked) -> usize {
    of_groups(&revoked.groups) + 12 * revoked.first.len()
}

impl Head {
    /// Whether the client has said that it knows how a transaction ended, or that is too long ago.
    #[must_use]
    pub fn is_forgotten(&self, tx: TxId) -> bool {
        tx.counter < self.lowest(tx.client)
    }

    /// The lowest counter of a client that is not forgotten.
    #[must_use]
    pub fn lowest(&self, client: Client) -> u64 {
        self.marks.get(&client).copied().unwrap_or_default().max(self.horizon)
    }

    /// About how large it is, counted anew.
    #[must_use]
    pub fn sizes_counted(&self) -> Sizes {
        let votes = self.pending.values().map(of_vote);
        let taken = self.taken_back.values().map(|taken| of_groups(&taken.groups));
        let unended = votes.chain(taken).chain(self.revoked.values().map(of_revoked)).sum();
        let mut sizes = Sizes { unended, remembered: MARK_BYTES * self.marks.len() };
        for recorded in self.outcomes.values() {
            *sizes.of(recorded) += of_recorded(recorded);
        }
        sizes
    }

    pub(super) fn put_vote(&mut self, prepared: Prepared) {
        self.drop_taken_back(prepared.rank.tx);
        self.sizes.unended += of_vote(&prepared);
        let before = self.pending.insert(prepared.rank.tx, prepared);
        invariant!(before.is_none(), "a group votes once until it takes its vote back");
    }

    pub(super) fn take_vote(&mut self, tx: TxId) -> Option<Prepared> {
        let prepared = self.pending.remove(&tx)?;
        self.sizes.unended -= of_vote(&prepared);
        Some(prepared)
    }

    pub(super) fn put_taken_back(&mut self, tx: TxId, taken: TakenBack) {
        self.sizes.unended += of_groups(&taken.groups);
        let before = self.taken_back.insert(tx, taken);
        invariant!(before.is_none(), "a vote is taken back once");
    }

    pub(super) fn drop_taken_back(&mut self, tx: TxId) {
        if let Some(taken) = self.taken_back.remove(&tx) {
            self.sizes.unended -= of_groups(&taken.groups);
        }
    }

    pub(crate) fn revoke(
        &mut self,
        tx: TxId,
        groups: Vec<GroupId>,
        (of, next): (GroupId, VoteSeq),
    ) {
        let mut revoked =
            self.take_revoked(tx).unwrap_or(Revoked { groups, first: BTreeMap::new() });
        let first = revoked.first.entry(of).or_default();
        *first = next.max(*first);
        self.sizes.unended += of_revoked(&revoked);
        self.revoked.insert(tx, revoked);
    }

    pub(super) fn take_revoked(&mut self, tx: TxId) -> Option<Revoked> {
        let revoked = self.revoked.remove(&tx)?;
        self.sizes.unended -= of_revoked(&revoked);
        Some(revoked)
    }

    pub(super) fn put_outcome(&mut self, key: (Client, u64), recorded: Recorded) {
        *self.sizes.of(&recorded) += of_recorded(&recorded);
        let before = self.outcomes.insert(key, recorded);
        invariant!(before.is_none(), "a transaction ends once");
    }

    pub(super) fn take_outcome(&mut self, key: (Client, u64)) -> Option<Recorded> {
        let recorded = self.outcomes.remove(&key)?;
        *self.sizes.of(&recorded) -= of_recorded(&recorded);
        Some(recorded)
    }

    /// A client knows how all its transactions below have ended.
    pub(crate) fn mark(&mut self, client: Client, mark: u64) {
        let has = self.marks.get(&client).copied().unwrap_or_default();
        if mark <= has.max(self.horizon) {
            return;
        }
        if self.marks.insert(client, mark).is_none() {
            self.sizes.remembered += MARK_BYTES;
        }
        let known = self.outcomes.range((client, 0)..(client, mark));
        let over = known.filter(|(_, it)| it.groups.is_empty()).map(|(key, _)| *key);
        let over: Vec<(Client, u64)> = over.collect();
        over.into_iter().for_each(|key| _ = self.take_outcome(key));
    }

    /// Drops what is remembered of transactions below, but for what groups may ask for.
    pub(super) fn raise_horizon(&mut self, counter: u64) {
        self.horizon = self.horizon.max(counter);
        let before = self.marks.len();
        self.marks.retain(|_, mark| *mark > self.horizon);
        self.sizes.remembered -= MARK_BYTES * (before - self.marks.len());
        let is_below =
            |(key, it): &(&(Client, u64), &Recorded)| key.1 < self.horizon && it.groups.is_empty();
        let below: Vec<(Client, u64)> =
            self.outcomes.iter().filter(is_below).map(|(key, _)| *key).collect();
        below.into_iter().for_each(|key| _ = self.take_outcome(key));
    }

    /// The next horizon, where it may be no higher than `highest`: what it passes is a quarter of
    /// what is remembered below that, from the oldest on. None if nothing is.
    #[must_use]
    pub fn oldest(&self, highest: u64) -> Option<u64> {
        let of_outcomes = self.remembered().map(|((_, counter), _)| *counter);
        // A mark is dropped if it is no higher than the horizon.
        let counters = of_outcomes.chain(self.marks.values().copied());
        let mut counters: Vec<u64> = counters.filter(|counter| *counter < highest).collect();
        quarter(&mut counters).map(|oldest| oldest.saturating_add(1))
    }

    /// Clients that have counted further than `counter_max`, with about how many bytes are
    /// remembered of each transaction there; who has counted furthest comes first.
    #[must_use]
    pub fn ahead(&self, counter_max: u64) -> Vec<(Client, usize)> {
        let is_ahead = |(key, _): &(&(Client, u64), &Recorded)| key.1 > counter_max;
        let mut ahead: Vec<(u64, Client, usize)> = self
            .remembered()
            .filter(is_ahead)
            .map(|((client, counter), it)| (*counter, *client, of_recorded(it)))
            .collect();
        ahead.sort_unstable();
        ahead.into_iter().rev().map(|(_, client, bytes)| (client, bytes)).collect()
    }

    /// About how many bytes are remembered of counters above `counter_max`, marks as well.
    #[must_use]
    pub fn bytes_ahead(&self, counter_max: u64) -> usize {
        let outcomes = self.remembered().filter(|(key, _)| key.1 > counter_max);
        let marks = self.marks.values().filter(|mark| **mark > counter_max).count();
        outcomes.map(|(_, it)| of_recorded(it)).sum::<usize>() + MARK_BYTES * marks
    }

    /// About how many bytes more are remembered when a transaction is forgotten by the group that
    /// has decided it: none if its client knows already.
    #[must_use]
    pub fn bytes_kept(&self, tx: TxId) -> usize {
        let recorded = self.outcomes.get(&(tx.client, tx.counter));
        recorded.filter(|_| self.is_kept(tx)).map_or(0, of_recorded)
    }

    /// Whether that is more than none.
    #[must_use]
    pub fn is_kept(&self, tx: TxId) -> bool {
        !self.is_forgotten(tx) && self.outcomes.contains_key(&(tx.client, tx.counter))
    }

    /// How transactions have ended that no group asks for any more.
    fn remembered(&self) -> impl Iterator<Item = (&(Client, u64), &Recorded)> {
        self.outcomes.iter().filter(|(_, it)| it.groups.is_empty())
    }
}

/// About how many bytes are remembered when an entry is executed, more than before.
pub fn of_ended(entry: &Entry) -> usize {
    let of_none = of_groups(&[]) + MARK_BYTES;
    match entry {
        Entry::DecidedApplied { outcome, .. } => {
            let of = |(_, results): &(Vec<Change>, Results)| of_answers([results].into_iter());
            of_none + outcome.as_ref().map_or_else(of_cause, of)
        }
        Entry::Decided { groups, outcome, .. } => {
            let of = |all: &Vec<Counted>| of_answers(all.iter().map(|counted| &counted.results));
            of_none + of_groups(groups) + outcome.as_ref().map_or_else(of_cause, of)
        }
        Entry::Applied { outcome, .. } => of_none + outcome.as_ref().map_or_else(of_cause, |()| 0),
        // It brings a mark.
        Entry::Prepared(_) if !mutant!("txn_mark_is_not_noted") => MARK_BYTES,
        _ => 0,
    }
}

/// About how many bytes are remembered for clients alone when an entry is executed, more than
/// before. What other groups are told first comes to that when they have applied it.
pub fn of_remembered(entry: &Entry) -> usize {
    match entry {
        Entry::Decided { groups, .. }
            if !groups.is_empty() && !mutant!("txn_decision_is_noted_twice") =>
        {
            0
        }
        _ => of_ended(entry),
    }
}

/// The lowest that a quarter is no higher than.
fn quarter(counters: &mut [u64]) -> Option<u64> {
    let place = counters.len() / 4;
    (place < counters.len()).then(|| *counters.select_nth_unstable(place).1)
}

impl Sizes {
    fn of(&mut self, recorded: &Recorded) -> &mut usize {
        match recorded.groups.is_empty() {
            true => &mut self.remembered,
            false => &mut self.unended,
        }
    }
}
