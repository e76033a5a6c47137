//! Figure 12: TPC-C on real hosts, with one group and with as many as the hosts fill.

use super::ablations::percent;
use super::paper;
use super::size::{Size, groups};
use crate::cluster::Cluster;
use crate::page::{Page, Table, fixed};
use quorate_bench::{Extent, Sizes, Stop, TpccConfig, TpccReport, tpcc};
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_cli::exit::Failure;
use quorate_cli::provision::keyspace;
use quorate_kernel::engine::Engine;
use quorate_protocols::serializable;
use std::time::Duration;

/// The keyspace with the tables.
const KEYSPACE: &str = "tpcc";

/// A run of TPC-C on a cluster: with a load, or on tables that are there.
#[must_use]
pub fn config(cluster: &Cluster, size: &Size, load: bool, terminals: u32) -> TpccConfig {
    let sizes = Sizes { warehouses: size.warehouses, scale: size.scale };
    TpccConfig {
        endpoints: cluster.grpc(),
        keyspace: KEYSPACE.to_owned(),
        load: load.then_some(sizes),
        terminals,
        extent: Extent::Time(size.window),
        warm_up: size.warm_up,
        interval: Duration::from_millis(100),
        seed: u64::from(terminals),
        progress: false,
        stop: Stop::default(),
    }
}

/// A cluster with an empty keyspace of an engine for the tables, with settings as `--set` takes
/// them.
///
/// # Errors
/// It did not start.
pub fn start(
    size: &Size,
    (hosts, groups): (u32, u32),
    engine: &Engine,
    settings: &[String],
) -> Result<Cluster, Failure> {
    let spec = size.spec(KEYSPACE, engine, groups, size.durability);
    let keyspace = keyspace::parse(&spec).map_err(Failure::failed)?;
    Cluster::with(size.port_base, hosts, vec![keyspace], settings)
}

/// Runs, and refuses tables that are not consistent afterwards.
///
/// # Errors
/// Nothing was committed, or a condition of the standard does not hold.
pub fn run(config: &TpccConfig) -> Result<TpccReport, Failure> {
    let report = tpcc(config)?;
    match report.is_violated() {
        true => Err(Failure::failed(report.to_string())),
        false => Ok(report),
    }
}

/// What was committed, and attempts that met what others had changed.
#[must_use]
pub fn ended(report: &TpccReport) -> (u64, u64) {
    let committed = report.transactions.iter().map(|kind| kind.latencies.operations).sum();
    let retries = report.transactions.iter().map(|kind| kind.retries).sum();
    (committed, retries)
}

const HEAD: [&str; 12] = [
    "hosts",
    "groups",
    "clients",
    "throughput (tx/s)",
    "goodput (tx/s)",
    "aborted (%)",
    "committed",
    "aborted",
    "failed",
    "NewOrder p50 (ms)",
    "NewOrder p99 (ms)",
    "conditions checked",
];

/// Measures, and makes the page.
///
/// # Errors
/// As [`run`], or a cluster did not start.
pub fn figure(size: &Size) -> Result<Page, Failure> {
    let title = "TPC-C-like; throughput counts attempts that were aborted";
    let mut table = Table::new("fig12", title, &HEAD);
    let mut series = Vec::new();
    let mut shapes = vec![(size.replicas, 1), (size.hosts, 1), (size.hosts, size.groups())];
    shapes.dedup();
    for (hosts, group_count) in shapes {
        let cluster = start(size, (hosts, group_count), &serializable::ENGINE, &[])?;
        let mut points = Vec::new();
        for (nth, terminals) in size.terminals.iter().enumerate() {
            eprintln!("figure 12: {hosts} hosts, {}, {terminals} clients", groups(group_count));
            let report = run(&config(&cluster, size, nth == 0, *terminals))?;
            let (committed, retries) = ended(&report);
            points.push((f64::from(*terminals), committed as f64 / report.seconds));
            let first = [hosts, group_count, *terminals].map(|it| it.to_string());
            table.push([&first[..], &cells(&report, committed, retries)[..]].concat());
        }
        let name = format!("{hosts} hosts, {}", groups(group_count));
        series.push(Series { name, points });
    }
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    let chart = Chart {
        title: "transactions committed per second".to_owned(),
        x: axis("clients"),
        y: axis("tx/s"),
        series,
        marks: Vec::new(),
    };
    Ok(Page {
        name: "fig12".to_owned(),
        title: "Figure 12: TPC-C (real hosts)".to_owned(),
        notes: notes(size),
        tables: vec![table],
        picture: render("SCONEKV Figure 12: TPC-C", &[chart]),
    })
}

fn cells(report: &TpccReport, committed: u64, retries: u64) -> Vec<String> {
    let failed: u64 = report.errors.values().sum();
    let order = &report.transactions[0].latencies;
    let conditions = report.audit.as_ref().map_or(0, |audit| audit.conditions.len());
    let per_second = |count: u64| fixed(count as f64 / report.seconds, 1);
    vec![
        per_second(committed + retries),
        per_second(committed),
        percent(retries, committed + retries),
        committed.to_string(),
        retries.to_string(),
        failed.to_string(),
        fixed(order.p50_us / 1e3, 1),
        fixed(order.p99_us / 1e3, 1),
        conditions.to_string(),
    ]
}

fn notes(size: &Size) -> Vec<String> {
    vec![
        format!(
            "Real hosts on loopback, {} replicas, durability `{}`. {} warehouses, customers, \
             orders and items divided by {}; no keying or think time; an aborted transaction is \
             tried again until it is done. {} s after {} s. After each run all rows are read, and \
             the consistency conditions of the standard (clause 3.3.2) checked: one that does not \
             hold ends the command with an error. This is no audited TPC-C.",
            size.replicas,
            size.durability,
            size.warehouses,
            size.scale,
            size.window.as_secs_f64(),
            size.warm_up.as_secs_f64(),
        ),
        "The hosts share the cores of one machine with the clients, so more hosts bring no more: \
         rows say what more groups and more hosts cost. Growth with the nodes is simulated, on a \
         page of its own."
            .to_owned(),
        paper::TPCC.to_owned(),
    ]
}
