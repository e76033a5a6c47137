//! Names of transactions, and the numbers that order them and what they change.

use core::fmt;
use quorate_kernel::ids::GroupId;
use quorate_kernel::mutant;
use serde::{Deserialize, Serialize};

/// A client for its whole life: 64 random bits, never used again.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Client(pub u64);

/// A transaction (the paper's txID, §4.2), compared by counter first. A client counts up, also
/// above every counter that it sees in a reply, and never gives one out twice. No name is lower
/// than [`TxId::first`] at the time when it is given: each counter is the higher of the one after
/// the last, and of that. What is older than all that a group remembers of ended transactions is
/// taken for one of those, and what a client has under way must not look as old as its start.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TxId {
    /// Counted by the client, from 1.
    pub counter: u64,
    /// Who began it.
    pub client: Client,
}

impl TxId {
    /// No transaction: what expiry removes has this writer.
    pub const NONE: TxId = TxId { counter: 0, client: Client(0) };

    /// Whether a transaction can have this name: it is counted from 1, and another one can follow.
    #[must_use]
    pub fn is_name(self) -> bool {
        (0 < self.counter && self.counter < u64::MAX) || mutant!("txn_any_name")
    }

    /// The lowest that a client gives at this time, in milliseconds since 1970 by its clock.
    #[must_use]
    pub fn first(client: Client, now: super::execute::act::WallMs) -> TxId {
        let counter = now.saturating_mul(super::rules::COUNTERS_PER_MS).max(1);
        TxId { counter, client }
    }
}

impl fmt::Debug for TxId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.counter, self.client.0)
    }
}

/// Who gives way to whom: the lower rank goes first. All groups compare the same ranks.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Rank {
    /// The counter of the first attempt: one that is tried again does not begin at the end.
    pub priority: u64,
    /// The transaction itself breaks ties.
    pub tx: TxId,
}

/// How often a key was changed. It goes on over a removal; an absent key has one too.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Version(pub u64);

impl Version {
    /// The highest. Versions are counted up one by one, so no correct group comes near it; a peer
    /// may say that one has.
    pub const LAST: Version = Version(u64::MAX - 1);

    /// The version that the next change makes. Behind the last there is none: a primary takes no
    /// change of such a key.
    #[must_use]
    pub fn next(self) -> Version {
        Version(self.0.saturating_add(1)).min(Version::LAST)
    }

    /// Whether a change can follow it.
    #[must_use]
    pub fn has_next(self) -> bool {
        self < Version::LAST || mutant!("txn_any_version")
    }

    /// Whether a key can have it.
    #[must_use]
    pub fn is_sound(self) -> bool {
        self <= Version::LAST || mutant!("txn_any_version")
    }
}

/// How often a group has taken its vote on a transaction back. Votes of an earlier number do not
/// count.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct VoteSeq(pub u64);

impl VoteSeq {
    /// That of the vote after one that was taken back.
    #[must_use]
    pub fn next(self) -> VoteSeq {
        VoteSeq(self.0.checked_add(1).expect("a vote is taken back fewer than 2^64 times"))
    }

    /// Whether a group can have come so far. Votes are counted one by one, so none has; and who
    /// goes on from there comes to no end.
    #[must_use]
    pub fn can_be_counted(self) -> bool {
        self.0 <= u64::MAX / 2 || mutant!("txn_copies_any_vote_number")
    }

    /// Whether a vote can follow it. None can follow the highest number, so nobody has come there.
    #[must_use]
    pub fn has_next(self) -> bool {
        self.0 < u64::MAX || mutant!("txn_any_vote_number")
    }
}

/// What a client keeps to ask how its transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Token {
    /// The transaction.
    pub tx: TxId,
    /// The group that decides: the lowest of those that it touches (§4.3).
    pub coordinator: GroupId,
}
