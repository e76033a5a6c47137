//! The cells of one other host.

use super::cell::{Counter, Gauge};
use super::shared::Shared;
use quorate_kernel::ids::NodeId;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// The cells of one other host. Written by the core thread.
#[derive(Debug)]
pub struct PeerCells {
    host: AtomicU32,
    /// Its node.
    pub node: NodeId,
    address: Mutex<String>,
    trouble: Mutex<String>,
    up: AtomicBool,
    /// Frames not sent because its queue was full or it was away.
    pub frames_dropped: Counter,
    /// Bytes that wait in its queue.
    pub queued_bytes: Gauge,
}

impl PeerCells {
    /// The cells of a peer that is not connected.
    #[must_use]
    pub fn new(host: u32, node: NodeId, address: &str) -> PeerCells {
        PeerCells {
            host: AtomicU32::new(host),
            node,
            address: Mutex::new(address.to_owned()),
            trouble: Mutex::default(),
            up: AtomicBool::new(false),
            frames_dropped: Counter::default(),
            queued_bytes: Gauge::default(),
        }
    }

    /// The host's number; 0 if it is not known.
    #[must_use]
    pub fn host(&self) -> u32 {
        self.host.load(Ordering::Relaxed)
    }

    /// It is called by another number from now on; the one before.
    pub fn set_host(&self, number: u32) -> u32 {
        self.host.swap(number, Ordering::Relaxed)
    }

    /// Whether it has completed a handshake and is connected.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.up.load(Ordering::Relaxed)
    }

    /// It came or went. Costs one load when nothing changed.
    pub fn set_up(&self, shared: &Shared, is_up: bool) {
        shared.change(&self.up, is_up);
    }

    /// What it is called where names are short: its number if it is known, its node if not.
    #[must_use]
    pub fn label(&self) -> String {
        match self.host() {
            0 => self.node.to_string(),
            number => number.to_string(),
        }
    }

    /// Where it is looked for.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It moved. Takes a lock; addresses change rarely.
    pub fn set_address(&self, address: &str) {
        address.clone_into(&mut self.address.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Why it was turned away last, or is not connected; empty if there is nothing to tell.
    #[must_use]
    pub fn trouble(&self) -> String {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It was turned away or not reached, or no longer. Takes a lock; handshakes are rare.
    pub fn set_trouble(&self, why: &str) {
        why.clone_into(&mut self.trouble.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
