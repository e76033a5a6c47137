//! The codec of the engine's messages, and what is checked before one is handled.

use super::page;
use super::{cursor, fixed};
use crate::linearizable::group::Generation;
use crate::linearizable::keys::is_data_key;
use crate::linearizable::message::{Known, Message, Stamp};
use crate::linearizable::record::{COUNTER_MAX, Record, Ts};
use crate::linearizable::refill::transfer::SOURCES_MAX;
use crate::linearizable::replicate::digest;
use crate::reconfigure;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::limits::{BEATS_MAX, DECISIONS_IN_MESSAGE_MAX, RECONFIGURES_MAX};
use quorate_kernel::view::View;
use quorate_kernel::wire::{Decoder, Encoder, Wire};

impl Message {
    /// The raw tails, in order, of a message whose head is not of fixed layout.
    fn tails(&mut self) -> [Option<&mut Bytes>; 2] {
        match self {
            Message::PageB { page, .. }
            | Message::ListB { page, .. }
            | Message::FetchA { page, .. }
            | Message::FetchB { page, .. }
            | Message::TombsB { page, .. }
            | Message::TombstonesB { page, .. }
            | Message::RecordsA { page, .. }
            | Message::RecordsB { page, .. }
            | Message::DropA { page, .. } => [Some(page), None],
            Message::DropB { first, .. } => [Some(first), None],
            Message::CompareA { from, parts, .. } => [Some(from), Some(parts)],
            Message::CompareB { page, upto, .. } => [Some(page), Some(upto)],
            _ => [None, None],
        }
    }

    /// The keys of the message's cursors, as they are sent.
    fn cursors(&self) -> Bytes {
        match self {
            Message::PageA { from, .. }
            | Message::ListA { from, .. }
            | Message::TombstonesA { from, .. } => cursor::pack(from, None),
            Message::PageB { next: Some(next), .. } => cursor::pack(next, None),
            Message::ListB { bounds, .. } => cursor::pack(&bounds.from, bounds.next.as_ref()),
            Message::TombstonesB { from, next, .. } => cursor::pack(from, next.as_ref()),
            _ => Bytes::new(),
        }
    }

    fn set_cursors(&mut self, keys: Bytes) -> Result<(), WireError> {
        match self {
            Message::PageA { from, .. }
            | Message::ListA { from, .. }
            | Message::TombstonesA { from, .. } => cursor::unpack(keys, from, None),
            Message::PageB { next: Some(next), .. } => cursor::unpack(keys, next, None),
            Message::ListB { bounds, .. } => {
                cursor::unpack(keys, &mut bounds.from, bounds.next.as_mut())
            }
            Message::TombstonesB { from, next, .. } => cursor::unpack(keys, from, next.as_mut()),
            _ => Ok(()),
        }
    }

    /// Checks a message that came from a peer, before anything is done with it.
    ///
    /// # Errors
    /// No correct peer says it.
    pub fn validate(&self) -> Result<(), WireError> {
        match self {
            Message::ReadA { key, .. } => is_data_key(key),
            Message::ReadB { record, ts, stamp, .. } => {
                is_answer(*ts, record)?;
                stamp.validate()
            }
            Message::WriteA { key, record, .. } => {
                Record::validate(record)?;
                is_data_key(key)
            }
            Message::WriteB { stamp, .. } | Message::ExamineB { stamp, .. } => stamp.validate(),
            Message::PageB { page, stamp, .. } | Message::ListB { page, stamp, .. } => {
                page::validate(page)?;
                stamp.validate()
            }
            Message::FetchA { page, .. }
            | Message::FetchB { page, .. }
            | Message::TombsB { page, .. }
            | Message::TombstonesB { page, .. }
            | Message::RecordsA { page, .. }
            | Message::RecordsB { page, .. }
            | Message::DropA { page, .. } => page::validate(page),
            Message::CompareA { from, parts, .. } => digest::validate(from, parts),
            Message::CompareB { page, upto, .. } => page::validate(page).and(digest::is_end(upto)),
            Message::LocateB { view } => well_formed(view.is_well_formed(), "view"),
            Message::Learn { view, known } => {
                known.validate()?;
                well_formed(view.is_well_formed(), "view")
            }
            Message::Split { view, generation } => {
                generation.validate()?;
                well_formed(view.is_well_formed(), "view")
            }
            Message::Invite { next, old, known } => {
                known.validate()?;
                well_formed(is_pair(next, old), "view")
            }
            Message::Reconfigure(list) => {
                let is_sound = list.iter().all(reconfigure::Message::is_well_formed);
                well_formed(list.len() <= RECONFIGURES_MAX && is_sound, "reconfiguration")
            }
            Message::Beats(list) => {
                list.iter().try_for_each(|beat| beat.known.validate())?;
                well_formed(list.len() <= BEATS_MAX, "list")
            }
            Message::DecisionsB { changes, .. } => {
                well_formed(changes.len() <= DECISIONS_IN_MESSAGE_MAX, "list")
            }
            Message::FloorA { generation, .. } | Message::FloorB { generation, .. } => {
                generation.validate()
            }
            Message::DropB { generation, first, .. } => {
                generation.validate().and(is_data_key(first))
            }
            Message::Lacks { awaits, epoch, .. } => {
                well_formed(awaits.len() <= SOURCES_MAX, "list").and(is_epoch(*epoch))
            }
            Message::ListA { epoch, .. } => is_epoch(*epoch),
            Message::PageA { .. }
            | Message::ExamineA { .. }
            | Message::LocateA { .. }
            | Message::DecisionsA { .. }
            | Message::TombsA { .. }
            | Message::TombstonesA { .. } => Ok(()),
        }
    }
}

fn well_formed(is_so: bool, what: &'static str) -> Result<(), WireError> {
    if is_so { Ok(()) } else { Err(WireError::Malformed { what }) }
}

/// Whether a read may be answered so: with a record, or with none.
fn is_answer(ts: Ts, record: &Bytes) -> Result<(), WireError> {
    well_formed(ts.n <= COUNTER_MAX, "counter")?;
    match record.is_empty() {
        true => Ok(()),
        false => Record::validate(record),
    }
}

/// Whether one view may follow the other.
fn is_pair(next: &View, old: &View) -> bool {
    let is_next =
        next.id.group == old.id.group && old.id.version.checked_add(1) == Some(next.id.version);
    next.is_well_formed() && old.is_well_formed() && is_next
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        if !fixed::encode(self, out) {
            out.head(self);
            out.tail(1, &self.cursors());
        }
        match self {
            Message::ReadA { key, .. } => out.tail(0, key),
            Message::ReadB { record, .. } => out.tail(0, record),
            Message::WriteA { key, record, .. } => {
                out.tail(0, key);
                out.tail(1, record);
            }
            Message::PageB { page, .. }
            | Message::ListB { page, .. }
            | Message::FetchA { page, .. }
            | Message::FetchB { page, .. }
            | Message::TombsB { page, .. }
            | Message::TombstonesB { page, .. }
            | Message::RecordsA { page, .. }
            | Message::RecordsB { page, .. }
            | Message::DropA { page, .. } => out.tail(0, page),
            Message::DropB { first, .. } => out.tail(0, first),
            Message::CompareA { from, parts, .. } => {
                out.tail(0, from);
                out.tail(1, parts);
            }
            Message::CompareB { page, upto, .. } => {
                out.tail(0, page);
                out.tail(1, upto);
            }
            _ => {}
        }
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        if let Some(message) = fixed::decode(input)? {
            message.validate()?;
            return Ok(message);
        }
        let mut message: Message = input.head()?;
        well_formed(!fixed::is_fixed(&message), "tag")?;
        for (index, tail) in message.tails().into_iter().enumerate() {
            if let Some(tail) = tail {
                *tail = input.tail(index);
            }
        }
        message.set_cursors(input.tail(1))?;
        message.validate()?;
        Ok(message)
    }
}

impl Stamp {
    fn validate(&self) -> Result<(), WireError> {
        self.known.validate()?;
        match &self.hint {
            Some(view) if !view.is_well_formed() => Err(WireError::Malformed { what: "view" }),
            _ => Ok(()),
        }
    }
}

impl Known {
    fn validate(&self) -> Result<(), WireError> {
        self.generation.validate()?;
        is_epoch(self.epoch)
    }
}

/// Losses are counted one by one, so no correct peer gets there. Whatever the bound, who is at it
/// cannot tell of another loss; below it no sum overflows.
fn is_epoch(epoch: u64) -> Result<(), WireError> {
    well_formed(epoch <= COUNTER_MAX, "epoch")
}

impl Generation {
    fn validate(&self) -> Result<(), WireError> {
        if self.floor > COUNTER_MAX {
            return Err(WireError::Malformed { what: "floor" });
        }
        if self.number > COUNTER_MAX {
            return Err(WireError::Malformed { what: "generation" });
        }
        Ok(())
    }
}
