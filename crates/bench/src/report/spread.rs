//! Latencies of a piece of the time line in few numbers, so that pieces can be put together: the
//! percentile of a part cannot be told from the percentiles of its pieces.

use hdrhistogram::Histogram;

/// How many classes there are.
const CLASSES: usize = 96;
/// Latencies up to this are in the first class.
const FIRST_US: f64 = 100.0;
/// Each class ends at so many times where the one before ends; the last one has no end.
const FACTOR: f64 = 1.1;

/// How many operations took how long, in classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread([u32; CLASSES]);

impl Default for Spread {
    fn default() -> Spread {
        Spread([0; CLASSES])
    }
}

impl Spread {
    /// Those of a histogram of nanoseconds.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Spread {
        let mut spread = Spread::default();
        for value in histogram.iter_recorded() {
            let latency_us = value.value_iterated_to() as f64 / 1e3;
            spread.add(latency_us, value.count_since_last_iteration());
        }
        spread
    }

    /// Counts so many that took as long.
    pub fn add(&mut self, latency_us: f64, count: u64) {
        let class = (latency_us.max(FIRST_US) / FIRST_US).log(FACTOR).ceil();
        self.0[(class as usize).min(CLASSES - 1)] += u32::try_from(count).unwrap_or(u32::MAX);
    }

    /// Adds those of another piece.
    pub fn join(&mut self, other: &Spread) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, theirs)| *mine += theirs);
    }

    /// About the latency that this part of all operations did not exceed; zero without any.
    #[must_use]
    pub fn quantile_us(&self, quantile: f64) -> f64 {
        let total: u32 = self.0.iter().sum();
        let mut left = f64::from(total) * quantile;
        for (class, count) in self.0.iter().enumerate().filter(|(_, count)| **count > 0) {
            let count = f64::from(*count);
            if left <= count {
                // Within a class they are taken to be spread evenly.
                return FIRST_US * FACTOR.powf(class as f64 - 1.0 + left / count);
            }
            left -= count;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_put_together_give_the_percentiles_of_the_whole() {
        let (mut first, mut second) = (Spread::default(), Spread::default());
        assert!(first.quantile_us(0.99) < 1e-9);
        for n in 0..990 {
            first.add(f64::from(n) + 500.0, 1);
        }
        for n in 0..10 {
            second.add(20_000.0 + f64::from(n), 1);
        }
        first.join(&second);
        let close = |quantile, expected: f64| {
            let ratio = first.quantile_us(quantile) / expected;
            assert!((0.9..1.1).contains(&ratio), "{quantile}: {ratio}");
        };
        close(0.5, 1000.0);
        close(0.98, 1480.0);
        close(0.995, 20_005.0);
        second.add(1e12, 1);
        assert!(second.quantile_us(1.0) > 300_000.0, "what is too long is in the last class");
    }
}
