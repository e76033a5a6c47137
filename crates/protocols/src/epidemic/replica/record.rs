//! Records: versions of keys with their values, as they are told, known and listed.

use super::version::{RequestId, Version};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A version of a key, as it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The key's wire form.
    pub key: Bytes,
    /// Which version.
    pub version: Version,
    /// The request that wrote it.
    pub id: RequestId,
    /// The value; none of a tombstone.
    pub value: Option<Bytes>,
}

/// What is known in memory of a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Which version.
    pub version: Version,
    /// The request that wrote it.
    pub id: RequestId,
    /// The hash of the value.
    pub hash: u64,
    /// Whether it is a tombstone.
    pub is_deleted: bool,
}

/// A version of a key as members list it to each other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The key's wire form.
    pub key: Bytes,
    /// Which version.
    pub version: Version,
    /// Of a version that a client has chosen the hash of its value: the larger one wins. 0 of one
    /// that an event names, which has one value.
    pub rank: u64,
}

impl Held {
    /// What decides between two values of this version.
    pub(super) fn rank(&self) -> u64 {
        match self.version {
            Version::Explicit(_) => self.hash,
            Version::Ordered(_) => 0,
        }
    }
}
