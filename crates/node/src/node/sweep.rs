//! What dropped lanes have left in the store: deleted in pieces, after all that they wrote has
//! reached it, and of each log at once.
//!
//! A node that stops before it is done begins again at its next start, since the catalog names
//! every lane that was ever dropped.

use super::Node;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::entries::{self, Place};
use quorate_kernel::ids::{LaneId, LogId, Lsn};
use quorate_kernel::limits::{SWEEP_BYTES_MAX, SWEEP_KEYS_MAX};
use quorate_kernel::storage::{CLASS_LAST, Class, Write, store_end, store_key};

/// What dropped lanes have left behind.
#[derive(Default)]
pub(super) struct Sweep {
    /// The lanes, each with the batch after which nothing more of it is written, and how far it is
    /// swept.
    lanes: VecDeque<(LaneId, Lsn, Bytes)>,
    /// Every lane that was ever put there in this start.
    seen: BTreeSet<LaneId>,
}

impl Sweep {
    /// Takes in that a lane was dropped; what it wrote is in batches up to this one.
    pub(super) fn add(&mut self, lane: LaneId, batch: Lsn) {
        if self.seen.insert(lane) {
            self.lanes.push_back((lane, batch, store_key(lane, Class::State, &[])));
        }
    }
}

impl Node {
    /// Deletes a piece of what dropped lanes have left, once the piece before is written.
    pub(super) fn sweep(&mut self) {
        let written = self.gate.durable().written;
        let Some((lane, after, from)) = self.sweep.lanes.front_mut() else { return };
        // The turn's own batch may never come to be, if nothing else is written.
        let is_void = *after == self.batch.lsn && self.batch.writes.is_empty();
        if Lsn(after.0 - u64::from(is_void)) > written {
            return;
        }
        let mut writes = Vec::new();
        let end = store_end(*lane, CLASS_LAST);
        let mut next = None;
        // A scan reads the values too.
        let mut bytes = 0;
        let scanned = self.store.scan(from, &end, &mut |key, value| {
            next = Some(key.clone());
            if let Some((lane, Place::Entry(log, _))) = entries::store_place(key) {
                // All of the log at once. The next piece goes on behind it.
                writes.push(entries::end_of_log(lane, log));
                let behind = log.0.checked_add(1).map(|log| entries::log_key(LogId(log)));
                next = Some(match behind {
                    Some(log) => store_key(lane, Class::Log, &log),
                    None => Bytes::copy_from_slice(&end),
                });
                return false;
            }
            writes.push(Write { key: key.clone(), value: None });
            bytes += value.len();
            writes.len() < SWEEP_KEYS_MAX && bytes < SWEEP_BYTES_MAX
        });
        if let Err(fatal) = scanned {
            self.fatal.get_mut().get_or_insert(fatal);
            return;
        }
        match next {
            None => drop(self.sweep.lanes.pop_front()),
            Some(next) => {
                (*from, *after) = (next, self.batch.lsn);
                self.batch.writes.extend(writes);
            }
        }
    }

    /// Whether a piece can be swept without waiting for the disk.
    pub(super) fn has_to_sweep(&self) -> bool {
        let written = self.gate.durable().written;
        self.sweep.lanes.front().is_some_and(|(_, after, _)| *after <= written)
    }
}
