//! Groups at this host: the replica, its member, what others ask of it, who shall be in it,
//! and which tombstones it drops.

pub(super) mod gone;
pub(super) mod hosted;
pub(super) mod purge;
mod questions;
mod serve;
pub(super) mod wish;
