//! What a member of a group does with its part of the data: it answers coordinators and those
//! that lack data, compares with other members, removes tombstones, weighs what it holds.

pub(crate) mod compare;
pub(crate) mod digest;
pub(crate) mod load;
pub(crate) mod purge;
pub(crate) mod purge_answers;
pub(crate) mod replica;
mod restore;
pub(crate) mod serve;
pub(crate) mod sweep;
pub(crate) mod tombstones;
pub(crate) mod weigh;
