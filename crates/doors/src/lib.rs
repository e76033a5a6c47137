//! The doors of a node: pure codecs and sessions, client bytes in, operations out, outcomes in,
//! client bytes out.
//!
//! | module | what it holds |
//! |---|---|
//! | [`door`] | the seam: what a client protocol and a host owe each other |
//! | [`events`] | what has happened in the cluster, as text |
//! | [`host`] | what a door knows of its host |
//! | [`resp`] | the protocol of Redis clients, versions 2 and 3 |
//! | [`zookeeper`] | the protocol of ZooKeeper's clients |
//!
//! The crate is `no_std`: a door owns no socket, clock or thread, so the simulator drives the same
//! code as the server.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod door;
pub mod events;
pub mod host;
pub mod resp;
pub mod zookeeper;

pub use door::{Connected, Door, Opening, Protocol, Requests, Session, Shortage};
pub use host::{Clock, Facts, Identity, NoFacts, Serving, Stored};

/// The client protocols of this build: the one list of them.
pub const DOORS: &[&Door] = &[&resp::DOOR, &zookeeper::DOOR];
