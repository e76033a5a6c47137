//! The replicated state of a group, and what must hold of it.
//!
//! All of it follows from the log: every replica has the same after the same entries. The head is
//! what is copied in one turn; locks follow from the votes in it; items are copied page by page.
//! What only a primary has, and loses with its view, is in `primary.rs`.

use super::execute::entry::Share;
use super::execute::head::{Head, Recorded};
use super::execute::items::{Items, Stored};
use super::execute::locks::Locks;
use super::lane::Shape;
use super::message::{Cause, Outcome};
use super::number::{TxId, VoteSeq};
use super::raw::Raw;
use alloc::vec::Vec;
use quorate_kernel::ids::GroupId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::process::Table;

/// The replicated state of a group.
#[derive(Debug)]
pub struct State {
    /// The group.
    pub group: GroupId,
    /// What is small.
    pub head: Head,
    /// Who holds which key.
    pub locks: Locks,
    /// The keys.
    pub items: Items,
    /// Which groups had which buckets in the beginning; none if this one had all.
    pub founding: Option<Shape>,
    /// The last entry that was executed.
    pub applied: u64,
    /// What was executed since the lane took it last.
    pub(super) executed: Vec<super::execute::apply::Executed>,
}

impl State {
    /// That of a group in which nothing has happened.
    #[must_use]
    pub fn new(group: GroupId) -> State {
        State {
            group,
            head: Head::default(),
            locks: Locks::default(),
            items: Items::new(group),
            founding: None,
            applied: 0,
            executed: Vec::new(),
        }
    }

    /// The same of one of several groups that had these buckets in the beginning.
    #[must_use]
    pub fn of(group: GroupId, founding: Shape) -> State {
        State { founding: Some(founding), ..State::new(group) }
    }

    /// What was executed since this was called last. A lane calls it after every call of the
    /// replica, whether this node leads or not.
    pub fn take_executed(&mut self) -> Vec<super::execute::apply::Executed> {
        core::mem::take(&mut self.executed)
    }

    /// What is known of a key; one that is not there has the floor as its version.
    #[must_use]
    pub fn item(&self, key: &Raw, table: &dyn Table) -> Stored {
        let absent =
            || Stored { version: self.head.floor, op: 0, writer: TxId::NONE, content: None };
        self.items.get(key, table).unwrap_or_else(absent)
    }

    /// How a transaction has ended, if that is known or was forgotten.
    #[must_use]
    pub fn outcome(&self, tx: TxId) -> Option<Outcome> {
        if let Some(recorded) = self.recorded(tx) {
            return Some(match recorded.outcome.clone() {
                Ok(results) => Outcome::Committed(results),
                // It was lost with this group's data; in others it may have committed.
                Err(Cause::Lost) => self.forgotten(tx),
                Err(cause) => Outcome::Aborted(cause),
            });
        }
        self.is_forgotten(tx).then(|| self.forgotten(tx))
    }

    /// What is answered where nobody knows how a transaction has ended. Its client counts on above
    /// it: what was lost with this group's data is not below any mark, and its name was used.
    #[must_use]
    pub fn forgotten(&self, tx: TxId) -> Outcome {
        let above = if mutant!("txn_lost_name_again") { 0 } else { tx.counter.saturating_add(1) };
        Outcome::Forgotten { lowest: self.head.lowest(tx.client).max(above) }
    }

    /// How a transaction has ended, if that is remembered.
    #[must_use]
    pub fn recorded(&self, tx: TxId) -> Option<&Recorded> {
        self.head.outcomes.get(&(tx.client, tx.counter))
    }

    /// Whether the client has said that it knows how a transaction ended, or that is too long ago.
    #[must_use]
    pub fn is_forgotten(&self, tx: TxId) -> bool {
        self.head.is_forgotten(tx)
    }

    /// The share of this group that a transaction holds locks for.
    #[must_use]
    pub fn share(&self, tx: TxId) -> Option<&Share> {
        self.head.pending.get(&tx)?.vote.as_ref().ok()
    }

    /// The number of this group's next vote on a transaction.
    #[must_use]
    pub fn next_seq(&self, tx: TxId) -> VoteSeq {
        self.head.taken_back.get(&tx).map_or(VoteSeq(0), |taken| taken.next)
    }

    /// The first vote of a group that counts, where this one decides.
    #[must_use]
    pub fn first_seq(&self, tx: TxId, group: GroupId) -> VoteSeq {
        let revoked = self.head.revoked.get(&tx);
        revoked.and_then(|revoked| revoked.first.get(&group)).copied().unwrap_or_default()
    }

    /// The locks that follow from the votes.
    pub(super) fn locks_of_votes(&self) -> Locks {
        let mut locks = Locks::default();
        for (tx, prepared) in &self.head.pending {
            if let Ok(share) = &prepared.vote {
                locks.lock(*tx, share);
            }
        }
        locks
    }

    /// Asserts what must hold. Expensive: for tests and simulation.
    pub fn check(&self) {
        self.check_places();
        invariant!(self.locks == self.locks_of_votes(), "locks follow from votes");
        invariant!(self.head.sizes == self.head.sizes_counted(), "sizes are of what there is");
        invariant!(self.head.is_sound(self.group), "a correct head is taken over by others");
        for (tx, prepared) in &self.head.pending {
            invariant!(prepared.rank.tx == *tx, "a vote is of its transaction");
            invariant!(self.recorded(*tx).is_none(), "what is decided is not pending");
            let is_taken_back = self.head.taken_back.contains_key(tx);
            invariant!(!is_taken_back, "a vote that was taken back is not pending");
        }
        for tx in self.head.taken_back.keys() {
            invariant!(self.recorded(*tx).is_none(), "what is decided is not voted on again");
        }
        for (tx, revoked) in &self.head.revoked {
            invariant!(self.recorded(*tx).is_none(), "of what is decided no vote is taken back");
            invariant!(revoked.groups.first() == Some(&self.group), "the lowest group decides");
        }
        for ((client, counter), recorded) in &self.head.outcomes {
            let is_forgotten = self.is_forgotten(TxId { counter: *counter, client: *client });
            let is_asked_for = !is_forgotten || !recorded.groups.is_empty();
            invariant!(is_asked_for, "what nobody asks for is forgotten");
        }
    }
}
