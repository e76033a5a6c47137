//! Tests of the tree over several partitions.

mod judge;
mod load;
mod pair;
mod parts;
mod simulated;
