//! What a correct peer can have said: entries, copies and messages of others are looked at before
//! anything is done with them.
//!
//! What a correct peer never says is not read: it comes into no log and no state here, and whoever
//! has brought it counts it. It would stop every replica that executes it, or that goes on from it.
//! Looked at is what can be told from the bytes and the group alone. An entry may still contradict
//! the state that it is executed on: only a primary that makes entries up can make such a one, or
//! one that has copied a state that was made up, and a replica that executes it stops rather than
//! go on with a state that nobody has promised.

use super::execute::act::{Effect, Results};
use super::execute::entry::{Change, Counted, Dropped, Entry, Prepared, Share};
use super::execute::head::{Head, of_results};
use super::execute::items::Stored;
use super::message::{Cause, Message};
use super::number::{TxId, VoteSeq};
use super::raw::Raw;
use super::rules::{self, ACTS_MAX, ANSWER_BYTES_MAX, ITEM_KEY_BYTES_MAX, VALUE_BYTES_MAX};
use alloc::collections::BTreeMap;
use quorate_kernel::ids::GroupId;
use quorate_kernel::mutant;

/// Whether these are several groups, ascending, and this one is among them.
fn are_groups(groups: &[GroupId], group: GroupId) -> bool {
    groups.len() > 1 && rules::check_groups(group, groups).is_ok()
}

/// Whether a key can be named so.
pub(super) fn is_key(key: &Raw) -> bool {
    !key.is_empty() && key.len() <= ITEM_KEY_BYTES_MAX
}

fn ascend(keys: &[Raw]) -> bool {
    keys.is_sorted_by(|one, next| one < next) && keys.iter().all(is_key)
}

/// Whether these can be the answers of one group.
pub(super) fn are_answers(results: &Results) -> bool {
    results.len() <= ACTS_MAX && of_results(results) <= results.len() * ANSWER_BYTES_MAX
}

/// Whether each key is changed once, to what it can have then.
fn are_changes(changes: &[Change]) -> bool {
    let is_sound = |change: &Change| {
        let fits = match &change.effect {
            Effect::Put { value, .. } => value.len() <= VALUE_BYTES_MAX,
            Effect::Delete => true,
        };
        fits && is_key(&change.key) && change.version.0 > 0 && change.version.is_sound()
    };
    changes.is_sorted_by(|one, next| one.key < next.key) && changes.iter().all(is_sound)
}

/// Whether somebody can still begin something.
fn is_horizon(counter: u64) -> bool {
    counter < u64::MAX || mutant!("txn_any_horizon")
}

impl Cause {
    fn is_sound(&self) -> bool {
        self.key().is_none_or(|key| key.len() <= ITEM_KEY_BYTES_MAX)
    }
}

impl Share {
    /// Whether its keys ascend, each of them named once, and only exclusive ones are changed.
    fn is_sound(&self) -> bool {
        let is_held = |key: &Raw| self.exclusive.binary_search(key).is_ok();
        let is_both = self.shared.iter().any(is_held);
        let are_held = self.changes.iter().all(|change| is_held(&change.key));
        let are_sorted = ascend(&self.shared) && ascend(&self.exclusive);
        let are_sound = are_changes(&self.changes) && are_answers(&self.results);
        are_sorted && !is_both && are_held && are_sound
    }
}

impl Prepared {
    fn is_sound(&self) -> bool {
        let is_vote = self.vote.as_ref().map_or_else(Cause::is_sound, Share::is_sound);
        let tx = self.rank.tx;
        let are_groups = self.groups.is_sorted_by(|one, next| one < next);
        is_vote && are_groups && self.seq.has_next() && tx.is_name() && self.mark <= tx.counter
    }
}

/// Whether a decision rests on a vote of each of its groups, or tells why it rests on none. One
/// that was only asked for knows no groups.
fn is_decision(groups: &[GroupId], outcome: &Result<alloc::vec::Vec<Counted>, Cause>) -> bool {
    let counted = match outcome {
        Ok(counted) => counted,
        Err(cause) => return cause.is_sound(),
    };
    let of_all = counted.iter().map(|vote| vote.group).eq(groups.iter().copied());
    let is_vote = |vote: &Counted| vote.seq.has_next() && are_answers(&vote.results);
    let acts: usize = counted.iter().map(|vote| vote.results.len()).sum();
    of_all && !groups.is_empty() && acts <= ACTS_MAX && counted.iter().all(is_vote)
}

impl Entry {
    /// Whether a correct primary can have put it into some group's log.
    pub(super) fn is_sound(&self) -> bool {
        let has_name = self.tx().is_none_or(TxId::is_name);
        let is_sound = match self {
            Entry::Prepared(prepared) => prepared.is_sound(),
            Entry::DecidedApplied { tx, outcome, mark, .. } => {
                let is_outcome = match outcome {
                    Ok((changes, results)) => are_changes(changes) && are_answers(results),
                    Err(cause) => cause.is_sound(),
                };
                is_outcome && *mark <= tx.counter
            }
            Entry::Decided { groups, outcome, .. } => is_decision(groups, outcome),
            Entry::Applied { outcome, .. } => {
                outcome.as_ref().map_or_else(|cause| cause.key().is_none(), |()| true)
            }
            Entry::Revoked { seq, .. } | Entry::Reverted { seq, .. } => seq.has_next(),
            Entry::Purge { keys } => {
                let may_drop = |it: &Dropped| is_key(&it.key) && it.version.has_next();
                keys.iter().all(may_drop)
            }
            Entry::Expire { keys, .. } => {
                keys.iter().all(|(key, version)| is_key(key) && version.is_sound())
            }
            Entry::Forget { txs } => txs.iter().all(|tx| tx.is_name()),
            Entry::Horizon { counter } => is_horizon(*counter),
            Entry::Move(step) => step.is_sound(),
            Entry::ClientGone { .. } => true,
        };
        has_name && is_sound
    }

    /// Whether it can be one of this group.
    pub(super) fn is_of(&self, group: GroupId) -> bool {
        let decides =
            |groups: &[GroupId]| are_groups(groups, group) && groups.first() == Some(&group);
        let is_of = match self {
            Entry::Prepared(prepared) => are_groups(&prepared.groups, group),
            Entry::Decided { groups, outcome, .. } => {
                decides(groups) || (groups.is_empty() && outcome.is_err())
            }
            Entry::Revoked { groups, group: other, .. } => {
                decides(groups) && *other != group && groups.contains(other)
            }
            Entry::Move(step) => step.is_of(group),
            _ => true,
        };
        is_of || mutant!("txn_entry_of_any_group")
    }
}

impl Stored {
    /// Whether a key can have it.
    pub(super) fn is_sound(&self) -> bool {
        self.version.is_sound()
    }
}

/// Whether items that a peer has sent can be those of a group.
pub(super) fn are_items(items: &[(Raw, Stored)]) -> bool {
    items.iter().all(|(key, item)| is_key(key) && item.is_sound())
}

impl Head {
    /// Whether a peer's head can be that of this group: what else would stop whoever takes it over.
    #[must_use]
    pub fn is_sound(&self, group: GroupId) -> bool {
        let has_ended = |tx: &TxId| self.outcomes.contains_key(&(tx.client, tx.counter));
        let mut open = self.pending.keys().chain(self.taken_back.keys()).chain(self.revoked.keys());
        let may_go_on =
            self.floor.has_next() && is_horizon(self.horizon) && self.moves.is_sound(group);
        if open.any(|tx| has_ended(tx) || !tx.is_name()) || !may_go_on {
            return false;
        }
        let mut ended = self.outcomes.iter();
        let may_end = ended.all(|((client, counter), it)| {
            let tx = TxId { counter: *counter, client: *client };
            tx.is_name() && it.outcome.as_ref().map_or_else(Cause::is_sound, |_| true)
        });
        let may_vote = self
            .taken_back
            .values()
            .all(|taken| taken.next.can_be_counted() && are_groups(&taken.groups, group));
        let may_decide = self.revoked.values().all(|revoked| {
            let is_first = revoked.groups.first() == Some(&group);
            is_first && are_groups(&revoked.groups, group)
        });
        may_end && may_vote && may_decide && self.has_sound_votes(group)
    }

    /// Whether votes are of this group, and hold no keys that others hold.
    fn has_sound_votes(&self, group: GroupId) -> bool {
        let mut held: BTreeMap<&Raw, bool> = BTreeMap::new();
        for (tx, prepared) in &self.pending {
            let is_of_group = are_groups(&prepared.groups, group);
            let is_new = prepared.rank.tx == *tx && !self.taken_back.contains_key(tx);
            let is_sound = prepared.is_sound() && prepared.seq.can_be_counted();
            if !is_of_group || !is_new || !is_sound {
                return false;
            }
            let Ok(share) = &prepared.vote else { continue };
            let shared = share.shared.iter().map(|key| (key, true));
            let exclusive = share.exclusive.iter().map(|key| (key, false));
            for (key, shares) in shared.chain(exclusive) {
                if held.insert(key, shares).is_some_and(|other| !other || !shares) {
                    return false;
                }
            }
        }
        true
    }
}

impl Message {
    /// Whether another group can have said it to this one: whoever decides is the lowest group of
    /// a transaction. Whether it comes from a member of the group which it names a lane looks at:
    /// it alone knows who has sent it.
    #[must_use]
    pub fn is_of(&self, group: GroupId) -> bool {
        let is_of = match self {
            Message::Vote { group: from, groups, .. }
            | Message::RevokeVote { group: from, groups, .. } => {
                groups.first() == Some(&group) && *from != group
            }
            Message::Decision { group: from, .. } | Message::RevokeGranted { group: from, .. } => {
                *from < group
            }
            Message::Applied { group: from, .. } => *from > group,
            Message::Move { group: from, .. } => *from != group,
        };
        is_of || mutant!("txn_message_of_any_group")
    }

    /// Whether a correct group can have said it.
    pub(super) fn is_sound(&self) -> bool {
        let of_group = |group: GroupId, groups: &[GroupId], seq: VoteSeq| {
            seq.has_next() && are_groups(groups, group)
        };
        let is_sound = match self {
            Message::Vote { group, groups, seq, vote, .. } => {
                let is_vote = vote.as_ref().map_or_else(Cause::is_sound, are_answers);
                is_vote && of_group(*group, groups, *seq)
            }
            Message::RevokeVote { group, groups, seq, .. } => of_group(*group, groups, *seq),
            Message::RevokeGranted { seq, .. } => seq.has_next(),
            Message::Decision { outcome, .. } => {
                outcome.as_ref().map_or_else(Cause::is_sound, |()| true)
            }
            Message::Applied { .. } => true,
            Message::Move { bucket, said, .. } => said.is_sound(*bucket),
        };
        is_sound && self.tx().is_none_or(TxId::is_name)
    }
}
