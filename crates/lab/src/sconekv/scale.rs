//! Figures 10 and 11: goodput as nodes are added, simulated.

use super::clients::{Ended, Transactions};
use super::paper;
use super::size::Size;
use crate::dotteddb::workers;
use crate::page::{Page, Table, fixed};
use crate::service::{Costs, Kept, Load, Served, serve};
use quorate_bench::Workload;
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_cli::exit::Failure;
use quorate_kernel::storage::Durability;
use quorate_protocols::serializable::ENGINE;
use quorate_sim::delay::Distribution;

/// Members of each group (§6.2).
pub const REPLICAS: usize = 4;
/// A request and a frame keep a core so long.
const MESSAGE_NS: u64 = 5_000;
/// A link of 1 Gbit/s.
const BYTE_NS: u64 = 8;
/// The way from one machine to another.
const NETWORK_US: u64 = 50;
/// How long a sync takes.
const SYNC_US: u64 = 500;
/// How long it takes to hand a batch to the operating system.
const WRITE_US: u64 = 10;
/// Decides everything.
const SEED: u64 = 1;
/// What runs, once all keys are written, before anything counts.
const WARM_UP_MS: u64 = 200;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// How many nodes there are.
    pub nodes: usize,
    /// How many clients.
    pub clients: usize,
    /// What their transactions came to.
    pub ended: Ended,
    /// What hosts did.
    pub served: Served,
}

/// One run with so many nodes.
///
/// # Errors
/// A host's store failed.
pub fn measure(size: &Size, workload: Workload, nodes: usize) -> Result<Found, Failure> {
    let clients = (size.clients_per_twenty * nodes / 20).max(1);
    let keys = (size.keys_per_twenty * nodes as u64 / 20).max(1);
    let us = |us| Distribution::Constant { us };
    let kept = Kept {
        engine: &ENGINE,
        replicas: REPLICAS,
        durability: Durability::Sync,
        settings: &[],
        write: us(WRITE_US),
        sync: us(SYNC_US),
    };
    let load = Load {
        kept,
        hosts: nodes,
        network_us: NETWORK_US,
        warm_up_ms: WARM_UP_MS,
        measured_ms: size.simulated_ms,
        seed: SEED,
    };
    let costs = Costs { request_ns: MESSAGE_NS, frame_ns: MESSAGE_NS, byte_ns: BYTE_NS };
    let mut asking = Transactions::new(workload, clients, keys, SEED);
    let served =
        serve(&load, costs, &mut asking).map_err(|fatal| Failure::failed(fatal.to_string()))?;
    let mut ended = asking.ended;
    ended.times.sort_unstable();
    Ok(Found { nodes, clients, ended, served })
}

const HEAD: [&str; 12] = [
    "nodes",
    "groups",
    "clients",
    "throughput (op/s)",
    "goodput (op/s)",
    "goodput per node",
    "aborted (%)",
    "committed",
    "failed",
    "p50 (ms)",
    "p99 (ms)",
    "frames per transaction",
];

/// Simulates one of the figures.
///
/// # Errors
/// A host's store failed.
pub fn figure(size: &Size, number: u8, threads: usize) -> Result<Page, Failure> {
    let workload = if number == 10 { Workload::A } else { Workload::B };
    let found = workers::all(&size.nodes, threads, |nodes| {
        eprintln!("figure {number}: {nodes} simulated nodes");
        measure(size, workload, *nodes)
    });
    let found: Vec<Found> = found.into_iter().collect::<Result<_, _>>()?;
    let name = format!("fig{number}");
    let mut table = Table::new(&name, "Simulated; op/s are operations, five of each", &HEAD);
    found.iter().for_each(|found| table.push(row(size, found)));
    let letter = workload.name().to_uppercase();
    let title = format!("Figure {number}: workload {letter} as nodes are added (simulated)");
    let series = |name: &str, of: fn(&Ended) -> u64| Series {
        name: name.to_owned(),
        points: found.iter().map(|it| (it.nodes as f64, rate(size, of(&it.ended)))).collect(),
    };
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    let chart = Chart {
        title: "operations per simulated second".to_owned(),
        x: axis("nodes"),
        y: axis("op/s"),
        series: vec![
            series("throughput", |it| it.committed + it.aborted),
            series("goodput", |it| it.committed),
        ],
        marks: Vec::new(),
    };
    Ok(Page {
        name,
        picture: render(&format!("SCONEKV {title}"), &[chart]),
        title,
        notes: notes(size),
        tables: vec![table],
    })
}

/// Operations per second of so many transactions.
fn rate(size: &Size, transactions: u64) -> f64 {
    transactions as f64 * super::size::LENGTH as f64 * 1e3 / size.simulated_ms as f64
}

fn row(size: &Size, found: &Found) -> Vec<String> {
    let Found { nodes, clients, ended, served } = found;
    let all = ended.committed + ended.aborted;
    let time = |share: usize| {
        let at = ended.times.len().saturating_sub(1) * share / 100;
        ended.times.get(at).map_or("-".to_owned(), |time| fixed(*time as f64 / 1e6, 2))
    };
    vec![
        nodes.to_string(),
        (nodes / REPLICAS).to_string(),
        clients.to_string(),
        fixed(rate(size, all), 0),
        fixed(rate(size, ended.committed), 0),
        fixed(rate(size, ended.committed) / *nodes as f64, 0),
        super::ablations::percent(ended.aborted, all),
        ended.committed.to_string(),
        ended.failed.to_string(),
        time(50),
        time(99),
        fixed(served.frames as f64 / all.max(1) as f64, 1),
    ]
}

fn notes(size: &Size) -> Vec<String> {
    vec![
        format!(
            "The model: the hosts run the real protocol code in the simulator. Each has one core, \
             which a client's request and a frame of another host keep for {} µs each, first \
             come, first served, and one link of 1 Gbit/s, on which frames come one after the \
             other. A way between two machines takes {NETWORK_US} µs, handing a batch to the \
             operating system {WRITE_US} µs, a sync {SYNC_US} µs; durability is `sync`. Clients, \
             their bytes, timers and what a node computes cost nothing beyond that.",
            MESSAGE_NS / 1000,
        ),
        format!(
            "{REPLICAS} replicas, nodes divided by {REPLICAS} groups, {} clients and {} keys of \
             1,000 bytes for each 20 nodes, chosen by YCSB's zipfian distribution; each client is \
             connected to one host. Clients ask as the paper's do: five operations one after the \
             other, a key is read when it is first named, the commit rests on all; one that is \
             aborted is not tried again. First all keys are written; after {WARM_UP_MS} simulated \
             milliseconds more {} ms count. Seed {SEED}. YCSB's draw gives the first keys the \
             same share however many keys there are, about 4 % of all operations to the first \
             alone, so contention grows with the clients.",
            size.clients_per_twenty, size.keys_per_twenty, size.simulated_ms,
        ),
        paper::SCALE.to_owned(),
    ]
}
