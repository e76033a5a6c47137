//! What a measurement found, as data with documented names and as text.

use std::collections::BTreeMap;
use std::fmt;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::client::Outcome;
use crate::config::{Config, Pace};
use crate::load::distribution::Distribution;
use crate::load::mixes::Workload;
use crate::report::longest::{GapReport, LongGap, fmt_gaps};
use crate::report::record::{Class, Interval, Latencies};
use crate::report::usage::ServerUsage;

/// The quantiles that a report's curve has, besides the named ones.
const CURVE_QUANTILES: [f64; 18] = [
    0.0, 0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999,
    0.99999, 1.0,
];

/// One measurement. The field names are stable: scripts read them from the JSON form.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The mix of operations.
    pub workload: Workload,
    /// How keys were chosen.
    pub distribution: Distribution,
    /// Keys at the start of the run.
    pub keys: u64,
    /// The size of every value.
    pub value_bytes: usize,
    /// Connections.
    pub connections: usize,
    /// Commands that a connection may have on their way.
    pub pipeline: usize,
    /// Operations per second that were due in an open loop; null in a closed loop.
    pub rate: Option<u64>,
    /// The servers' addresses.
    pub endpoints: Vec<String>,
    /// How the keys were written before; null if they were not.
    pub load: Option<LoadReport>,
    /// How long the measured window was open.
    pub seconds: f64,
    /// Operations that succeeded within it.
    pub operations: u64,
    /// Operations per second.
    pub throughput: f64,
    /// The reads.
    pub reads: ClassReport,
    /// The writes.
    pub writes: ClassReport,
    /// Reads within the window that found no value; they count as successes.
    pub nils: u64,
    /// Failures by the first word of the error; `CONNECTION` counts operations lost with their
    /// connection, `UNEXPECTED` replies of the wrong type.
    pub errors: BTreeMap<String, u64>,
    /// Operations still without a reply two seconds after the window; their latency counts as the
    /// time they had waited.
    pub unanswered: u64,
    /// Operations of an open loop that were due and never sent; counted like unanswered ones.
    pub unsent: u64,
    /// How often a connection broke.
    pub broken_connections: u64,
    /// The longest times without a success.
    pub gaps: GapReport,
    /// The ten longest of them of reads and of writes, the longest first, and what disks did then.
    #[serde(default)]
    pub longest_gaps: Vec<LongGap>,
    /// The HTTP doors of the hosts that were asked what their disks did.
    #[serde(default)]
    pub http: Vec<String>,
    /// Why some of them did not tell, by their addresses.
    #[serde(default)]
    pub http_failures: BTreeMap<String, String>,
    /// The server processes that were watched.
    pub servers: Vec<ServerUsage>,
    /// Processor seconds of all of them; null if none was watched.
    pub server_cpu_seconds: Option<f64>,
    /// The same per 1,000 operations.
    pub server_cpu_seconds_per_1000: Option<f64>,
    /// Processor seconds of the client.
    pub client_cpu_seconds: f64,
    /// The same per 1,000 operations.
    pub client_cpu_seconds_per_1000: f64,
    /// Processors that everything else on this machine kept busy: the figures are as good as this
    /// is small. Null if no server was watched.
    pub other_cpu_cores: Option<f64>,
    /// The run was ended early by the user.
    pub interrupted: bool,
    /// The time line.
    pub intervals: Vec<Interval>,
}

/// How the load phase went.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Keys written.
    pub keys: u64,
    /// Seconds it took.
    pub seconds: f64,
    /// Keys per second.
    pub keys_per_second: f64,
}

impl LoadReport {
    /// How many of what were written, and how fast.
    pub(crate) fn told(&self, what: &str) -> String {
        let (keys, rate) = (grouped(self.keys as f64), grouped(self.keys_per_second));
        format!("loaded {keys} {what} in {:.1} s ({rate}/s)", self.seconds)
    }
}

/// How often each kind of error came.
pub(crate) fn listed(errors: &BTreeMap<String, u64>) -> String {
    let counted = |(word, count): (&String, &u64)| format!("{word} {}", grouped(*count as f64));
    let kinds: Vec<String> = errors.iter().map(counted).collect();
    if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") }
}

/// The reads or the writes of a run. Latencies are in microseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassReport {
    /// How many succeeded within the window.
    pub operations: u64,
    /// The mean latency.
    pub mean_us: f64,
    /// The median latency.
    pub p50_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p999_us: f64,
    /// The longest latency.
    pub max_us: f64,
    /// The latency at more quantiles, rising; empty if there was no operation.
    pub curve: Vec<CurvePoint>,
}

/// One point of the curve of latencies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The share of operations that were at least as fast.
    pub quantile: f64,
    /// Their longest latency, in microseconds.
    pub us: f64,
}

impl Report {
    /// Puts together what a client has found.
    pub(crate) fn new(config: &Config, load: Option<LoadReport>, run: &Outcome) -> Report {
        let recorder = &run.recorder;
        let (reads, writes) = (recorder.class(Class::Read), recorder.class(Class::Write));
        let operations = reads.success_count + writes.success_count;
        let window_seconds = recorder.window_seconds();
        let servers = run.watch.servers();
        let server_seconds: f64 = servers.iter().map(|server| server.cpu_seconds).sum();
        let server_seconds = (!servers.is_empty()).then_some(server_seconds);
        let per_1000 = |cpu_seconds: f64| ratio(cpu_seconds * 1e3, operations as f64);
        Report {
            workload: config.workload,
            distribution: config.distribution,
            keys: config.key_count,
            value_bytes: config.value_bytes,
            connections: config.connection_count,
            pipeline: config.pipeline_depth,
            rate: match config.pace {
                Pace::Closed => None,
                Pace::Open { rate_per_second } => Some(rate_per_second),
            },
            endpoints: config.endpoints.iter().map(ToString::to_string).collect(),
            load,
            seconds: window_seconds,
            operations,
            throughput: ratio(operations as f64, window_seconds),
            reads: ClassReport::new(reads),
            writes: ClassReport::new(writes),
            nils: recorder.nil_count(),
            errors: recorder.errors().clone(),
            unanswered: run.unanswered_count,
            unsent: run.unsent_count,
            broken_connections: run.broken_count,
            gaps: GapReport::new(recorder, run.stayed_gap, run.reconnected_gap),
            longest_gaps: LongGap::of(recorder, run.origin_us),
            http: config.http.clone(),
            http_failures: BTreeMap::new(),
            servers,
            server_cpu_seconds: server_seconds,
            server_cpu_seconds_per_1000: server_seconds.map(per_1000),
            client_cpu_seconds: run.watch.client_seconds(),
            client_cpu_seconds_per_1000: per_1000(run.watch.client_seconds()),
            other_cpu_cores: run.watch.other_seconds().map(|used| ratio(used, window_seconds)),
            interrupted: run.was_stopped,
            intervals: recorder.intervals().to_vec(),
        }
    }

    /// All failures together.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}

impl ClassReport {
    /// What a class has counted.
    pub(crate) fn new(latencies: &Latencies) -> ClassReport {
        let histogram: &Histogram<u64> = &latencies.histogram;
        if histogram.is_empty() {
            return ClassReport { operations: latencies.success_count, ..ClassReport::default() };
        }
        let micros = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e3;
        let point = |quantile| CurvePoint { quantile, us: micros(quantile) };
        ClassReport {
            operations: latencies.success_count,
            mean_us: histogram.mean() / 1e3,
            p50_us: micros(0.5),
            p99_us: micros(0.99),
            p999_us: micros(0.999),
            max_us: histogram.max() as f64 / 1e3,
            curve: CURVE_QUANTILES.map(point).to_vec(),
        }
    }
}

/// A ratio that is zero where there is nothing to divide by.
pub(crate) fn ratio(dividend: f64, divisor: f64) -> f64 {
    if divisor > 0.0 { dividend / divisor } else { 0.0 }
}

/// A number with its thousands apart.
pub(crate) fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = if number < 0.0 { String::from("-") } else { String::new() };
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pace = match self.rate {
            Some(rate) => format!("open loop at {}/s", grouped(rate as f64)),
            None => "closed loop".to_owned(),
        };
        writeln!(
            f,
            "workload {} ({}), {} keys, values of {} bytes",
            self.workload,
            self.distribution.name(),
            grouped(self.keys as f64),
            grouped(self.value_bytes as f64)
        )?;
        writeln!(
            f,
            "{} connections × {} to {}, {pace}",
            self.connections,
            self.pipeline,
            self.endpoints.join(", ")
        )?;
        if let Some(load) = &self.load {
            writeln!(f, "{}", load.told("keys"))?;
        }
        let early = if self.interrupted { ", interrupted" } else { "" };
        let (operations, throughput) = (self.operations as f64, self.throughput);
        writeln!(
            f,
            "\n{} operations in {:.1} s: {} per second{early}\n",
            grouped(operations),
            self.seconds,
            grouped(throughput)
        )?;
        self.fmt_latencies(f)?;
        self.fmt_failures(f)?;
        self.fmt_usage(f)
    }
}

impl Report {
    fn fmt_latencies(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<8}{:>14}{:>12}{:>12}{:>12}{:>12}{:>12}",
            "", "operations", "mean ms", "p50 ms", "p99 ms", "p99.9 ms", "max ms"
        )?;
        for (name, class) in [("reads", &self.reads), ("writes", &self.writes)] {
            if class.operations == 0 && class.curve.is_empty() {
                continue;
            }
            write!(f, "{name:<8}{:>14}", grouped(class.operations as f64))?;
            let micros = [class.mean_us, class.p50_us, class.p99_us, class.p999_us, class.max_us];
            for value in micros {
                write!(f, "{:>12.3}", value / 1e3)?;
            }
            writeln!(f)?;
        }
        writeln!(f)
    }

    fn fmt_failures(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "errors       {}", listed(&self.errors))?;
        let others = [
            ("nil replies", self.nils),
            ("unanswered", self.unanswered),
            ("never sent", self.unsent),
            ("broken", self.broken_connections),
        ];
        for (name, count) in others.into_iter().filter(|(_, count)| *count > 0) {
            writeln!(f, "{name:<13}{}", grouped(count as f64))?;
        }
        writeln!(f, "longest gap  {}", self.gaps)?;
        let were_asked = self.http.len() > self.http_failures.len();
        fmt_gaps(f, &self.longest_gaps, were_asked)?;
        for (address, why) in &self.http_failures {
            writeln!(f, "not told     {address} did not say what its disk did: {why}")?;
        }
        Ok(())
    }

    fn fmt_usage(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        for server in &self.servers {
            writeln!(
                f,
                "server {:<6}{:.2} s of CPU, {:.0} MiB resident, {:.0} MiB at most{}",
                server.pid,
                server.cpu_seconds,
                mebibytes(server.rss_bytes),
                mebibytes(server.rss_peak_bytes),
                if server.ended { ", ended" } else { "" }
            )?;
        }
        if let (Some(total), Some(share)) =
            (self.server_cpu_seconds, self.server_cpu_seconds_per_1000)
        {
            writeln!(f, "servers      {total:.2} s of CPU, {share:.4} s per 1,000 operations")?;
        }
        let (total, share) = (self.client_cpu_seconds, self.client_cpu_seconds_per_1000);
        write!(f, "client       {total:.2} s of CPU, {share:.4} s per 1,000 operations")?;
        match self.other_cpu_cores {
            Some(cores) => write!(f, "\nothers       kept {cores:.2} processors busy"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_set_apart() {
        for (number, text) in
            [(0.0, "0"), (999.0, "999"), (1000.0, "1,000"), (-1_234_567.4, "-1,234,567")]
        {
            assert_eq!(grouped(number), text);
        }
    }

    #[test]
    fn a_ratio_of_nothing_is_zero() {
        assert!(ratio(1.0, 0.0).abs() < f64::EPSILON);
        assert!((ratio(1.0, 4.0) - 0.25).abs() < f64::EPSILON);
    }
}
