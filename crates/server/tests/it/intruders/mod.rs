//! The cluster door: what comes in from peers that are none, or that send nonsense.

mod door;
mod forged;
pub(super) mod intruder;
mod peers;
