//! A piece of what was given up, which is deleted in one step.

use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::limits::{SWEEP_BYTES_MAX, SWEEP_KEYS_MAX};
use quorate_kernel::mutant;

/// Keys that a scan has come to, at most [`SWEEP_KEYS_MAX`] and no more once they have
/// [`SWEEP_BYTES_MAX`] with their values.
#[derive(Debug, Default)]
pub struct Piece {
    keys: Vec<Bytes>,
    bytes: usize,
}

impl Piece {
    /// Takes a key, with the value that the scan has read as well. Whether there is room for more.
    pub fn take(&mut self, key: &[u8], value: &[u8]) -> bool {
        self.keys.push(Bytes::copy_from_slice(key));
        self.bytes += key.len() + value.len();
        !self.is_full()
    }

    /// Whether there is room for no more.
    #[must_use]
    pub fn is_full(&self) -> bool {
        let is_long = self.bytes >= SWEEP_BYTES_MAX && !mutant!("sweeps_by_number");
        self.keys.len() >= SWEEP_KEYS_MAX || is_long
    }

    /// The keys, in the order in which they came.
    #[must_use]
    pub fn into_keys(self) -> Vec<Bytes> {
        self.keys
    }
}
