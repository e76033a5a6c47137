//! The data directory: who may open it, whose it is, and what it says of the starts before.
//!
//! | file | what it holds |
//! |---|---|
//! | `directory.rs` | the lock, the format, and how one is made and opened |
//! | `access.rs` | who may read it: its owner alone |
//! | `identity.rs` | who it is |
//! | `text.rs` | records of an identity as texts |
//! | `start.rs` | the start counter |
//! | `mark.rs` | the highest batch known to be synced, and what peers were seen to have synced |
//! | `files.rs` | files that are the old one or the new one after a crash |
//! | `error.rs` | why one is refused |

pub(super) mod access;
pub mod directory;
pub mod error;
pub(super) mod files;
pub mod identity;
pub(super) mod mark;
mod start;
pub mod text;
