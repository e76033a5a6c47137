//! What the hosts of a machine over partitions say to each other, and how it is written.

use crate::groups::{Leads, decode_parts, encode_parts};
use crate::multicast::{RingId, Slot};
use crate::smr::partitioned::{self, Addressed, Answered, Machine, PartitionId, Place};
use crate::smr::{COMMANDS_MAX, sized};
use crate::vsr::{self, Op};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::GroupId;
use quorate_kernel::limits::VSR_ENTRIES_MAX;
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// One message. New variants are only appended. All of them may be lost, doubled and late.
#[derive(Clone, Debug, PartialEq)]
pub enum Message<M: Machine> {
    /// Members of rings to members: what one turn brought.
    Log(Vec<(GroupId, vsr::Message)>),
    /// Who the members of a ring are, and in which view: a hint of where its primary is.
    Leads(Leads),
    /// A host to whom it takes for the primary of a ring: commands of its clients. Whoever is not
    /// answers with `Leads`.
    Order {
        /// The ring.
        ring: RingId,
        /// The commands.
        commands: Vec<Addressed<M>>,
    },
    /// The designated replica of a partition to the host whose commands it has executed; each by
    /// its number. What is answered rests on majorities of the rings.
    Answered(Vec<(u64, Answered<M>)>),
    /// A replica of a partition to whom it takes for the primary of a ring: it waits for slots.
    Lacks {
        /// The ring.
        ring: RingId,
        /// The first slot that it may leave open.
        until: Slot,
    },
    /// Replicas of one partition to those of another, or of their own.
    Peers {
        /// Whose replica shall hear it.
        to: PartitionId,
        /// What is said.
        messages: Vec<partitioned::Message<M>>,
    },
    /// A replica of a partition to a member of a ring whose log is not at hand: it shall be told
    /// what is decided behind a position, now and for a while.
    Follow {
        /// The ring.
        ring: RingId,
        /// The sender's partition.
        partition: PartitionId,
        /// The last position that it has.
        after: Op,
    },
    /// The answer to a `Follow`, at once and when more is decided. All of it is committed.
    Decided {
        /// The ring.
        ring: RingId,
        /// The receiver's partition.
        partition: PartitionId,
        /// The first of these positions.
        first: Op,
        /// What they have; none for what the log says of itself.
        entries: Vec<Option<Bytes>>,
        /// Whether the sender has more.
        has_more: bool,
    },
    /// The answer to a `Follow` of positions that the sender's log has let go of: a majority of
    /// the replicas of each partition that needs them has them durably.
    Trimmed {
        /// The ring.
        ring: RingId,
        /// The receiver's partition.
        partition: PartitionId,
        /// The last of the positions that are gone.
        base: Op,
    },
    /// A replica to the members of the ring of all: it has all of that ring up to a position
    /// durably, in what it has stored.
    Holds {
        /// Its partition.
        partition: PartitionId,
        /// The position.
        upto: Op,
    },
    /// A replica that lacks what is gone to another one of its partition: a page of a copy.
    GetCopy {
        /// Their partition.
        partition: PartitionId,
        /// Names the copy: pages of another one do not fit.
        nonce: u64,
        /// The number of the page; 0 begins the copy.
        page: u64,
        /// What it is good for.
        wants: Wants,
    },
    /// The answer to a `GetCopy`. All of it was committed.
    Copy {
        /// Their partition.
        partition: PartitionId,
        /// The question's.
        nonce: u64,
        /// The question's.
        page: u64,
        /// Whether it is the last one.
        is_last: bool,
        /// Some of the bytes of a snapshot.
        body: Bytes,
    },
}

/// What a copy must have to be of use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wants {
    /// It has passed this command.
    pub passed: Option<Place>,
    /// It has come to these positions of rings.
    pub reached: Vec<(RingId, Op)>,
}

impl<M: Machine> Message<M> {
    /// The name of the variant, for traces.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Message::Log(_) => "Log",
            Message::Leads(_) => "Leads",
            Message::Order { .. } => "Order",
            Message::Answered(_) => "Answered",
            Message::Lacks { .. } => "Lacks",
            Message::Peers { .. } => "Peers",
            Message::Follow { .. } => "Follow",
            Message::Decided { .. } => "Decided",
            Message::Trimmed { .. } => "Trimmed",
            Message::Holds { .. } => "Holds",
            Message::GetCopy { .. } => "GetCopy",
            Message::Copy { .. } => "Copy",
        }
    }
}

const LOG: u8 = 0;
const LEADS: u8 = 1;
const ORDER: u8 = 2;
const ANSWERED: u8 = 3;
const LACKS: u8 = 4;
const PEERS: u8 = 5;
const FOLLOW: u8 = 6;
const DECIDED: u8 = 7;
const TRIMMED: u8 = 8;
const HOLDS: u8 = 9;
const GET_COPY: u8 = 10;
const COPY: u8 = 11;

fn malformed() -> WireError {
    WireError::Malformed { what: "message of a machine over partitions" }
}

/// A value that is the tail of a message.
fn tail<T: DeserializeOwned>(input: &Decoder) -> Result<T, WireError> {
    match postcard::take_from_bytes(&input.tail(0)) {
        Ok((value, [])) => Ok(value),
        _ => Err(malformed()),
    }
}

fn put<T: Serialize>(tag: u8, value: &T, out: &mut Encoder<'_>) {
    out.raw(&[tag]);
    out.tail(0, &sized(&[], value));
}

impl<M: Machine> Wire for Message<M> {
    fn encode(&self, out: &mut Encoder<'_>) {
        match self {
            Message::Log(parts) => {
                out.raw(&[LOG]);
                encode_parts(parts, out);
            }
            Message::Leads(leads) => {
                out.raw(&[LEADS]);
                out.head(leads);
            }
            Message::Order { ring, commands } => put(ORDER, &(ring, commands), out),
            Message::Answered(answers) => put(ANSWERED, answers, out),
            Message::Lacks { ring, until } => put(LACKS, &(ring, until), out),
            Message::Peers { to, messages } => put(PEERS, &(to, messages), out),
            Message::Follow { ring, partition, after } => {
                put(FOLLOW, &(ring, partition, after), out);
            }
            Message::Decided { ring, partition, first, entries, has_more } => {
                put(DECIDED, &(ring, partition, first, entries, has_more), out);
            }
            Message::Trimmed { ring, partition, base } => {
                put(TRIMMED, &(ring, partition, base), out);
            }
            Message::Holds { partition, upto } => put(HOLDS, &(partition, upto), out),
            Message::GetCopy { partition, nonce, page, wants } => {
                put(GET_COPY, &(partition, nonce, page, wants), out);
            }
            Message::Copy { partition, nonce, page, is_last, body } => {
                put(COPY, &(partition, nonce, page, is_last, body), out);
            }
        }
    }

    fn decode(input: &Decoder) -> Result<Message<M>, WireError> {
        let Some((tag, head)) = input.head_bytes().split_first() else {
            return Err(malformed());
        };
        match *tag {
            LOG => return decode_parts(head, input.tail(0)).map(Message::Log),
            LEADS => return Leads::decode(head).map(Message::Leads),
            _ if !head.is_empty() => return Err(malformed()),
            _ => {}
        }
        let message = match *tag {
            ORDER => {
                let (ring, commands) = tail(input)?;
                Message::Order { ring, commands }
            }
            ANSWERED => Message::Answered(tail(input)?),
            LACKS => {
                let (ring, until) = tail(input)?;
                Message::Lacks { ring, until }
            }
            PEERS => {
                let (to, messages) = tail(input)?;
                Message::Peers { to, messages }
            }
            FOLLOW => {
                let (ring, partition, after) = tail(input)?;
                Message::Follow { ring, partition, after }
            }
            DECIDED => {
                let (ring, partition, first, entries, has_more) = tail(input)?;
                Message::Decided { ring, partition, first, entries, has_more }
            }
            TRIMMED => {
                let (ring, partition, base) = tail(input)?;
                Message::Trimmed { ring, partition, base }
            }
            HOLDS => {
                let (partition, upto) = tail(input)?;
                Message::Holds { partition, upto }
            }
            GET_COPY => {
                let (partition, nonce, page, wants) = tail(input)?;
                Message::GetCopy { partition, nonce, page, wants }
            }
            COPY => {
                let (partition, nonce, page, is_last, body) = tail(input)?;
                Message::Copy { partition, nonce, page, is_last, body }
            }
            _ => return Err(malformed()),
        };
        is_bounded(&message).then_some(message).ok_or_else(malformed)
    }
}

/// Whether a message holds no more than correct peers send at a time.
fn is_bounded<M: Machine>(message: &Message<M>) -> bool {
    match message {
        Message::Order { commands, .. } => commands.len() <= COMMANDS_MAX,
        Message::Decided { first, entries, .. } => {
            *first > Op(0) && entries.len() <= VSR_ENTRIES_MAX
        }
        Message::GetCopy { wants, .. } => wants.reached.len() <= 2,
        _ => true,
    }
}
