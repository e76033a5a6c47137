//! Atomics with one writer each.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A number that only rises. One thread writes it; any may read it.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds. A load and a store, not one atomic addition: there is no second writer to race with.
    pub fn add(&self, count: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
    }

    /// Takes over a total that was counted elsewhere.
    pub fn set(&self, total: u64) {
        self.0.store(total, Ordering::Relaxed);
    }

    /// The total so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that rises and falls. One thread writes it; any may read it.
#[derive(Debug, Default)]
pub struct Gauge(AtomicU64);

impl Gauge {
    /// Replaces the value.
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// The value last set.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many buckets with a bound a histogram has; one more without a bound follows them.
pub const BUCKETS: usize = 18;

/// The upper bound of the first bucket; each next one is twice as wide, up to 6.5 s.
pub const BUCKET_FIRST: Duration = Duration::from_micros(50);

/// How often lengths of time fell into which bucket. One thread writes it; any may read it.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [AtomicU64; BUCKETS + 1],
    sum_nanos: AtomicU64,
}

/// What a histogram held at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramSnapshot {
    /// The sum of all lengths in seconds.
    pub sum_seconds: f64,
    /// How many lengths were counted.
    pub count: u64,
    /// Upper bound in seconds and count of each bucket, not cumulated; the last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
}

impl Histogram {
    /// Counts one length of time.
    pub fn observe(&self, length: Duration) {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let cell = &self.buckets[bucket_of(nanos)];
        cell.store(cell.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let sum = self.sum_nanos.load(Ordering::Relaxed).saturating_add(nanos);
        self.sum_nanos.store(sum, Ordering::Relaxed);
    }

    /// How many lengths were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|cell| cell.load(Ordering::Relaxed)).sum()
    }

    /// The counts at this moment. The count is the sum of the buckets read, so the two never
    /// disagree even while the writer goes on.
    #[must_use]
    pub fn snapshot(&self) -> HistogramSnapshot {
        let buckets: Vec<(f64, u64)> = self
            .buckets
            .iter()
            .enumerate()
            .map(|(index, cell)| (bound_seconds(index), cell.load(Ordering::Relaxed)))
            .collect();
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum_nanos = self.sum_nanos.load(Ordering::Relaxed);
        HistogramSnapshot {
            sum_seconds: Duration::from_nanos(sum_nanos).as_secs_f64(),
            count,
            buckets,
        }
    }
}

/// The index of the narrowest bucket whose bound is not below the length.
fn bucket_of(nanos: u64) -> usize {
    let first_nanos = BUCKET_FIRST.as_nanos() as u64;
    let widths = nanos.div_ceil(first_nanos).max(1);
    // The number of doublings until the bound reaches `widths`, without a power that overflows.
    let doublings = 64 - (widths - 1).leading_zeros() as usize;
    doublings.min(BUCKETS)
}

fn bound_seconds(index: usize) -> f64 {
    if index == BUCKETS {
        return f64::INFINITY;
    }
    // Divided once, so that the bound prints as the short number it is.
    (BUCKET_FIRST.as_micros() << index) as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_falls_into_the_narrowest_bucket_that_holds_it() {
        let micros = |n: u64| bucket_of(n * 1_000);
        assert_eq!(micros(0), 0);
        assert_eq!(micros(50), 0);
        assert_eq!(bucket_of(50_001), 1);
        assert_eq!(micros(100), 1);
        assert_eq!(micros(101), 2);
        assert_eq!(micros(50 << 17), 17);
        assert_eq!(micros((50 << 17) + 1), BUCKETS);
        assert_eq!(bucket_of(u64::MAX), BUCKETS);
    }

    #[test]
    fn a_snapshot_adds_up() {
        let histogram = Histogram::default();
        for millis in [0, 1, 1, 2_000, 60_000] {
            histogram.observe(Duration::from_millis(millis));
        }
        let snapshot = histogram.snapshot();
        assert_eq!(snapshot.count, 5);
        assert_eq!(histogram.count(), 5);
        assert!((snapshot.sum_seconds - 62.002).abs() < 1e-9);
        assert_eq!(snapshot.buckets[0], (0.000_05, 1));
        assert_eq!(snapshot.buckets.last().map(|(_, count)| *count), Some(1));
        let two_ms_or_less: u64 =
            snapshot.buckets.iter().filter(|(le, _)| *le < 0.002).map(|(_, count)| count).sum();
        assert_eq!(two_ms_or_less, 3);
    }

    #[test]
    fn cells_hold_what_was_stored() {
        let counter = Counter::default();
        counter.add(2);
        counter.add(3);
        assert_eq!(counter.get(), 5);
        counter.set(9);
        assert_eq!(counter.get(), 9);
        let gauge = Gauge::default();
        gauge.set(7);
        gauge.set(4);
        assert_eq!(gauge.get(), 4);
    }
}
