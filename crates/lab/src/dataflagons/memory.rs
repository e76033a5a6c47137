//! What a node keeps in memory, against the number of nodes.

use super::super::page::{Page, Table, fixed};
use super::run::SETTLE_ROUNDS;
use super::simulated::Cluster;
use super::size::Size;
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_kernel::time::Span;

/// What nodes show of what they keep.
const SHOWN: [&str; 6] =
    ["neighbours", "members", "keys", "requests_remembered", "events_waiting", "nodes_counted"];

/// What this process keeps resident, in bytes; 0 where the system does not tell.
fn resident() -> u64 {
    const PAGE: u64 = 4096;
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * PAGE
}

/// Simulates it, one number of nodes after the other, ascending.
#[must_use]
pub fn figure(size: &Size) -> Page {
    let mut table = Table::new(
        "memory",
        "For each node, on average",
        &[
            "nodes",
            "when",
            "resident (kB)",
            "neighbours",
            "members",
            "keys",
            "requests remembered",
            "events waiting",
            "nodes counted",
        ],
    );
    let before = resident();
    let mut lines = [Vec::new(), Vec::new()];
    for nodes in &size.nodes {
        eprintln!("memory: {nodes} nodes");
        let mut cluster = Cluster::new(&size.shape(*nodes, 1));
        cluster.settle(SETTLE_ROUNDS);
        let mut row = |cluster: &Cluster, when: &str, line: usize| {
            let each = |sum: u64| sum as f64 / *nodes as f64;
            let bytes = each(resident().saturating_sub(before)) / 1e3;
            lines[line].push((*nodes as f64, bytes));
            let mut row = vec![nodes.to_string(), when.to_owned(), fixed(bytes, 1)];
            row.extend(cluster.sums(&SHOWN).map(|sum| fixed(each(sum), 1)));
            table.push(row);
        };
        row(&cluster, "settled", 0);
        cluster.load();
        cluster.run(Span::secs(size.seconds));
        row(&cluster, "loaded", 1);
    }
    let [settled, loaded] = lines;
    let chart = Chart {
        title: "resident for each node".to_owned(),
        x: Axis { label: "nodes (logarithmic)".to_owned(), scale: Scale::Log },
        y: Axis { label: "kB".to_owned(), scale: Scale::Linear },
        series: vec![
            Series { name: "settled".to_owned(), points: settled },
            Series { name: "loaded".to_owned(), points: loaded },
        ],
        marks: Vec::new(),
    };
    Page {
        name: "memory".to_owned(),
        title: "What a node keeps in memory".to_owned(),
        notes: vec![format!(
            "What the process has resident less what it had before the first run, divided by the \
             nodes: an upper bound, as it has the messages on their way, what was freed, and what \
             the judges keep (all that was asked, and the names of events). Made alone and \
             ascending, as memory that was used once stays. Loaded: after {} s of load.",
            size.seconds
        )],
        tables: vec![table],
        picture: render("Memory of a node", &[chart]),
    }
}
