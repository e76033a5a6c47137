//! What the threads of a host tell the outside: counters, gauges, histograms and readiness.
//!
//! The core thread and the disk thread write, the admin thread reads. Nothing here takes a lock or
//! wakes a thread on the way of an operation: every cell is an atomic that exactly one thread
//! writes with a relaxed store, so that a reader sees some recent value and a writer never waits.
//! Slow steps of the disk thread are kept under a lock, which it takes for those alone.
//!
//! | module | what it holds |
//! |---|---|
//! | [`cell`] | [`Counter`], [`Gauge`], [`Histogram`]: one writer each |
//! | [`labels`] | the bounded label values: operation, ending, round, reason |
//! | [`keyspace`] | [`KeyspaceCells`]: those of one keyspace |
//! | [`door`] | [`DoorCells`]: those of one door of clients |
//! | [`peer`] | [`PeerCells`]: those of one other host |
//! | [`shared`] | [`Shared`]: all of a host's cells, and what rarely changes, behind one handle |

pub mod cell;
pub mod door;
pub mod keyspace;
pub mod labels;
pub mod peer;
pub mod shared;

pub use cell::{Counter, Gauge, Histogram};
pub use door::DoorCells;
pub use keyspace::KeyspaceCells;
pub use labels::{Ending, Kind, RejectReason};
pub use peer::PeerCells;
pub use shared::{OpenDoors, Shared, Stage};
