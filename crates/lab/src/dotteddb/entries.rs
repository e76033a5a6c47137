//! Fig. 1: entries of objects' clocks, as they are written, while nodes are replaced.

use super::super::page::{Page, Table, fixed};
use super::simulated::run::Piece;
use super::simulated::{Findings, Run, measure};
use super::size::Size;
use super::workers;
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_merkle::Merkle;
use quorate_protocols::causal::Causal;

/// How many pieces the time line has.
const PIECES: u64 = 12;
/// How many replicas.
const REPLICAS: [u16; 2] = [3, 6];

/// Simulates figure 1.
#[must_use]
pub fn figure(size: &Size, threads: usize) -> Page {
    let (keys, rate, seconds, churn_ms) = size.churn;
    let work: Vec<(u16, bool)> =
        REPLICAS.iter().flat_map(|replicas| [(*replicas, true), (*replicas, false)]).collect();
    let found = workers::all(&work, threads, |(replicas, is_dotted)| {
        eprintln!("figure 1: {replicas} replicas, {}", name(*is_dotted));
        let run = Run {
            replicas: *replicas,
            churn_us: churn_ms * 1000,
            bucket_s: (seconds / PIECES).max(1),
            ..size.run(keys, rate, seconds)
        };
        match is_dotted {
            true => measure::<Causal>(&run),
            false => measure::<Merkle>(&run),
        }
    });
    let mut table = Table::new(
        "fig1",
        "Entries for each object clock written, over time",
        &["replicas", "until (s)", "DottedDB", "MerkleDB"],
    );
    let mut charts = Vec::new();
    for (replicas, pair) in REPLICAS.iter().zip(found.chunks(2)) {
        for (dotted, merkle) in pair[0].pieces.iter().zip(&pair[1].pieces) {
            table.push(vec![
                replicas.to_string(),
                dotted.at_s.to_string(),
                fixed(dotted.mean_entries(), 2),
                fixed(merkle.mean_entries(), 2),
            ]);
        }
        charts.push(chart(*replicas, pair));
    }
    Page {
        name: "fig1".to_owned(),
        title: "Figure 1: entries of objects' clocks under churn".to_owned(),
        notes: notes(size, &found),
        tables: vec![table, sums(&found)],
        picture: render(
            "DottedDB Fig. 1: entries per clock written, nodes being replaced",
            &charts,
        ),
    }
}

fn name(is_dotted: bool) -> &'static str {
    if is_dotted { "DottedDB" } else { "MerkleDB" }
}

fn chart(replicas: u16, pair: &[Findings]) -> Chart {
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    let series = [true, false].iter().zip(pair).map(|(is_dotted, found)| Series {
        name: name(*is_dotted).to_owned(),
        points: found
            .pieces
            .iter()
            .map(|piece| (piece.at_s as f64, piece.mean_entries()))
            .collect(),
    });
    Chart {
        title: format!("{replicas} replicas"),
        x: axis("time (s)"),
        y: axis("entries"),
        series: series.collect(),
        marks: Vec::new(),
    }
}

fn sums(found: &[Findings]) -> Table {
    let mut table = Table::new(
        "fig1-objects",
        "Entries of all stored clocks: when the load ends, and when all is quiet",
        &["replicas", "engine", "at the end", "at rest", "values per object at rest", "refused"],
    );
    for (replicas, pair) in REPLICAS.iter().zip(found.chunks(2)) {
        for (is_dotted, found) in [true, false].iter().zip(pair) {
            table.push(vec![
                replicas.to_string(),
                name(*is_dotted).to_owned(),
                fixed(found.entries_at_end, 3),
                fixed(found.entries_at_quiescence, 3),
                fixed(found.versions_at_quiescence, 3),
                found.refused.to_string(),
            ]);
        }
    }
    table
}

fn notes(size: &Size, found: &[Findings]) -> Vec<String> {
    let (keys, rate, seconds, churn_ms) = size.churn;
    let most = |pair: &[Findings]| {
        let means = pair[0].pieces.iter().map(Piece::mean_entries);
        fixed(means.fold(0.0, f64::max), 2)
    };
    vec![
        format!(
            "{} nodes, {keys} keys, {rate} updates per second for {seconds} seconds; every \
             {} seconds the oldest node is declared gone for good and another one begins with \
             nothing in its place. Exchanges every 100 ms, stripping every second. Counted is \
             every object that any node writes to its store, those that newcomers copy included: \
             how many actors its clock names, in versions and context together.",
            size.nodes,
            fixed(churn_ms as f64 / 1000.0, 1)
        ),
        format!(
            "The paper: DottedDB has between 1 and 2 entries with three replicas and 3 on average \
             with six, and does not grow; MerkleDB grows with every replaced node. Here DottedDB \
             has at most {} and {}.",
            most(&found[0..2]),
            most(&found[2..4])
        ),
    ]
}
