//! What a node and a round cost, against the number of nodes.

use super::super::dotteddb::workers;
use super::super::page::{Page, Table, fixed};
use super::run::{Cost, Found, measure};
use super::simulated::traffic::Kind;
use super::size::Size;
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};

const HEAD: [&str; 11] = [
    "nodes",
    "load",
    "K",
    "TTL",
    "slices",
    "messages",
    "balls",
    "bytes",
    "steps",
    "x real time",
    "steps/s of a core",
];

/// Simulates the marks.
#[must_use]
pub fn figure(size: &Size) -> Page {
    let found = workers::all(&size.nodes, size.threads, |nodes| {
        eprintln!("marks: {nodes} nodes");
        measure(&size.shape(*nodes, 1), size.seconds)
    });
    let mut costs = Table::new("marks", "For each node and round", &HEAD);
    for found in &found {
        costs.push(row(found, "none", &found.idle));
        let clients = found.shape.clients;
        costs.push(row(found, &format!("{clients} clients"), &found.loaded));
    }
    Page {
        name: "marks".to_owned(),
        title: "What a node and a round cost".to_owned(),
        notes: vec![
            "Clients have one request at a time, 80 % reads, of which several share an event if \
             they meet at one node. Values of 100 bytes. Without load only views and comparisons \
             are sent. Steps are messages and timers that nodes handle. Times are those of a core, \
             so other work on the machine counts little."
                .to_owned(),
        ],
        tables: vec![costs, payloads(&found), settling(&found)],
        picture: render("What a node and a round cost", &[chart(&found)]),
    }
}

fn row(found: &Found, load: &str, cost: &Cost) -> Vec<String> {
    let per = |count: u64, digits| fixed(count as f64 / cost.node_rounds, digits);
    let all = cost.traffic.all();
    vec![
        found.shape.nodes.to_string(),
        load.to_owned(),
        found.parameters.0.to_string(),
        found.parameters.1.to_string(),
        found.slices.to_string(),
        per(all.messages, 1),
        per(cost.traffic[Kind::Ball].messages, 1),
        per(all.bytes, 0),
        per(cost.events, 1),
        fixed(cost.seconds / cost.busy_seconds, 2),
        fixed(cost.events as f64 / cost.busy_seconds, 0),
    ]
}

/// What one event costs each node, with payloads apart and within balls.
fn payloads(found: &[Found]) -> Table {
    let mut table = Table::new(
        "marks-payloads",
        "Bytes that a node sends for each ordered event",
        &["nodes", "events", "balls", "payloads", "both", "payload in each ball", "ratio"],
    );
    for found in found {
        let traffic = &found.traffic;
        let pairs = (found.delivered.events * found.shape.nodes as u64).max(1) as f64;
        let (ball, payload) = (traffic[Kind::Ball].bytes, traffic[Kind::Payload].bytes);
        let naive = (ball + traffic.carried_bytes) as f64;
        let mut row = vec![found.shape.nodes.to_string(), found.delivered.events.to_string()];
        let costs = [ball as f64, payload as f64, (ball + payload) as f64, naive];
        row.extend(costs.map(|bytes| fixed(bytes / pairs, 0)));
        row.push(fixed(naive / (ball + payload).max(1) as f64, 2));
        table.push(row);
    }
    table
}

/// How long the start of a whole cluster takes.
fn settling(found: &[Found]) -> Table {
    let mut table = Table::new(
        "marks-settling",
        "From the start of all nodes at once to all being ready and agreeing on slices",
        &["nodes", "after (s)", "rounds", "slices", "nodes per slice"],
    );
    for found in found {
        let seconds = found.settled.map(|span| span.0 as f64 / 1e9);
        let rounds = found.settled.map(|span| span.0 / found.shape.round.0);
        table.push(vec![
            found.shape.nodes.to_string(),
            seconds.map_or("never".to_owned(), |seconds| fixed(seconds, 1)),
            rounds.map_or("-".to_owned(), |rounds| rounds.to_string()),
            found.slices.to_string(),
            fixed(found.shape.nodes as f64 / found.slices.max(1) as f64, 1),
        ]);
    }
    table
}

fn chart(found: &[Found]) -> Chart {
    let series = |name: &str, of: fn(&Found) -> f64| Series {
        name: name.to_owned(),
        points: found.iter().map(|found| (found.shape.nodes as f64, of(found))).collect(),
    };
    Chart {
        title: "messages for each node and round".to_owned(),
        x: Axis { label: "nodes (logarithmic)".to_owned(), scale: Scale::Log },
        y: Axis { label: "messages".to_owned(), scale: Scale::Linear },
        series: vec![
            series("no load", |found| {
                found.idle.traffic.all().messages as f64 / found.idle.node_rounds
            }),
            series("loaded", |found| {
                found.loaded.traffic.all().messages as f64 / found.loaded.node_rounds
            }),
            series("K", |found| found.parameters.0 as f64),
        ],
        marks: Vec::new(),
    }
}
