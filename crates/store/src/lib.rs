//! What a host keeps on disk, and the same contract over memory for the simulator.
//!
//! | module | what it holds |
//! |---|---|
//! | [`directory`] | a data directory: lock, format, identity, start counter |
//! | `access` | who may read it: its owner alone |
//! | [`identity`] | who a directory is |
//! | `mark` | the highest batch known to be synced, and what peers were seen to have synced |
//! | `journal` | reading the database's journals before the database does |
//! | `recovery` | what may be opened, what is cut off first, what is refused |
//! | [`log`] | group commit, the mark and the rule that a failed log stays failed |
//! | [`fjall_store`] | the store over fjall: the only module that knows it |
//! | [`memory`] | the store over memory, with crashes |
//! | [`error`] | why a directory is refused |
//!
//! # Opening
//! [`Directory::open`] locks the directory and raises its start counter; [`open`] then checks the
//! journals, cuts a torn tail, opens the database and compares what it recovered with what was
//! surely synced. A replica that forgets an acknowledged write breaks every quorum, so an open that
//! would have to forget one is refused. The limit of that promise is the last second: the mark is
//! rewritten once a second, also when nothing follows, and within that second only batches that a
//! later whole batch names as synced are known to have been.
//!
//! # The log is a seam
//! A host writes through [`quorate_kernel::storage::Log`] and reads through
//! [`quorate_kernel::storage::Reader`]. Inside, group commit and the mark are written once, over an
//! engine that only commits and persists. A log of its own, of preallocated and recycled files,
//! would be another engine: it appends to its file on commit, syncs that file on persist, and
//! feeds the database, whose journal is then switched off, behind it. Its own recovery replaces
//! `journal` and `recovery`; the damage table in the tests judges it.

mod access;
pub mod directory;
pub mod error;
mod files;
pub mod fjall_store;
pub mod identity;
mod journal;
pub mod log;
mod mark;
pub mod memory;
mod reclaim;
mod recovery;
mod start;
pub mod text;

pub use directory::{Directory, check_empty, create, identity_of};
pub use error::DirectoryError;
pub use fjall_store::{FjallLog, FjallReader, Opened, Options, Stats, open};
pub use identity::{HostRecord, Identity, Secret};
pub use log::{Clock, machine_clock};
pub use memory::{Crash, MemoryStore};
pub use recovery::Cut;
