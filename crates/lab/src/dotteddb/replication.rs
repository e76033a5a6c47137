//! Fig. 5: how long until an update is stored at another replica.

use super::super::page::{Page, Table, fixed};
use super::grid::{CONFIGURATIONS, note};
use super::simulated::Findings;
use super::simulated::run::Times;
use super::size::Size;
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};

/// The charts of the paper: for each of DottedDB's configurations those of MerkleDB that differ
/// from it in the leaves only.
const CHARTS: [(&str, [usize; 3]); 4] = [
    ("HH: 10 % changed, all lost", [0, 4, 8]),
    ("HL: 10 % changed, 10 % lost", [1, 5, 9]),
    ("LH: 1 % changed, all lost", [2, 6, 10]),
    ("LL: 1 % changed, 10 % lost", [3, 7, 11]),
];

/// The shares of a distribution that are drawn.
const SHARES: [f64; 15] =
    [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999];

/// A distribution as a line, times in milliseconds.
#[must_use]
pub fn cdf(name: &str, times: &Times) -> Series {
    let point = |share: &f64| times.quantile(*share).map(|micros| (micros as f64 / 1e3, *share));
    Series { name: name.to_owned(), points: SHARES.iter().filter_map(point).collect() }
}

/// The label of such an axis.
#[must_use]
pub fn millis(what: &str) -> String {
    format!("{what} (ms, logarithmic)")
}

/// The page of figure 5.
#[must_use]
pub fn figure(size: &Size, grid: &[Findings]) -> Page {
    let mut table = Table::new(
        "fig5",
        "Time from an update's write at its coordinator to that at another replica, in seconds",
        &["configuration", "50 %", "90 %", "99 %", "99.9 %", "all", "never", "99 % in the paper"],
    );
    for (configuration, found) in CONFIGURATIONS.iter().zip(grid) {
        let seconds = |share: f64| match found.replication.quantile(share) {
            Some(micros) => fixed(micros as f64 / 1e6, 4),
            None => "-".to_owned(),
        };
        let paper = match configuration.name {
            "D LH" => "< 20",
            "M HLH" | "M LLH" => "20 times D LH",
            _ => "-",
        };
        let mut row = vec![configuration.name.to_owned()];
        row.extend([0.5, 0.9, 0.99, 0.999, 1.0].map(seconds));
        row.extend([found.replication.open.to_string(), paper.to_owned()]);
        table.push(row);
    }
    let chart = |(title, of): &(&str, [usize; 3])| Chart {
        title: (*title).to_owned(),
        x: Axis { label: millis("replication latency"), scale: Scale::Log },
        y: Axis { label: "updates".to_owned(), scale: Scale::Nines },
        series: of.iter().map(|at| cdf(CONFIGURATIONS[*at].name, &grid[*at].replication)).collect(),
        marks: Vec::new(),
    };
    let charts: Vec<Chart> = CHARTS.iter().map(chart).collect();
    Page {
        name: "fig5".to_owned(),
        title: "Figure 5: how long replication takes".to_owned(),
        notes: vec![
            note(size),
            "Each update counts twice, once for each other replica. It is stored there when its \
             version is written, or an object that has replaced it. When the load ends, the nodes \
             go on until all is equal; what is not stored then would be counted under \"never\"."
                .to_owned(),
            "The paper: DottedDB is much faster in every configuration; with LH 99 % are stored in \
             less than 20 s, MerkleDB takes 20 times as long. Here both engines choose peers in \
             shuffled rounds and repair in both directions at once, and an exchange takes no time \
             but its messages', so that the interval decides: the baseline loses by what it sends \
             and keeps, not by time."
                .to_owned(),
        ],
        tables: vec![table],
        picture: render("DottedDB Fig. 5: replication latency", &charts),
    }
}
