//! Tests of the engine: frames, golden scripts, and hosts with disks and links, clients, and
//! schedules.

mod frames;
mod golden;
mod order;
mod sessions;
mod world;
