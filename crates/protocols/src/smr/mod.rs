//! Building block: a deterministic machine that somebody else writes, replicated.
//!
//! From C. E. Bezerra, F. Pedone, R. van Renesse, "Scalable State-Machine Replication" (DSN 2014):
//! what is here is its library Eyrie for one partition. A [`Machine`] says what a command does to
//! objects; [`Replicated`] executes commands as the log of a [`crate::vsr::Replica`] brings them.
//! Application code sees no clock, no random source, no message and no disk.
//!
//! # Promise
//! All replicas have the same objects after the same entries. A command takes effect once, however
//! often its client sends it, and is answered the same ([`clients`]); or with less, if the machine
//! does not want its answers in the state and nobody knows this one any more ([`answers`]).
//!
//! # How a machine is written
//! - Its state is objects under keys, in the order of keys. [`Execution`] reads them as the command
//!   finds them, with what it has written itself, and keeps what it writes apart until the command
//!   ends: a machine that finds out late that nothing is to be done throws that away.
//! - The time is a field of the entry, never before that of the entry before it.
//! - What it does may depend on nothing else. The order of a hash map, an address, a float, the
//!   text of a foreign error: all of them differ between two replicas some day.
//! - What it tells beside the reply, its *changes*, is numbered, and kept for a while by every
//!   replica: whoever follows them goes on at another one behind the last that it has.
//!
//! # Copies
//! A command may read any object, so the objects must be of one entry: fuzzy copies would be wrong.
//! While a copy is under way, each replica that gives one keeps what was changed since, as it was
//! ([`copies`]). What is stored is of one entry too: it is written in one batch.
//!
//! # Known limits
//! - All objects are in memory.
//! - One partition. Commands of several, with signals and variables (the paper's §IV), are in
//!   [`partitioned`], for machines of another trait. [`hosted`] has them on real logs and disks; no
//!   engine stands on that yet.
//!
//! | file | what it holds |
//! |---|---|
//! | `machine.rs` | what somebody writes |
//! | `execution.rs` | what a command sees, and leaves |
//! | `entry.rs` | what one entry of the log carries |
//! | `early.rs` | entries that were read and not executed yet |
//! | `clients.rs` | each command once |
//! | `answers.rs` | whole answers of which the state keeps less |
//! | `changes.rs` | what was told lately |
//! | `copies.rs` | objects as they were |
//! | `replicated.rs` | all of it, as the log's machine |
//! | `keys.rs` | what is stored |
//! | `partitioned/` | a machine whose objects are spread over partitions |
//! | `hosted/` | what a host has of one: rings, replicas, what is stored and sent |
//! | `sized.rs` | data as bytes |

mod answers;
mod changes;
mod clients;
mod copies;
mod early;
mod entry;
mod execution;
pub mod hosted;
mod keys;
mod machine;
pub mod partitioned;
mod replicated;
mod sized;
#[cfg(test)]
pub(crate) mod tests;

pub use answers::ANSWERS_BYTES_MAX;
pub use changes::{Changes, Numbered};
pub use clients::Client;
pub use entry::{COMMANDS_MAX, Entry, Origin, Part};
pub use execution::{Execution, Objects};
pub use keys::OBJECT_KEY_BYTES_MAX;
pub use machine::Machine;
pub use replicated::{Executed, Replicated};
pub(crate) use sized::sized;
