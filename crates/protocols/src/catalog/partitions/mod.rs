//! Who holds the partitions of a keyspace: at first, when hosts leave, and when hosts join.

mod columns;
pub(super) mod levelling;
pub mod moves;
pub mod seats;
