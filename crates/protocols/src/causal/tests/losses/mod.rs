//! Data that was lost, and actors that are gone with it.

pub(super) mod closing;
mod dropped;
mod lost;
mod refill;
mod witnesses;
