//! Tests of the engine: frames, golden scripts, and hosts with disks and links, clients, and
//! schedules.

mod asked;
mod bounds;
mod customers;
mod followers;
mod frames;
mod golden;
mod hears;
mod judge;
mod late;
mod losses;
mod memory;
mod order;
mod primaries;
mod questions;
mod random;
mod readers;
mod replay;
mod seats;
mod sessions;
mod watches;
mod world;
