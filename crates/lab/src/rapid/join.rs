//! Fig. 5 to 7 and Table 1: all nodes but one come at once.

use super::simulated::{Cluster, costs};
use super::size::Size;
use super::{Spread, paper, seconds};
use crate::dotteddb::workers;
use crate::page::{Page, Table, fixed};
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_kernel::time::{Span, Time};
use quorate_protocols::membership::Shape;

/// How long the first node is alone (paper §7).
const ALONE: Span = Span::secs(10);
/// Within how long the others are started. The paper does not say.
const WITHIN: Span = Span::secs(1);
/// So long is waited for all to be members.
const LIMIT: Span = Span::secs(300);

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// How many nodes there are.
    pub nodes: usize,
    /// How many configurations there were behind the first.
    pub configurations: usize,
    /// How many different sizes nodes reported, asked once a second.
    pub sizes: usize,
    /// From the first newcomer on until all counted all; none if they never did.
    pub time: Option<Span>,
    /// How long each node took until it counted all, ascending, in seconds.
    pub latencies: Vec<f64>,
    /// When each configuration was first installed, and how many members it has.
    pub steps: Vec<(f64, usize)>,
    /// Messages and bytes that the whole took.
    pub sent: [u64; 2],
}

/// One run with so many nodes.
#[must_use]
pub fn measure(nodes: usize, seed: u64) -> Found {
    let mut cluster = Cluster::founded(1, Shape::DEFAULT, seed);
    cluster.run(ALONE);
    cluster.begin_measuring();
    let begun = cluster.now();
    cluster.join(nodes - 1, WITHIN);
    cluster.run(WITHIN);
    let is_settled = cluster.until(LIMIT, Cluster::is_settled);
    // Those who are asked once a second report the last size too.
    let sent = cluster.sent();
    cluster.run(Span::secs(1));
    let passed = |at: Time| (at - begun).0 as f64 / 1e9;
    let mut latencies: Vec<f64> = cluster.installed().map(passed).collect();
    latencies.sort_by(f64::total_cmp);
    let chain: Vec<(Time, usize)> = cluster.chain().collect();
    Found {
        nodes,
        configurations: chain.len() - 1,
        sizes: cluster.sizes.len(),
        time: is_settled.then(|| cluster.settled_at() - begun),
        latencies,
        steps: chain.iter().skip(1).map(|(at, members)| (passed(*at), *members)).collect(),
        sent,
    }
}

const HEAD: [&str; 9] = [
    "nodes",
    "runs",
    "all joined (s), mean",
    "lowest",
    "highest",
    "configurations",
    "sizes reported",
    "the paper: sizes",
    "MB sent",
];

/// Simulates the figures.
#[must_use]
pub fn figure(size: &Size) -> Page {
    let work: Vec<(usize, u64)> =
        size.nodes.iter().flat_map(|nodes| (1..=size.seeds).map(|seed| (*nodes, seed))).collect();
    let found = workers::all(&work, size.threads, |(nodes, seed)| {
        eprintln!("figure 5: {nodes} nodes, seed {seed}");
        measure(*nodes, *seed)
    });
    let runs: Vec<&[Found]> = found.chunks(size.seeds as usize).collect();
    let mut table = Table::new("fig5", "From the first newcomer until all count all", &HEAD);
    let mut steps = Table::new(
        "fig7",
        "Seed 1: when each configuration was first installed, and its members",
        &["nodes", "configuration", "after (s)", "members"],
    );
    for found in &runs {
        let nodes = found[0].nodes;
        let times: Vec<f64> = found.iter().filter_map(|it| Some(it.time?.0 as f64 / 1e9)).collect();
        let missed = found.len() - times.len();
        let time = Spread::of(&times);
        let counts = |of: fn(&Found) -> usize| {
            let counts: Vec<f64> = found.iter().map(|it| of(it) as f64).collect();
            Spread::of(&counts).whole()
        };
        let megabytes: Vec<f64> = found.iter().map(|it| it.sent[1] as f64 / 1e6).collect();
        let runs = if missed == 0 {
            found.len().to_string()
        } else {
            format!("{}, of which {missed} did not end", found.len())
        };
        table.push(vec![
            nodes.to_string(),
            runs,
            seconds(time.mean),
            seconds(time.low),
            seconds(time.high),
            counts(|it| it.configurations),
            counts(|it| it.sizes),
            paper::sizes(nodes).map_or("-".to_owned(), |sizes| sizes.to_string()),
            fixed(Spread::of(&megabytes).mean, 1),
        ]);
        for (place, (at, members)) in found[0].steps.iter().enumerate() {
            let cells = [nodes.to_string(), (place + 2).to_string(), fixed(*at, 2)];
            steps.push([&cells[..], &[members.to_string()]].concat());
        }
    }
    Page {
        name: "fig5".to_owned(),
        title: "Figures 5 to 7 and Table 1: many nodes join at once".to_owned(),
        notes: vec![
            format!(
                "One node is alone for 10 s; all others are started within a second, at random, \
                 and ask it to be let in. K, H and L are 10, 9 and 4, our defaults (the \
                 paper: 10, 9 and 3). Seeds 1 to {}. Configurations are those behind the first; \
                 sizes are what nodes that are members report, each asked once a second, the first \
                 node's 1 included. A cell with two dots is the lowest and the highest of all \
                 runs.",
                size.seeds
            ),
            costs::words(),
            paper::BOOTSTRAP.to_owned(),
        ],
        tables: vec![table, steps],
        picture: render("Rapid Fig. 5 to 7: bootstrap", &[latency(&runs), sizes(&runs)]),
    }
}

/// How many nodes count all members by then (Fig. 6).
fn latency(runs: &[&[Found]]) -> Chart {
    let series = |found: &&[Found]| {
        let mut all: Vec<f64> = found.iter().flat_map(|it| it.latencies.clone()).collect();
        all.sort_by(f64::total_cmp);
        let share = |share: usize| (all[(all.len() - 1) * share / 100], share as f64 / 100.0);
        Series { name: format!("{} nodes", found[0].nodes), points: (0..=100).map(share).collect() }
    };
    Chart {
        title: "share of the nodes that count all members by then, all seeds".to_owned(),
        x: Axis { label: "seconds after the first newcomer".to_owned(), scale: Scale::Linear },
        y: Axis { label: "share".to_owned(), scale: Scale::Linear },
        series: runs.iter().map(series).collect(),
        marks: Vec::new(),
    }
}

/// What the newest configuration counts (Fig. 7).
fn sizes(runs: &[&[Found]]) -> Chart {
    let series = |found: &&[Found]| {
        let mut points = vec![(0.0, 1.0)];
        for (at, members) in &found[0].steps {
            let before = points[points.len() - 1].1;
            points.extend([(*at, before), (*at, *members as f64)]);
        }
        Series { name: format!("{} nodes", found[0].nodes), points }
    };
    Chart {
        title: "members of the newest configuration, seed 1".to_owned(),
        x: Axis { label: "seconds after the first newcomer".to_owned(), scale: Scale::Linear },
        y: Axis { label: "members (logarithmic)".to_owned(), scale: Scale::Log },
        series: runs.iter().map(series).collect(),
        marks: Vec::new(),
    }
}
