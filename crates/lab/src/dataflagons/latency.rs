//! Fig. 8 and 9: what clients wait for, how much is done, and messages for each request.

use super::super::dotteddb::replication::{cdf, millis};
use super::super::dotteddb::workers;
use super::super::page::{Page, Table, fixed};
use super::quantile;
use super::run::{Found, measure};
use super::simulated::traffic::Kind;
use super::simulated::{Network, Shape};
use super::size::Size;
use quorate_chart::svg::{Axis, Chart, Scale, render};
use quorate_kernel::time::Span;
use quorate_protocols::epidemic::Level;

/// What the paper compares, with the replicas that must say so: one third of a slice, or the
/// fewest members that it has.
const SYSTEMS: [(&str, Level, u8); 4] = [
    ("DataFlagons", Level::Strong, 1),
    ("eventual", Level::Eventual, 1),
    ("DFlasks-1/3", Level::None, 3),
    ("DFlasks-All", Level::None, 6),
];

/// Rounds in milliseconds, each with a network for which it is long enough.
const ROUNDS: [(u64, &str, Network); 4] = [
    (5, "room", Network::ROOM),
    (50, "region", Network::REGION),
    (125, "region", Network::REGION),
    (500, "wide", Network::WIDE),
];

/// What [`times_row`] tells.
const TIMES: [&str; 9] = [
    "get 50 % (ms)",
    "90 %",
    "99 %",
    "put 50 % (ms)",
    "90 % ",
    "99 % ",
    "(TTL + 2) δ (ms)",
    "requests/s",
    "failed",
];

const MESSAGES: [&str; 9] = [
    "nodes",
    "system",
    "requests",
    "events",
    "balls",
    "answers and flasks",
    "payloads; joins; holes",
    "views and repair",
    "the paper: all",
];

/// Simulates the figure.
#[must_use]
pub fn figure(size: &Size) -> Page {
    let work: Vec<(usize, usize)> =
        size.nodes.iter().flat_map(|nodes| (0..SYSTEMS.len()).map(|at| (*nodes, at))).collect();
    let found = workers::all(&work, size.threads, |(nodes, at)| {
        let (name, level, acks) = SYSTEMS[*at];
        eprintln!("figure 8: {nodes} nodes, {name}");
        measure(&Shape { level, acks, ..size.shape(*nodes, 1) }, size.seconds)
    });
    let head = [&["nodes", "system"], &TIMES[..]].concat();
    let mut times = Table::new("fig8", "What clients wait for, and what is done", &head);
    let mut sent = Table::new("fig8-messages", "Messages for each request", &MESSAGES);
    for ((nodes, at), found) in work.iter().zip(&found) {
        let name = SYSTEMS[*at].0;
        times.push(times_row(vec![nodes.to_string(), name.to_owned()], found));
        sent.push(messages_row(*nodes, name, found));
    }
    let rounds = rounds(size);
    let charts: Vec<Chart> =
        size.nodes.iter().zip(found.chunks(SYSTEMS.len())).map(chart).collect();
    Page {
        name: "fig8".to_owned(),
        title: "Figures 8 and 9: what clients wait for".to_owned(),
        notes: vec![
            "Clients have one request at a time, 80 % reads. DataFlagons is level `strong` with \
             one acknowledgement, DFlasks is level `none` with 3 or 6; `eventual` orders \
             writes only. Failed are requests that nobody \
             answered in 150 rounds, or that were refused. Views and repair go on without load: \
             what stands there for each request is what is sent while it is done."
                .to_owned(),
            "The paper: DataFlagons takes ten times as long as DataFlasks; 200 thousand messages \
             for each request of DataFlasks and 4 million of DataFlagons with 300 nodes, 2 and 60 \
             million with 1000, of all kinds. It does not say what a message is."
                .to_owned(),
        ],
        tables: vec![times, sent, rounds],
        picture: render("DataFlagons Fig. 8: response latency", &charts),
    }
}

fn times_row(mut row: Vec<String>, found: &Found) -> Vec<String> {
    for times in &found.latency {
        row.extend([0.5, 0.9, 0.99].map(|share| quantile(times, share)));
    }
    let is_ordered = found.shape.level == Level::Strong;
    row.push(if is_ordered { fixed(found.expected_ms(), 0) } else { "-".to_owned() });
    row.push(fixed(found.throughput(), 1));
    row.push((found.requests.1 - found.requests.0).to_string());
    row
}

fn messages_row(nodes: usize, name: &str, found: &Found) -> Vec<String> {
    let traffic = &found.traffic;
    let requests = found.requests.1.max(1) as f64;
    let per = |kinds: &[Kind]| {
        let messages: u64 = kinds.iter().map(|kind| traffic[*kind].messages).sum();
        fixed(messages as f64 / requests, 1)
    };
    let is_flask = name.starts_with("DFlasks");
    let paper = match (nodes, is_flask) {
        (300, true) => "200 k",
        (300, false) if name == "DataFlagons" => "4 M",
        (1000, true) => "2 M",
        (1000, false) if name == "DataFlagons" => "60 M",
        _ => "-",
    };
    vec![
        nodes.to_string(),
        name.to_owned(),
        found.requests.1.to_string(),
        found.delivered.events.to_string(),
        per(&[Kind::Ball]),
        per(&[Kind::Answer, Kind::Flask]),
        per(&[Kind::Payload, Kind::Join, Kind::Hole]),
        per(&[Kind::View, Kind::Repair]),
        paper.to_owned(),
    ]
}

/// Latency against δ, in networks that are faster than a round.
fn rounds(size: &Size) -> Table {
    let found = workers::all(&ROUNDS, size.threads, |(round_ms, _, network)| {
        eprintln!("figure 8: rounds of {round_ms} ms");
        let shape = size.shape(size.middle(), 1);
        let seconds = (size.seconds * round_ms / 125).max(2);
        let (network, round) = (*network, Span::millis(*round_ms));
        measure(&Shape { network, round, ..shape }, seconds)
    });
    let mut table = Table::new(
        "fig8-rounds",
        "Level strong with other rounds and networks",
        &[&["δ (ms)", "network"], &TIMES[..]].concat(),
    );
    for ((round_ms, name, _), found) in ROUNDS.iter().zip(&found) {
        table.push(times_row(vec![round_ms.to_string(), (*name).to_owned()], found));
    }
    table
}

fn chart((nodes, found): (&usize, &[Found])) -> Chart {
    let line = |(system, found): (&(&str, Level, u8), &Found)| cdf(system.0, &found.latency[0]);
    Chart {
        title: format!("reads, {nodes} nodes"),
        x: Axis { label: millis("latency"), scale: Scale::Log },
        y: Axis { label: "reads".to_owned(), scale: Scale::Nines },
        series: SYSTEMS.iter().zip(found).map(line).collect(),
        marks: Vec::new(),
    }
}
