//! Timestamps, and the record that carries one: the same bytes on the wire and in the store.
//!
//! ```text
//! version and kind u8 | n u64 | writer node u64 | writer start u32 | sequence u64 | value
//! ```
//! Integers are big-endian. The coordinator builds a record once; from there on it is shared.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::arena::Arena;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::{CACHED_RECORD_BYTES_MAX, CACHED_VALUE_BYTES_MAX, VALUE_HEAD_BYTES};
use quorate_kernel::mutant;
use serde::{Deserialize, Serialize};

/// Totally ordered and unique: `n` is one more than the highest the writer's quorum knew, the
/// writer carries its start, and no start uses a sequence number twice. Equal timestamps mean equal
/// values. (CATS §4.2 orders by `n` and the coordinator alone, which lets two puts of one
/// coordinator, or of its two starts, collide.)
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Ts {
    /// The counter.
    pub n: u64,
    /// Who wrote.
    pub writer: Incarnation,
    /// Which of the writer's operations.
    pub sequence: u64,
}

impl Ts {
    /// Below every write: the timestamp of a key that was never written.
    pub const ZERO: Ts =
        Ts { n: 0, writer: Incarnation { node: NodeId(0), start: Start(0) }, sequence: 0 };

    /// A timestamp above this one.
    #[must_use]
    pub fn next(self, writer: Incarnation, sequence: u64) -> Ts {
        let n = self.n.checked_add(1).expect("a key is written fewer than 2^64 times");
        if mutant!("timestamp_without_writer") {
            return Ts { n, ..Ts::ZERO };
        }
        Ts { n, writer, sequence }
    }
}

/// No honest writer gets this far; a higher counter in a message is refused, so that one faulty
/// peer cannot leave no room above a key's timestamp.
pub(super) const COUNTER_MAX: u64 = 1 << 62;
const TOMBSTONE: u8 = 0x10;
const VALUE: u8 = 0x11;
/// The bytes of a record before its value.
pub(super) const HEAD_BYTES: usize = 29;

const _: () = assert!(HEAD_BYTES <= VALUE_HEAD_BYTES, "a node keeps whole heads at hand");
const _: () = assert!(
    HEAD_BYTES + CACHED_VALUE_BYTES_MAX <= CACHED_RECORD_BYTES_MAX,
    "and whole records of values up to their bound"
);

/// What is known of a record without its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub ts: Ts,
    /// Whether the key has a value; a tombstone, or nothing at all, has none.
    pub live: bool,
}

impl Head {
    /// The head that stored bytes of a record begin with.
    pub fn stored(bytes: &[u8]) -> Head {
        let bytes: &[u8; HEAD_BYTES] = bytes.first_chunk().expect("a record has a whole head");
        let u64_at = |at: usize| {
            u64::from_be_bytes(*bytes[at..].first_chunk().expect("it lies within the head"))
        };
        let start = u32::from_be_bytes(*bytes[17..].first_chunk().expect("as above"));
        let writer = Incarnation { node: NodeId(u64_at(9)), start: Start(start) };
        Head { ts: Ts { n: u64_at(1), writer, sequence: u64_at(21) }, live: bytes[0] == VALUE }
    }
}

/// A value or a tombstone with its timestamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record(Bytes);

impl Record {
    /// Builds a record; no value makes a tombstone.
    pub fn new(ts: Ts, value: Option<&[u8]>) -> Record {
        let mut bytes = BytesMut::with_capacity(HEAD_BYTES + value.map_or(0, <[u8]>::len));
        bytes.put_slice(&head_bytes(ts, value.is_some()));
        bytes.put_slice(value.unwrap_or_default());
        Record(bytes.freeze())
    }

    /// The same, for a record that is soon dropped or copied.
    pub fn new_in(ts: Ts, value: Option<&[u8]>, arena: &mut Arena) -> Record {
        Record(arena.join(&[&head_bytes(ts, value.is_some()), value.unwrap_or_default()]))
    }

    /// A record of this head; one that has a value has an empty one.
    pub fn of_head(head: Head) -> Record {
        Record::new(head.ts, head.live.then_some(&b""[..]))
    }

    /// Takes bytes that came from a peer or the store.
    ///
    /// # Errors
    /// They are no record, or one that nobody can have written: counters begin at 1.
    pub fn from_bytes(bytes: Bytes) -> Result<Record, WireError> {
        Record::validate(&bytes).map(|()| Record(bytes))
    }

    /// Whether bytes are a record.
    ///
    /// # Errors
    /// As of [`Record::from_bytes`].
    pub fn validate(bytes: &[u8]) -> Result<(), WireError> {
        let counter = bytes.get(1..9).and_then(|n| n.first_chunk()).map(|n| u64::from_be_bytes(*n));
        match bytes.first() {
            _ if counter.is_some_and(|n| n == 0 || n > COUNTER_MAX) => {
                Err(WireError::Malformed { what: "counter" })
            }
            Some(&VALUE) if bytes.len() >= HEAD_BYTES => Ok(()),
            Some(&TOMBSTONE) if bytes.len() == HEAD_BYTES => Ok(()),
            _ => Err(WireError::Malformed { what: "record" }),
        }
    }

    /// Takes bytes that this engine stored.
    pub fn stored(bytes: Bytes) -> Record {
        Record::from_bytes(bytes).expect("the store returns the records that were put into it")
    }

    pub fn head(&self) -> Head {
        Head::stored(&self.0)
    }

    /// The value, shared with the record.
    pub fn value(&self) -> Option<Bytes> {
        (self.0[0] == VALUE).then(|| self.0.slice(HEAD_BYTES..))
    }

    /// The record's bytes without its value; a value's are those of an empty one.
    pub fn without_value(&self) -> Bytes {
        self.0.slice(..HEAD_BYTES)
    }

    pub fn bytes(&self) -> &Bytes {
        &self.0
    }
}

fn head_bytes(ts: Ts, live: bool) -> [u8; HEAD_BYTES] {
    let mut bytes = [0; HEAD_BYTES];
    let mut rest = &mut bytes[..];
    rest.put_u8(if live { VALUE } else { TOMBSTONE });
    rest.put_u64(ts.n);
    rest.put_u64(ts.writer.node.0);
    rest.put_u32(ts.writer.start.0);
    rest.put_u64(ts.sequence);
    assert!(rest.is_empty(), "these are all fields of a head");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_and_nonsense_is_refused() {
        let writer = Incarnation { node: NodeId(7), start: Start(3) };
        let ts = Ts::ZERO.next(writer, 9);
        for value in [None, Some(&b""[..]), Some(&b"value"[..])] {
            let record = Record::new(ts, value);
            let read = Record::from_bytes(record.bytes().clone()).expect("a record");
            assert_eq!(read.head(), Head { ts, live: value.is_some() });
            assert_eq!(read.value().as_deref(), value);
        }
        for bad in [&b""[..], &[VALUE; 28], &[0; 40], &[TOMBSTONE; 30]] {
            assert!(Record::from_bytes(Bytes::copy_from_slice(bad)).is_err());
        }
    }

    #[test]
    fn timestamps_of_two_starts_of_one_node_differ() {
        let start = |n| Incarnation { node: NodeId(1), start: Start(n) };
        let old = Ts::ZERO.next(start(1), 1);
        assert!(old < Ts::ZERO.next(start(2), 1));
        assert!(old < Ts::ZERO.next(start(1), 2));
        assert!(Ts::ZERO.next(start(9), 9) < old.next(start(1), 1));
    }
}
