//! What the catalogs of hosts say to each other. New variants are only appended.

use super::chain::decree::Entry;
use super::chain::fold::Catalog;
use crate::reconfigure;
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::limits::DECREES_KEPT;
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What hosts tell each other of the chain of decrees and its decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The consensus on what follows a link of the chain. Its `P3A` goes to all hosts: whoever has
    /// the link that it follows takes it over, member or not. `P3B` is not used.
    Decide(Box<reconfigure::Message<Entry>>),
    /// To a random host now and then, and to one that is ahead: the sender has as many links. A
    /// receiver that has more sends them, one that has fewer says how many.
    Length {
        /// How many links the sender has.
        version: u64,
        /// Why it says so.
        purpose: Purpose,
    },
    /// What follows a link, in order. Decided.
    Entries {
        /// The link that they follow.
        follows: u64,
        /// The links.
        entries: Vec<Entry>,
    },
    /// The whole catalog, for a host that lacks more than the sender remembers.
    Snapshot {
        /// As of the newest link that the sender has.
        catalog: Arc<Catalog>,
    },
}

/// Why a host says how many links it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    /// It is time, or the receiver is ahead.
    News,
    /// Not sent any more: its answers cannot be told from those to an earlier question.
    Question,
    /// Not sent any more, and counted for nothing.
    Answer,
    /// The receiver shall reply. The number is that of the question in the sender's start.
    Ask(u64),
    /// The reply to the question of this number: the sender has accepted nothing that is not among
    /// its links. One that has says how many it has as news, for the chain may be longer already.
    Reply(u64),
}

/// What stands in the head; lists are in the first tail, for they may be long.
#[derive(Serialize, Deserialize)]
enum Head {
    Decide(Box<reconfigure::Message<Entry>>),
    Length { version: u64, purpose: Purpose },
    Entries { follows: u64 },
    Snapshot,
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        match self {
            Message::Decide(message) => out.head(&Head::Decide(message.clone())),
            Message::Length { version, purpose } => {
                out.head(&Head::Length { version: *version, purpose: *purpose });
            }
            Message::Entries { follows, entries } => {
                out.head(&Head::Entries { follows: *follows });
                out.tail(0, &bytes(entries));
            }
            Message::Snapshot { catalog } => {
                out.head(&Head::Snapshot);
                out.tail(0, &bytes(catalog));
            }
        }
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        let malformed = |is_sound: bool, what| match is_sound {
            true => Ok(()),
            false => Err(WireError::Malformed { what }),
        };
        match input.head()? {
            Head::Decide(message) => {
                malformed(message.is_well_formed() && is_sound(&message), "a step of consensus")?;
                Ok(Message::Decide(message))
            }
            Head::Length { version, purpose } => Ok(Message::Length { version, purpose }),
            Head::Entries { follows } => {
                let entries: Vec<Entry> = value(&input.tail(0))?;
                let is_sound = entries.len() <= DECREES_KEPT && entries.iter().all(Entry::is_sound);
                malformed(is_sound, "decrees")?;
                Ok(Message::Entries { follows, entries })
            }
            Head::Snapshot => {
                let catalog: Catalog = value(&input.tail(0))?;
                malformed(catalog.is_sound(), "a catalog")?;
                Ok(Message::Snapshot { catalog: Arc::new(catalog) })
            }
        }
    }
}

fn is_sound(message: &reconfigure::Message<Entry>) -> bool {
    use reconfigure::Message as M;
    match message {
        M::P2A { change, .. } | M::P3A { change, .. } => change.is_sound(),
        M::P1B(promise) => promise.accepted.as_ref().is_none_or(|(_, entry)| entry.is_sound()),
        M::P1A { .. } | M::P2B(_) | M::P3B { .. } => true,
    }
}

fn bytes<T: Serialize>(value: &T) -> Bytes {
    postcard::to_allocvec(value).expect("plain data always serializes").into()
}

fn value<T: DeserializeOwned>(bytes: &Bytes) -> Result<T, WireError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        _ => Err(WireError::Malformed { what: "a list" }),
    }
}
