//! Tests of the tree over several partitions.

pub(crate) mod judge;
pub(crate) mod load;
mod pair;
mod parts;
mod simulated;
