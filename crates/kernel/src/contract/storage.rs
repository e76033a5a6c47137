//! What may be read and written, and when it is durable.
//!
//! A lane owns three classes of bytes. **State** is protocol state (views, promises, status):
//! always synced, whatever the keyspace's durability. **Data** follows the keyspace's level, and so
//! do the entries of **logs** ([`crate::entries`]), which are given up from the first on without a
//! delete of each. The node turns all of it into batches; the host's disk thread commits a batch,
//! syncs, and reports what is durable.

use crate::error::Fatal;
use crate::ids::{LaneId, Lsn};
use crate::limits::VALUE_HEAD_BYTES;
use crate::time::Span;
use alloc::vec::Vec;
use bytes::{BufMut, Bytes, BytesMut};
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// How durable a keyspace's data is before a frame that depends on it leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Durability {
    /// Synced to disk.
    #[default]
    Sync,
    /// Handed to the operating system; synced once in this many milliseconds.
    Periodic {
        /// The longest time between two syncs.
        every_ms: u32,
    },
    /// Never written. A node that restarts forgets the lane and refills it from the others.
    Memory,
}

impl Durability {
    /// The sync interval of the periodic level.
    #[must_use]
    pub fn every(&self) -> Option<Span> {
        match self {
            Durability::Periodic { every_ms } => Some(Span::millis(u64::from(*every_ms))),
            _ => None,
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Durability::Sync => f.write_str("sync"),
            Durability::Periodic { every_ms } => write!(f, "periodic={every_ms}ms"),
            Durability::Memory => f.write_str("memory"),
        }
    }
}

impl FromStr for Durability {
    type Err = &'static str;

    /// Reads `sync`, `memory`, `periodic` (50 ms) or `periodic=20ms`.
    fn from_str(text: &str) -> Result<Durability, &'static str> {
        const EXPECTED: &str =
            "expected `sync`, `memory`, `periodic` or `periodic=50ms` (1ms to 60000ms)";
        match text {
            "sync" => return Ok(Durability::Sync),
            "memory" => return Ok(Durability::Memory),
            "periodic" => return Ok(Durability::Periodic { every_ms: 50 }),
            _ => {}
        }
        let number = text.strip_prefix("periodic=").and_then(|rest| rest.strip_suffix("ms"));
        match number.and_then(|digits| digits.parse().ok()) {
            Some(every_ms @ 1..=60_000) => Ok(Durability::Periodic { every_ms }),
            _ => Err(EXPECTED),
        }
    }
}

/// The classes of a lane's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// Protocol state: always synced.
    State = 0,
    /// Data: as durable as the keyspace promises.
    Data = 1,
    /// Entries of logs: as durable as data. Their keys are those of [`crate::entries`].
    Log = 2,
}

/// The one with the highest number.
pub const CLASS_LAST: Class = Class::Log;

/// What a lane's keys of a class begin with in the store: lane (4, big-endian), class (1).
#[must_use]
pub fn store_prefix(lane: LaneId, class: Class) -> [u8; 5] {
    let [a, b, c, d] = lane.0.to_be_bytes();
    [a, b, c, d, class as u8]
}

/// The bytes of a lane's key in the store: the prefix of its class, then the key.
#[must_use]
pub fn store_key(lane: LaneId, class: Class, key: &[u8]) -> Bytes {
    let prefix = store_prefix(lane, class);
    let mut bytes = BytesMut::with_capacity(prefix.len() + key.len());
    bytes.put_slice(&prefix);
    bytes.put_slice(key);
    bytes.freeze()
}

/// The first bytes of a value: [`VALUE_HEAD_BYTES`], or all that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueHead {
    bytes: [u8; VALUE_HEAD_BYTES],
    length: u8,
}

impl ValueHead {
    /// The head of a value.
    #[must_use]
    pub fn of(value: &[u8]) -> ValueHead {
        let length = value.len().min(VALUE_HEAD_BYTES);
        let mut bytes = [0; VALUE_HEAD_BYTES];
        bytes[..length].copy_from_slice(&value[..length]);
        ValueHead { bytes, length: length as u8 }
    }

    /// As many of the value as the head keeps; not those that fill it up.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// The key behind the last one that a lane can have in a class.
#[must_use]
pub fn store_end(lane: LaneId, class: Class) -> [u8; 5] {
    let mut end = store_prefix(lane, class);
    end[4] += 1;
    end
}

/// One write of a batch; `None` deletes. One of a log's own key moves the first entry of the log
/// up: see [`crate::entries`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The whole key, as [`store_key`] builds it.
    pub key: Bytes,
    /// The value, or `None` to delete. It is memory of its own, not a part of something larger:
    /// the store keeps it as long as it likes without a copy.
    pub value: Option<Bytes>,
}

/// The writes of one turn of a node, applied atomically and in the order of their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Rises by one with each batch of a start.
    pub lsn: Lsn,
    /// Whether anything in it must be synced before it is reported durable at level `sync`.
    pub must_sync: bool,
    /// The writes, in order; a later write of a key wins.
    pub writes: Vec<Write>,
}

impl Batch {
    /// Bytes of keys and values.
    #[must_use]
    pub fn size(&self) -> usize {
        self.writes.iter().map(|w| w.key.len() + w.value.as_ref().map_or(0, Bytes::len)).sum()
    }
}

/// How far the log has come. `synced <= written` always.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Durable {
    /// Everything up to here was handed to the operating system and is visible to reads.
    pub written: Lsn,
    /// Everything up to here survives a loss of power.
    pub synced: Lsn,
}

/// Reads of committed batches. Implemented by the store over fjall and by the memory store.
pub trait Reader {
    /// The value of a key.
    ///
    /// # Errors
    /// [`Fatal`] when the disk fails or holds what was not written; the node must stop.
    fn get(&self, key: &[u8]) -> Result<Option<Bytes>, Fatal>;

    /// Calls `each` with every pair whose key is in `from..to`, ascending, until it returns false.
    ///
    /// # Errors
    /// [`Fatal`] when the disk fails or holds what was not written; the node must stop.
    fn scan(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&Bytes, &Bytes) -> bool,
    ) -> Result<(), Fatal>;
}

/// A store that has nothing.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Reader for Nothing {
    fn get(&self, _key: &[u8]) -> Result<Option<Bytes>, Fatal> {
        Ok(None)
    }

    fn scan(
        &self,
        _from: &[u8],
        _to: &[u8],
        _each: &mut dyn FnMut(&Bytes, &Bytes) -> bool,
    ) -> Result<(), Fatal> {
        Ok(())
    }
}

/// The write path, owned by one thread. `apply` then `sync` is one group commit.
pub trait Log {
    /// Applies batches in order, atomically each: visible to reads and handed to the operating
    /// system when it returns. Their numbers must follow the last one's without a gap.
    ///
    /// # Errors
    /// [`Fatal`]; the host must stop, nothing of these batches may be acknowledged.
    fn apply(&mut self, batches: &[Batch]) -> Result<(), Fatal>;

    /// Makes everything applied so far survive a loss of power.
    ///
    /// # Errors
    /// [`Fatal`]; the host must stop. A failed sync is never tried again.
    fn sync(&mut self) -> Result<(), Fatal>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn durability_reads_what_it_prints() {
        for text in ["sync", "memory", "periodic=50ms", "periodic=1ms"] {
            assert_eq!(text.parse::<Durability>().map(|d| d.to_string()), Ok(text.to_string()));
        }
        for text in ["", "periodic=0ms", "periodic=70000ms", "periodic=5s", "fsync"] {
            assert!(text.parse::<Durability>().is_err(), "{text}");
        }
    }
}
