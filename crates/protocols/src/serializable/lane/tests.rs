//! Tests of the lane: hosts with disks and links, clients, and schedules of all that can happen.

mod altered;
mod changes;
mod copies;
mod ended;
mod expiry;
mod frames;
mod halves;
mod left;
mod lies;
mod moves;
mod promises;
mod random;
mod read_only;
mod seats;
mod traps;
mod world;
