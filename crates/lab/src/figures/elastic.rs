//! Fig. 5: latency while hosts join and leave under constant load: 3, 6, and 3 real hosts again.

use super::cats::Size;
use crate::background::{self, Part};
use crate::cluster::Cluster;
use crate::page::{Page, Table, fixed};
use quorate_bench::{Interval, Pace, Report, Workload};
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_cli::dev::ctl::Order;
use quorate_cli::exit::Failure;
use std::time::{Duration, Instant};

/// How many hosts join, and leave again.
const STEPS: u32 = 3;
/// Connections of the load, all to the three founders.
const CONNECTIONS: usize = 32;
/// How long a move may take at most, beyond the time of its step.
const LATE: Duration = Duration::from_secs(120);

/// One step: a host joined or left.
#[derive(Clone, Debug)]
struct Step {
    what: String,
    /// When it was ordered, in seconds since the time line began.
    at: f64,
    /// When the order was carried out: a new host serves.
    done: f64,
    /// When nothing moved any more; none if that was not seen in time.
    settled: Option<f64>,
    moved_bytes: u64,
}

/// Measures figure 5.
///
/// # Errors
/// The cluster did not start, a host could not join, or the load failed.
pub fn figure(port_base: u16, size: &Size) -> Result<Page, Failure> {
    let mut cluster = Cluster::start(port_base, 3, &["default=linearizable"])?;
    eprintln!("figure 5: {} keys are written", size.elastic_keys);
    let mut config = cluster.load(Workload::Get);
    config.key_count = size.elastic_keys;
    background::load(&config)?;
    config.load = false;
    config.connection_count = CONNECTIONS;
    config.pace = Pace::Open { rate_per_second: size.rate };
    config.warm_up = size.warm_up;
    config.interval = size.bucket;
    let (steps, report) = background::under_load(config, |begun| drive(&mut cluster, size, begun))?;
    Ok(page(size, &steps, &report))
}

/// Has hosts join and leave, one step after the other.
fn drive(cluster: &mut Cluster, size: &Size, begun: Instant) -> Result<Vec<Step>, Failure> {
    let mut steps = Vec::new();
    std::thread::sleep(size.warm_up + size.step);
    for _ in 0..STEPS {
        steps.push(step(cluster, size, begun, Order::Add)?);
    }
    for leaver in (4..4 + STEPS).rev() {
        steps.push(step(cluster, size, begun, Order::Drain { host: leaver })?);
    }
    Ok(steps)
}

/// One step: gives the order, waits until nothing moves, and until it is time for the next one.
fn step(cluster: &mut Cluster, size: &Size, begun: Instant, order: Order) -> Result<Step, Failure> {
    let since = || begun.elapsed().as_secs_f64();
    let (at, next) = (since(), Instant::now() + size.step);
    let until = next + LATE;
    let moved_before = cluster.moved_bytes()?;
    cluster.tell(&order)?;
    let done = since();
    let (what, leaver) = match order {
        Order::Drain { host } => (format!("drain {host}"), Some(host)),
        _ => (format!("join {}", cluster.last()), None),
    };
    let settled = cluster.settled(leaver, until)?;
    let settled = settled.map(|when| when.saturating_duration_since(begun).as_secs_f64());
    let shown = settled.map_or_else(|| "not seen".to_owned(), |at| format!("{at:.1} s"));
    eprintln!("figure 5: {what} at {at:.1} s, settled {shown}");
    let moved_bytes = cluster.moved_bytes()?.saturating_sub(moved_before);
    std::thread::sleep(next.saturating_duration_since(Instant::now()));
    Ok(Step { what, at, done, settled, moved_bytes })
}

fn page(size: &Size, steps: &[Step], report: &Report) -> Page {
    let axis = |label: &str, scale| Axis { label: label.to_owned(), scale };
    let line = |name: &str, of: fn(&Interval) -> f64| {
        let middle = |piece: &Interval| piece.at_seconds + piece.seconds / 2.0;
        let points = report.intervals.iter().map(|piece| (middle(piece), of(piece)));
        Series { name: name.to_owned(), points: points.collect() }
    };
    let marks = |is_named: bool| {
        let name = |step: &Step| if is_named { step.what.clone() } else { String::new() };
        steps.iter().map(|step| (step.at, name(step))).collect()
    };
    let chart = |title: &str, y, series, is_named| Chart {
        title: title.to_owned(),
        x: axis("seconds", Scale::Linear),
        y,
        series,
        marks: marks(is_named),
    };
    let latency =
        vec![line("mean", |piece| piece.mean_us / 1e3), line("p99", |piece| piece.p99_us / 1e3)];
    let rate = |piece: &Interval| (piece.reads + piece.writes) as f64 / piece.seconds;
    let errors = |piece: &Interval| piece.errors as f64 / piece.seconds;
    let charts = [
        chart("Latency", axis("ms", Scale::Log), latency, true),
        chart(
            "Operations",
            axis("per s", Scale::Linear),
            vec![line("answered", rate), line("errors", errors)],
            false,
        ),
    ];
    Page {
        name: "fig5".to_owned(),
        title: "Figure 5: latency while hosts join and leave".to_owned(),
        notes: notes(size, report),
        tables: vec![step_table(steps, report), time_line(report)],
        picture: render("CATS Fig. 5: elasticity, three hosts to six and back", &charts),
    }
}

fn notes(size: &Size, report: &Report) -> Vec<String> {
    let failed: u64 = report.errors.values().sum();
    vec![
        format!(
            "Three real hosts, three replicas, durability `memory`, {} keys of 1,024 bytes. Reads \
             alone, {} a second whatever the latency, over {CONNECTIONS} connections to the three \
             founders; a latency counts from when an operation was due. Every {} s a host joins, \
             three times, and then the last one is drained, three times; a drained host keeps \
             running and holds nothing. Settled is when the groups that hosts know changed last, \
             seen ten times a second.",
            size.elastic_keys,
            size.rate,
            size.step.as_secs_f64()
        ),
        format!(
            "{} operations were answered, {failed} failed, {} were never sent in time; the longest \
             time without any answer was {:.0} ms.",
            report.operations, report.unsent, report.gaps.any_ms
        ),
        "The paper, with a server for each host and a join every ten minutes: latency below twice \
         the usual for one to two minutes at each step, and half of it with twice the servers. The \
         second cannot show here, where all hosts share one machine."
            .to_owned(),
    ]
}

/// One row for each step: what moved, and latency before and while it did.
fn step_table(steps: &[Step], report: &Report) -> Table {
    let mut table = Table::new(
        "fig5-steps",
        "The steps; before is the part of the time line since the step before had settled",
        &[
            "step",
            "ordered at (s)",
            "carried out in (s)",
            "settled after (s)",
            "moved (MB)",
            "mean before (ms)",
            "mean while moving (ms)",
            "worst p99 before (ms)",
            "worst p99 while moving (ms)",
            "errors",
        ],
    );
    let piece = report.intervals.first().map_or(0.0, |first| first.seconds);
    let mut still_since = 0.0;
    for step in steps {
        let end = step.settled.unwrap_or(f64::MAX);
        // Whole pieces only: one that a step cuts belongs to the step.
        let before = Part::of(report, still_since + piece, step.at - piece);
        let moving = Part::of(report, step.at, end);
        still_since = end;
        table.push(vec![
            step.what.clone(),
            fixed(step.at, 1),
            fixed(step.done - step.at, 2),
            step.settled.map_or_else(|| "not seen".to_owned(), |end| fixed(end - step.at, 2)),
            fixed(step.moved_bytes as f64 / 1e6, 1),
            fixed(before.mean_ms, 3),
            fixed(moving.mean_ms, 3),
            fixed(before.p99_ms, 2),
            fixed(moving.p99_ms, 2),
            moving.errors.to_string(),
        ]);
    }
    table
}

fn time_line(report: &Report) -> Table {
    let mut table = Table::new(
        "fig5-time",
        "The time line",
        &["at (s)", "op/s", "mean (ms)", "p50 (ms)", "p99 (ms)", "errors"],
    );
    for piece in &report.intervals {
        table.push(vec![
            fixed(piece.at_seconds, 1),
            fixed((piece.reads + piece.writes) as f64 / piece.seconds.max(1e-9), 0),
            fixed(piece.mean_us / 1e3, 3),
            fixed(piece.p50_us / 1e3, 3),
            fixed(piece.p99_us / 1e3, 3),
            piece.errors.to_string(),
        ]);
    }
    table
}
