//! Executing entries by which buckets move.

use super::places::{Arrival, Moved, bucket_of};
use super::step::Step;
use crate::serializable::execute::items::Stored;
use crate::serializable::raw::Raw;
use crate::serializable::state::State;
use crate::vsr::Op;
use alloc::vec::Vec;
use quorate_kernel::ids::GroupId;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::process::Table;

impl State {
    /// Executes one.
    pub(in crate::serializable) fn step(&mut self, step: Step, at: (Op, &dyn Table)) {
        match step {
            Step::Found { group, members } => {
                // Who was named first founds it.
                self.head.moves.founded.entry(group).or_insert(members);
            }
            Step::Arriving { bucket, from, version } => {
                self.arriving(bucket, (from, version), at.0);
            }
            Step::Arrived { bucket, items } => self.arrived(bucket, items, at),
            Step::Passed { bucket, as_of, purged, releases } => {
                let arrival = self.arrival(bucket);
                arrival.since = as_of;
                arrival.passes = arrival.passes.saturating_add(1);
                arrival.releases |= releases;
                arrival.purged.get_or_insert(purged);
            }
            Step::Abandon { bucket, home, version, is_awaited } => {
                invariant!(self.head.moves.arrival(bucket).is_some(), "it was copied");
                self.place(bucket, (version, home), false);
                self.moved(bucket).is_awaited = is_awaited;
            }
            Step::Release { bucket, to, version } => self.released(bucket, to, version),
            Step::Take { bucket, version, floor } => {
                invariant!(self.head.moves.arrival(bucket).is_some(), "what is taken was copied");
                self.place(bucket, (version, self.group), false);
                if !mutant!("txn_take_without_floor") {
                    self.head.floor = self.head.floor.max(floor);
                }
            }
            Step::Let { bucket, version } => {
                let moved = self.moved(bucket);
                moved.is_kept &= moved.version != version;
            }
            Step::Clear { keys } => self.clear(keys, at),
        }
    }

    fn moved(&mut self, bucket: u8) -> &mut Moved {
        let moved = self.head.moves.buckets.get_mut(&bucket);
        moved.expect("it was on its way")
    }

    fn arrival(&mut self, bucket: u8) -> &mut Arrival {
        self.moved(bucket).arrival.as_mut().expect("it is copied")
    }

    /// A bucket is at a group, handed over so many times.
    fn place(&mut self, bucket: u8, (version, home): (u64, GroupId), is_kept: bool) {
        invariant!(version >= self.home(bucket).0, "a bucket is handed over again and again");
        let (is_awaited, arrival) = (false, None);
        let moved = Moved { version, home, is_kept, is_awaited, arrival };
        self.head.moves.buckets.insert(bucket, moved);
    }

    fn arriving(&mut self, bucket: u8, (from, version): (GroupId, u64), op: Op) {
        invariant!(!self.is_here(bucket), "what is here does not come");
        invariant!(!self.head.moves.is_kept(bucket), "nor what is kept for another");
        self.place(bucket, (version, from), false);
        let moved = self.moved(bucket);
        moved.is_awaited = true;
        let (since, purged, passes, releases) = (0, None, 0, false);
        moved.arrival = Some(Arrival { id: op.0, from, since, purged, passes, releases });
    }

    fn arrived(&mut self, bucket: u8, items: Vec<(Raw, Stored)>, (op, table): (Op, &dyn Table)) {
        invariant!(self.head.moves.arrival(bucket).is_some(), "what comes is copied");
        invariant!(!self.is_here(bucket), "what is here does not come");
        for (key, item) in items {
            self.items.set(op, key, Stored { op: op.0, ..item }, table);
        }
    }

    fn released(&mut self, bucket: u8, to: GroupId, version: u64) {
        invariant!(self.is_here(bucket), "what is handed over is here");
        invariant!(version == self.home(bucket).0 + 1, "a bucket is handed over again and again");
        let is_held = self.locks.holds_any_of(bucket) && !mutant!("txn_release_skips_locks");
        invariant!(!is_held, "what is handed over is held by nobody");
        self.place(bucket, (version, to), true);
    }

    fn clear(&mut self, keys: Vec<Raw>, (op, table): (Op, &dyn Table)) {
        for key in keys {
            let bucket = bucket_of(&key);
            let moves = &self.head.moves;
            let is_kept = moves.is_kept(bucket) && !mutant!("txn_clears_what_is_kept");
            let is_needed = is_kept || moves.arrival(bucket).is_some();
            if self.is_here(bucket) || is_needed {
                continue;
            }
            // In a copy it may be of a later stay.
            if self.items.get(&key, table).is_some_and(|item| item.op < op.0) {
                self.items.drop_key(key);
            }
        }
    }
}
