//! Tests of the engine: messages, golden scripts, and hosts with disks and links, clients, and
//! schedules.

mod ahead;
mod golden;
mod here;
mod late;
mod losses;
mod memory;
mod messages;
mod order;
mod primaries;
mod questions;
mod random;
mod readers;
mod room;
mod seats;
mod sessions;
mod watches;
mod world;
