//! What happened, counted as it happens: latencies, errors, gaps and a time line.

use std::collections::BTreeMap;

use crate::report::gaps::{Gap, Gaps};
use crate::report::spread::Spread;
use hdrhistogram::Histogram;
use quorate_kernel::time::{Span, Time};
use serde::{Deserialize, Serialize};

/// Latencies are told apart from one microsecond up.
const LATENCY_NANOS_MIN: u64 = 1_000;
/// Longer latencies are counted as this long.
const LATENCY_NANOS_MAX: u64 = 600_000_000_000;
/// Latencies are kept to this many significant digits.
const LATENCY_DIGITS: u8 = 3;

/// Whether an operation read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// It read.
    Read = 0,
    /// It wrote.
    Write = 1,
}

/// One piece of the time line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// When it began, in seconds since the measured window opened.
    pub at_seconds: f64,
    /// How long it was, in seconds.
    pub seconds: f64,
    /// Reads that succeeded in it.
    pub reads: u64,
    /// Writes that succeeded in it.
    pub writes: u64,
    /// Operations that failed in it.
    pub errors: u64,
    /// The median latency of its reads and writes, in microseconds.
    pub p50_us: f64,
    /// The 99th percentile of their latencies, in microseconds.
    pub p99_us: f64,
    /// The mean of their latencies, in microseconds.
    pub mean_us: f64,
    /// How their latencies are spread; not part of any file.
    #[serde(skip)]
    pub spread: Spread,
}

/// The latencies of one class, and how many of them ended within the window.
#[derive(Clone, Debug)]
pub struct Latencies {
    /// Every latency of an operation that began within the window.
    pub histogram: Histogram<u64>,
    /// Successes within the window, whenever they began.
    pub success_count: u64,
    /// The longest times between two successes.
    pub gaps: Gaps,
    at_interval_begin: u64,
}

/// Counts a run. Nothing is counted before [`Recorder::open`].
#[derive(Debug)]
pub struct Recorder {
    window: Window,
    classes: [Latencies; 2],
    recent: Histogram<u64>,
    gap: Gap,
    nil_count: u64,
    errors: BTreeMap<String, u64>,
    error_count: u64,
    errors_at_interval_begin: u64,
    interval_begin: Time,
    intervals: Vec<Interval>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Window {
    Ahead,
    Open { since: Time },
    Closed { since: Time, until: Time },
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(LATENCY_NANOS_MIN, LATENCY_NANOS_MAX, LATENCY_DIGITS)
        .expect("the bounds are in order and the digits at most five")
}

impl Default for Recorder {
    fn default() -> Recorder {
        let latencies = Latencies {
            histogram: histogram(),
            success_count: 0,
            gaps: Gaps::default(),
            at_interval_begin: 0,
        };
        Recorder {
            window: Window::Ahead,
            classes: [latencies.clone(), latencies],
            recent: histogram(),
            gap: Gap::default(),
            nil_count: 0,
            errors: BTreeMap::new(),
            error_count: 0,
            errors_at_interval_begin: 0,
            interval_begin: Time(0),
            intervals: Vec::new(),
        }
    }
}

impl Recorder {
    /// Opens the measured window.
    pub fn open(&mut self, now: Time) {
        assert_eq!(self.window, Window::Ahead, "a window opens once");
        self.window = Window::Open { since: now };
        self.gap = Gap::new(now);
        for class in &mut self.classes {
            class.gaps = Gaps::new(now);
        }
        self.interval_begin = now;
    }

    /// Closes the window; operations that began in it may still end.
    pub fn close(&mut self, now: Time, is_waiting: bool) {
        let Window::Open { since } = self.window else {
            panic!("a window closes once, after it was opened");
        };
        self.end_interval(now);
        self.window = Window::Closed { since, until: now };
        if is_waiting {
            self.gap.close(now);
            for class in &mut self.classes {
                class.gaps.close(now);
            }
        }
    }

    /// An operation was answered as it should be.
    #[inline]
    pub fn success(&mut self, class: Class, begun: Time, now: Time) {
        let latencies = &mut self.classes[class as usize];
        let since = match self.window {
            Window::Ahead => return,
            Window::Open { since } => {
                latencies.success_count += 1;
                latencies.gaps.close(now);
                self.gap.close(now);
                since
            }
            Window::Closed { since, .. } => since,
        };
        if begun >= since {
            latencies.histogram.saturating_record((now - begun).0);
            self.recent.saturating_record((now - begun).0);
        }
    }

    /// A read found nothing; it is a success too.
    pub fn nil(&mut self) {
        self.nil_count += u64::from(matches!(self.window, Window::Open { .. }));
    }

    /// An operation was answered with this error, or lost.
    pub fn error(&mut self, word: &str) {
        if self.window == Window::Ahead {
            return;
        }
        self.error_count += 1;
        match self.errors.get_mut(word) {
            Some(count) => *count += 1,
            None => {
                self.errors.insert(word.to_owned(), 1);
            }
        }
    }

    /// An operation of the window has waited this long when the run ends: its latency is longer.
    pub fn waited(&mut self, class: Class, begun: Time, now: Time) {
        if let Window::Closed { since, .. } = self.window
            && begun >= since
        {
            self.classes[class as usize].histogram.saturating_record((now - begun).0);
        }
    }

    /// Work begins again after none was asked for.
    pub fn resume(&mut self, now: Time) {
        self.gap.resume(now);
    }

    /// Ends the current piece of the time line and returns it.
    pub fn end_interval(&mut self, now: Time) -> Option<Interval> {
        let Window::Open { since } = self.window else { return None };
        if now <= self.interval_begin {
            return None;
        }
        let [reads, writes] = &mut self.classes;
        let micros = |quantile| self.recent.value_at_quantile(quantile) as f64 / 1e3;
        let interval = Interval {
            at_seconds: seconds(self.interval_begin - since),
            seconds: seconds(now - self.interval_begin),
            reads: reads.success_count - reads.at_interval_begin,
            writes: writes.success_count - writes.at_interval_begin,
            errors: self.error_count - self.errors_at_interval_begin,
            p50_us: micros(0.5),
            p99_us: micros(0.99),
            mean_us: self.recent.mean() / 1e3,
            spread: Spread::of(&self.recent),
        };
        for class in &mut self.classes {
            class.at_interval_begin = class.success_count;
        }
        self.errors_at_interval_begin = self.error_count;
        self.interval_begin = now;
        self.recent.reset();
        self.intervals.push(interval);
        Some(interval)
    }

    /// How long the window was open; zero before it closed.
    #[must_use]
    pub fn window_seconds(&self) -> f64 {
        match self.window {
            Window::Closed { since, until } => seconds(until - since),
            Window::Ahead | Window::Open { .. } => 0.0,
        }
    }

    /// When the window opened; 0 before it did.
    #[must_use]
    pub fn opened(&self) -> Time {
        match self.window {
            Window::Open { since } | Window::Closed { since, .. } => since,
            Window::Ahead => Time(0),
        }
    }

    /// The counts of one class.
    #[must_use]
    pub fn class(&self, class: Class) -> &Latencies {
        &self.classes[class as usize]
    }

    /// The longest time without any success.
    #[must_use]
    pub fn longest_gap(&self) -> Span {
        self.gap.longest()
    }

    /// Reads within the window that found nothing.
    #[must_use]
    pub fn nil_count(&self) -> u64 {
        self.nil_count
    }

    /// Failures by the first word of their error.
    #[must_use]
    pub fn errors(&self) -> &BTreeMap<String, u64> {
        &self.errors
    }

    /// The time line so far.
    #[must_use]
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }
}

/// A span in seconds.
#[must_use]
pub fn seconds(span: Span) -> f64 {
    span.0 as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time(Span::millis(millis).0)
    }

    #[test]
    fn warm_up_and_drain_do_not_count_as_throughput() {
        let mut recorder = Recorder::default();
        recorder.success(Class::Read, at(0), at(1));
        recorder.error("ERR");
        recorder.open(at(10));
        recorder.success(Class::Read, at(5), at(11));
        recorder.success(Class::Read, at(10), at(12));
        recorder.success(Class::Write, at(11), at(14));
        recorder.nil();
        recorder.error("ERR");
        recorder.error("ERR");
        recorder.close(at(20), false);
        recorder.success(Class::Write, at(19), at(39));
        recorder.nil();
        let (reads, writes) = (recorder.class(Class::Read), recorder.class(Class::Write));
        assert_eq!((reads.success_count, writes.success_count), (2, 1));
        assert_eq!(reads.histogram.len(), 1, "the read that began in the warm-up has no latency");
        assert_eq!(writes.histogram.len(), 2, "the drained write keeps its latency");
        let longest = writes.histogram.max() as f64 / 1e6;
        assert!((longest - 20.0).abs() < 0.1, "{longest}");
        assert_eq!(recorder.nil_count(), 1);
        assert_eq!(recorder.errors().get("ERR"), Some(&2));
        assert!((recorder.window_seconds() - 0.010).abs() < 1e-9);
    }

    #[test]
    fn percentiles_come_from_the_right_class() {
        let mut recorder = Recorder::default();
        recorder.open(at(0));
        for n in 1..=1000 {
            recorder.success(Class::Read, at(0), Time(n * 1_000_000));
            recorder.success(Class::Write, at(0), Time(n * 2_000_000));
        }
        let near = |class: Class, quantile, millis: f64| {
            let value = recorder.class(class).histogram.value_at_quantile(quantile) as f64 / 1e6;
            assert!((value / millis - 1.0).abs() < 0.002, "{value} for {millis}");
        };
        near(Class::Read, 0.5, 500.0);
        near(Class::Read, 0.999, 999.0);
        near(Class::Write, 0.5, 1000.0);
        near(Class::Write, 0.99, 1980.0);
    }

    #[test]
    fn gaps_run_to_the_end_only_while_something_waits() {
        for (is_waiting, expected) in [(true, 70), (false, 20)] {
            let mut recorder = Recorder::default();
            recorder.open(at(0));
            recorder.success(Class::Write, at(0), at(20));
            recorder.success(Class::Read, at(0), at(30));
            recorder.close(at(100), is_waiting);
            assert_eq!(recorder.longest_gap(), Span::millis(expected));
        }
    }

    #[test]
    fn the_time_line_adds_up() {
        let mut recorder = Recorder::default();
        assert_eq!(recorder.end_interval(at(1)), None);
        recorder.open(at(100));
        recorder.success(Class::Read, at(100), at(110));
        let first = recorder.end_interval(at(200)).unwrap();
        recorder.success(Class::Write, at(200), at(240));
        recorder.success(Class::Write, at(200), at(240));
        recorder.error("ERR");
        recorder.close(at(250), false);
        assert_eq!((first.reads, first.writes, first.errors), (1, 0, 0));
        assert!((first.p99_us / 10_000.0 - 1.0).abs() < 0.002, "{first:?}");
        let second = recorder.intervals()[1];
        assert_eq!((second.reads, second.writes, second.errors), (0, 2, 1));
        assert!((second.at_seconds - 0.1).abs() < 1e-9);
        assert!((second.seconds - 0.05).abs() < 1e-9);
        assert!((second.p50_us / 40_000.0 - 1.0).abs() < 0.002, "{second:?}");
    }
}
