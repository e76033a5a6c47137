//! Groups of batches as they lie in a segment of the log: encoding and decoding alone.
//!
//! A segment begins with a page that holds its [`Header`]; groups follow, each from the start of a
//! page on, so that no write touches a page of an earlier group. Integers are big-endian.
//!
//! ```text
//! page     header | zeros up to byte 2048 | header | zeros
//! header   checksum u64 | "QSEGMT\0\x01" | generation u64 | covered u64
//! group    head | body | zeros up to the end of the page
//! head     checksum u64 | "QGR\x01" | body length u32 | generation u64 | first u64 | last u64
//!          | synced u64 | part u32 | parts u32 | checksum of the body u64
//! record   0 | key length u16 | key                                   a delete
//!          1 | key length u16 | value length u32 | key | value        a put
//! ```
//!
//! The checksum of a head begins with the log's [`Salt`], so nobody can store a value that would be
//! taken for a group where one is torn, or where an earlier use of the segment left it.
//!
//! A generation is the number of one use of a segment: no two uses share one, so what an earlier
//! use left behind a group is never taken for the next group. A group that is longer than a segment
//! lies in parts, one a segment; it counts when all of them are there.

use bytes::Bytes;
use quorate_kernel::ids::Lsn;
use quorate_kernel::mutant;
use quorate_kernel::storage::{Batch, Write};
use serde::{Deserialize, Serialize};
use std::io;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// What groups and the header of a segment are aligned to, in bytes.
pub(crate) const PAGE_BYTES: usize = 4096;
/// The bytes of a group's head.
pub(crate) const HEAD_BYTES: usize = 64;
/// The bytes of a segment's header that are in use.
const HEADER_BYTES: usize = 32;
/// Where the second copy of the header lies, in another sector: one may be torn.
const HEADER_COPY: usize = 2048;
const HEADER_MAGIC: &[u8; 8] = b"QSEGMT\0\x01";
const HEAD_MAGIC: &[u8; 4] = b"QGR\x01";
const DELETE: u8 = 0;
const PUT: u8 = 1;

/// A number that was drawn when the log was begun, and that nobody knows who writes through it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Salt(u64);

impl Salt {
    /// A new number of the system's random source.
    pub(crate) fn draw() -> io::Result<Salt> {
        let number = getrandom::u64().map_err(|error| io::Error::other(error.to_string()))?;
        // TOML has no larger integers.
        Ok(Salt(if mutant!("log_without_salt") { 0 } else { number >> 1 }))
    }
}

/// What the first page of a segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// The number of this use of the segment. It rises over all segments.
    pub(crate) generation: u64,
    /// Every batch up to here was in the tables, synced, when this use began.
    pub(crate) covered: Lsn,
}

impl Header {
    /// The first page of a segment.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES];
        page[8..16].copy_from_slice(HEADER_MAGIC);
        page[16..24].copy_from_slice(&self.generation.to_be_bytes());
        page[24..32].copy_from_slice(&self.covered.0.to_be_bytes());
        let checksum = xxh3_64(&page[8..HEADER_BYTES]);
        page[..8].copy_from_slice(&checksum.to_be_bytes());
        page.copy_within(..HEADER_BYTES, HEADER_COPY);
        page
    }

    /// Reads the first page of a segment; nothing when no copy is whole. Of two that differ the
    /// newer counts: nothing is in the segment that the older speaks of, once the newer is written.
    pub(crate) fn decode(page: &[u8]) -> Option<Header> {
        let copies = [0, HEADER_COPY].into_iter().filter_map(|at| {
            let head = page.get(at..at + HEADER_BYTES)?;
            let is_whole = head[8..16] == *HEADER_MAGIC && word(head, 0) == xxh3_64(&head[8..]);
            is_whole.then(|| Header { generation: word(head, 16), covered: Lsn(word(head, 24)) })
        });
        copies.max_by_key(|header| header.generation)
    }
}

/// What a group says about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// The use of the segment that it was written in.
    pub(crate) generation: u64,
    /// The first of the node's batches in it.
    pub(crate) first: Lsn,
    /// The last of the node's batches in it.
    pub(crate) last: Lsn,
    /// The highest batch that was synced when it was written.
    pub(crate) synced: Lsn,
    /// Which part of the group this is, from 0.
    pub(crate) part: u32,
    /// How many parts the group has.
    pub(crate) parts: u32,
    /// Bytes of its body.
    pub(crate) length: u32,
    /// Of its body.
    checksum: u64,
}

impl Head {
    /// Of the first part of a group of one part, before its body is known.
    pub(crate) fn of(generation: u64, first: Lsn, last: Lsn, synced: Lsn) -> Head {
        assert!(synced < first, "a batch is not synced before it is written");
        assert!(first <= last, "a group has a batch");
        Head { generation, first, last, synced, part: 0, parts: 1, length: 0, checksum: 0 }
    }

    /// The same for one of several parts.
    pub(crate) fn of_part(self, part: usize, parts: usize) -> Head {
        assert!(part < parts, "parts are counted from 0");
        let number = |part: usize| u32::try_from(part).expect("a group has few parts");
        Head { part: number(part), parts: number(parts), ..self }
    }

    fn encode(&self, salt: Salt) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[8..12].copy_from_slice(HEAD_MAGIC);
        bytes[12..16].copy_from_slice(&self.length.to_be_bytes());
        let words = [self.generation, self.first.0, self.last.0, self.synced.0];
        for (slot, word) in bytes[16..48].chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_be_bytes());
        }
        bytes[48..52].copy_from_slice(&self.part.to_be_bytes());
        bytes[52..56].copy_from_slice(&self.parts.to_be_bytes());
        bytes[56..64].copy_from_slice(&self.checksum.to_be_bytes());
        let checksum = xxh3_64_with_seed(&bytes[8..], salt.0);
        bytes[..8].copy_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// Reads a head; nothing when none lies there.
    pub(crate) fn decode(bytes: &[u8], salt: Salt) -> Option<Head> {
        let bytes = bytes.get(..HEAD_BYTES)?;
        let checksum = || xxh3_64_with_seed(&bytes[8..], salt.0);
        if bytes[8..12] != *HEAD_MAGIC || word(bytes, 0) != checksum() {
            return None;
        }
        let head = Head {
            generation: word(bytes, 16),
            first: Lsn(word(bytes, 24)),
            last: Lsn(word(bytes, 32)),
            synced: Lsn(word(bytes, 40)),
            part: half(bytes, 48),
            parts: half(bytes, 52),
            length: half(bytes, 12),
            checksum: word(bytes, 56),
        };
        let is_sound =
            head.synced < head.first && head.first <= head.last && head.part < head.parts;
        is_sound.then_some(head)
    }

    /// The bytes that it takes in a segment.
    pub(crate) fn extent(&self) -> usize {
        extent(self.length as usize)
    }
}

/// The bytes that a part with so many bytes of body takes in a segment.
pub(crate) fn extent(length: usize) -> usize {
    (HEAD_BYTES + length).next_multiple_of(PAGE_BYTES)
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes were sliced"))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes were sliced"))
}

/// Writes a group into an empty buffer: room for its head, then its body.
pub(crate) fn begin(buffer: &mut Vec<u8>, batches: &[Batch]) {
    buffer.clear();
    buffer.resize(HEAD_BYTES, 0);
    for write in batches.iter().flat_map(|batch| &batch.writes) {
        let key_length = u16::try_from(write.key.len()).expect("keys were checked before");
        match &write.value {
            None => {
                buffer.push(DELETE);
                buffer.extend(key_length.to_be_bytes());
                buffer.extend(&write.key[..]);
            }
            Some(value) => {
                let length = u32::try_from(value.len()).expect("values are limited");
                buffer.push(PUT);
                buffer.extend(key_length.to_be_bytes());
                buffer.extend(length.to_be_bytes());
                buffer.extend(&write.key[..]);
                buffer.extend(&value[..]);
            }
        }
    }
}

/// Finishes a part whose body lies behind the room for its head: the head, and zeros up to the end
/// of the page.
pub(crate) fn finish(buffer: &mut Vec<u8>, mut head: Head, salt: Salt) {
    let body = &buffer[HEAD_BYTES..];
    head.length = u32::try_from(body.len()).expect("a part is within a segment");
    head.checksum = xxh3_64(body);
    buffer[..HEAD_BYTES].copy_from_slice(&head.encode(salt));
    buffer.resize(buffer.len().next_multiple_of(PAGE_BYTES), 0);
}

/// What lies at a place of a segment.
#[derive(Debug)]
pub(crate) enum Found<'a> {
    /// A whole part of a group.
    Whole(Head, &'a [u8]),
    /// A part of which the head is whole and the body is not.
    Broken,
    /// Nothing of this use of the segment.
    Nothing,
}

/// What lies at a place of a segment in its present use.
pub(crate) fn look(segment: &[u8], at: usize, generation: u64, salt: Salt) -> Found<'_> {
    let head = segment.get(at..).and_then(|bytes| Head::decode(bytes, salt));
    let Some(head) = head else { return Found::Nothing };
    if head.generation != generation && !mutant!("log_takes_old_generation") {
        return Found::Nothing;
    }
    let from = at + HEAD_BYTES;
    match segment.get(from..from + head.length as usize) {
        Some(body) if xxh3_64(body) == head.checksum => Found::Whole(head, body),
        _ => Found::Broken,
    }
}

/// The records of a whole group.
pub(crate) struct Records<'a>(&'a [u8]);

impl<'a> Records<'a> {
    /// Of the body of a group, all parts together.
    pub(crate) fn of(body: &'a [u8]) -> Records<'a> {
        Records(body)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self, length: usize) -> Option<usize> {
        let taken = self.take(length)?;
        Some(taken.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)))
    }

    fn record(&mut self) -> Option<(&'a [u8], Option<&'a [u8]>)> {
        let kind = self.number(1)?;
        let key_length = self.number(2)?;
        let value_length = if kind == usize::from(PUT) { Some(self.number(4)?) } else { None };
        if kind > usize::from(PUT) {
            return None;
        }
        let key = self.take(key_length)?;
        let value = match value_length {
            Some(length) => Some(self.take(length)?),
            None => None,
        };
        Some((key, value))
    }
}

/// A key with its value, or nothing for a delete; an error if the rest is no record.
impl<'a> Iterator for Records<'a> {
    type Item = Result<(&'a [u8], Option<&'a [u8]>), &'static str>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let record = self.record();
        if record.is_none() {
            self.0 = &[];
        }
        Some(record.ok_or("a group holds what is no record"))
    }
}

/// The bytes that a write takes in a group.
pub(crate) fn record_bytes(write: &Write) -> usize {
    7 + write.key.len() + write.value.as_ref().map_or(0, Bytes::len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SALT: Salt = Salt(3);

    fn batch(writes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Batch {
        let write = |(key, value): &(Vec<u8>, Option<Vec<u8>>)| Write {
            key: Bytes::copy_from_slice(key),
            value: value.as_deref().map(Bytes::copy_from_slice),
        };
        Batch { lsn: Lsn(5), must_sync: true, writes: writes.iter().map(write).collect() }
    }

    fn head() -> Head {
        Head::of(7, Lsn(5), Lsn(9), Lsn(4))
    }

    fn encoded(writes: &[(Vec<u8>, Option<Vec<u8>>)]) -> Vec<u8> {
        let mut buffer = Vec::new();
        begin(&mut buffer, &[batch(writes)]);
        finish(&mut buffer, head(), SALT);
        buffer
    }

    proptest! {
        #[test]
        fn a_group_is_read_back(writes: Vec<(Vec<u8>, Option<Vec<u8>>)>) {
            let bytes = encoded(&writes);
            prop_assert_eq!(bytes.len() % PAGE_BYTES, 0);
            let Found::Whole(found, body) = look(&bytes, 0, 7, SALT) else { panic!("it is whole") };
            prop_assert_eq!((found.first, found.last, found.synced), (Lsn(5), Lsn(9), Lsn(4)));
            prop_assert_eq!(found.extent(), bytes.len());
            let all = batch(&writes);
            let taken: usize = all.writes.iter().map(record_bytes).sum();
            prop_assert!(body.len() <= taken, "what was reckoned is enough");
            let records: Result<Vec<_>, _> = Records::of(body).collect();
            let expected: Vec<_> =
                writes.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
            prop_assert_eq!(records, Ok(expected));
            prop_assert!(matches!(look(&bytes, 0, 8, SALT), Found::Nothing), "of another use");
            prop_assert!(matches!(look(&bytes, 0, 7, Salt(4)), Found::Nothing), "of another log");
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            prop_assert!(matches!(look(&bytes, 0, 7, SALT), Found::Nothing));
            prop_assert!(Records::of(&bytes).count() <= bytes.len());
            prop_assert_eq!(Header::decode(&bytes), None);
        }
    }

    #[test]
    fn every_flipped_bit_of_a_group_is_noticed() {
        let bytes = encoded(&[(b"key".to_vec(), Some(b"value".to_vec())), (b"k".to_vec(), None)]);
        let Found::Whole(found, _) = look(&bytes, 0, 7, SALT) else { panic!("it is whole") };
        for at in 0..HEAD_BYTES + found.length as usize {
            for bit in 0..8 {
                let mut bytes = bytes.clone();
                bytes[at] ^= 1 << bit;
                let is_noticed = match look(&bytes, 0, 7, SALT) {
                    Found::Whole(..) => false,
                    Found::Broken => at >= HEAD_BYTES,
                    Found::Nothing => at < HEAD_BYTES,
                };
                assert!(is_noticed, "byte {at} bit {bit}");
            }
        }
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed_and_one_torn_copy_does_no_harm() {
        let header = Header { generation: 1 << 40 | 3, covered: Lsn(12) };
        let older = Header { generation: 7, covered: Lsn(2) };
        let page = header.encode();
        assert_eq!((page.len(), Header::decode(&page)), (PAGE_BYTES, Some(header)));
        for bit in 0..HEADER_BYTES * 8 {
            let mut page = page.clone();
            page[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&page), Some(header), "bit {bit} of one copy");
            page[HEADER_COPY + bit / 8] ^= 1 << (bit % 8);
            assert_eq!(Header::decode(&page), None, "bit {bit} of both");
        }
        for at in (0..PAGE_BYTES).step_by(512) {
            let mut page = page.clone();
            page[at..].copy_from_slice(&older.encode()[at..]);
            let torn = Header::decode(&page);
            assert_eq!(torn, Some(if at == 0 { older } else { header }), "torn at {at}");
        }
    }
}
