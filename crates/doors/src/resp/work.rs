//! Commands on their way: which operations they start, and what their outcomes add up to.

mod flush;

pub(crate) use flush::Flush;

use super::error;
use super::glob;
use super::many::Many;
use super::reply::CommandReply;
use super::single::{MISMATCH, Single};
use super::transaction::Transaction;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::fmt::Write;
use quorate_kernel::limits::{REPLY_BYTES_MAX, SCAN_KEYS_MAX};
use quorate_kernel::mutant;
use quorate_kernel::operation::{Cursor, Operation, Outcome};

/// How many keys `KEYS`, `DBSIZE` and `RANDOMKEY` ask for at a time.
const PAGE_KEYS: u32 = 1000;

pub(super) fn over_limit(command: &str, instead: &str, bytes_max: usize) -> String {
    format!(
        "ERR the reply of {command} is over the limit of {bytes_max} bytes: ask for fewer \
         {instead}"
    )
}

/// What a command that lists keys makes of the pages.
#[derive(Debug)]
pub(crate) enum List {
    /// All keys that match, in memory of their own.
    Keys { pattern: Bytes, found: Vec<Bytes>, held: usize },
    /// One page of keys, but all keys of its last token: a client's cursor is a number, which
    /// names no key. `is_empty` if a type was asked for that no key has.
    Scan { begin: u64, pattern: Option<Bytes>, is_empty: bool, found: Vec<Bytes>, held: usize },
    /// How many keys there are: counted up to a thousand, about beyond.
    Size { counted: usize },
    /// One key, the first at or after a random token. A bigger gap before a key makes it
    /// likelier.
    Random { wrapped: bool },
}

/// A command that lists keys: one page after the other.
#[derive(Debug)]
pub(crate) struct Pages {
    list: List,
    from: Cursor,
    limit: u32,
    /// How many bytes it may hold: of `KEYS` with what the list takes, as it may be long.
    held_max: usize,
}

impl Pages {
    fn new(list: List, from: Cursor, limit: u32) -> Pages {
        Pages { list, from, limit, held_max: REPLY_BYTES_MAX }
    }

    /// All keys that match a pattern, for `KEYS`.
    pub(crate) fn keys(pattern: Bytes) -> Pages {
        let list = List::Keys { pattern, found: Vec::new(), held: 0 };
        Pages::new(list, Cursor::default(), PAGE_KEYS)
    }

    /// `SCAN` from a cursor. A count over the limit asks for the limit.
    pub(crate) fn scan(from: u64, count: i64, pattern: Option<Bytes>, is_empty: bool) -> Pages {
        let limit = count.clamp(1, SCAN_KEYS_MAX as i64) as u32;
        let list = List::Scan { begin: from, pattern, is_empty, found: Vec::new(), held: 0 };
        Pages::new(list, Cursor::at(from), limit)
    }

    /// `DBSIZE`.
    pub(crate) fn size() -> Pages {
        Pages::new(List::Size { counted: 0 }, Cursor::default(), PAGE_KEYS)
    }

    /// `RANDOMKEY` from a random token.
    pub(crate) fn random(from: u64) -> Pages {
        let list = List::Random { wrapped: from == 0 };
        Pages::new(list, Cursor::at(from), 1)
    }

    /// The next page to ask for.
    pub(crate) fn operation(&self) -> Operation {
        Operation::Scan { from: self.from.clone(), limit: self.limit }
    }

    /// How many bytes the keys hold that it has found.
    pub(crate) fn held(&self) -> usize {
        match &self.list {
            List::Keys { found, held, .. } | List::Scan { found, held, .. } => {
                size_of_val(&found[..]) + *held
            }
            _ => 0,
        }
    }

    /// The same of `SCAN`: all keys of the token where it began come in one reply.
    fn on_scanned(&mut self, keys: Vec<Bytes>, next: Option<Cursor>) -> Option<CommandReply> {
        let List::Scan { begin, pattern, is_empty, found, held } = &mut self.list else {
            return None;
        };
        let is_meant = |key: &Bytes| {
            !*is_empty && pattern.as_ref().is_none_or(|pattern| glob::matches(pattern, key))
        };
        for key in keys.into_iter().filter(is_meant) {
            *held += key.len();
            found.push(key);
        }
        if *held > self.held_max {
            return Some(CommandReply::Error(pile(*begin, self.held_max)));
        }
        match next {
            // Within the token where it began no number says where to go on.
            Some(next) if !next.is_token() && next.token == *begin => {
                self.from = next;
                None
            }
            next => {
                let is_headed = |next: &&Cursor| next.token == head_of(&next.key);
                let is_within = |next: &&Cursor| !next.is_token();
                if let Some(next) = next.as_ref().filter(is_within).filter(is_headed) {
                    // In the order of keys all of that token come with the next page.
                    found.retain(|key| head_of(key) != next.token);
                }
                let next = next.map_or(0, |next| next.token);
                Some(CommandReply::Page(next, core::mem::take(found)))
            }
        }
    }

    /// A page has arrived; the reply, or `None` if another page is needed.
    pub(crate) fn on_outcome(&mut self, outcome: Outcome) -> Option<CommandReply> {
        let (keys, next) = match outcome {
            // A cursor that does not rise would never end.
            Outcome::Page { keys, next } => (keys, next.filter(|next| *next > self.from)),
            Outcome::Refused(refusal) => {
                return Some(CommandReply::Error(error::refusal(&refusal)));
            }
            _ => return Some(CommandReply::Error(String::from(MISMATCH))),
        };
        match &mut self.list {
            List::Keys { pattern, found, held } => {
                let begin = found.len();
                found.extend(keys.into_iter().filter(|key| glob::matches(pattern, key)));
                if !mutant!("keys_keep_their_pages") {
                    stand_alone(&mut found[begin..]);
                }
                *held += found[begin..].iter().map(Bytes::len).sum::<usize>();
                if size_of_val(&found[..]) + *held > self.held_max {
                    let text = over_limit("KEYS", "keys with SCAN", self.held_max);
                    return Some(CommandReply::Error(text));
                }
                if let Some(next) = next {
                    self.from = next;
                    return None;
                }
                Some(CommandReply::Keys(core::mem::take(found)))
            }
            List::Scan { .. } => self.on_scanned(keys, next),
            List::Size { counted } => {
                *counted += keys.len();
                // A page ends where a group's range does, so neither a short one nor a full one
                // says whether more keys are there.
                let is_enough = *counted > PAGE_KEYS as usize
                    || *counted == PAGE_KEYS as usize && mutant!("size_of_a_full_page");
                match next {
                    Some(next) if !is_enough => {
                        self.from = next;
                        None
                    }
                    next => {
                        Some(CommandReply::Integer(size(*counted, next.map(|next| next.token))))
                    }
                }
            }
            List::Random { wrapped } => match (keys.into_iter().next(), next) {
                (Some(key), _) => Some(CommandReply::Bulk(Some(key))),
                (None, Some(next)) => {
                    // What is deleted counts for a page: there may be much of it.
                    (self.from, self.limit) = (next, PAGE_KEYS);
                    None
                }
                (None, None) if *wrapped => Some(CommandReply::Bulk(None)),
                (None, None) => {
                    *wrapped = true;
                    self.from = Cursor::default();
                    None
                }
            },
        }
    }
}

/// Copies keys out of the page that they came with: a few would keep all of it.
fn stand_alone(keys: &mut [Bytes]) {
    let mut room = BytesMut::with_capacity(keys.iter().map(Bytes::len).sum());
    for key in keys {
        room.extend_from_slice(key);
        *key = room.split().freeze();
    }
}

/// The token of a key in a keyspace in the order of keys. In one in the order of hashes it is not a
/// key's token.
fn head_of(key: &[u8]) -> u64 {
    let mut head = [0; 8];
    let known = key.len().min(head.len());
    head[..known].copy_from_slice(&key[..known]);
    u64::from_be_bytes(head)
}

fn pile(token: u64, bytes_max: usize) -> String {
    let mut text = over_limit("SCAN", "keys", bytes_max);
    let _ = write!(text, ": all that share the first 8 bytes of cursor {token} come together");
    if let Some(behind) = token.checked_add(1) {
        let _ = write!(text, "; go on behind them with {behind}; gRPC and HTTP list them");
    }
    text
}

/// The number of keys there are if so many were counted: exact if nothing follows, else by the
/// share of the hash space that was walked, in which keys are spread evenly.
fn size(keys: usize, next: Option<u64>) -> i64 {
    let Some(next) = next else { return keys as i64 };
    let whole = 1u128 << 64;
    let estimate = (keys as u128 * whole).div_ceil(u128::from(next.max(1)));
    i64::try_from(estimate).unwrap_or(i64::MAX)
}

/// A command that was read, until its reply is written.
#[derive(Debug)]
pub(crate) enum Work {
    /// The reply is known.
    Done(CommandReply),
    /// One operation is under way.
    Single(Single),
    /// Operations on many keys are under way.
    Many(Box<Many>),
    /// Pages are asked for.
    Pages(Box<Pages>),
    /// Pages are asked for, and their keys deleted.
    Flush(Box<Flush>),
    /// A transaction is under way.
    Transaction(Box<Transaction>),
}

impl Work {
    /// How many bytes it keeps for its reply.
    pub(crate) fn held(&self) -> usize {
        match self {
            Work::Done(answer) => answer.size(),
            Work::Single(_) | Work::Transaction(_) => 0,
            Work::Many(many) => many.held(),
            Work::Pages(pages) => pages.held(),
            Work::Flush(flush) => flush.held(),
        }
    }
}

#[cfg(test)]
mod tests;
