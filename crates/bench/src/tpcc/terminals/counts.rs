//! What the terminals of a run did, counted by kind of transaction.

use std::time::Instant;

use quorate_kernel::time::{Span, Time};

use crate::report::record::{Class, Interval, Recorder};
use crate::tpcc::inputs::Kind;
use crate::tpcc::transactions::Done;

/// The transactions of one kind.
#[derive(Debug, Default)]
pub struct KindCounts {
    /// Commits and their latencies, from the first attempt on.
    pub recorder: Recorder,
    /// Attempts after the first one, since what was read had changed.
    pub retries: u64,
    /// Orders that name an unused item.
    pub rolled_back: u64,
    /// Nobody could say what became of them.
    pub unknown: u64,
    /// The cluster did not do them.
    pub failed: u64,
    /// Given up, since the run was over and what was read had changed.
    pub unfinished: u64,
    /// Districts without an order to deliver.
    pub skipped: u64,
    /// What was ordered, paid or delivered by commits, in cents.
    pub amount: i64,
}

/// All transactions of a run. Nothing is counted before the measured window opens.
#[derive(Debug)]
pub struct Counts {
    origin: Instant,
    /// All kinds together.
    pub total: Recorder,
    kinds: [KindCounts; 5],
    is_open: bool,
    has_opened: bool,
    /// Those that began within the window.
    pub begun: u64,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts {
            origin: Instant::now(),
            total: Recorder::default(),
            kinds: Default::default(),
            is_open: false,
            has_opened: false,
            begun: 0,
        }
    }
}

/// Whether a kind changes anything.
#[must_use]
pub fn class(kind: Kind) -> Class {
    match kind {
        Kind::NewOrder | Kind::Payment | Kind::Delivery => Class::Write,
        Kind::OrderStatus | Kind::StockLevel => Class::Read,
    }
}

impl Counts {
    /// The time since the run began.
    #[must_use]
    pub fn now(&self) -> Time {
        Time(self.origin.elapsed().as_nanos() as u64)
    }

    /// Opens the measured window.
    pub fn open(&mut self, now: Time) {
        self.total.open(now);
        for kind in &mut self.kinds {
            kind.recorder.open(now);
        }
        (self.is_open, self.has_opened) = (true, true);
    }

    /// Closes it.
    pub fn close(&mut self, now: Time) {
        self.total.close(now, true);
        for kind in &mut self.kinds {
            kind.recorder.close(now, true);
        }
        self.is_open = false;
    }

    /// Whether the measured window is open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Ends a piece of the time line.
    pub fn end_interval(&mut self, now: Time) -> Option<Interval> {
        self.total.end_interval(now)
    }

    /// A transaction begins.
    pub fn begin(&mut self) -> Time {
        self.begun += u64::from(self.is_open);
        self.now()
    }

    /// One did what it should.
    pub fn done(&mut self, kind: Kind, begun: Time, done: Done) {
        let (now, is_open) = (self.now(), self.is_open);
        let of_kind = &mut self.kinds[kind as usize];
        match done {
            Done::Committed { amount, skipped } => {
                self.total.success(class(kind), begun, now);
                of_kind.recorder.success(class(kind), begun, now);
                if is_open {
                    of_kind.amount += amount;
                    of_kind.skipped += skipped;
                }
            }
            Done::RolledBack => of_kind.rolled_back += u64::from(is_open),
        }
    }

    /// An attempt met what others had changed meanwhile.
    pub fn retried(&mut self, kind: Kind) {
        self.kinds[kind as usize].retries += u64::from(self.is_open);
    }

    /// One was given up, since the run was over.
    pub fn unfinished(&mut self, kind: Kind) {
        self.kinds[kind as usize].unfinished += 1;
    }

    /// Nobody can say what became of one.
    pub fn unknown(&mut self, kind: Kind) {
        self.kinds[kind as usize].unknown += u64::from(self.has_opened);
        self.total.error("OUTCOME_UNKNOWN");
    }

    /// The cluster did not do one.
    pub fn failed(&mut self, kind: Kind, word: &str) {
        self.kinds[kind as usize].failed += u64::from(self.has_opened);
        self.total.error(word);
    }

    /// The transactions of a kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> &KindCounts {
        &self.kinds[kind as usize]
    }

    /// The longest time within the window in which nothing was committed.
    #[must_use]
    pub fn longest_gap(&self) -> Span {
        self.total.longest_gap()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_window_counts() {
        let mut counts = Counts::default();
        let begun = counts.begin();
        let committed = Done::Committed { amount: 5, skipped: 1 };
        counts.done(Kind::Delivery, begun, committed);
        counts.retried(Kind::Delivery);
        counts.failed(Kind::Delivery, "NO_QUORUM");
        let now = counts.now();
        counts.open(now);
        let begun = counts.begin();
        counts.done(Kind::Delivery, begun, committed);
        counts.done(Kind::NewOrder, begun, Done::RolledBack);
        counts.retried(Kind::NewOrder);
        counts.unknown(Kind::Payment);
        let now = counts.now();
        counts.close(now);
        counts.done(Kind::Delivery, begun, committed);
        counts.unfinished(Kind::NewOrder);
        let delivery = counts.of(Kind::Delivery);
        let committed = delivery.recorder.class(Class::Write);
        assert_eq!((committed.success_count, committed.histogram.len()), (1, 2));
        assert_eq!((delivery.amount, delivery.skipped, delivery.failed), (5, 1, 0));
        let order = counts.of(Kind::NewOrder);
        assert_eq!((order.rolled_back, order.retries, order.unfinished), (1, 1, 1));
        assert_eq!((counts.of(Kind::Payment).unknown, counts.begun), (1, 1));
    }
}
