//! Fig. 3: two clients write the same version of a key at once.

use super::super::page::{Page, Table};
use super::run::SETTLE_ROUNDS;
use super::simulated::{Cluster, Shape};
use super::size::Size;
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_kernel::time::Span;
use quorate_protocols::epidemic::Level;

/// How often replicas are counted, and for how long: as in the paper, whose ticks are milliseconds.
const TICKS: u64 = 125;
const UNTIL: u64 = 8000;
/// How many keys are written twice.
const KEYS: u32 = 20;

/// What became of the keys.
struct Divergence {
    /// Of the first key: when, and how many replicas have the one value and the other.
    lines: [Vec<(f64, f64)>; 2],
    /// Of how many keys replicas differ after each step.
    divided: Vec<usize>,
}

/// Simulates figure 3.
#[must_use]
pub fn figure(size: &Size) -> Page {
    let nodes = size.middle();
    let levels = [("none", Level::None), ("strong", Level::Strong)];
    let head = ["level", "keys", "divided after 1 s", "2 s", "4 s", "8 s", "of the first key"];
    let mut table = Table::new("fig3", "Keys whose replicas have different values", &head);
    let mut charts = Vec::new();
    for (name, level) in levels {
        eprintln!("figure 3: level {name}");
        let found = write_twice(&Shape { level, ..size.shape(nodes, 1) });
        let at = |ms: u64| found.divided[(ms / TICKS) as usize - 1].to_string();
        let mut row = vec![name.to_owned(), KEYS.to_string()];
        row.extend([1000, 2000, 4000, UNTIL].map(at));
        let last = found.lines.each_ref().map(|line| line.last().map_or(0.0, |(_, count)| *count));
        row.push(format!("{} + {}", last[0], last[1]));
        table.push(row);
        let [one, other] = found.lines;
        charts.push(Chart {
            title: format!("the first key, level {name}"),
            x: Axis { label: "time after the writes (ms)".to_owned(), scale: Scale::Linear },
            y: Axis { label: "replicas".to_owned(), scale: Scale::Linear },
            series: vec![
                Series { name: "v1".to_owned(), points: one },
                Series { name: "v2".to_owned(), points: other },
            ],
            marks: Vec::new(),
        });
    }
    Page {
        name: "fig3".to_owned(),
        title: "Figure 3: two values for one version".to_owned(),
        notes: vec![
            format!(
                "{nodes} nodes. Of each of {KEYS} keys two clients write version 0 at the same \
                 moment, at two random nodes. At level `none` the value with the larger hash wins \
                 wherever replicas meet both, in repair at the latest; in DataFlasks each keeps \
                 the first that it hears of. At level `strong` the order chooses."
            ),
            "The paper: both values survive at disjoint replicas until the simulation ends."
                .to_owned(),
        ],
        tables: vec![table],
        picture: render("DataFlagons Fig. 3: replicas of two values", &charts),
    }
}

fn write_twice(shape: &Shape) -> Divergence {
    let mut cluster = Cluster::new(shape);
    cluster.settle(SETTLE_ROUNDS);
    let mut first = Vec::new();
    for key in 0..KEYS {
        for _ in 0..2 {
            first.extend(cluster.put_as(key, 0).filter(|_| key == 0));
        }
    }
    let mut found = Divergence { lines: [Vec::new(), Vec::new()], divided: Vec::new() };
    for step in 1..=UNTIL / TICKS {
        cluster.run(Span::millis(TICKS));
        let holders = |key: u32| cluster.holders(format!("key-{key}").as_bytes());
        let of_first = holders(0);
        for (line, wrote) in found.lines.iter_mut().zip(&first) {
            let count = of_first.get(wrote).copied().unwrap_or(0);
            line.push(((step * TICKS) as f64, count as f64));
        }
        found.divided.push((0..KEYS).filter(|key| holders(*key).len() > 1).count());
    }
    found
}
