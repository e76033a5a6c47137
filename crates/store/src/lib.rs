//! What a host keeps on disk, and the same contract over memory for the simulator.
//!
//! | module | what it holds |
//! |---|---|
//! | [`directory`] | a data directory: lock, format, identity, start counter |
//! | `access` | who may read it: its owner alone |
//! | [`identity`] | who a directory is |
//! | `mark` | the highest batch known to be synced, and what peers were seen to have synced |
//! | [`log`] | group commit, the mark and the rule that a failed log stays failed |
//! | `group` | groups of batches as they lie in a segment: encoding and decoding alone |
//! | `segments` | the log's files: preallocated and recycled |
//! | `chain` | reading the log at a start |
//! | `recovery` | what may be opened, what is cut off first, what is refused |
//! | `wal` | the write path: segments, memtables, the thread that writes tables |
//! | `memtable` | what was applied and is not in the tables yet |
//! | `backlog` | what lies between the two threads: full memtables, free segments |
//! | `trimmed` | where logs begin: entries that are given up |
//! | `tables` | the tables, over fjall |
//! | `reclaim` | space that deleted records take |
//! | [`store`] | opening all of it, and reading |
//! | [`memory`] | the store over memory, with crashes |
//! | [`error`] | why a directory is refused |
//!
//! # Opening
//! [`Directory::open`] locks the directory and raises its start counter; [`open`] then reads the
//! log, erases a torn tail, opens the tables and compares what they hold together with what was
//! surely synced. A replica that forgets an acknowledged write breaks every quorum, so an open that
//! would have to forget one is refused. The limit of that promise is the last second: the mark is
//! rewritten once a second, also when nothing follows, and within that second only batches that a
//! later whole group names as synced are known to have been.
//!
//! # A write
//! A host writes through [`quorate_kernel::storage::Log`] and reads through
//! [`quorate_kernel::storage::Reader`]. A group of batches is one write to the log's present
//! segment and one sync of it, of blocks that were there before. Then it is in a memtable, which
//! reads see. A full memtable becomes a table on a thread of its own, and segments are used again
//! when the tables have what they hold. Nobody outruns that: whoever writes waits while two full
//! memtables do, or no segment is left.

mod access;
mod backlog;
mod chain;
pub mod directory;
pub mod error;
mod files;
mod group;
pub mod identity;
pub mod log;
mod mark;
pub mod memory;
mod memtable;
mod reclaim;
mod recovery;
mod segments;
mod start;
pub mod store;
mod tables;
pub mod text;
mod trimmed;
mod wal;

pub use directory::{Directory, check_empty, create, identity_of};
pub use error::DirectoryError;
pub use identity::{HostRecord, Identity, Secret};
pub use log::{Clock, machine_clock};
pub use memory::{Crash, MemoryStore};
pub use recovery::Cut;
pub use store::{Opened, Options, Stats, StoreLog, StoreReader, open};
pub use wal::STORE_KEY_BYTES_MAX;
