//! Damage: what a store does that finds its files changed, cut off or gone.

mod database;
pub(super) mod log;
pub(super) mod recycling;
mod spoilt;
