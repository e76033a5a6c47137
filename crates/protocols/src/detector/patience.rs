//! How long a node may be silent: longer if its answers take long, longer after each false
//! suspicion.

use quorate_kernel::time::Span;

/// What was learnt of one node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    /// Smoothed round trip and its mean deviation in nanoseconds (Jacobson), once measured.
    round_trip: Option<(u64, u64)>,
    penalty: Span,
}

impl Patience {
    /// For how long a ping may be without an answer, at least this long.
    pub fn timeout(&self, least: Span) -> Span {
        let (mean, deviation) = self.round_trip.unwrap_or_default();
        let adapted = Span(mean.saturating_add(4 * deviation));
        Span(adapted.max(least).0 + self.penalty.0)
    }

    /// Whether any answer came.
    pub fn is_measured(&self) -> bool {
        self.round_trip.is_some()
    }

    /// An answer came after so long. Of the penalty one part in `share` is forgiven.
    pub fn measure(&mut self, sample: Span, share: u64) {
        let sample = sample.0;
        self.round_trip = Some(match self.round_trip {
            None => (sample, sample / 2),
            Some((mean, deviation)) => {
                let error = mean.abs_diff(sample);
                ((7 * mean + sample) / 8, (3 * deviation + error) / 4)
            }
        });
        self.penalty = Span(self.penalty.0 - self.penalty.0 / share);
    }

    /// A suspicion was false.
    pub fn lengthen(&mut self, by: Span, most: Span) {
        self.penalty = Span((self.penalty.0 + by.0).min(most.0));
    }
}
