//! The doors of a node: pure codecs and sessions, client bytes in, operations out, outcomes in,
//! client bytes out.
//!
//! | module | what it holds |
//! |---|---|
//! | [`resp`] | the protocol of Redis clients, versions 2 and 3 |
//!
//! The crate is `no_std`: a door owns no socket, clock or thread, so the simulator drives the same
//! code as the server.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod resp;
