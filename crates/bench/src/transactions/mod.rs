//! YCSB's mixes in transactions of several operations, through the native client: what SCONEKV's
//! paper loads its stores with (§6.1).
//!
//! The keys and their first values are those that [`run`](crate::run) loads. Each client asks for
//! one transaction after the other. One that fails since others have changed what it has read is
//! an abort: it is counted, and not tried again.
//!
//! | file | idea |
//! |---|---|
//! | `draws` | which operations the next transaction has |
//! | `gathering` | what a client reads, and what its commit rests on |
//! | `config`, `report` | what to run, and what was found |
//! | `floor` | what clients share: counts, and when it is over |
//! | `client` | who asks |
//! | `run` | from the first connection to the report |

mod client;
pub(super) mod config;
pub(super) mod draws;
mod floor;
pub(super) mod gathering;
pub(super) mod report;
pub(super) mod run;
