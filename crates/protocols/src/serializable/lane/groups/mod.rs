//! Groups at this host: the replica, its member, what others ask of it, and who shall be in it.

pub(super) mod gone;
pub(super) mod hosted;
mod questions;
mod serve;
pub(super) mod wish;
