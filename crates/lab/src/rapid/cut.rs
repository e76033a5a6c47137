//! Fig. 11: how often members cut differently, for H and L.

use super::simulated::alerts::{Hearer, alerts};
use super::size::Size;
use crate::dotteddb::workers;
use crate::page::{Page, Table, fixed};
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_kernel::rng::Rng;
use quorate_protocols::membership::Shape;

/// What the paper varies (§7).
const HIGHS: [u8; 4] = [6, 7, 8, 9];
const LOWS: [u8; 4] = [1, 2, 3, 4];
const FAILED: [usize; 4] = [2, 4, 8, 16];

/// How many of how many members proposed something else than all that failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Conflicts {
    /// So many did.
    pub hits: u64,
    /// Of so many.
    pub of: u64,
}

/// One repetition: so many of so many nodes fail, and each of some members hears of it, alert by
/// alert, in an order of its own. For each H and L, in the order of the figure.
#[must_use]
pub fn measure(nodes: usize, failed: usize, hearers: usize, seed: u64) -> Vec<Conflicts> {
    let mut rng = Rng::new(seed);
    let told = alerts(nodes, failed, &mut rng);
    let shapes = HIGHS.into_iter().flat_map(|high| LOWS.map(|low| (high, low)));
    shapes
        .map(|(high, low)| {
            let hearer = Hearer::new(nodes, Shape { rings: 10, high, low }, &told);
            let hits = (0..hearers).filter(|_| hearer.differs(&mut rng)).count();
            Conflicts { hits: hits as u64, of: hearers as u64 }
        })
        .collect()
}

/// Simulates the figure.
#[must_use]
pub fn figure(size: &Size) -> Page {
    let nodes = *size.nodes.last().expect("there is a number of nodes");
    let failed: Vec<usize> = FAILED.into_iter().filter(|failed| failed * 2 < nodes).collect();
    let repetitions = size.seeds * 4;
    let work: Vec<(usize, u64)> =
        failed.iter().flat_map(|it| (1..=repetitions).map(|seed| (*it, seed))).collect();
    let found = workers::all(&work, size.threads, |(failed, seed)| {
        eprintln!("figure 11: {failed} of {nodes} nodes fail, seed {seed}");
        measure(nodes, *failed, size.hearers, *seed)
    });
    let sums: Vec<Vec<Conflicts>> = found.chunks(repetitions as usize).map(sum).collect();
    let mut table = Table::new(
        "fig11",
        "Members that proposed something else than all that failed, in percent, with 95 % \
         intervals that take them for independent",
        &["H", "L", "failed", "%", "low", "high", "members asked"],
    );
    for (place, (high, low)) in
        HIGHS.into_iter().flat_map(|high| LOWS.map(|low| (high, low))).enumerate()
    {
        for (failed, sums) in failed.iter().zip(&sums) {
            let Conflicts { hits, of } = sums[place];
            let share = crate::statistics::proportion(hits, of);
            let mut row = vec![high.to_string(), low.to_string(), failed.to_string()];
            row.extend([share.mean, share.low, share.high].map(|it| fixed(it * 100.0, 2)));
            row.push(of.to_string());
            table.push(row);
        }
    }
    let charts: Vec<Chart> = (0..HIGHS.len()).map(|high| chart(high, &failed, &sums)).collect();
    Page {
        name: "fig11".to_owned(),
        title: "Figure 11: how often members cut differently, for H and L".to_owned(),
        notes: vec![
            format!(
                "{nodes} members, K = 10; so many of them fail, drawn at random, {repetitions} \
                 times. Each alert of an observer on one that failed is a message of its own, and \
                 each of {} sound members gets all of them in a random order of its own; time \
                 stands still. Its first proposal is looked at. With all {} members of a \
                 repetition the orders are drawn anew, the nodes that failed are not.",
                size.hearers, size.hearers
            ),
            "The paper (Fig. 11; 1000 processes, each of them asked, 20 repetitions): conflicts \
             are most frequent where H and L are near, with H = 6, L = 4 and two failures; with \
             H - L = 5 and two failures 2 % of proposals conflict, and with H - L = 6 four times \
             fewer. Our default is H = 9 and L = 4: the same distance of 5. A conflict costs time, \
             not agreement: the fast round does not decide, and a classic one does."
                .to_owned(),
        ],
        tables: vec![table],
        picture: render("Rapid Fig. 11: conflicts", &charts),
    }
}

fn sum(found: &[Vec<Conflicts>]) -> Vec<Conflicts> {
    let mut sums = vec![Conflicts::default(); HIGHS.len() * LOWS.len()];
    for one in found {
        for (sum, one) in sums.iter_mut().zip(one) {
            sum.hits += one.hits;
            sum.of += one.of;
        }
    }
    sums
}

fn chart(high: usize, failed: &[usize], sums: &[Vec<Conflicts>]) -> Chart {
    let series = |(failed, sums): (&usize, &Vec<Conflicts>)| Series {
        name: format!("{failed} failed"),
        points: LOWS
            .into_iter()
            .zip(&sums[high * LOWS.len()..])
            .map(|(low, it)| (f64::from(low), 100.0 * it.hits as f64 / it.of.max(1) as f64))
            .collect(),
    };
    Chart {
        title: format!("H = {}: conflicts", HIGHS[high]),
        x: Axis { label: "L".to_owned(), scale: Scale::Linear },
        y: Axis { label: "percent of members".to_owned(), scale: Scale::Linear },
        series: failed.iter().zip(sums).map(series).collect(),
        marks: Vec::new(),
    }
}
