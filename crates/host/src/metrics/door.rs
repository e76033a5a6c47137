//! The cells of one door of clients. Written by the core thread.

use super::cell::{Counter, Gauge};
use std::net::SocketAddr;

/// What a door of clients on the core thread counts.
#[derive(Debug)]
pub struct DoorCells {
    /// The door: the label `door`.
    pub name: &'static str,
    /// Where it listens, as the operating system gave it.
    pub address: SocketAddr,
    /// Clients connected.
    pub clients: Gauge,
    /// Bytes that they take of their budget.
    pub clients_bytes: Gauge,
    /// Clients accepted since the start.
    pub accepted: Counter,
}

impl DoorCells {
    /// The cells of a door that has just been opened.
    #[must_use]
    pub fn new(name: &'static str, address: SocketAddr) -> DoorCells {
        let (clients, clients_bytes) = (Gauge::default(), Gauge::default());
        DoorCells { name, address, clients, clients_bytes, accepted: Counter::default() }
    }
}
