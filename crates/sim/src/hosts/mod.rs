//! Hosts and what they stand on: clocks, disks, the network between them, and the one event queue.

pub mod clock;
pub mod delay;
pub mod disk;
pub mod host;
pub mod machines;
pub mod memory;
pub mod net;
pub mod queue;
