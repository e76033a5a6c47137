//! Tests of the parts together, in a small world of groups.

mod acts;
mod codec;
mod customers;
mod format;
mod golden;
pub(super) mod judge;
mod lanes;
mod lies;
mod node;
mod random;
mod replicated;
mod traps;
pub(super) mod world;
