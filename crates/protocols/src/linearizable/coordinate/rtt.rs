//! How long to wait before a question is repeated: the mean round trip plus four deviations, as
//! transport protocols estimate it (Jacobson, "Congestion Avoidance and Control", 1988), within
//! bounds. CATS gives no value.

use quorate_kernel::time::Span;

/// The members not asked first are not asked before this.
const WIDEN_MIN: Span = Span::millis(5);
/// A question is not repeated before this.
const RETRY_MIN: Span = Span::millis(20);
/// A question is repeated after this at the latest, however slow the network seems.
pub(crate) const RETRY_MAX: Span = Span::secs(1);
/// How long a get whose first quorum disagrees waits for the remaining replies.
pub(crate) const PATIENCE: Span = Span::millis(2);

/// A running estimate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RoundTrip {
    mean: u64,
    deviation: u64,
}

impl RoundTrip {
    pub fn observe(&mut self, sample: Span) {
        let distance = self.mean.abs_diff(sample.0);
        self.deviation = self.deviation - self.deviation / 4 + distance / 4;
        self.mean = self.mean - self.mean / 8 + sample.0 / 8;
    }

    /// When a question is repeated.
    pub fn retry(&self) -> Span {
        Span(self.estimate().clamp(RETRY_MIN.0, RETRY_MAX.0))
    }

    /// When the members that were not asked first are asked too.
    pub fn widen(&self) -> Span {
        Span(self.estimate().clamp(WIDEN_MIN.0, RETRY_MAX.0))
    }

    fn estimate(&self) -> u64 {
        self.mean.saturating_add(self.deviation.saturating_mul(4))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_the_network_within_bounds() {
        let mut rtt = RoundTrip::default();
        assert_eq!((rtt.retry(), rtt.widen()), (RETRY_MIN, WIDEN_MIN));
        for _ in 0..100 {
            rtt.observe(Span::millis(100));
        }
        assert!(rtt.retry() > Span::millis(90) && rtt.retry() < Span::millis(200));
        for _ in 0..100 {
            rtt.observe(Span::secs(9));
        }
        assert_eq!(rtt.retry(), RETRY_MAX);
    }
}
