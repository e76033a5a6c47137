//! Entries of the log.

use crate::vsr::configuration::are_members;
use crate::vsr::number::ViewNumber;
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use core::fmt;
use quorate_kernel::ids::NodeId;
use serde::{Deserialize, Serialize};

/// The version of an entry's bytes in the store.
const VERSION: u8 = 1;

/// What an entry is. New variants are only appended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A command of the state machine; its bytes mean nothing here.
    Command,
    /// The members of the next epoch, ascending. It is the last entry of its epoch.
    Members(Vec<NodeId>),
    /// The same where the log goes on with what is left of it: something that was acknowledged may
    /// be in no log any more.
    Left(Vec<NodeId>),
}

/// One entry. Where it stands is told by whoever carries it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The view whose primary has put it there. It keeps this view in later ones.
    pub view: ViewNumber,
    /// What it is.
    pub kind: Kind,
    /// The length of the command, which travels beside the head of a message.
    length: u32,
    /// The command; none of a change of members.
    #[serde(skip)]
    command: Bytes,
}

impl Entry {
    /// An entry with a command.
    #[must_use]
    pub fn command(view: ViewNumber, command: Bytes) -> Entry {
        let length = u32::try_from(command.len()).expect("a command is shorter than a frame");
        Entry { view, kind: Kind::Command, length, command }
    }

    /// An entry that changes the members.
    #[must_use]
    pub fn members(view: ViewNumber, members: &[NodeId]) -> Entry {
        Entry { view, kind: Kind::Members(members.to_vec()), length: 0, command: Bytes::new() }
    }

    /// The same where the log goes on with what is left of it.
    #[must_use]
    pub fn left(view: ViewNumber, members: &[NodeId]) -> Entry {
        Entry { kind: Kind::Left(members.to_vec()), ..Entry::members(view, members) }
    }

    /// The command's bytes.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.command
    }

    /// The members that it makes, if it changes them.
    #[must_use]
    pub fn new_members(&self) -> Option<&[NodeId]> {
        match &self.kind {
            Kind::Command => None,
            Kind::Members(members) | Kind::Left(members) => Some(members),
        }
    }

    /// About how many bytes it takes in a message.
    #[must_use]
    pub fn size(&self) -> usize {
        self.command.len() + 32
    }

    /// Whether a correct peer can have made it.
    fn is_well_formed(&self) -> bool {
        match &self.kind {
            Kind::Command => true,
            Kind::Members(members) | Kind::Left(members) => are_members(members),
        }
    }

    /// Its bytes in the store: version, length of the head (u16, big-endian), head, command.
    pub(crate) fn stored(&self) -> Bytes {
        let head = postcard::to_allocvec(self).expect("plain data always serializes");
        let mut bytes = BytesMut::with_capacity(3 + head.len() + self.command.len());
        bytes.put_u8(VERSION);
        bytes.put_u16(u16::try_from(head.len()).expect("a head names few members"));
        bytes.put_slice(&head);
        bytes.put_slice(&self.command);
        bytes.freeze()
    }

    /// Reads what [`Entry::stored`] wrote.
    pub(super) fn from_stored(bytes: &Bytes) -> Entry {
        assert_eq!(bytes[0], VERSION, "the store's format version guards the entries' versions");
        let end = 3 + usize::from(u16::from_be_bytes([bytes[1], bytes[2]]));
        let mut entry: Entry =
            postcard::from_bytes(&bytes[3..end]).expect("the store returns what was put into it");
        entry.command = bytes.slice(end..);
        assert_eq!(entry.command.len(), entry.length as usize, "an entry is stored whole");
        entry
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Command => write!(f, "{:?}/{:02x?}", self.view, &self.command[..]),
            Kind::Members(members) => write!(f, "{:?}/{members:?}", self.view),
            Kind::Left(members) => write!(f, "{:?}/left to {members:?}", self.view),
        }
    }
}

/// Whether entries can stand one behind the other in a log, the first behind one of `before`: views
/// only rise, and nothing of an epoch follows the change of members that ends it. No command of an
/// epoch stands before what has begun it; that may be a change of members of a later epoch, where
/// the one before was lost.
pub(crate) fn may_follow(entries: &[Entry], before: ViewNumber) -> bool {
    let fits = |pair: &[Entry]| match pair[0].kind {
        Kind::Command => {
            let rises = pair[0].view.epoch < pair[1].view.epoch;
            pair[0].view <= pair[1].view && (!rises || pair[1].new_members().is_some())
        }
        Kind::Members(_) | Kind::Left(_) => pair[0].view.epoch < pair[1].view.epoch,
    };
    entries.first().is_none_or(|first| before <= first.view)
        && entries.windows(2).all(fits)
        && entries.iter().all(Entry::is_well_formed)
}

/// The commands of entries, one behind the other: the tail of a message.
pub(crate) fn join(entries: &[Entry]) -> Bytes {
    let mut full = entries.iter().filter(|entry| entry.length > 0);
    match (full.next(), full.next()) {
        (None, _) => Bytes::new(),
        // One command is not copied.
        (Some(only), None) => only.command.clone(),
        _ => {
            let length = entries.iter().map(|entry| entry.command.len()).sum();
            let mut bytes = BytesMut::with_capacity(length);
            entries.iter().for_each(|entry| bytes.put_slice(&entry.command));
            bytes.freeze()
        }
    }
}

/// Gives entries that came in a head their commands back; false if the tail is another one's.
pub(crate) fn split(entries: &mut [Entry], mut tail: Bytes) -> bool {
    for entry in entries {
        let length = entry.length as usize;
        if length > tail.len() || (length > 0 && entry.kind != Kind::Command) {
            return false;
        }
        entry.command = tail.split_to(length);
    }
    tail.is_empty()
}
