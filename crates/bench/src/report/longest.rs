//! The longest times without a success, as data with documented names and as text.

use std::fmt;

use quorate_kernel::time::Span;
use serde::{Deserialize, Serialize};

use crate::report::findings::grouped;
use crate::report::gaps::GAPS_KEPT;
use crate::report::record::{Class, Recorder, seconds};

/// How many steps of disks stand behind a gap in the text.
const STEPS_SHOWN: usize = 3;

/// The longest times without a success within the window, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GapReport {
    /// Over all connections and operations.
    pub any_ms: f64,
    /// Over all connections, reads only; null without reads.
    pub read_ms: Option<f64>,
    /// Over all connections, writes only; null without writes.
    pub write_ms: Option<f64>,
    /// Of one connection that never broke; null if none stayed.
    pub stayed_ms: Option<f64>,
    /// Of one connection that broke, reconnecting included; null if none broke.
    pub reconnected_ms: Option<f64>,
}

/// One of the longest times in which no read, or no write, succeeded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LongGap {
    /// Whether no read or no write succeeded.
    pub class: Class,
    /// When it began, in seconds since the measured window opened.
    pub at_seconds: f64,
    /// The same in microseconds since 1970, by the client's wall clock.
    pub at_us: u64,
    /// How long it was, in milliseconds.
    pub ms: f64,
    /// What the disks' threads of the hosts did then, in the order in which it began; empty if no
    /// host was asked.
    pub disks: Vec<DiskStep>,
}

/// A slow step of the thread that writes to a host's disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DiskStep {
    /// The host's number.
    pub host: u32,
    /// What it was, in the words of `/status`.
    pub step: String,
    /// When it began, in milliseconds since the gap began; below zero if that was before.
    pub at_ms: f64,
    /// How long it took, in milliseconds.
    pub ms: f64,
    /// The bytes that it wrote, synced or handed over; 0 if it had none.
    pub bytes: u64,
}

impl GapReport {
    pub(crate) fn new(
        recorder: &Recorder,
        stayed: Option<Span>,
        reconnected: Option<Span>,
    ) -> GapReport {
        let millis = |span: Span| seconds(span) * 1e3;
        let of_class = |class: Class| {
            let latencies = recorder.class(class);
            (latencies.success_count > 0).then(|| millis(latencies.gaps.longest()))
        };
        GapReport {
            any_ms: millis(recorder.longest_gap()),
            read_ms: of_class(Class::Read),
            write_ms: of_class(Class::Write),
            stayed_ms: stayed.map(millis),
            reconnected_ms: reconnected.map(millis),
        }
    }
}

impl fmt::Display for GapReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = [
            ("any", Some(self.any_ms)),
            ("read", self.read_ms),
            ("write", self.write_ms),
            ("connection that stayed", self.stayed_ms),
            ("connection that broke", self.reconnected_ms),
        ];
        let gap = |(name, millis): (&str, Option<f64>)| Some(format!("{name} {:.1} ms", millis?));
        let gaps: Vec<String> = named.into_iter().filter_map(gap).collect();
        f.write_str(&gaps.join(", "))
    }
}

impl LongGap {
    /// The longest gaps of reads and of writes, the longest first. A class of which nothing
    /// succeeded has none. The client's time 0 was at this time, in microseconds since 1970.
    pub(crate) fn of(recorder: &Recorder, origin_us: u64) -> Vec<LongGap> {
        let of_class = |class: Class| {
            let latencies = recorder.class(class);
            let kept = if latencies.success_count > 0 { latencies.gaps.list() } else { &[] };
            kept.iter().map(move |gap| LongGap {
                class,
                at_seconds: seconds(gap.since - recorder.opened()),
                at_us: origin_us + gap.since.0 / 1000,
                ms: seconds(gap.length) * 1e3,
                disks: Vec::new(),
            })
        };
        let mut all: Vec<LongGap> =
            [Class::Read, Class::Write].into_iter().flat_map(of_class).collect();
        all.sort_by(|one, other| other.ms.total_cmp(&one.ms));
        all.truncate(GAPS_KEPT);
        all
    }

    /// How much of a step lies within it, in milliseconds.
    fn overlap_ms(&self, step: &DiskStep) -> f64 {
        (step.at_ms + step.ms).min(self.ms) - step.at_ms.max(0.0)
    }

    /// What the disks did, the steps first that fill most of it.
    fn told(&self) -> String {
        let mut steps: Vec<&DiskStep> = self.disks.iter().collect();
        steps.sort_by(|one, other| self.overlap_ms(other).total_cmp(&self.overlap_ms(one)));
        let more = steps.len().saturating_sub(STEPS_SHOWN);
        let mut told: Vec<String> =
            steps.into_iter().take(STEPS_SHOWN).map(ToString::to_string).collect();
        if told.is_empty() {
            told.push(String::from("no slow step"));
        }
        if more > 0 {
            told.push(format!("{more} more"));
        }
        told.join("; ")
    }
}

impl fmt::Display for DiskStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DiskStep { host, step, at_ms, ms, bytes } = self;
        write!(f, "host {host} {step} {ms:.1} ms from {at_ms:+.1} ms on")?;
        if *bytes > 0 {
            write!(f, ", {} bytes", grouped(*bytes as f64))?;
        }
        Ok(())
    }
}

/// Writes a line for each gap, with what disks did if hosts were asked.
pub(crate) fn fmt_gaps(
    f: &mut fmt::Formatter<'_>,
    gaps: &[LongGap],
    were_asked: bool,
) -> fmt::Result {
    for gap in gaps {
        let class = match gap.class {
            Class::Read => "no read",
            Class::Write => "no write",
        };
        let (ms, at) = (gap.ms, gap.at_seconds);
        let told = if were_asked { format!("  {}", gap.told()) } else { String::new() };
        writeln!(f, "  {class:<9}{ms:>9.1} ms at {at:>8.3} s{told}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::time::Time;

    fn at(millis: u64) -> Time {
        Time(Span::millis(millis).0)
    }

    #[test]
    fn the_longest_of_both_classes_come_first() {
        let mut recorder = Recorder::default();
        recorder.open(at(1000));
        for n in 1..=20 {
            recorder.success(Class::Read, at(1000), at(1000 + 10 * n));
        }
        recorder.close(at(1200), false);
        let gaps = LongGap::of(&recorder, 0);
        assert_eq!(gaps.len(), GAPS_KEPT);
        assert!(gaps.iter().all(|gap| gap.class == Class::Read), "nothing was to be written");
        let mut recorder = Recorder::default();
        recorder.open(at(1000));
        recorder.success(Class::Write, at(1000), at(1050));
        recorder.success(Class::Read, at(1000), at(1030));
        recorder.success(Class::Read, at(1000), at(1100));
        recorder.close(at(1100), false);
        let gaps = LongGap::of(&recorder, 5_000_000);
        let shown = |gap: &LongGap| (gap.class, gap.at_us, (gap.at_seconds * 1e3).round() as u64);
        let shown: Vec<_> = gaps.iter().map(shown).collect();
        let expected = [
            (Class::Read, 6_030_000, 30),
            (Class::Write, 6_000_000, 0),
            (Class::Read, 6_000_000, 0),
        ];
        assert_eq!(shown, expected);
        assert!((gaps[0].ms - 70.0).abs() < 1e-9);
    }

    #[test]
    fn a_gap_is_told_with_the_steps_that_fill_most_of_it() {
        let step = |host, at_ms, ms, bytes| DiskStep {
            host,
            step: String::from("sync"),
            at_ms,
            ms,
            bytes,
        };
        let disks = vec![
            step(1, -500.0, 505.0, 0),
            step(2, 10.0, 80.0, 4096),
            step(3, 90.0, 500.0, 0),
            step(4, 99.0, 500.0, 0),
        ];
        let gap = LongGap { class: Class::Write, at_seconds: 1.5, at_us: 0, ms: 100.0, disks };
        assert_eq!(
            gap.told(),
            "host 2 sync 80.0 ms from +10.0 ms on, 4,096 bytes; host 3 sync 500.0 ms from +90.0 \
             ms on; host 1 sync 505.0 ms from -500.0 ms on; 1 more"
        );
        assert_eq!(LongGap { disks: Vec::new(), ..gap }.told(), "no slow step");
    }
}
