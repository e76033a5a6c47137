//! The write-ahead log: how it is written, read at a start, and refused where it would forget.
//!
//! | file | what it holds |
//! |---|---|
//! | `log.rs` | group commit, the mark and the rule that a failed log stays failed |
//! | `write.rs` | the write path: segments, memtables, the thread that writes tables |
//! | `group.rs` | groups of batches as they lie in a segment: encoding and decoding alone |
//! | `segments.rs` | the files: preallocated and recycled |
//! | `chain.rs` | reading the log at a start |
//! | `recovery.rs` | what may be opened, what is cut off first, what is refused |
//! | `trimmed.rs` | where logs begin: entries that are given up |

pub(super) mod chain;
pub(super) mod group;
pub mod log;
pub(super) mod recovery;
pub(super) mod segments;
pub(super) mod trimmed;
pub(super) mod write;
