//! What a run asks for: which command on which key, and when.

pub(super) mod command;
pub(super) mod distribution;
pub(super) mod mixes;
pub(super) mod schedule;
