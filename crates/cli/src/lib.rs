//! The command line of Quorate, as the library under the binary `quorate`.
//!
//! | module | what it holds |
//! |---|---|
//! | [`verbs`] | what can be asked: one verb a file |
//! | [`exit`] | exit codes, and how a command fails |
//! | [`output`] | `--format`, tables, and bytes that may be no text |
//! | `owner` | whose a data directory is |
//! | [`client`] | one connection to a RESP door |
//! | [`dev`] | a cluster on this machine in one command |
//! | [`provision`] | the birth of a cluster: ids, keyspaces, one directory a host |
//! | [`config`] | the configuration of a host |
//! | [`logging`] | log lines |

pub mod client;
pub mod config;
pub mod dev;
pub mod exit;
pub mod logging;
pub mod output;
mod owner;
pub mod provision;
mod repeats;
pub mod verbs;

pub use verbs::run;
