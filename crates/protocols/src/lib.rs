//! Every protocol: pure, deterministic state machines over the kernel's contract.
//!
//! Building blocks come first, then the engines; an engine imports the kernel and building blocks,
//! never another engine.
//!
//! | module | what it is |
//! |---|---|
//! | [`quorum`] | consistent quorums as pure functions |
//! | [`placement`] | which nodes should hold a range, and the next step there |
//! | [`reconfigure`] | consensus on the next view of a group |
//! | [`linearizable`] | engine: every key an atomic register (CATS) |
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod linearizable;
pub mod placement;
pub mod quorum;
pub mod reconfigure;
#[cfg(test)]
mod testing;
