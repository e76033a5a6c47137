//! The codec of the engine's messages, and what is checked before one is handled.

use super::keys::is_data_key;
use super::message::{Ending, Message, TellClock, TellContext};
use super::page;
use crate::dots::clock::Entry;
use crate::dots::dot::{Actor, Dot};
use crate::dots::object::{Object, is_counter};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use quorate_kernel::write::WriteId;

impl Message {
    /// Takes the raw tails.
    fn take(&mut self, first: Bytes, second: Bytes) -> Result<(), WireError> {
        match self {
            Message::ReadA { key, .. } | Message::ScanA { key, .. } => *key = first,
            Message::ReadB { object, .. } => *object = first,
            Message::ListB { keys, .. } => *keys = first,
            Message::WriteA { key, value: other, .. }
            | Message::WriteAgainA { key, value: other, .. }
            | Message::WriteSeenA { key, value: other, .. }
            | Message::Replicate { key, object: other, .. }
            | Message::HandOver { key, object: other, .. } => (*key, *other) = (first, second),
            Message::SyncA { clock, .. } => *clock = TellClock::from_bytes(&first)?,
            Message::SyncB { clock, page, .. } | Message::ScanB { clock, page, .. } => {
                *clock = TellClock::from_bytes(&first)?;
                *page = second;
            }
            _ => {}
        }
        Ok(())
    }

    fn validate(&self) -> Result<(), WireError> {
        match self {
            Message::ReadA { key, .. } => is_data_key(key),
            Message::ReadB { object, .. } => Object::from_bytes(object).map(drop),
            Message::WriteA { key, context, .. } | Message::WriteAgainA { key, context, .. } => {
                are_counters(context)?;
                is_data_key(key)
            }
            Message::WriteSeenA { key, context, names, .. } => {
                are_counters(context)?;
                are_names(names)?;
                is_data_key(key)
            }
            Message::WriteB { ending: Ending::Stored(context), .. } => are_counters(context),
            Message::WriteB { ending: Ending::StoredAs(context, names), .. } => {
                are_counters(context)?;
                are_names(names)
            }
            Message::Replicate { key, object, dots, .. }
            | Message::HandOver { key, object, dots, .. } => {
                well_formed(dots.iter().all(|dot: &Dot| is_counter(dot.counter)), "counter")?;
                is_data_key(key)?;
                Object::from_bytes(object).map(drop)
            }
            Message::ListB { keys, .. } => super::coordinate::plain::unpack(keys.clone()).map(drop),
            Message::SyncB { page, .. } => page::read(page.clone()).map(drop),
            Message::ScanB { page, next, .. } => {
                well_formed(next.is_empty() || is_data_key(next).is_ok(), "key")?;
                page::read(page.clone()).map(drop)
            }
            Message::SyncA { .. }
            | Message::ScanA { .. }
            | Message::WriteB { .. }
            | Message::Replicated { .. }
            | Message::MapA { .. }
            | Message::MapB { .. }
            | Message::LeftA { .. }
            | Message::LeftB { .. }
            | Message::ListA { .. } => Ok(()),
        }
    }
}

fn well_formed(is_so: bool, what: &'static str) -> Result<(), WireError> {
    if is_so { Ok(()) } else { Err(WireError::Malformed { what }) }
}

fn are_counters(context: &TellContext) -> Result<(), WireError> {
    well_formed(context.iter().all(|(_, counter)| is_counter(*counter)), "counter")
}

fn are_names(names: &[(Dot, WriteId)]) -> Result<(), WireError> {
    well_formed(names.iter().all(|(dot, _)| is_counter(dot.counter)), "counter")
}

impl TellClock {
    fn from_bytes(bytes: &Bytes) -> Result<TellClock, WireError> {
        let Ok((entries, [])) = postcard::take_from_bytes::<Vec<(Actor, Entry)>>(bytes) else {
            return Err(WireError::Malformed { what: "clock" });
        };
        well_formed(entries.iter().all(|(_, entry)| entry.is_well_formed()), "clock")?;
        Ok(TellClock(entries))
    }
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(self);
        match self {
            Message::ReadA { key, .. } | Message::ScanA { key, .. } => out.tail(0, key),
            Message::ReadB { object, .. } => out.tail(0, object),
            Message::ListB { keys, .. } => out.tail(0, keys),
            Message::WriteA { key, value: second, .. }
            | Message::WriteAgainA { key, value: second, .. }
            | Message::WriteSeenA { key, value: second, .. }
            | Message::Replicate { key, object: second, .. }
            | Message::HandOver { key, object: second, .. } => {
                out.tail(0, key);
                out.tail(1, second);
            }
            Message::SyncA { clock, .. } => out.tail(0, &clock.to_bytes()),
            Message::SyncB { clock, page, .. } | Message::ScanB { clock, page, .. } => {
                out.tail(0, &clock.to_bytes());
                out.tail(1, page);
            }
            _ => {}
        }
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        let mut message: Message = input.head()?;
        message.take(input.tail(0), input.tail(1))?;
        message.validate()?;
        Ok(message)
    }
}
