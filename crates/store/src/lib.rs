//! What a host keeps on disk, and the same contract over memory for the simulator.
//!
//! | module | what it holds |
//! |---|---|
//! | `data_directory` | a data directory: lock, format, start counter, mark |
//! | [`directory`], [`identity`], [`text`] | of it: opening one; who it is, also as text |
//! | [`error`] | of it: why one is refused |
//! | `wal` | the write-ahead log: its files, and what is read of them at a start |
//! | [`log`] | of it: group commit, and the rule that a failed log stays failed |
//! | `tables` | memtables, and the tables over fjall |
//! | [`store`] | opening all of it, and reading |
//! | [`slow`] | what the thread that writes did when it was slow |
//! | [`memory`] | the store over memory, with crashes |
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

mod data_directory;
pub mod memory;
pub mod slow;
pub mod store;
mod tables;
mod wal;

pub use data_directory::{directory, error, identity, text};
pub use wal::log;

pub use data_directory::access::create_directory;
pub use directory::{Directory, check_empty, create, identity_of};
pub use error::DirectoryError;
pub use identity::{HostRecord, Identity, Secret};
pub use log::{Clock, machine_clock};
pub use memory::{Crash, MemoryStore};
pub use slow::{SlowStep, SlowSteps, Step};
pub use store::{Opened, Options, Stats, StoreLog, StoreReader, open};
pub use wal::recovery::Cut;
pub use wal::write::STORE_KEY_BYTES_MAX;
