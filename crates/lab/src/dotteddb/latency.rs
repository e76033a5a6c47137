//! Table II: what clients wait for.

use super::super::page::{Page, Table, fixed};
use super::grid::{CONFIGURATIONS, note};
use super::simulated::Findings;
use super::size::Size;
use quorate_chart::bars::{Bar, BarChart, BarSeries, render};

/// The paper's average, 95th and 99th percentile in milliseconds, in the order of configurations.
pub const PAPER: [[f64; 3]; 12] = [
    [19.8, 64.0, 460.0],
    [16.4, 39.0, 394.0],
    [4.8, 8.0, 66.0],
    [5.1, 7.0, 79.0],
    [7.0, 8.0, 137.0],
    [9.3, 11.0, 173.0],
    [6.7, 8.0, 128.0],
    [8.1, 10.0, 155.0],
    [6.4, 8.0, 123.0],
    [8.9, 11.0, 163.0],
    [7.0, 8.0, 143.0],
    [8.0, 10.0, 149.0],
];

/// The page of the table.
#[must_use]
pub fn table(size: &Size, grid: &[Findings]) -> Page {
    let mut table = Table::new(
        "table2",
        "Latency of updates, get and put together, in milliseconds; the paper's behind ours",
        &[
            "configuration",
            "mean",
            "95 %",
            "99 %",
            "paper mean",
            "paper 95 %",
            "paper 99 %",
            "updates",
            "refused",
            "machines busy (%)",
        ],
    );
    for ((configuration, found), paper) in CONFIGURATIONS.iter().zip(grid).zip(PAPER) {
        let latency = &found.latency;
        let share = |share: f64| latency.quantile(share).unwrap_or(0) as f64 / 1e3;
        let mut row = vec![configuration.name.to_owned()];
        row.extend([latency.mean() / 1e3, share(0.95), share(0.99)].map(|it| fixed(it, 3)));
        row.extend(paper.map(|it| fixed(it, 1)));
        row.extend([
            latency.len().to_string(),
            found.refused.to_string(),
            fixed(found.busy_percent, 1),
        ]);
        table.push(row);
    }
    let bars = |name: &str, share: f64| BarSeries {
        name: name.to_owned(),
        bars: grid
            .iter()
            .map(|found| {
                let micros = found.latency.quantile(share).unwrap_or(0);
                Bar { height: micros as f64 / 1e3, error: None }
            })
            .collect(),
    };
    let chart = BarChart {
        title: "Updates as clients see them".to_owned(),
        x_label: "D: DottedDB, M: MerkleDB".to_owned(),
        y_label: "ms".to_owned(),
        groups: CONFIGURATIONS.iter().map(|it| it.name.to_owned()).collect(),
        series: vec![bars("50 %", 0.5), bars("95 %", 0.95), bars("99 %", 0.99)],
    };
    Page {
        name: "table2".to_owned(),
        title: "Table II: what clients wait for".to_owned(),
        notes: vec![
            note(size),
            "These latencies follow from the model's costs, which are made up: only what differs \
             between columns says something, and that is how long background work keeps machines \
             from clients. Computing hashes is not among the costs, which favours the baseline; \
             stripping and the dot-key map are."
                .to_owned(),
            "The paper: with frequent exchanges DottedDB is 33 % faster on average than the \
             fastest MerkleDB; with rare ones it is slower than all."
                .to_owned(),
        ],
        tables: vec![table],
        picture: render("DottedDB Table II: latency of updates", &[chart]),
    }
}
