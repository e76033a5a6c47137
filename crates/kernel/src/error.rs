//! The four kinds of failure: a refusal is a client's answer ([`crate::operation::Refusal`]), a
//! wire error is a peer's nonsense, a fatal error stops the node, a broken invariant panics.

use alloc::string::String;
use thiserror::Error;

/// A peer sent bytes that are not a message. The frame was dropped; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireError {
    /// The bytes end before the message does.
    #[error("truncated: {what}")]
    Truncated {
        /// What was being read.
        what: &'static str,
    },
    /// A length is above its limit; nothing was allocated for it.
    #[error("{what} of {length} bytes is over the limit of {limit}")]
    TooLong {
        /// What was being read.
        what: &'static str,
        /// The announced length.
        length: u64,
        /// The most that is taken.
        limit: u64,
    },
    /// The checksum does not match the bytes.
    #[error("checksum mismatch")]
    Checksum,
    /// A version this build does not speak.
    #[error("frame version {found}, this build speaks {expected}")]
    Version {
        /// The version in the frame.
        found: u8,
        /// The version of this build.
        expected: u8,
    },
    /// A field holds a value that no correct peer sends.
    #[error("malformed: {what}")]
    Malformed {
        /// What was wrong.
        what: &'static str,
    },
}

/// This node must stop: what its disk holds can no longer be trusted. Nothing after the failure was
/// acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fatal {
    /// A read, write or sync failed.
    #[error("disk failure: {0}")]
    Disk(String),
    /// Stored bytes are not what was written.
    #[error("corrupt data: {0}")]
    Corrupt(String),
}
