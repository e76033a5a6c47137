//! Fig. 7: what is delivered while nodes are replaced.

use super::super::dotteddb::workers;
use super::super::page::{Page, Table, fixed};
use super::grid::Sums;
use super::run::{Found, measure};
use super::simulated::Shape;
use super::size::Size;
use super::{millionths, quantile};
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};

const HEAD: [&str; 13] = [
    "replaced (%/min)",
    "replaced",
    "events",
    "pairs",
    "holes",
    "of a million",
    "low",
    "high",
    "out of order",
    "words",
    "stale words",
    "stale reads",
    "behind",
];

const CLIENTS: [&str; 8] = [
    "replaced (%/min)",
    "asked",
    "done (%)",
    "get 50 % (ms)",
    "get 99 % (ms)",
    "put 50 % (ms)",
    "lacking when load ends",
    "equal after (rounds)",
];

/// Simulates the figure.
#[must_use]
pub fn figure(size: &Size) -> Page {
    let seeds = 1..=size.seeds;
    let work: Vec<(u32, u64)> =
        size.churns.iter().flat_map(|churn| seeds.clone().map(|seed| (*churn, seed))).collect();
    let seconds = size.seconds.max(if size.seconds < 30 { 0 } else { 60 });
    let found = workers::all(&work, size.threads, |(churn, seed)| {
        eprintln!("figure 7: {churn} % replaced a minute, seed {seed}");
        let shape = size.shape(size.middle(), *seed);
        measure(&Shape { churn_percent: *churn, ..shape }, seconds)
    });
    let found: Vec<&[Found]> = found.chunks(size.seeds as usize).collect();
    let mut order = Table::new("fig7", "Events and reads", &HEAD);
    let mut clients = Table::new("fig7-clients", "What clients see, and replicas have", &CLIENTS);
    for (churn, found) in size.churns.iter().zip(&found) {
        let sums = Sums::of(found);
        let replaced: u64 = found.iter().map(|found| found.replaced).sum();
        let mut row = vec![churn.to_string()];
        let counts = [replaced, sums.events, sums.pairs.0, sums.pairs.1];
        row.extend(counts.map(|count| count.to_string()));
        row.extend(millionths(sums.pairs.1, sums.pairs.0));
        let counts = [sums.inversions, sums.words.0, sums.words.1, sums.reads.1, sums.reads.2];
        row.extend(counts.map(|count| count.to_string()));
        order.push(row);
        let mut row = vec![churn.to_string(), sums.requests.1.to_string()];
        row.push(fixed(100.0 * sums.requests.0 as f64 / sums.requests.1.max(1) as f64, 2));
        let [gets, puts] = &found[0].latency;
        row.extend([quantile(gets, 0.5), quantile(gets, 0.99), quantile(puts, 0.5)]);
        row.push(sums.missing.to_string());
        row.push(match found.iter().map(|found| found.repaired).max_by_key(|it| it.is_none()) {
            Some(None) | None => "never".to_owned(),
            Some(Some(_)) => {
                found.iter().filter_map(|it| it.repaired).max().unwrap_or(0).to_string()
            }
        });
        clients.push(row);
    }
    let nodes = size.middle();
    Page {
        name: "fig7".to_owned(),
        title: "Figure 7: what is delivered while nodes are replaced".to_owned(),
        notes: vec![
            format!(
                "{nodes} nodes, K and TTL of the formulas, {} clients with one request at a time \
                 for {seconds} s, of nodes that are ready; seeds 1 to {}. A replaced node stops \
                 without a word, and another one begins with nothing in the same moment. Requests \
                 of nodes that stopped are asked once and have failed.",
                size.shape(nodes, 1).clients,
                size.seeds
            ),
            "The paper: no violation with 10, 20 or 30 %, replaced in steps between which the \
             system converges, and each request sent to three nodes."
                .to_owned(),
        ],
        tables: vec![order, clients],
        picture: render("DataFlagons Fig. 7: requests that are done", &[chart(size, &found)]),
    }
}

fn chart(size: &Size, found: &[&[Found]]) -> Chart {
    let points = size.churns.iter().zip(found).map(|(churn, found)| {
        let sums = Sums::of(found);
        (f64::from(*churn), 100.0 * sums.requests.0 as f64 / sums.requests.1.max(1) as f64)
    });
    Chart {
        title: "requests that are done".to_owned(),
        x: Axis { label: "nodes replaced in a minute (%)".to_owned(), scale: Scale::Linear },
        y: Axis { label: "percent".to_owned(), scale: Scale::Linear },
        series: vec![Series { name: "done".to_owned(), points: points.collect() }],
        marks: Vec::new(),
    }
}
