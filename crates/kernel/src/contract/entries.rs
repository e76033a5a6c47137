//! Logs in the store: entries of a lane that are read by their place and given up from the first
//! on, as a replicated log is once a state machine has stored what its entries did.
//!
//! | key in [`Class::Log`](crate::storage::Class::Log) | value | what a write of it does |
//! |---|---|---|
//! | log u64, index u64 | the entry | puts it; without a value, deletes it |
//! | log u64 | index u64 | gives up all entries before that index, for good |
//!
//! Integers are big-endian. A scan shows entries alone; the log's own key reads as the index before
//! which entries were given up, if ever any were. A write of the second kind is one write however
//! many entries it gives up, and leaves nothing behind for each: the store remembers where the log
//! begins, shows nothing before that, and drops what lies there when it writes tables or merges
//! them. An index that is not above that of an earlier trim changes nothing. No entry may be
//! written before the first: a node whose lane does that ends. Where a log
//! begins is never forgotten: of a lane that is dropped the store remembers that its logs begin
//! behind all entries, 20 bytes a log.

use crate::ids::{LaneId, LogId, LogIndex};
use crate::storage::{Class, Write, store_key};
use bytes::{BufMut, Bytes, BytesMut};

const LOG_BYTES: usize = 8;
const ENTRY_BYTES: usize = 16;
/// Bytes of a whole key before that of the class: lane, class.
const PREFIX_BYTES: usize = 5;

/// What a key of the class is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A log as a whole: where it begins.
    Log(LogId),
    /// What a log has at an index.
    Entry(LogId, LogIndex),
}

/// The key of an entry.
#[must_use]
pub fn key(log: LogId, index: LogIndex) -> Bytes {
    let mut bytes = BytesMut::with_capacity(ENTRY_BYTES);
    bytes.put_u64(log.0);
    bytes.put_u64(index.0);
    bytes.freeze()
}

/// The key of a log itself.
#[must_use]
pub fn log_key(log: LogId) -> Bytes {
    Bytes::copy_from_slice(&log.0.to_be_bytes())
}

/// The value by which a log's own key gives up what is before `first`.
#[must_use]
pub fn trim(first: LogIndex) -> Bytes {
    Bytes::copy_from_slice(&first.0.to_be_bytes())
}

/// What a key of the class is about; nothing if it is none.
#[must_use]
pub fn place(key: &[u8]) -> Option<Place> {
    let log = LogId(u64::from_be_bytes(key.get(..LOG_BYTES)?.try_into().ok()?));
    match key.len() {
        LOG_BYTES => Some(Place::Log(log)),
        ENTRY_BYTES => Some(Place::Entry(log, first(&key[LOG_BYTES..])?)),
        _ => None,
    }
}

/// The index in the value of a log's own key.
#[must_use]
pub fn first(value: &[u8]) -> Option<LogIndex> {
    value.try_into().ok().map(|bytes| LogIndex(u64::from_be_bytes(bytes)))
}

/// Whether a whole key is of this class.
#[must_use]
pub fn is_of_log(store_key: &[u8]) -> bool {
    store_key.get(PREFIX_BYTES - 1) == Some(&(Class::Log as u8))
}

/// The lane of a whole key of this class and what the key is about; nothing if it is none.
#[must_use]
pub fn store_place(store_key: &[u8]) -> Option<(LaneId, Place)> {
    if !is_of_log(store_key) {
        return None;
    }
    let (lane, rest) = store_key.split_at_checked(PREFIX_BYTES)?;
    let lane = u32::from_be_bytes(lane[..4].try_into().expect("four bytes of five"));
    place(rest).map(|place| (LaneId(lane), place))
}

/// Whether the store takes a write: any but one of this class that is none of the table above.
#[must_use]
pub fn is_sound(write: &Write) -> bool {
    if !is_of_log(&write.key) {
        return true;
    }
    match (store_place(&write.key), &write.value) {
        (Some((_, Place::Log(_))), Some(value)) => first(value).is_some(),
        (Some((_, Place::Entry(_, index))), _) => index < LogIndex(u64::MAX),
        _ => false,
    }
}

/// The write that gives up all that a log of a lane has or will ever have.
#[must_use]
pub fn end_of_log(lane: LaneId, log: LogId) -> Write {
    let key = store_key(lane, Class::Log, &log_key(log));
    Write { key, value: Some(trim(LogIndex(u64::MAX))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_say_what_they_are_about_and_lie_in_the_order_of_entries() {
        let places = [(1, 0), (1, 1), (1, 256), (2, 0), (256, 0)];
        let keys = places.map(|(log, index)| key(LogId(log), LogIndex(index)));
        assert!(keys.is_sorted());
        for ((log, index), key) in places.into_iter().zip(keys) {
            assert_eq!(place(&key), Some(Place::Entry(LogId(log), LogIndex(index))));
            assert!(log_key(LogId(log)) < key, "a log's own key is before its entries");
            let whole = store_key(LaneId(7), Class::Log, &key);
            let entry = Place::Entry(LogId(log), LogIndex(index));
            assert_eq!(store_place(&whole), Some((LaneId(7), entry)));
        }
        assert_eq!(place(&log_key(LogId(9))), Some(Place::Log(LogId(9))));
        assert_eq!(first(&trim(LogIndex(9))), Some(LogIndex(9)));
        assert_eq!(store_place(&store_key(LaneId(7), Class::Data, &log_key(LogId(9)))), None);
    }

    #[test]
    fn what_is_no_key_of_a_log_is_no_sound_write() {
        let write = |class, key: &[u8], value: Option<&'static [u8]>| Write {
            key: store_key(LaneId(7), class, key),
            value: value.map(Bytes::from_static),
        };
        assert!(is_sound(&write(Class::Data, b"k", None)));
        assert!(is_sound(&write(Class::Log, &[0; 16], None)));
        assert!(is_sound(&write(Class::Log, &[0; 8], Some(&[0; 8]))));
        assert!(is_sound(&end_of_log(LaneId(7), LogId(3))));
        let refused: [(&[u8], Option<&'static [u8]>); 6] = [
            (b"k", Some(b"v")),
            (&[0xff; 16], Some(b"v")),
            (&[0; 8], None),
            (&[0; 8], Some(&[0; 7])),
            (&[0; 17], Some(&[])),
            (&[], Some(&[0; 8])),
        ];
        for (key, value) in refused {
            assert!(!is_sound(&write(Class::Log, key, value)), "{key:?} {value:?}");
        }
    }
}
