//! Faults: hosts that are killed, disks that fail, and mistakes of clients and operators.

mod badinput;
mod bank;
mod disks;
mod identity;
mod killed;
pub(super) mod mishaps;
mod refill;
