//! Tests of the engine: frames, golden scripts, and hosts with disks and links, clients, and
//! schedules.

mod asked;
mod bounds;
mod frames;
mod golden;
mod hears;
mod memory;
mod order;
mod sessions;
mod world;
