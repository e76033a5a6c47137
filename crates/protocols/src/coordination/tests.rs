//! Tests of the engine: golden scripts, and hosts with disks and links, clients, and schedules.

mod golden;
mod late;
mod losses;
mod order;
mod readers;
mod sessions;
mod world;
