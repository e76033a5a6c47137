//! Rules that measure: what is over a limit must be in a list of exceptions, which only shrinks.

pub(super) mod asserts;
pub(super) mod lengths;
pub(super) mod names;
pub(super) mod ratchet;
pub(super) mod worlds;
