//! Fig. 4: what anti-entropy sends, by what it is; and what nodes keep for it.

use super::super::page::{Page, Table, fixed};
use super::grid::{CONFIGURATIONS, Configuration, note};
use super::simulated::Findings;
use super::size::Size;
use quorate_chart::bars::{Bar, BarChart, BarSeries, render};

/// The page of figure 4.
#[must_use]
pub fn figure(size: &Size, grid: &[Findings]) -> Page {
    let each = || CONFIGURATIONS.iter().zip(grid);
    let rate = |configuration: &Configuration, bytes: u64| {
        bytes as f64 / configuration.run(size).seconds as f64 / 1000.0
    };
    let mut table = Table::new(
        "fig4",
        "Bytes of anti-entropy, all nodes together",
        &[
            "configuration",
            "object data (kB/s)",
            "object metadata (kB/s)",
            "sync metadata (kB/s)",
            "all (kB/s)",
            "all (B per update)",
            "messages/s",
        ],
    );
    for (configuration, found) in each() {
        let traffic = found.traffic;
        let seconds = configuration.run(size).seconds;
        table.push(vec![
            configuration.name.to_owned(),
            fixed(rate(configuration, traffic.data), 1),
            fixed(rate(configuration, traffic.clocks), 1),
            fixed(rate(configuration, traffic.protocol), 1),
            fixed(rate(configuration, traffic.total()), 1),
            fixed(traffic.total() as f64 / found.latency.len().max(1) as f64, 0),
            fixed(traffic.messages as f64 / seconds as f64, 0),
        ]);
    }
    let bars = |name: &str, of: fn(&Findings) -> u64| BarSeries {
        name: name.to_owned(),
        bars: each().map(|(it, found)| Bar { height: rate(it, of(found)), error: None }).collect(),
    };
    let chart = BarChart {
        title: "Anti-entropy, all nodes together".to_owned(),
        x_label: "D: DottedDB, M: MerkleDB".to_owned(),
        y_label: "kB/s".to_owned(),
        groups: CONFIGURATIONS.iter().map(|it| it.name.to_owned()).collect(),
        series: vec![
            bars("object data", |found| found.traffic.data),
            bars("object metadata", |found| found.traffic.clocks),
            bars("sync metadata", |found| found.traffic.protocol),
        ],
    };
    Page {
        name: "fig4".to_owned(),
        title: "Figure 4: what anti-entropy sends".to_owned(),
        notes: vec![
            note(size),
            "Object data are keys and values, object metadata their clocks, sync metadata all the \
             rest: node clocks, hashes, keys with hashes, the heads of messages and frames."
                .to_owned(),
            "The paper gives no numbers: DottedDB is considerably more efficient in all \
             configurations; it sends much less with *L than with *H, MerkleDB does not."
                .to_owned(),
        ],
        tables: vec![table, metadata(grid)],
        picture: render("DottedDB Fig. 4: bytes of anti-entropy", &[chart]),
    }
}

/// What a node keeps beside objects (DottedDB §V-E1).
fn metadata(grid: &[Findings]) -> Table {
    let mut table = Table::new(
        "fig4-metadata",
        "What a node keeps beside objects: clock, dot-key map, watermark and non-stripped keys, or \
         hash trees with their keys",
        &["configuration", "on average (kB)", "at most (kB)", "at rest (kB)", "paper"],
    );
    for (configuration, found) in CONFIGURATIONS.iter().zip(grid) {
        let kilo = |bytes: f64| fixed(bytes / 1000.0, 1);
        let paper = match (configuration.is_dotted(), configuration.changed) {
            (true, 1) => "< 10 KB",
            (true, _) => "< 2 MB",
            (false, _) => "at least 4.2 MB",
        };
        table.push(vec![
            configuration.name.to_owned(),
            kilo(found.metadata.0),
            kilo(found.metadata.1 as f64),
            kilo(found.metadata_at_quiescence),
            paper.to_owned(),
        ]);
    }
    table
}
