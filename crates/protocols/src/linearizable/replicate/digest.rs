//! Digests of what a member holds of a group's data, part by part, so that members tell what they
//! lack without sending it ([`super::compare`]).
//!
//! A **piece** of a group's data is cut into **parts**. A part ends before a cursor: a key, or the
//! first bytes of one. So a boundary can fall between two keys of one token.
//!
//! ```text
//! parts: repeated: digest u64 | length u32 | the cursor that the part ends before
//! ```
//! Integers are little-endian. An empty cursor, of the last part alone, is the end of the interval
//! of the group's range.

use super::replica::end_of_interval;
use crate::linearizable::Context;
use crate::linearizable::group::Group;
use crate::linearizable::keys::token_of;
use crate::linearizable::record::Record;
use crate::linearizable::wire::page;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::limits::{COMPARED_PARTS_MAX, KEY_BYTES_MAX, TURN_BYTES_MAX};
use quorate_kernel::rng::mix;
use quorate_kernel::storage::Class;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

const TOKEN_BYTES: usize = 8;
/// A part is closed when it has such a share of the keys, or of the bytes, of the largest piece.
const PARTS: usize = 16;
const PART_BYTES: usize = TURN_BYTES_MAX / PARTS;
/// The peer may hold more in a piece; it looks through so many times as much at most.
const PEER_FACTOR: usize = 2;

/// The digest of keys with their timestamps and whether each has a value, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Digest(u64);

impl Digest {
    fn add(&mut self, key: &[u8], record: &Record) {
        let entry = xxh3_64_with_seed(&record.without_value(), xxh3_64(key));
        self.0 = mix(self.0 ^ entry);
    }
}

/// A part as one member sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Part {
    digest: Digest,
    end: Bytes,
}

fn push(parts: &mut BytesMut, part: &Part) {
    parts.put_u64_le(part.digest.0);
    parts.put_u32_le(part.end.len() as u32);
    parts.put_slice(&part.end);
}

fn pop(parts: &mut Bytes) -> Result<Part, WireError> {
    let truncated = WireError::Truncated { what: "part" };
    if parts.len() < 12 {
        return Err(truncated);
    }
    let (digest, length) = (Digest(parts.get_u64_le()), parts.get_u32_le() as usize);
    if length > parts.len() {
        return Err(truncated);
    }
    Ok(Part { digest, end: parts.split_to(length) })
}

/// Checks a cursor that came from a peer.
fn is_cursor(cursor: &[u8]) -> Result<(), WireError> {
    let lengths = TOKEN_BYTES..=TOKEN_BYTES + KEY_BYTES_MAX;
    match lengths.contains(&cursor.len()) {
        true => Ok(()),
        false => Err(WireError::Malformed { what: "cursor" }),
    }
}

/// Checks the end of a part that came from a peer: a cursor, or empty.
pub(crate) fn is_end(end: &[u8]) -> Result<(), WireError> {
    if end.is_empty() { Ok(()) } else { is_cursor(end) }
}

/// Checks the parts of a piece that came from a peer.
pub(crate) fn validate(from: &Bytes, parts: &Bytes) -> Result<(), WireError> {
    is_cursor(from)?;
    let (mut rest, mut last, mut count) = (parts.clone(), from.clone(), 0);
    while !rest.is_empty() {
        let part = pop(&mut rest)?;
        count += 1;
        let is_end = part.end.is_empty() && rest.is_empty();
        if !is_end {
            is_cursor(&part.end)?;
        }
        if !is_end && part.end <= last || count > COMPARED_PARTS_MAX {
            return Err(WireError::Malformed { what: "parts" });
        }
        last = part.end;
    }
    if count == 0 { Err(WireError::Malformed { what: "parts" }) } else { Ok(()) }
}

/// Walks over what is stored from a cursor on, to the end of the interval of the group's range that
/// holds it, while `each` says so.
fn walk(
    group: &Group,
    from: &[u8],
    cx: &Context<'_>,
    mut each: impl FnMut(&[u8], &Record, usize) -> bool,
) {
    let slot = group.record.slot;
    let last = end_of_interval(&group.view.range, token_of(from));
    cx.table.scan(Class::Data, &slot.stored(from), &mut |stored, record| {
        let Some(key) = slot.data_key(stored) else { return false };
        let bytes = key.len() + record.len();
        token_of(key) <= last && each(key, &Record::stored(record.clone()), bytes)
    });
}

/// The parts of the piece that begins at a cursor, as they are here; it has at most so many keys,
/// and is not larger than may be looked through in one turn.
pub(crate) fn piece(group: &Group, from: &Bytes, keys_max: usize, cx: &Context<'_>) -> Bytes {
    let part_keys = (keys_max / PARTS).max(1);
    let mut parts = BytesMut::new();
    let mut part = Part { digest: Digest::default(), end: Bytes::new() };
    let (mut keys, mut bytes, mut begun) = (0, 0, (0, 0));
    walk(group, from, cx, |key, record, size| {
        let is_full = keys >= keys_max || bytes >= TURN_BYTES_MAX;
        if is_full || keys - begun.0 >= part_keys || bytes - begun.1 >= PART_BYTES {
            part.end = Bytes::copy_from_slice(key);
        }
        if is_full {
            return false;
        }
        if !part.end.is_empty() {
            push(&mut parts, &part);
            part = Part { digest: Digest::default(), end: Bytes::new() };
            begun = (keys, bytes);
        }
        part.digest.add(key, record);
        (keys, bytes) = (keys + 1, bytes + size);
        true
    });
    push(&mut parts, &part);
    parts.freeze()
}

/// Where a piece ends, if that is not the end of the interval.
pub(crate) fn end_of(parts: &Bytes) -> Option<Bytes> {
    let mut rest = parts.clone();
    let mut end = Bytes::new();
    while !rest.is_empty() {
        end = pop(&mut rest).expect("parts are validated when they arrive").end;
    }
    (!end.is_empty()).then_some(end)
}

/// What differs here from a peer's parts.
#[derive(Debug, Default)]
pub(crate) struct Difference {
    /// The heads of all keys in the parts that differ.
    pub page: BytesMut,
    /// Where the comparison had to stop, if that is before the end of the piece.
    pub stopped: Option<Bytes>,
    /// About how many keys were looked through.
    pub keys: usize,
}

/// Compares a peer's parts with what is here.
pub(crate) fn differ(
    group: &Group,
    (from, parts): (&Bytes, &Bytes),
    keys_max: usize,
    cx: &Context<'_>,
) -> Difference {
    let mut rest = parts.clone();
    let mut next = || (!rest.is_empty()).then(|| pop(&mut rest).expect("they were validated"));
    let mut difference = Difference::default();
    let (mut part, mut digest, mut bytes) = (next(), Digest::default(), 0);
    // What was listed before the present part.
    let mut kept = 0;
    walk(group, from, cx, |key, record, size| {
        while let Some(peer) = part.take_if(|part| !part.end.is_empty() && key >= &part.end[..]) {
            if peer.digest == digest {
                difference.page.truncate(kept);
            }
            kept = difference.page.len();
            (part, digest) = (next(), Digest::default());
        }
        if part.is_none() {
            return false;
        }
        let is_full =
            difference.keys >= PEER_FACTOR * keys_max || bytes >= PEER_FACTOR * TURN_BYTES_MAX;
        if is_full {
            difference.stopped = Some(Bytes::copy_from_slice(key));
            return false;
        }
        digest.add(key, record);
        page::push(&mut difference.page, key, &record.without_value());
        (difference.keys, bytes) = (difference.keys + 1, bytes + size);
        true
    });
    let is_same = part.is_some_and(|peer| peer.digest == digest);
    if is_same && difference.stopped.is_none() {
        difference.page.truncate(kept);
    }
    difference
}
