//! The charts of a report: throughput and latency over time, and latency by quantile.

use crate::report::findings::{ClassReport, Report};
use crate::report::record::Interval;
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};

/// The whole picture of a report.
#[must_use]
pub fn report(report: &Report) -> String {
    let title = format!(
        "workload {}, {} connections × {}, {:.0} operations per second",
        report.workload, report.connections, report.pipeline, report.throughput
    );
    let time = |label: &str, scale, title: &str, series| Chart {
        title: title.to_owned(),
        x: axis("seconds", Scale::Linear),
        y: axis(label, scale),
        series,
        marks: Vec::new(),
    };
    let per_second = |count: u64, interval: &Interval| count as f64 / interval.seconds;
    let throughput = vec![
        over_time(report, "reads", |interval| per_second(interval.reads, interval)),
        over_time(report, "writes", |interval| per_second(interval.writes, interval)),
        over_time(report, "errors", |interval| per_second(interval.errors, interval)),
    ];
    let latency = vec![
        over_time(report, "p50", |interval| interval.p50_us / 1e3),
        over_time(report, "p99", |interval| interval.p99_us / 1e3),
    ];
    let curve = Chart {
        title: "Latency by share of operations".to_owned(),
        x: axis("operations that were at least as fast", Scale::Nines),
        y: axis("ms", Scale::Log),
        series: vec![by_quantile("reads", &report.reads), by_quantile("writes", &report.writes)],
        marks: Vec::new(),
    };
    let charts = [
        time("per s", Scale::Linear, "Throughput over time", throughput),
        time("ms", Scale::Log, "Latency over time", latency),
        curve,
    ];
    render(&title, &charts)
}

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.to_owned(), scale }
}

fn over_time(report: &Report, name: &str, value: impl Fn(&Interval) -> f64) -> Series {
    let middle = |interval: &Interval| interval.at_seconds + interval.seconds / 2.0;
    let point = |interval: &Interval| (middle(interval), value(interval));
    Series { name: name.to_owned(), points: report.intervals.iter().map(point).collect() }
}

fn by_quantile(name: &str, class: &ClassReport) -> Series {
    let points = class.curve.iter().map(|point| (point.quantile, point.us / 1e3)).collect();
    Series { name: name.to_owned(), points }
}
