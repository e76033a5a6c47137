//! What replicas and coordinators say to each other. New variants are only appended.

pub use super::anti_entropy::window::Window;
use super::map::Map;
use crate::dots::clock::{Clock, Entry};
use crate::dots::context::CausalContext;
use crate::dots::dot::{Actor, Counter, Dot, Partition};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::limits::{HEADER_BYTES_USUAL, PAGE_BYTES_MAX};
use quorate_kernel::write::WriteId;
use serde::{Deserialize, Serialize};

/// A clock on the wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TellClock(pub Vec<(Actor, Entry)>);

impl TellClock {
    /// Its bytes. They are a raw tail: a clock that has met many actors does not fit a head.
    #[must_use]
    pub(super) fn to_bytes(&self) -> Bytes {
        postcard::to_allocvec(&self.0).expect("plain data always serializes").into()
    }

    /// The clock.
    #[must_use]
    pub fn clock(self) -> Clock {
        self.0.into_iter().collect()
    }
}

/// A context on the wire.
pub type TellContext = Vec<(Actor, Counter)>;

/// How a forwarded write ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// It is stored as often as asked; what a client may be told to cover it.
    Stored(TellContext),
    /// The asked node is no replica of the key. Nothing was changed.
    NotHere,
    /// Too much is in hand there. Nothing was changed.
    Overloaded,
    /// It is stored once; whether often enough was not known in time.
    Unknown,
    /// The key's values would have so many bytes together. Nothing was changed.
    TooLarge(u64),
    /// As `Stored`, with the names of writes that the context covers.
    StoredAs(TellContext, Vec<(Dot, WriteId)>),
}

/// Who speaks to whom in an exchange between two replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// The sender.
    pub from: Actor,
    /// The receiver's partition.
    pub to: Partition,
    /// The version of the sender's map.
    pub map: u64,
}

/// One message. `op` names the asker's operation and is echoed; keys begin with their hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Coordinator of a get to the replicas of a key.
    ReadA {
        /// The asker's operation.
        op: u64,
        /// The key.
        #[serde(skip)]
        key: Bytes,
    },
    /// Replica to the coordinator of a get: its filled object, durable. It counts only if the
    /// replica serves.
    ReadB {
        /// Echoed.
        op: u64,
        /// Which replica.
        partition: Partition,
        /// Whether the sender has joined, so that what it lacks says something.
        is_serving: bool,
        /// The object.
        #[serde(skip)]
        object: Bytes,
    },
    /// A node that is no replica of the key, to one that is: coordinate this write.
    WriteA {
        /// The asker's operation.
        op: u64,
        /// Names the write; a repeated one is done once.
        id: WriteId,
        /// What it replaces.
        context: TellContext,
        /// Whether it has no value.
        is_delete: bool,
        /// How long the coordinator may try, in milliseconds.
        within_ms: u32,
        /// The key.
        #[serde(skip)]
        key: Bytes,
        /// The value.
        #[serde(skip)]
        value: Bytes,
    },
    /// Coordinator to the node that forwarded a write.
    WriteB {
        /// Echoed.
        op: u64,
        /// How it ended.
        ending: Ending,
    },
    /// Coordinator to the other replicas of a key, once its own copy is durable: take in this
    /// filled object. Also to replicas that a get found behind.
    Replicate {
        /// To be acknowledged under this number; 0 if not.
        op: u64,
        /// Who sends it, if it is a replica.
        from: Option<Actor>,
        /// The updates that the receiver may count as seen beside its versions: what was done, and
        /// those whose names are told.
        dots: Vec<Dot>,
        /// The key.
        #[serde(skip)]
        key: Bytes,
        /// The object.
        #[serde(skip)]
        object: Bytes,
    },
    /// Replica to the sender of `Replicate` or `HandOver`: it is taken in, durably.
    Replicated {
        /// Echoed.
        op: u64,
        /// Which replica.
        partition: Partition,
    },
    /// Anti-entropy, the question: this is what I have seen (DottedDB Alg. 3, `sync_clock`).
    SyncA {
        /// Who asks whom.
        pair: Pair,
        /// The asker's clock.
        #[serde(skip)]
        clock: TellClock,
        /// Of which updates it tells everything, and is asked.
        window: Window,
        /// Whether it asks also for what replication on write is most likely still bringing.
        all: bool,
    },
    /// Anti-entropy, the answer (`sync_repair`): what the receiver has not seen of the keys that
    /// both hold, and the clock of the same moment.
    SyncB {
        /// Who answers whom.
        pair: Pair,
        /// Which replica it is for.
        to: Actor,
        /// The sender's clock.
        #[serde(skip)]
        clock: TellClock,
        /// Whether the sender has joined.
        is_joined: bool,
        /// Of which updates nothing was left out.
        covers: Window,
        /// If the sender wants the same from the receiver: of which updates its clock tells all.
        wants: Option<Window>,
        /// The objects, stripped.
        #[serde(skip)]
        page: Bytes,
    },
    /// A replica that joins, to each of its peers: list what we both hold, from this key on.
    /// Without peers to the former holder of its partition, which is then the one that it names.
    ScanA {
        /// Who asks whom.
        pair: Pair,
        /// Which question of this scan it is.
        step: u64,
        /// The key to begin at; empty for the first.
        #[serde(skip)]
        key: Bytes,
    },
    /// Peer to a replica that joins: all keys from the asked one up to `next` that both hold and
    /// that have an object or an update which somebody may lack; others are absent at the sender.
    ScanB {
        /// Who answers whom.
        pair: Pair,
        /// Which replica it is for.
        to: Actor,
        /// Echoed.
        step: u64,
        /// The sender's clock.
        #[serde(skip)]
        clock: TellClock,
        /// The objects, stripped.
        #[serde(skip)]
        page: Bytes,
        /// The key to continue at; empty at the end.
        next: Vec<u8>,
    },
    /// To a node that has shown a newer map: tell it.
    MapA {
        /// The asker's version.
        version: u64,
    },
    /// The newest map that the sender knows, to a node that has shown an older one.
    MapB {
        /// The map.
        map: Map,
    },
    /// A host that gave a partition up, to the hosts of its peers: it has handed over all it had,
    /// and says nothing more as this actor.
    LeftA {
        /// Which actor.
        actor: Actor,
    },
    /// It is noted, durably; by the new holder of the partition: all is copied.
    LeftB {
        /// Echoed.
        actor: Actor,
        /// The version of the map that this was said by: an older one may not have known the new
        /// holder.
        map: u64,
    },
    /// Coordinator of a scan to the replicas of a part of the hash space: which keys have values?
    ListA {
        /// The asker's operation.
        op: u64,
        /// The hash to begin at.
        from: u64,
        /// About how many keys.
        limit: u32,
    },
    /// Replica that serves to the coordinator of a scan: the keys, durable.
    ListB {
        /// Echoed.
        op: u64,
        /// The hash to continue at; none at the end of all.
        next: Option<u64>,
        /// The keys.
        #[serde(skip)]
        keys: Bytes,
    },
    /// As `WriteA`, of a put that its client has sent before, to this host or to another: it is not
    /// done if it may have been done.
    WriteAgainA {
        /// How long ago the client sent it first, in milliseconds.
        age_ms: u32,
        /// The asker's operation.
        op: u64,
        /// Names the write.
        id: WriteId,
        /// What it replaces.
        context: TellContext,
        /// How long the coordinator may try, in milliseconds.
        within_ms: u32,
        /// The key.
        #[serde(skip)]
        key: Bytes,
        /// The value.
        #[serde(skip)]
        value: Bytes,
    },
    /// As `WriteA`, or as `WriteAgainA` if it has an age, of a client whose context has names.
    WriteSeenA {
        /// The names, by their dots.
        names: Vec<(Dot, WriteId)>,
        /// How long ago the client sent it first, in milliseconds; 0 if it is sent first now.
        age_ms: u32,
        /// The asker's operation.
        op: u64,
        /// Names the write.
        id: WriteId,
        /// What it replaces.
        context: TellContext,
        /// Whether it has no value.
        is_delete: bool,
        /// How long the coordinator may try, in milliseconds.
        within_ms: u32,
        /// The key.
        #[serde(skip)]
        key: Bytes,
        /// The value.
        #[serde(skip)]
        value: Bytes,
    },
    /// A replica that leaves, to a replica of the key: take in this filled object. The sender lets
    /// go of it then, so it must be synced before it is acknowledged.
    HandOver {
        /// To be acknowledged under this number.
        op: u64,
        /// Who leaves.
        from: Actor,
        /// The updates that it tells beside its versions.
        dots: Vec<Dot>,
        /// The key.
        #[serde(skip)]
        key: Bytes,
        /// The object.
        #[serde(skip)]
        object: Bytes,
    },
}

/// How many bytes of objects a page holds before it is closed; the last object may exceed it.
pub const PAGE_BYTES: usize = PAGE_BYTES_MAX / 4;

/// How many bytes the names of a context may have in the head of a message.
pub(super) const NAMES_BYTES_MAX: usize = 4096;

/// How many bytes a context may have in the head of a message, beside the other fields.
pub(crate) const TOLD_BYTES_MAX: usize = HEADER_BYTES_USUAL - NAMES_BYTES_MAX - 256;

/// How many bytes one entry of a context has at most: partition, since, birth, node, counter.
const ENTRY_BYTES_MAX: usize = 3 + 10 + 5 + 10 + 10;

/// A context as it is told.
pub fn tell(context: &CausalContext) -> TellContext {
    context.iter().collect()
}

/// A context as it is told, if it fits a message.
///
/// # Errors
/// It would have so many bytes.
pub(super) fn tell_fitting(context: &CausalContext) -> Result<TellContext, usize> {
    let told = tell(context);
    if told.len() * ENTRY_BYTES_MAX < TOLD_BYTES_MAX {
        return Ok(told);
    }
    let bytes = postcard::to_allocvec(&told).expect("plain data always serializes").len();
    if bytes <= TOLD_BYTES_MAX { Ok(told) } else { Err(bytes) }
}
