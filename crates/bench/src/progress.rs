//! Shows how a measurement is getting on, on a terminal only.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::report::record::Interval;

/// A bar on standard error, or nothing.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    step: Step,
}

/// What moves the bar.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Each operation, by this much.
    Operation { weight: u64 },
    /// Each millisecond.
    Time,
}

impl Progress {
    /// Shows nothing.
    #[must_use]
    pub fn hidden() -> Progress {
        Progress { bar: ProgressBar::hidden(), step: Step::Time }
    }

    /// Counts operations, each as `weight`, up to `total`.
    #[must_use]
    pub fn operations(title: &str, total: u64, weight: u64) -> Progress {
        Progress { bar: bar(title, total), step: Step::Operation { weight } }
    }

    /// Counts time.
    #[must_use]
    pub fn time(title: &str, total: Duration) -> Progress {
        let millis = u64::try_from(total.as_millis()).unwrap_or(u64::MAX);
        Progress { bar: bar(title, millis), step: Step::Time }
    }

    /// Counts rows, of which `total` are expected.
    #[must_use]
    pub fn rows(title: &str, total: u64) -> Progress {
        Progress::operations(title, total, 1)
    }

    /// Counts some more.
    pub fn advance(&self, count: u64) {
        self.bar.inc(count);
    }

    /// Shows what happened recently.
    pub fn show(&self, interval: &Interval) {
        if self.bar.is_hidden() {
            return;
        }
        let count = interval.reads + interval.writes;
        self.bar.inc(match self.step {
            Step::Operation { weight } => count * weight,
            Step::Time => (interval.seconds * 1e3).round() as u64,
        });
        let rate = count as f64 / interval.seconds;
        let (p50, p99) = (interval.p50_us / 1e3, interval.p99_us / 1e3);
        let errors = match interval.errors {
            0 => String::new(),
            count => format!("  {count} errors"),
        };
        self.bar.set_message(format!("{rate:.0}/s  p50 {p50:.2} ms  p99 {p99:.2} ms{errors}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn bar(title: &str, total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix} {bar:30} {percent:>3} %  {msg}")
        .expect("the template is well-formed");
    // Standard error is left alone unless it is a terminal.
    ProgressBar::new(total).with_style(style).with_prefix(title.to_owned())
}
