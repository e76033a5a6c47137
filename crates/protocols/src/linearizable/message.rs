//! What nodes of a group say to each other. New variants are only appended.

use super::keys::is_data_key;
use super::record::{COUNTER_MAX, Record, Ts};
use super::state::Status;
use crate::quorum::CrashVector;
use alloc::boxed::Box;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::limits::PAGE_BYTES_MAX;
use quorate_kernel::view::{View, ViewId};
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use serde::{Deserialize, Serialize};

/// What a reader wants of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Want {
    /// The newest record.
    Value,
    /// The timestamp alone, as good as the record: it will be shown to a client.
    Digest,
    /// The timestamp alone, to write above it.
    Counter,
}

/// What every reply is stamped with (CATS §4): the sender's installed view, how far it may be
/// counted, and what it knows of members that forgot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The view the sender has installed.
    pub view: ViewId,
    /// Whether its data is complete.
    pub status: Status,
    /// The members that forgot, as far as the sender knows.
    pub crashes: CrashVector,
    /// The sender's view itself, when the asker's is older.
    pub hint: Option<Box<View>>,
}

/// One message. `op` names the asker's operation and is echoed; keys are hash-prefixed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Coordinator to members, phase 1 of every operation on a key.
    ReadA {
        /// The asker's operation.
        op: u64,
        /// The view the asker aims at.
        view: ViewId,
        /// What is wanted.
        want: Want,
        /// The key.
        #[serde(skip)]
        key: Bytes,
    },
    /// Member to coordinator: its newest timestamp for the key, and the record if it was wanted.
    /// For a `Counter` it may leave before that timestamp is durable; otherwise what it shows is
    /// durable.
    ReadB {
        /// Echoed.
        op: u64,
        /// The sender's stamp.
        stamp: Stamp,
        /// The newest timestamp.
        ts: Ts,
        /// Whether the key has a value.
        live: bool,
        /// The record; empty if it was not wanted or there is none.
        #[serde(skip)]
        record: Bytes,
    },
    /// Coordinator to members, phase 2: store this record unless a newer one is there.
    WriteA {
        /// The asker's operation.
        op: u64,
        /// The view the write is for.
        view: ViewId,
        /// The key.
        #[serde(skip)]
        key: Bytes,
        /// The record.
        #[serde(skip)]
        record: Bytes,
    },
    /// Member to coordinator. `ok`: the sender was in `view` and holds the record or a newer one,
    /// as durably as the keyspace promises. Not `ok`: it did not store it.
    WriteB {
        /// Echoed.
        op: u64,
        /// Echoed: the view the write was for.
        view: ViewId,
        /// Whether this acknowledges.
        ok: bool,
        /// The sender's stamp.
        stamp: Stamp,
    },
    /// Coordinator to members: one page of a scan.
    PageA {
        /// The asker's operation.
        op: u64,
        /// The view the asker aims at.
        view: ViewId,
        /// The hash position to begin at.
        from: u64,
        /// About how many entries.
        limit: u32,
    },
    /// Member to coordinator: every key from the asked position up to, not including, `next`, each
    /// with its record's head; all of it durable.
    PageB {
        /// Echoed.
        op: u64,
        /// The sender's stamp.
        stamp: Stamp,
        /// Where the page ends; `None` at the end of the space.
        next: Option<u64>,
        /// The entries.
        #[serde(skip)]
        page: Bytes,
    },
    /// A member that lacks data, to a source: send records from this position on. The source
    /// remembers, durably and before it answers, that the asker forgot in its present start.
    RefillA {
        /// The asker's round; a later round asks anew whether the others forgot too.
        round: u64,
        /// The view the asker has installed; a source answers only from this view or a later one.
        view: ViewId,
        /// Whether the asker forgot; otherwise it is new in the view.
        forgot: bool,
        /// The hash position to begin at.
        from: u64,
    },
    /// Source to a member that lacks data: every record from `from` up to, not including, `next`.
    /// It says something about the data only if the stamp's status is `Ready`.
    RefillB {
        /// Echoed.
        round: u64,
        /// The sender's stamp.
        stamp: Stamp,
        /// Echoed.
        from: u64,
        /// Where the page ends; `None` at the end of the space.
        next: Option<u64>,
        /// If the sender found that every member had forgot at one moment: in which incarnations.
        lost: Vec<Incarnation>,
        /// The records.
        #[serde(skip)]
        page: Bytes,
    },
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(self);
        match self {
            Message::ReadA { key, .. } => out.tail(0, key),
            Message::ReadB { record, .. } => out.tail(0, record),
            Message::WriteA { key, record, .. } => {
                out.tail(0, key);
                out.tail(1, record);
            }
            Message::PageB { page, .. } | Message::RefillB { page, .. } => out.tail(0, page),
            Message::WriteB { .. } | Message::PageA { .. } | Message::RefillA { .. } => {}
        }
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        let mut message: Message = input.head()?;
        match &mut message {
            Message::ReadA { key, .. } => *key = input.tail(0),
            Message::ReadB { record, .. } => *record = input.tail(0),
            Message::WriteA { key, record, .. } => {
                *key = input.tail(0);
                *record = input.tail(1);
            }
            Message::PageB { page, .. } | Message::RefillB { page, .. } => *page = input.tail(0),
            Message::WriteB { .. } | Message::PageA { .. } | Message::RefillA { .. } => {}
        }
        message.validate()?;
        Ok(message)
    }
}

impl Message {
    fn validate(&self) -> Result<(), WireError> {
        match self {
            Message::ReadA { key, .. } => is_data_key(key),
            Message::ReadB { record, stamp, ts, .. } => {
                if ts.n > COUNTER_MAX {
                    return Err(WireError::Malformed { what: "counter" });
                }
                if !record.is_empty() {
                    Record::from_bytes(record.clone())?;
                }
                stamp.validate()
            }
            Message::WriteA { key, record, .. } => {
                Record::from_bytes(record.clone())?;
                is_data_key(key)
            }
            Message::WriteB { stamp, .. } => stamp.validate(),
            Message::PageB { page, stamp, .. } | Message::RefillB { page, stamp, .. } => {
                super::page::validate(page)?;
                stamp.validate()
            }
            Message::PageA { .. } | Message::RefillA { .. } => Ok(()),
        }
    }
}

impl Stamp {
    fn validate(&self) -> Result<(), WireError> {
        match &self.hint {
            Some(view) if !view.is_well_formed() => Err(WireError::Malformed { what: "view" }),
            _ => Ok(()),
        }
    }
}

/// How many bytes of records a page holds before it is closed; the last record may exceed it.
pub(super) const PAGE_BYTES: usize = PAGE_BYTES_MAX / 4;
