//! Engine: a linearizable tree of nodes with sessions, ephemeral nodes and watches.
//!
//! From C. E. Bezerra, F. Pedone, R. van Renesse, "Scalable State-Machine Replication" (DSN 2014):
//! its service Volery, with the words of ZooKeeper's clients. The tree is a deterministic machine
//! ([`tree`]) that the building block [`crate::smr`] replicates over one log ([`crate::vsr`]); the
//! process that a keyspace runs is its [`lane`].
//!
//! # Departures from the paper
//! - One partition: commands need no other partition's variables, so no signals are exchanged.
//! - Reads are no commands: they are answered by who leads when a majority has confirmed it after
//!   they were asked (read index). They cost no entry of the log and are linearizable all the same.
//! - Clients do not multicast: the host that a client is connected to numbers its commands, so that
//!   each takes effect once whoever leads.

pub mod lane;
mod rules;
pub mod tree;

pub use rules::{ENGINE, NODE_BYTES_MAX};
