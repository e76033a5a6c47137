//! Figures 10 to 12: goodput as nodes are added, simulated.

use super::clients::{Ended, Transactions};
use super::paper;
use super::size::{LENGTH, Size};
use super::terminals::Terminals;
use crate::dotteddb::workers;
use crate::page::{Page, Table, fixed};
use crate::service::{Clients, Costs, Kept, Load, Served, serve};
use quorate_bench::{Sizes, Workload};
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

/// What clients ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaled {
    /// One of YCSB's mixes.
    Mix(Workload),
    /// TPC-C's transactions.
    Tpcc,
}

impl Scaled {
    /// What a figure is of.
    fn of(figure: u8) -> Scaled {
        match figure {
            10 => Scaled::Mix(Workload::A),
            11 => Scaled::Mix(Workload::B),
            _ => Scaled::Tpcc,
        }
    }

    fn name(self) -> String {
        match self {
            Scaled::Mix(workload) => format!("workload {}", workload.name().to_uppercase()),
            Scaled::Tpcc => "TPC-C".to_owned(),
        }
    }

    /// What is counted, how many of it a transaction is, and what stands above the columns.
    fn unit(self) -> (&'static str, usize, [&'static str; 2]) {
        match self {
            Scaled::Mix(_) => ("op/s", LENGTH, ["throughput (op/s)", "goodput (op/s)"]),
            Scaled::Tpcc => ("tx/s", 1, ["throughput (tx/s)", "goodput (tx/s)"]),
        }
    }
}

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
pub fn measure(size: &Size, asked: Scaled, nodes: usize) -> Result<Found, Failure> {
    let of = |per_twenty: usize| (per_twenty * nodes / 20).max(1);
    let run = |asking: &mut dyn Clients| {
        let served = serve(&load(size, nodes), COSTS, asking);
        served.map_err(|fatal| Failure::failed(fatal.to_string()))
    };
    let (clients, served, mut ended) = match asked {
        Scaled::Mix(workload) => {
            let (clients, keys) = (of(size.clients_per_twenty), of(size.keys_per_twenty as usize));
            let mut asking = Transactions::new(workload, clients, keys as u64, SEED);
            (clients, run(&mut asking)?, asking.ended)
        }
        Scaled::Tpcc => {
            let clients = of(size.terminals_per_twenty);
            let warehouses = of(size.warehouses_per_twenty) as u16;
            let sizes = Sizes { warehouses, scale: size.simulated_scale };
            let mut asking = Terminals::new(sizes, clients as u32, SEED);
            (clients, run(&mut asking)?, asking.ended)
        }
    };
    ended.times.sort_unstable();
    Ok(Found { nodes, clients, ended, served })
}

const COSTS: Costs = Costs { request_ns: MESSAGE_NS, frame_ns: MESSAGE_NS, byte_ns: BYTE_NS };

fn load(size: &Size, hosts: usize) -> Load {
    let us = |us| Distribution::Constant { us };
    let kept = Kept {
        engine: &ENGINE,
        replicas: REPLICAS,
        durability: Durability::Sync,
        settings: &[],
        write: us(WRITE_US),
        sync: us(SYNC_US),
    };
    Load {
        kept,
        hosts,
        network_us: NETWORK_US,
        warm_up_ms: WARM_UP_MS,
        measured_ms: size.simulated_ms,
        seed: SEED,
    }
}

/// The head, but for the two columns behind these three.
const HEAD: [&str; 3] = ["nodes", "groups", "clients"];
const HEAD_REST: [&str; 7] = [
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
    let asked = Scaled::of(number);
    let found = workers::all(&size.nodes, threads, |nodes| {
        eprintln!("figure {number}: {nodes} simulated nodes");
        measure(size, asked, *nodes)
    });
    let found: Vec<Found> = found.into_iter().collect::<Result<_, _>>()?;
    let (unit, factor, columns) = asked.unit();
    let rate =
        |transactions: u64| transactions as f64 * factor as f64 * 1e3 / size.simulated_ms as f64;
    let (name, counted) = match asked {
        Scaled::Mix(_) => (format!("fig{number}"), "Simulated; op/s are operations, five of each"),
        Scaled::Tpcc => (format!("fig{number}-simulated"), "Simulated; tx/s are transactions"),
    };
    let head = [&HEAD[..], &columns[..], &HEAD_REST[..]].concat();
    let mut table = Table::new(&name, counted, &head);
    found.iter().for_each(|found| table.push(row(found, rate)));
    let title = format!("Figure {number}: {} as nodes are added (simulated)", asked.name());
    let series = |name: &str, of: fn(&Ended) -> u64| Series {
        name: name.to_owned(),
        points: found.iter().map(|it| (it.nodes as f64, rate(of(&it.ended)))).collect(),
    };
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    let chart = Chart {
        title: format!("{unit}, per simulated second"),
        x: axis("nodes"),
        y: axis(unit),
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
        notes: notes(size, asked),
        tables: vec![table],
    })
}

fn row(found: &Found, rate: impl Fn(u64) -> f64) -> Vec<String> {
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
        fixed(rate(all), 0),
        fixed(rate(ended.committed), 0),
        fixed(rate(ended.committed) / *nodes as f64, 0),
        super::ablations::percent(ended.aborted, all),
        ended.committed.to_string(),
        ended.failed.to_string(),
        time(50),
        time(99),
        fixed(served.frames as f64 / all.max(1) as f64, 1),
    ]
}

fn notes(size: &Size, asked: Scaled) -> Vec<String> {
    let model = format!(
        "The model: the hosts run the real protocol code in the simulator. Each has one core, \
         which a client's request and a frame of another host keep for {} µs each, first come, \
         first served, and one link of 1 Gbit/s, on which frames come one after the other. A way \
         between two machines takes {NETWORK_US} µs, handing a batch to the operating system \
         {WRITE_US} µs, a sync {SYNC_US} µs; durability is `sync`. Clients, their bytes, timers \
         and what a node computes cost nothing beyond that.",
        MESSAGE_NS / 1000,
    );
    let kept = format!("{REPLICAS} replicas, nodes divided by {REPLICAS} groups");
    let counted = format!(
        "after {WARM_UP_MS} simulated milliseconds more {} ms count. Seed {SEED}.",
        size.simulated_ms
    );
    match asked {
        Scaled::Mix(_) => vec![
            model,
            format!(
                "{kept}, {} clients and {} keys of 1,000 bytes for each 20 nodes, chosen by YCSB's \
                 zipfian distribution; each client is connected to one host. Clients ask as the \
                 paper's do: five operations one after the other, a key is read when it is first \
                 named, the commit rests on all; one that is aborted is not tried again. First all \
                 keys are written; {counted} YCSB's draw gives the first keys the same share \
                 however many keys there are, about 4 % of all operations to the first alone, so \
                 contention grows with the clients.",
                size.clients_per_twenty, size.keys_per_twenty,
            ),
            paper::SCALE.to_owned(),
        ],
        Scaled::Tpcc => vec![
            model,
            format!(
                "{kept}, {} terminals and {} warehouses for each 20 nodes, customers, orders and \
                 items divided by {}; each terminal is connected to one host, and neither keys in \
                 nor thinks. They are those of the real hosts, without the native client and what \
                 that asks again. An aborted transaction is tried again until it is done; times \
                 are from its first attempt on. First all rows are written; {counted} The \
                 conditions of the standard are not checked here: the page of the real hosts has \
                 them.",
                size.terminals_per_twenty, size.warehouses_per_twenty, size.simulated_scale,
            ),
            paper::TPCC.to_owned(),
        ],
    }
}
