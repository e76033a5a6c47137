//! Fig. 2: how long after an update a replica stores its object without a context.

use super::super::page::{Page, Table, fixed};
use super::replication::{cdf, millis};
use super::simulated::{Findings, Run, measure};
use super::size::Size;
use super::workers;
use quorate_chart::svg::{Axis, Chart, Scale, render};
use quorate_protocols::causal::Causal;

/// Between two passes over contexts, in milliseconds.
const STRIP_MS: [u64; 3] = [100, 1000, 10_000];
/// Lost messages of replication on write, in percent.
const LOSS: [u32; 2] = [10, 100];

/// Simulates figure 2.
#[must_use]
pub fn figure(size: &Size, threads: usize) -> Page {
    let (keys, rate, seconds) = size.strip;
    let work: Vec<(u32, u64)> =
        LOSS.iter().flat_map(|loss| STRIP_MS.map(|strip_ms| (*loss, strip_ms))).collect();
    let found = workers::all(&work, threads, |(loss, strip_ms)| {
        eprintln!("figure 2: {loss} % lost, stripped every {strip_ms} ms");
        measure::<Causal>(&Run {
            loss_ppm: loss * 10_000,
            strip_us: strip_ms * 1000,
            is_watched: true,
            ..size.run(keys, rate, seconds)
        })
    });
    let mut table = Table::new(
        "fig2",
        "Time from an update to its object being stored without a context, at each replica",
        &["lost (%)", "stripped every (s)", "50 % (s)", "90 % (s)", "99 % (s)", "all (s)", "paper"],
    );
    for ((loss, strip_ms), found) in work.iter().zip(&found) {
        let seconds = |share: f64| match found.strip.quantile(share) {
            Some(micros) => fixed(micros as f64 / 1e6, 3),
            None => "-".to_owned(),
        };
        let paper = if *strip_ms < 10_000 { "90 % < 5 s" } else { "almost all < 20 s" };
        let shares = [0.5, 0.9, 0.99, 1.0].map(seconds);
        let mut row = vec![loss.to_string(), fixed(*strip_ms as f64 / 1000.0, 1)];
        row.extend(shares);
        row.push(paper.to_owned());
        table.push(row);
    }
    let charts: Vec<Chart> = LOSS.iter().zip(found.chunks(3)).map(chart).collect();
    Page {
        name: "fig2".to_owned(),
        title: "Figure 2: how long until contexts are stripped".to_owned(),
        notes: vec![
            format!(
                "{} nodes, {keys} keys, {rate} updates per second for {seconds} seconds, exchanges \
                 every 100 ms. An update counts once at each of the three replicas: from the \
                 moment its coordinator wrote it to the first write there that holds it, or what \
                 replaced it, with an empty context. A delete's record is gone from storage at \
                 that moment.",
                size.nodes
            ),
            "The paper: stripping every 0.1 s or 1 s makes no difference, 90 % are stripped in \
             less than 5 s; with 10 s almost all are after 20 s; lost messages had no significant \
             effect."
                .to_owned(),
        ],
        tables: vec![table],
        picture: render("DottedDB Fig. 2: time until contexts are stripped", &charts),
    }
}

fn chart((loss, found): (&u32, &[Findings])) -> Chart {
    let series = STRIP_MS.iter().zip(found).map(|(strip_ms, found)| {
        cdf(&format!("every {} s", *strip_ms as f64 / 1000.0), &found.strip)
    });
    Chart {
        title: format!("{loss} % of replication messages lost"),
        x: Axis { label: millis("time after the update"), scale: Scale::Log },
        y: Axis { label: "updates".to_owned(), scale: Scale::Nines },
        series: series.collect(),
        marks: Vec::new(),
    }
}
