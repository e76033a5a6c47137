//! What groups say to each other, and what clients ask a primary.
//!
//! Groups speak through their primaries. A lane sends a message to whom it takes for the primary;
//! whoever is none drops it, for all are sent again until they are answered.

use super::execute::act::{Act, ActError, Results, WallMs};
use super::moves::Said;
use super::number::{Rank, Token, TxId, Version, VoteSeq};
use super::raw::Raw;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::GroupId;
use quorate_kernel::mutant;
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use serde::{Deserialize, Serialize};

/// One message between groups. New variants are only appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Participant to coordinator, when its `Prepared` is committed, and again until it is told the
    /// decision (the paper's LOCALDECISIONRESPONSE): the group holds its locks until then.
    Vote {
        /// The transaction.
        tx: TxId,
        /// Who votes.
        group: GroupId,
        /// All groups.
        groups: Vec<GroupId>,
        /// Which of its votes.
        seq: VoteSeq,
        /// What its acts answer if all vote so, or why it is not ready.
        vote: Result<Results, Cause>,
    },
    /// Coordinator to every group, when its `Decided` is committed, and again until it is applied
    /// (the paper's GLOBALDECISION): it never changes.
    Decision {
        /// The transaction.
        tx: TxId,
        /// The coordinator.
        group: GroupId,
        /// Why nothing is changed, if so.
        outcome: Result<(), Cause>,
    },
    /// Participant to coordinator, when its `Applied` is committed: it asks no more.
    Applied {
        /// The transaction.
        tx: TxId,
        /// Who has applied it.
        group: GroupId,
    },
    /// Participant to coordinator, while an older transaction waits for the locks of this one (the
    /// paper's REQUESTREVERTLOCALDECISION). It promises nothing.
    RevokeVote {
        /// The transaction whose vote it is.
        tx: TxId,
        /// Who would take it back.
        group: GroupId,
        /// All groups.
        groups: Vec<GroupId>,
        /// Which vote.
        seq: VoteSeq,
    },
    /// Coordinator to participant, when its `Revoked` is committed: no decision will count that
    /// vote.
    RevokeGranted {
        /// The transaction.
        tx: TxId,
        /// The coordinator: nobody else decides what counts.
        group: GroupId,
        /// Which vote.
        seq: VoteSeq,
    },
    /// A group to another, of a bucket that moves from one to the other.
    Move {
        /// Who says it.
        group: GroupId,
        /// The bucket.
        bucket: u8,
        /// What.
        said: Said,
    },
}

/// Why a transaction has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// A key has another version than the transaction rests on.
    Version {
        /// The key.
        key: Raw,
        /// The version that it rests on.
        expected: Version,
        /// The one that the key has.
        found: Version,
        /// Who has made that; [`TxId::NONE`] if its time had passed, or the key is absent.
        by: TxId,
    },
    /// An act was not done.
    Act {
        /// The key.
        key: Raw,
        /// Why.
        error: ActError,
        /// Who has made what the key has.
        by: TxId,
    },
    /// The values that it would leave are too many bytes together.
    TooLarge,
    /// Not all groups were ready in time.
    Timeout,
    /// Somebody asked how it ended before it was decided.
    Asked,
    /// Its client has gone on to others, so it cannot commit any more.
    Forgotten,
    /// This group has lost its vote with its data, so it has done nothing; others may have.
    Lost,
    /// What has failed is in another group: the one that decides tells what.
    Elsewhere,
    /// A key that it would change has the last version of all. No group counts so far: a peer has
    /// said that this one had.
    Exhausted,
    /// The values that its keys have are too many bytes together.
    ReadsTooMuch {
        /// How many were counted.
        bytes: u64,
        /// The most that one group reads for a transaction.
        bytes_max: u64,
    },
    /// A key is of another group by now: it is tried again there, under another name.
    Moved,
}

impl Cause {
    /// The key that it names.
    #[must_use]
    pub fn key(&self) -> Option<&Raw> {
        match self {
            Cause::Version { key, .. } | Cause::Act { key, .. } => Some(key),
            _ => None,
        }
    }

    /// What a group remembers of it that does not decide, and so tells nobody: no key, which may
    /// be long.
    #[must_use]
    pub(super) fn without_key(self) -> Cause {
        let is_short = self.key().is_none() || mutant!("txn_whole_cause");
        if is_short { self } else { Cause::Elsewhere }
    }
}

/// What a client asks of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Commits a transaction; the share of this group.
    Commit(Commit),
    /// Reads keys, strictly: what is answered is current at one moment after the question.
    Read {
        /// The keys.
        keys: Vec<Raw>,
    },
    /// Asks for keys as this replica has them, whoever it is and however old that is: a commit that
    /// rests on it finds out. One that copies the state refuses.
    ReadAny {
        /// The keys.
        keys: Vec<Raw>,
    },
    /// Commits a transaction that only reads, once all its reads are done: whether all this was
    /// current at one moment, if every group says so.
    Check {
        /// What was read.
        reads: BTreeMap<Raw, Version>,
    },
    /// Asks the coordinator how a transaction ended; if nobody has decided and it is not under
    /// way, it has ended with that.
    Outcome {
        /// What the client has kept of it.
        token: Token,
    },
}

/// A transaction's share of one group (the paper's COMMITREQUEST).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Its rank, and with that its name.
    pub rank: Rank,
    /// The client knows how all its transactions with lower counters have ended.
    pub mark: u64,
    /// All its groups, ascending; the first decides.
    pub groups: Vec<GroupId>,
    /// The versions that it rests on, of this group's keys.
    pub reads: BTreeMap<Raw, Version>,
    /// What it does to this group's keys, in order.
    pub acts: Vec<(Raw, Act)>,
    /// Whether an act that fails leaves the others be.
    pub goes_on: bool,
    /// The most bytes of a value that grows where it stands; no more than of any value.
    pub value_max: u64,
}

/// A key as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// Its version; an absent key has one too.
    pub version: Version,
    /// The value, and when it is removed.
    pub content: Option<(Raw, Option<WallMs>)>,
}

/// How a transaction has ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Outcome {
    /// It has changed all that it should; what the acts of each group answer.
    Committed(Vec<(GroupId, Results)>),
    /// It has changed nothing, and never will.
    Aborted(Cause),
    /// It is under way: ask again.
    Running,
    /// The client has said that it knows, or was gone for too long. It may be either. A group that
    /// does not decide says so too when it has forgotten so far: it takes no part any more, and the
    /// one that decides is asked how it ended.
    Forgotten {
        /// The lowest counter of this client that the group takes: it counts on from there.
        lowest: u64,
    },
}

/// What a client is answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// How a transaction has ended.
    Outcome {
        /// The transaction.
        tx: TxId,
        /// How.
        outcome: Outcome,
    },
    /// What was read, in the order of the question.
    Items(Vec<Item>),
    /// All versions that a transaction rests on are current here.
    Current,
    /// One of them is not, or may be about to change: read again, or commit it like others.
    Changed {
        /// The key.
        key: Raw,
    },
    /// The request was not taken. It has changed nothing, and never will; an earlier one of the
    /// same name may have.
    Refused(Refused),
}

/// Why a request is not taken. It has changed nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refused {
    /// Another member is the primary.
    NotPrimary,
    /// The primary has too much in hand, or too much is remembered. Much of those who count ahead
    /// of the group's clock is too much for them alone.
    Busy,
    /// It names no key, or its counter is 0.
    Empty,
    /// It names too many keys, or too many acts.
    TooManyKeys {
        /// How many keys.
        keys: usize,
        /// How many it may name.
        keys_max: usize,
    },
    /// A key is empty or too long.
    KeyLength {
        /// Its length.
        bytes: usize,
        /// The longest.
        bytes_max: usize,
    },
    /// Its keys and values are too many bytes.
    TooLarge {
        /// How many.
        bytes: usize,
        /// How many they may be.
        bytes_max: usize,
    },
    /// Its groups are not ascending, or this group is not among them; or this group does not
    /// decide it.
    Groups,
    /// This replica copies the state, and has only a part of it: ask another.
    NotReady,
    /// A transaction of this name is under way with other keys, acts or groups: names are used
    /// once. Take another for this one.
    Reused,
    /// The client has counted further than any can have.
    Counter {
        /// The transaction's counter.
        counter: u64,
        /// The highest that may be.
        counter_max: u64,
    },
    /// Somebody may be about to change a key that is to be read, and was not told in time whether
    /// it does. Nothing was read: ask again.
    Held {
        /// The key.
        key: Raw,
    },
    /// A key is of another group by now.
    Moved,
    /// A key is about to be of this group, or no more: ask again soon.
    Moving,
}

impl Message {
    /// The transaction that it is about, if it is about one.
    #[must_use]
    pub fn tx(&self) -> Option<TxId> {
        match self {
            Message::Move { .. } => None,
            Message::Vote { tx, .. }
            | Message::Decision { tx, .. }
            | Message::Applied { tx, .. }
            | Message::RevokeVote { tx, .. }
            | Message::RevokeGranted { tx, .. } => Some(*tx),
        }
    }

    /// The group that says it.
    #[must_use]
    pub fn group(&self) -> GroupId {
        match self {
            Message::Vote { group, .. }
            | Message::Decision { group, .. }
            | Message::Applied { group, .. }
            | Message::RevokeVote { group, .. }
            | Message::RevokeGranted { group, .. }
            | Message::Move { group, .. } => *group,
        }
    }
}

/// Reads what is encoded whole.
fn whole<T: for<'a> Deserialize<'a>>(bytes: &Bytes, what: &'static str) -> Result<T, WireError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        _ => Err(WireError::Malformed { what }),
    }
}

fn bytes_of<T: Serialize>(value: &T) -> Bytes {
    postcard::to_allocvec(value).expect("plain data always serializes").into()
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.tail(0, &bytes_of(self));
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        let what = "message between groups";
        let message: Message = whole(&input.tail(0), what)?;
        if message.is_sound() { Ok(message) } else { Err(WireError::Malformed { what }) }
    }
}

impl Wire for Request {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.tail(0, &bytes_of(self));
    }

    fn decode(input: &Decoder) -> Result<Request, WireError> {
        whole(&input.tail(0), "request of a client")
    }
}

impl Wire for Reply {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.tail(0, &bytes_of(self));
    }

    fn decode(input: &Decoder) -> Result<Reply, WireError> {
        whole(&input.tail(0), "reply to a client")
    }
}
