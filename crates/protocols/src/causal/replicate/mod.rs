//! What a replica holds and how it is kept small: its clock, its objects with their contexts, and
//! the names of writes.

pub(crate) mod dot_log;
pub mod names;
mod past;
pub mod replica;
pub(crate) mod strip;
mod sweep;
pub(crate) mod twins;
pub mod unstripped;
pub(crate) mod version_cache;
