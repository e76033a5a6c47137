//! Entries of a group's log: the only places where the state of transactions changes.
//!
//! What executes one does so whatever the items are: everything was looked at before, by the
//! primary that has put it into the log (J. Gray, L. Lamport, "Consensus on Transaction Commit",
//! call its choice a resource manager's prepared and aborted; here each is one entry).

use super::act::{Effect, Results, WallMs};
use crate::serializable::message::Cause;
use crate::serializable::moves::Step;
use crate::serializable::number::{Client, Rank, TxId, Version, VoteSeq};
use crate::serializable::raw::Raw;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::GroupId;
use serde::{Deserialize, Serialize};

/// The version of an entry's bytes.
///
/// It goes up with every change after which bytes of before would be read as something else, or no
/// more: a field that is added, dropped, moved, or of another type, and a variant that is not the
/// last. A variant that is appended needs none, also one of what entries hold: who does not know it
/// refuses the entry ([`Entry::of`]). A version that a release has written stays readable; a test
/// shows the bytes of this one. The same holds of what is stored (`keys.rs`).
///
/// When it goes up, [`Entry::of_log`] goes on reading the versions that a release has written: they
/// are in logs.
///
/// From one release to the next, the limits that `sound.rs` asks for may only rise, and what it
/// refuses may only become less. What is in a log is executed whatever they are, and may be in the
/// state for long.
/// With lower ones nobody would take over a head that holds a vote above them, so who lags stays
/// behind; and no member would take what a primary makes of it, such as a decision that counts the
/// vote: it ends such a transaction as too large, and leaves such a key. Where limits rise, a
/// member that has the earlier ones lags until it is upgraded.
///
/// 2: a vote tells in short what was asked of its group.
const VERSION: u8 = 2;

/// A change of one key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The key.
    pub key: Raw,
    /// The version that it makes; more if the floor has risen meanwhile.
    pub version: Version,
    /// What the key has then.
    pub effect: Effect,
}

/// What a group is ready to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    /// Keys that others may read as well until the decision, ascending.
    pub shared: Vec<Raw>,
    /// Keys that nobody else may touch until the decision, ascending.
    pub exclusive: Vec<Raw>,
    /// What is changed; of exclusive keys.
    pub changes: Vec<Change>,
    /// What the acts answer.
    pub results: Results,
}

/// A vote of a group (handler 5 of the paper's Fig. 2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepared {
    /// The transaction.
    pub rank: Rank,
    /// All its groups, ascending; the first decides.
    pub groups: Vec<GroupId>,
    /// Which of the group's votes this is.
    pub seq: VoteSeq,
    /// What the group is ready to do, and holds locks for; or why it is not.
    pub vote: Result<Share, Cause>,
    /// What was asked of the group, in short: by that a later primary knows whether who asks again
    /// asks for the same.
    pub digest: u64,
    /// The client's mark.
    pub mark: u64,
    /// The primary's clock.
    pub clock: WallMs,
}

/// One entry. New variants are only appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Entry {
    /// A transaction of this group alone, from beginning to end.
    DecidedApplied {
        /// The transaction.
        tx: TxId,
        /// What is changed and answered, or why nothing is.
        outcome: Result<(Vec<Change>, Results), Cause>,
        /// The client's mark.
        mark: u64,
        /// The primary's clock.
        clock: WallMs,
    },
    /// Participant: how it votes.
    Prepared(Prepared),
    /// Participant: its vote is taken back, and its locks are free. It may vote again.
    Reverted {
        /// The transaction.
        tx: TxId,
        /// Which vote.
        seq: VoteSeq,
    },
    /// Coordinator: how the transaction ends, for ever; its own share is done with it.
    Decided {
        /// The transaction.
        tx: TxId,
        /// Its groups, as far as known; none if it was only asked for.
        groups: Vec<GroupId>,
        /// Which vote of each group it rests on, with what that group's acts answer; or why
        /// nothing is changed.
        outcome: Result<Vec<Counted>, Cause>,
    },
    /// Coordinator: a group may take its vote back; that vote counts no more.
    Revoked {
        /// The transaction.
        tx: TxId,
        /// Its groups.
        groups: Vec<GroupId>,
        /// Whose vote.
        group: GroupId,
        /// Which vote.
        seq: VoteSeq,
    },
    /// Participant: the decision, done here.
    Applied {
        /// The transaction.
        tx: TxId,
        /// Why nothing is changed, if so.
        outcome: Result<(), Cause>,
    },
    /// Coordinator: all groups have these applied; nobody asks any more but the client.
    Forget {
        /// The transactions.
        txs: Vec<TxId>,
    },
    /// A client was not heard of for long: what is remembered of it is dropped, and whoever asks
    /// is told that nobody knows.
    ClientGone {
        /// The client.
        client: Client,
    },
    /// Tombstones are dropped, each if it is still of this entry; the floor rises to their
    /// versions.
    Purge {
        /// The keys.
        keys: Vec<Dropped>,
    },
    /// Keys are removed because their time has passed, each if it still has this version and
    /// nobody has locked it.
    Expire {
        /// The primary's clock.
        clock: WallMs,
        /// The keys.
        keys: Vec<(Raw, Version)>,
    },
    /// Of transactions with lower counters that have ended nothing is remembered any more, nor of
    /// clients that know how all their lower ones have ended: whoever asks is told that nobody
    /// knows.
    Horizon {
        /// The lowest counter that is not passed.
        counter: u64,
    },
    /// A bucket goes on its way to another group.
    Move(Step),
}

/// A tombstone that is dropped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// The key.
    pub key: Raw,
    /// Its version.
    pub version: Version,
    /// The place of the entry that removed it.
    pub removed_at: u64,
}

/// A vote that a decision rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// Whose.
    pub group: GroupId,
    /// Which.
    pub seq: VoteSeq,
    /// What the group's acts answer.
    pub results: Results,
}

impl Entry {
    /// The bytes in the log: version, then postcard.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        let mut bytes = Vec::from([VERSION]);
        bytes.extend(postcard::to_allocvec(self).expect("plain data always serializes"));
        bytes.into()
    }

    /// Reads an entry that is to come into the log.
    ///
    /// # Errors
    /// The bytes are no entry, or none that a correct primary makes.
    pub fn of(bytes: &[u8]) -> Result<Entry, WireError> {
        let entry = Entry::of_log(bytes)?;
        if entry.is_sound() { Ok(entry) } else { Err(Entry::WRONG) }
    }

    /// Reads an entry back that is in the log: the one who let it in has looked at it, by the
    /// limits of its time.
    ///
    /// # Errors
    /// The bytes are no entry.
    pub fn of_log(bytes: &[u8]) -> Result<Entry, WireError> {
        let Some((&VERSION, rest)) = bytes.split_first() else { return Err(Entry::WRONG) };
        match postcard::take_from_bytes::<Entry>(rest) {
            Ok((entry, [])) => Ok(entry),
            _ => Err(Entry::WRONG),
        }
    }

    const WRONG: WireError = WireError::Malformed { what: "entry of a group of transactions" };

    /// The transaction that it is about, if it is about one.
    #[must_use]
    pub fn tx(&self) -> Option<TxId> {
        match self {
            Entry::Prepared(prepared) => Some(prepared.rank.tx),
            Entry::DecidedApplied { tx, .. }
            | Entry::Reverted { tx, .. }
            | Entry::Decided { tx, .. }
            | Entry::Revoked { tx, .. }
            | Entry::Applied { tx, .. } => Some(*tx),
            Entry::Forget { .. }
            | Entry::ClientGone { .. }
            | Entry::Purge { .. }
            | Entry::Expire { .. }
            | Entry::Horizon { .. }
            | Entry::Move(_) => None,
        }
    }
}
