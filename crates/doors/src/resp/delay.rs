//! Ends of keys that count from when a command is begun, of commands that wait before they are.

use alloc::vec::Vec;
use core::ops::Range;
use quorate_kernel::mutant;
use quorate_kernel::operation::Operation;
use quorate_kernel::time::WallTime;
use quorate_kernel::transaction::Item;

/// Which items of an operation have ends that count from a moment, and the moment that they count
/// from by now.
#[derive(Debug)]
pub(crate) struct Delay {
    pub(crate) since: WallTime,
    pub(crate) items: Vec<Range<usize>>,
}

impl Delay {
    /// All that an operation ends counts from a moment.
    pub(crate) fn of_all(since: WallTime) -> Delay {
        Delay { since, items: core::iter::once(0..usize::MAX).collect() }
    }

    /// Lets the ends of an operation count from a later moment.
    pub(crate) fn pass(&self, operation: &mut Operation, now: WallTime) {
        if let Operation::Transact { items, .. } = operation
            && !mutant!("resp_waits_away_expiry")
        {
            self.postpone(items, now);
        }
    }

    /// Lets the ends of items count from a later moment.
    pub(crate) fn postpone(&self, items: &mut [Item], now: WallTime) {
        let by = now.0.saturating_sub(self.since.0);
        for places in &self.items {
            let places = places.start..places.end.min(items.len());
            items[places].iter_mut().for_each(|item| item.postpone(by));
        }
    }
}
