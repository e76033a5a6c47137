//! Judges: one promise a file.

pub mod atomic;
pub mod catalog;
pub mod counters;
pub mod durability;
pub mod newest;
pub mod places;
pub mod scan;
pub mod siblings;
pub mod transactions;
pub mod tree;
