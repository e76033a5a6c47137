//! Commands on many keys, each by itself.

use super::error;
use super::reply::CommandReply;
use super::requests::frame::Command;
use super::watched::{self, Found};
use super::work::over_limit;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt::Write;
use quorate_kernel::limits::{REPLY_BYTES_MAX, TRANSACTION_BYTES_MAX};
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::values::Values;

/// How many bytes of keys the error of a command on many keys repeats.
const TOLD_BYTES_MAX: usize = 4096;

/// What a command on many keys does to each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Each {
    /// Reads it; the reply is the list of values.
    Get,
    /// Sets it to the argument after it.
    Put,
    /// Deletes it; the reply counts those that had a value.
    Delete,
    /// Reads it; the reply counts those that have a value.
    Exists,
    /// Reads it, to be checked later.
    Watch,
}

/// A command on many keys, each by itself.
#[derive(Debug)]
pub(crate) struct Many {
    each: Each,
    args: Command,
    issued: usize,
    counted: i64,
    values: Vec<Option<Bytes>>,
    held: usize,
    refused: Vec<(usize, Refusal)>,
}

impl Many {
    /// The command whose keys are the arguments from the second on.
    pub(crate) fn new(each: Each, args: Command) -> Many {
        let mut many = Many {
            each,
            args,
            issued: 0,
            counted: 0,
            values: Vec::new(),
            held: 0,
            refused: Vec::new(),
        };
        if many.keeps_values() {
            many.values.resize(many.total(), None);
        }
        many
    }

    /// Whether it keeps the values that it reads.
    fn keeps_values(&self) -> bool {
        matches!(self.each, Each::Get | Each::Watch)
    }

    /// The most bytes of values that it keeps.
    fn held_max(&self) -> usize {
        if self.is_watch() { TRANSACTION_BYTES_MAX } else { REPLY_BYTES_MAX }
    }

    /// Whether it is `WATCH`.
    pub(crate) fn is_watch(&self) -> bool {
        self.each == Each::Watch
    }

    /// What was read of each key, once every operation has ended; nothing if one was refused.
    pub(crate) fn found(&mut self) -> Option<Vec<Found>> {
        let is_whole = self.refused.is_empty() && self.held <= self.held_max();
        let values = core::mem::take(&mut self.values).into_iter().enumerate();
        // Copies: what is watched must not keep the whole input alive.
        let key = |at: usize| Bytes::copy_from_slice(self.args.arg(1 + at));
        is_whole.then(|| values.map(|(at, value)| (key(at), value)).collect())
    }

    fn step(&self) -> usize {
        if self.each == Each::Put { 2 } else { 1 }
    }

    /// How many operations it takes.
    pub(crate) fn total(&self) -> usize {
        (self.args.len() - 1) / self.step()
    }

    /// The next operation to start, with its number.
    pub(crate) fn issue(&mut self) -> Option<(u32, Operation)> {
        let index = self.issued;
        if index == self.total() {
            return None;
        }
        self.issued += 1;
        let at = 1 + index * self.step();
        let key = self.args.shared(at);
        let operation = match self.each {
            Each::Get | Each::Exists | Each::Watch => Operation::get(key),
            Each::Put => Operation::put(key, self.args.shared(at + 1)),
            Each::Delete => Operation::delete(key),
        };
        Some((index as u32, operation))
    }

    /// Whether an operation is still to be issued.
    pub(crate) fn has_more(&self) -> bool {
        self.issued < self.total()
    }

    /// How many bytes of memory its list of values takes, whatever these have.
    pub(crate) fn room(&self) -> usize {
        size_of_val(&self.values[..])
    }

    /// How many bytes of values it holds.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// One operation has ended.
    pub(crate) fn on_outcome(&mut self, index: u32, outcome: Outcome) {
        let index = index as usize;
        match (self.each, outcome) {
            (_, Outcome::Refused(refusal)) => self.refused.push((index, refusal)),
            (Each::Get | Each::Watch, Outcome::Values { values: Values::Several(_), .. }) => {
                self.refused.push((index, Refusal::OutcomeUnknown));
            }
            (Each::Get | Each::Watch, Outcome::Values { values, .. }) => {
                self.held += values.bytes();
                // What is over the limit is an error anyway, so its values are not kept.
                if self.held <= self.held_max() {
                    self.values[index] = values.into_one().unwrap_or_default();
                } else {
                    self.values.clear();
                    self.values.resize(self.total(), None);
                }
            }
            (Each::Put, Outcome::Written { .. }) => {}
            (Each::Delete, Outcome::Deleted { existed, .. }) => self.counted += i64::from(existed),
            (Each::Exists, Outcome::Values { values, .. }) => {
                self.counted += i64::from(!values.is_empty());
            }
            _ => self.refused.push((index, Refusal::OutcomeUnknown)),
        }
    }

    /// The reply, once every operation has ended.
    pub(crate) fn finish(&mut self) -> CommandReply {
        if let Some((_, first)) = self.refused.first() {
            return CommandReply::Error(match self.each {
                Each::Get | Each::Exists | Each::Watch => error::refusal(first),
                Each::Put => self.told("written"),
                Each::Delete => self.told("deleted"),
            });
        }
        match self.each {
            Each::Watch if self.held > self.held_max() => {
                CommandReply::Error(error::refusal(&watched::too_large(self.held)))
            }
            Each::Watch => CommandReply::OK,
            Each::Get if self.held > REPLY_BYTES_MAX => {
                CommandReply::Error(over_limit("MGET", "keys", REPLY_BYTES_MAX))
            }
            Each::Get => CommandReply::Values(core::mem::take(&mut self.values)),
            Each::Put => CommandReply::OK,
            Each::Delete | Each::Exists => CommandReply::Integer(self.counted),
        }
    }

    /// Says of each key what became of it. `NOQUORUM` and its like are only said when no key was
    /// changed; else the first word is `UNKNOWNOUTCOME`.
    fn told(&self, done: &str) -> String {
        let mut states = alloc::vec![0u8; self.total()];
        for (index, refusal) in &self.refused {
            states[*index] = if refusal.may_have_applied() { 1 } else { 2 };
        }
        if states.iter().all(|state| *state == 2) {
            return error::refusal(&self.refused[0].1);
        }
        let mut text = format!("UNKNOWNOUTCOME not every key was surely {done}");
        for (state, name) in [(0, done), (1, "unknown"), (2, "unchanged")] {
            let keys = states.iter().enumerate().filter(|(_, found)| **found == state);
            self.list(&mut text, name, &mut keys.map(|(index, _)| index));
        }
        text
    }

    fn list(&self, text: &mut String, name: &str, keys: &mut dyn Iterator<Item = usize>) {
        let mut keys = keys.peekable();
        if keys.peek().is_none() {
            return;
        }
        let start = text.len();
        let _ = write!(text, "; {name}:");
        let mut left_out = 0;
        for index in keys {
            let key = self.args.arg(1 + index * self.step());
            if text.len() - start + key.len() < TOLD_BYTES_MAX {
                let _ = write!(text, " '{}'", key.escape_ascii());
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            let _ = write!(text, " and {left_out} more");
        }
    }
}
