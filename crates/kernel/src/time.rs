//! Time as plain numbers, so that a test can write them and a trace can print them.

use core::ops::{Add, Sub};

/// Monotonic nanoseconds since the node started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

/// Milliseconds of the wall clock. For expiry and display; never for ordering.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallTime(pub i64);

impl Span {
    /// Microseconds.
    #[must_use]
    pub const fn micros(n: u64) -> Span {
        Span(n * 1_000)
    }

    /// Milliseconds.
    #[must_use]
    pub const fn millis(n: u64) -> Span {
        Span(n * 1_000_000)
    }

    /// Seconds.
    #[must_use]
    pub const fn secs(n: u64) -> Span {
        Span(n * 1_000_000_000)
    }

    /// Whole milliseconds.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Sub<Time> for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}
