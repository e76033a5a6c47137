//! The codec of the engine's messages, and what is checked before one is handled.

use super::keys::is_data_key;
use super::message::{Ending, Message, TellClock, TellContext};
use super::page;
use crate::dots::dot::Dot;
use crate::dots::object::{Object, is_counter};
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::wire::{Decoder, Encoder, Wire};

impl Message {
    /// The raw tails, in order.
    fn tails(&mut self) -> [Option<&mut Bytes>; 2] {
        match self {
            Message::ReadA { key, .. } | Message::ScanA { key, .. } => [Some(key), None],
            Message::ReadB { object, .. } => [Some(object), None],
            Message::WriteA { key, value, .. } => [Some(key), Some(value)],
            Message::Replicate { key, object, .. } => [Some(key), Some(object)],
            Message::SyncB { page, .. } => [Some(page), None],
            Message::ScanB { page, next, .. } => [Some(page), Some(next)],
            _ => [None, None],
        }
    }

    fn validate(&self) -> Result<(), WireError> {
        match self {
            Message::ReadA { key, .. } => is_data_key(key),
            Message::ReadB { object, .. } => Object::from_bytes(object).map(drop),
            Message::WriteA { key, context, .. } => {
                are_counters(context)?;
                is_data_key(key)
            }
            Message::WriteB { ending: Ending::Stored(context), .. } => are_counters(context),
            Message::Replicate { key, object, dots, .. } => {
                well_formed(dots.iter().all(|dot: &Dot| is_counter(dot.counter)), "counter")?;
                is_data_key(key)?;
                Object::from_bytes(object).map(drop)
            }
            Message::SyncA { clock, .. } => clock.validate(),
            Message::SyncB { clock, page, .. } | Message::ScanB { clock, page, .. } => {
                clock.validate()?;
                page::read(page.clone()).map(drop)
            }
            Message::ScanA { .. }
            | Message::WriteB { .. }
            | Message::Replicated { .. }
            | Message::MapA { .. }
            | Message::MapB { .. }
            | Message::LeftA { .. }
            | Message::LeftB { .. } => Ok(()),
        }
    }
}

fn well_formed(is_so: bool, what: &'static str) -> Result<(), WireError> {
    if is_so { Ok(()) } else { Err(WireError::Malformed { what }) }
}

fn are_counters(context: &TellContext) -> Result<(), WireError> {
    well_formed(context.iter().all(|(_, counter)| is_counter(*counter)), "counter")
}

impl TellClock {
    fn validate(&self) -> Result<(), WireError> {
        well_formed(self.0.iter().all(|(_, entry)| entry.is_well_formed()), "clock")
    }
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(self);
        match self {
            Message::ReadA { key, .. } | Message::ScanA { key, .. } => out.tail(0, key),
            Message::ReadB { object, .. } => out.tail(0, object),
            Message::WriteA { key, value: second, .. }
            | Message::Replicate { key, object: second, .. } => {
                out.tail(0, key);
                out.tail(1, second);
            }
            Message::SyncB { page, .. } => out.tail(0, page),
            Message::ScanB { page, next, .. } => {
                out.tail(0, page);
                out.tail(1, next);
            }
            _ => {}
        }
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        let mut message: Message = input.head()?;
        for (index, tail) in message.tails().into_iter().enumerate() {
            if let Some(tail) = tail {
                *tail = input.tail(index);
            }
        }
        message.validate()?;
        Ok(message)
    }
}
