//! Listings: cursors, ranges, pages, values.
//!
//! The engine lists keys by their tokens on the ring; a page of it may be cut into several of
//! ours where values are long. A cursor says behind which key, or at which token, to go on, so
//! a listing goes on exactly where a page ended, at any host.

use super::keyspaces::{self, Keyspace};
use super::map;
use super::problem::{self, Problem};
use super::service::{Asking, Native};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_api::v1;
use quorate_kernel::engine::Capability;
use quorate_kernel::operation::{Cursor, Operation};
use std::collections::VecDeque;
use std::sync::Arc;

/// How many keys a page has if nothing else is asked.
const PAGE_KEYS: u32 = 256;
/// The most keys of a page.
pub const PAGE_KEYS_MAX: u32 = 1_000;
/// A page whose values have this many bytes takes no more of them.
const PAGE_BYTES: usize = 1024 * 1024;
/// How many values are read at once, at most.
const VALUES_AT_ONCE: usize = 32;

/// Where a listing goes on, as a client keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    /// At a token.
    At(u64),
    /// Behind a key.
    Behind(Bytes),
    /// At a key, or the next one.
    From(Bytes),
}

const AT: u8 = 1;
const BEHIND: u8 = 2;
const FROM: u8 = 3;

impl Token {
    fn to_bytes(&self) -> Bytes {
        let mut bytes = BytesMut::new();
        match self {
            Token::At(token) => {
                bytes.put_u8(AT);
                bytes.put_u64(*token);
            }
            Token::Behind(key) => {
                bytes.put_u8(BEHIND);
                bytes.put_slice(key);
            }
            Token::From(key) => {
                bytes.put_u8(FROM);
                bytes.put_slice(key);
            }
        }
        bytes.freeze()
    }

    fn of(mut bytes: Bytes) -> Option<Token> {
        match (bytes.try_get_u8().ok()?, bytes.len()) {
            (AT, 8) => Some(Token::At(bytes.get_u64())),
            (BEHIND, _) => Some(Token::Behind(bytes)),
            (FROM, _) => Some(Token::From(bytes)),
            _ => None,
        }
    }
}

/// A listing under way.
pub struct Listing {
    native: Native,
    keyspace: Arc<Keyspace>,
    from: Bytes,
    to: Option<Bytes>,
    behind: Option<Bytes>,
    with_values: bool,
    page_keys: u32,
    timeout_ms: u32,
    /// How many keys may still be listed.
    left: u64,
    /// Keys that were listed and not told yet.
    waiting: VecDeque<Bytes>,
    /// Where the engine's next page begins; none behind the last.
    next: Option<Cursor>,
    is_over: bool,
    /// The bytes of the values of the page that was told last.
    held: usize,
}

impl Listing {
    /// Begins a listing.
    ///
    /// # Errors
    /// The request breaks a rule.
    pub fn new(native: &Native, request: v1::ScanRequest) -> Result<Listing, Problem> {
        let keyspace = native.find(&request.keyspace)?;
        let lacking = keyspace.entry.require(Capability::Listing, "a listing", None);
        lacking.map_err(|lacking| problem::lacking(&lacking))?;
        let has_range = request.from.is_some() || request.to.is_some();
        if has_range && keyspaces::order(&keyspace) != v1::ScanOrder::Key {
            let what = "this keyspace does not keep its keys in order, so it has no ranges";
            let right = "list all of it, or use a keyspace with order=key";
            return Err(problem::unsupported(what, right));
        }
        if request.page_keys > PAGE_KEYS_MAX {
            let what = format!("pages of {} keys", request.page_keys);
            let right = format!("ask for at most {PAGE_KEYS_MAX}, or 0 for {PAGE_KEYS}");
            return Err(problem::invalid("page_keys", what, right));
        }
        let from = request.from.unwrap_or_default();
        let cursor = match request.cursor.len() {
            // The token of the empty key is not where a listing by hash begins.
            0 if from.is_empty() => Token::At(0),
            0 => Token::From(from.clone()),
            _ => Token::of(request.cursor).ok_or_else(|| {
                let right = "give the cursor of a page as it was, or none to begin";
                problem::invalid("cursor", "the cursor is none that a page gave", right)
            })?,
        };
        let at = |key: &Bytes| Cursor { token: keyspace.entry.token(key), key: key.clone() };
        let (begin, behind) = match cursor {
            Token::At(token) => (Cursor::at(token), None),
            Token::From(key) => (at(&key), None),
            Token::Behind(key) => (at(&key), Some(key)),
        };
        Ok(Listing {
            native: native.clone(),
            keyspace,
            from,
            to: request.to,
            behind,
            with_values: request.with_values,
            page_keys: if request.page_keys == 0 { PAGE_KEYS } else { request.page_keys },
            timeout_ms: request.timeout_ms,
            left: if request.limit == 0 { u64::MAX } else { request.limit },
            waiting: VecDeque::new(),
            next: Some(begin),
            is_over: false,
            held: 0,
        })
    }

    /// What the listing promises.
    #[must_use]
    pub fn promise(&self) -> v1::ScanPromise {
        keyspaces::promise(&self.keyspace)
    }

    /// The next page; none behind the last.
    ///
    /// # Errors
    /// The page cannot be read. A later listing may go on at the cursor of the page before.
    pub async fn page(&mut self, asking: &Asking) -> Result<Option<v1::ScanPage>, Problem> {
        asking.allowance.give(std::mem::take(&mut self.held));
        if self.is_over {
            return Ok(None);
        }
        let deadline = self.native.deadline(self.timeout_ms, asking);
        if self.waiting.is_empty()
            && let Some(from) = self.next.clone()
        {
            let limit = u32::try_from(self.left).unwrap_or(u32::MAX).min(self.page_keys);
            let scan = Operation::Scan { from: from.clone(), limit };
            let (outcome, _) = self.native.call(&self.keyspace, scan, deadline, None).await?;
            let (keys, next) = map::page(outcome)?;
            // A cursor that does not rise would never end.
            self.next = next.filter(|next| *next > from);
            self.admit(keys);
        }
        let mut keys = self.take();
        let mut entries = Vec::with_capacity(keys.len());
        if self.with_values {
            let mut at_once = 1;
            while !keys.is_empty() && self.held < PAGE_BYTES {
                let some: Vec<Bytes> = keys.drain(..at_once.min(keys.len())).collect();
                let before = self.held;
                self.read(&some, deadline, asking, &mut entries).await?;
                let is_short = self.held - before < PAGE_BYTES / 8;
                at_once = if is_short { (2 * at_once).min(VALUES_AT_ONCE) } else { 1 };
            }
            // What did not fit comes with the next page.
            self.left = self.left.saturating_add(keys.len() as u64);
            keys.into_iter().rev().for_each(|key| self.waiting.push_front(key));
        } else {
            entries.extend(keys.into_iter().map(|key| v1::Entry { key, reading: None }));
        }
        Ok(Some(self.finish(entries)))
    }

    /// Notes those of the engine's keys that belong to the listing.
    fn admit(&mut self, keys: Vec<Bytes>) {
        for key in keys {
            // Where keys are not in order, `from` is empty.
            if self.behind.as_ref() == Some(&key) || key < self.from {
                continue;
            }
            if self.to.as_ref().is_some_and(|to| key >= *to) {
                return self.next = None;
            }
            self.waiting.push_back(key);
        }
        let end = |to: &Bytes| Cursor { token: self.keyspace.entry.token(to), key: to.clone() };
        let end = self.to.as_ref().map(end);
        self.next = self.next.take().filter(|next| end.is_none_or(|end| *next < end));
    }

    /// Takes keys that wait, no more than may be listed.
    fn take(&mut self) -> Vec<Bytes> {
        let may = usize::try_from(self.left).unwrap_or(usize::MAX);
        let count = self.waiting.len().min(may);
        self.left -= count as u64;
        self.waiting.drain(..count).collect()
    }

    async fn read(
        &mut self,
        keys: &[Bytes],
        deadline: std::time::Instant,
        asking: &Asking,
        entries: &mut Vec<v1::Entry>,
    ) -> Result<(), Problem> {
        let get = |key: &Bytes| map::get(&self.keyspace, key.clone(), 0);
        let operations = keys.iter().map(get).collect::<Result<Vec<Operation>, _>>()?;
        let keyspace = &self.keyspace;
        let readings =
            self.native.read_all(keyspace, operations, deadline, usize::MAX, asking).await?;
        for (key, reading) in keys.iter().zip(readings) {
            self.held += map::size(&reading);
            entries.push(v1::Entry { key: key.clone(), reading: Some(reading) });
        }
        Ok(())
    }

    /// The page of these entries, with the cursor behind it.
    fn finish(&mut self, entries: Vec<v1::Entry>) -> v1::ScanPage {
        let is_last = self.waiting.is_empty() && self.next.is_none();
        self.is_over = is_last || self.left == 0;
        let cursor = match (self.waiting.is_empty(), &self.next, entries.last()) {
            (true, None, _) => Bytes::new(),
            (true, Some(next), _) if next.is_token() => Token::At(next.token).to_bytes(),
            (true, Some(next), _) => Token::From(next.key.clone()).to_bytes(),
            (false, _, Some(last)) => Token::Behind(last.key.clone()).to_bytes(),
            // Nothing was told although keys wait: only if none may be, which ends the listing.
            (false, _, None) => Bytes::new(),
        };
        v1::ScanPage { entries, cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_what_it_wrote_and_nothing_else() {
        let key = Bytes::from_static(b"k\0");
        for token in [
            Token::At(u64::MAX),
            Token::Behind(key.clone()),
            Token::Behind(Bytes::new()),
            Token::From(key),
        ] {
            assert_eq!(Token::of(token.to_bytes()), Some(token));
        }
        for bad in [&b""[..], b"\x00", b"\x01short", b"\x01much too long", b"\x04aaaaaaaa"] {
            assert_eq!(Token::of(Bytes::copy_from_slice(bad)), None, "{bad:?}");
        }
    }
}
