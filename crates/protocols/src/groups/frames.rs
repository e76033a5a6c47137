//! What the hosts of a keyspace with groups say to each other whatever its engine is, and how it is
//! written: the messages of replicas, and who leads a group.

use crate::vsr::{self, ViewNumber, are_members};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::limits::VSR_ENTRIES_MAX;
use quorate_kernel::wire::{Decoder, Encoder};
use serde::{Deserialize, Serialize};

/// The most messages of replicas in one frame.
pub const PARTS_MAX: usize = 256;

/// Who the members of a group are, and in which view: a hint of where its primary is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leads {
    /// The group.
    pub group: GroupId,
    /// Its members, ascending.
    pub members: Arc<[NodeId]>,
    /// The view.
    pub view: ViewNumber,
    /// Whether the sender is its primary, and serves.
    pub serves: bool,
}

impl Leads {
    /// Reads it from the head of a message.
    ///
    /// # Errors
    /// No correct peer says it.
    pub fn decode(head: &[u8]) -> Result<Leads, WireError> {
        let leads: Leads = Decoder::value(head)?;
        let is_sound = are_members(&leads.members) && leads.view.epoch.0 > 0;
        is_sound.then_some(leads).ok_or_else(|| malformed("members of a group"))
    }
}

fn malformed(what: &'static str) -> WireError {
    WireError::Malformed { what }
}

/// About the most bytes that the head of a replica's message takes; see the limits' own asserts.
#[must_use]
pub fn weight(message: &vsr::Message) -> usize {
    let entry = 32 + quorate_kernel::limits::GROUP_MEMBERS_MAX * 10;
    match message {
        vsr::Message::Prepare { entries, .. } | vsr::Message::NewState { entries, .. } => {
            192 + entries.len().min(VSR_ENTRIES_MAX) * entry
        }
        vsr::Message::GetCheckpoint { cursor, .. } => 192 + cursor.len(),
        vsr::Message::Checkpoint { next, .. } => 320 + next.as_ref().map_or(0, Vec::len),
        _ => 192,
    }
}

/// About how many bytes of a replica's message travel beside its head.
#[must_use]
pub fn tail_bytes(message: &vsr::Message) -> usize {
    match message {
        vsr::Message::Prepare { entries, .. } | vsr::Message::NewState { entries, .. } => {
            entries.iter().map(|entry| entry.bytes().len()).sum()
        }
        vsr::Message::Checkpoint { body, .. } => body.len(),
        _ => 0,
    }
}

/// Each part's group, the length of its tail, and its head; the tails follow each other.
pub fn encode_parts(parts: &[(GroupId, vsr::Message)], out: &mut Encoder<'_>) {
    let tails: Vec<Bytes> = parts.iter().map(|(_, message)| message.tail()).collect();
    for ((group, message), tail) in parts.iter().zip(&tails) {
        out.head(&(group, tail.len() as u64, message));
    }
    match &tails[..] {
        [one] => out.tail(0, one),
        _ => out.tail(0, &Bytes::from(tails.concat())),
    }
}

/// Whose log, how many bytes of the tail, and the rest of the message.
type PartHead = (GroupId, u64, vsr::Message);

/// Reads them back.
///
/// # Errors
/// No correct peer sends them.
pub fn decode_parts(
    mut head: &[u8],
    mut tails: Bytes,
) -> Result<Vec<(GroupId, vsr::Message)>, WireError> {
    let mut parts = Vec::new();
    while !head.is_empty() {
        let read = postcard::take_from_bytes::<PartHead>(head);
        let Ok(((group, bytes, message), rest)) = read else {
            return Err(malformed("message of a group's log"));
        };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        if parts.len() == PARTS_MAX || bytes > tails.len() {
            return Err(malformed("messages of groups' logs"));
        }
        parts.push((group, message.with_tail(tails.split_to(bytes))?));
        head = rest;
    }
    if parts.is_empty() || !tails.is_empty() {
        return Err(malformed("messages of groups' logs"));
    }
    Ok(parts)
}
