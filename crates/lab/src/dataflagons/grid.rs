//! Fig. 10 and what it leaves out: how often events and reads are missed, for K, TTL and loss.

use super::super::dotteddb::workers;
use super::super::page::{Page, Table, fixed};
use super::run::{Found, measure};
use super::simulated::Shape;
use super::size::Size;
use super::{millionths, quantile};
use crate::statistics::proportion;
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};

/// One cell of the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    loss: u32,
    fanout: usize,
    ttl: u16,
}

/// All seeds of some runs together.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Events that were ordered.
    pub events: u64,
    /// Events and nodes, and holes among them.
    pub pairs: (u64, u64),
    /// Holes of a million pairs, of each seed.
    pub ppm: Vec<f64>,
    /// Words on reads, and stale ones.
    pub words: (u64, u64),
    /// Reads that were answered, those that are stale, and those that are behind.
    pub reads: (u64, u64, u64),
    /// Requests that were done, and all.
    pub requests: (u64, u64),
    /// Holes that nodes have noticed, and those that were filled.
    pub noticed: (u64, u64),
    /// Events that a node delivered twice, or after a later one.
    pub inversions: u64,
    /// Records that members of slices lacked in the end.
    pub missing: u64,
}

impl Sums {
    /// Those of these runs.
    #[must_use]
    pub fn of(found: &[Found]) -> Sums {
        let mut sums = Sums::default();
        for found in found {
            let (delivered, judged) = (&found.delivered, &found.judged);
            sums.events += delivered.events;
            sums.pairs.0 += delivered.pairs;
            sums.pairs.1 += delivered.holes;
            sums.ppm.push(proportion(delivered.holes, delivered.pairs).mean * 1e6);
            sums.words.0 += judged.words;
            sums.words.1 += judged.stale_words;
            sums.reads.0 += judged.reads;
            sums.reads.1 += judged.stale;
            sums.reads.2 += judged.behind;
            sums.requests.0 += found.requests.0;
            sums.requests.1 += found.requests.1;
            sums.noticed.0 += found.noticed.0;
            sums.noticed.1 += found.noticed.1;
            sums.inversions += delivered.inversions;
            sums.missing += found.missing.unwrap_or(0);
        }
        sums
    }

    /// The lowest and the highest seed.
    #[must_use]
    pub fn spread(&self) -> (f64, f64) {
        let low = self.ppm.iter().copied().fold(f64::INFINITY, f64::min);
        (low, self.ppm.iter().copied().fold(0.0, f64::max))
    }
}

const HEAD: [&str; 12] = [
    "lost (%)",
    "K",
    "TTL",
    "events",
    "pairs",
    "holes",
    "of a million",
    "low",
    "high",
    "lowest seed",
    "highest seed",
    "requests/s",
];

const READS: [&str; 12] = [
    "lost (%)",
    "K",
    "TTL",
    "words",
    "stale",
    "of a million",
    "high",
    "reads",
    "stale reads",
    "of a million (reads)",
    "high (reads)",
    "behind",
];

const REST: [&str; 9] = [
    "lost (%)",
    "K",
    "TTL",
    "asked",
    "done",
    "read 50 % (ms)",
    "holes noticed",
    "filled",
    "lacking at the end",
];

/// Simulates the grid.
#[must_use]
pub fn figure(size: &Size) -> Page {
    let cells = cells(size);
    let seeds = 1..=size.seeds;
    let work: Vec<(Cell, u64)> =
        cells.iter().flat_map(|cell| seeds.clone().map(|seed| (*cell, seed))).collect();
    let found = workers::all(&work, size.threads, |(cell, seed)| {
        let Cell { loss, fanout, ttl } = cell;
        eprintln!("figure 10: {loss} % lost, K {fanout}, TTL {ttl}, seed {seed}");
        measure(&shape(size, *cell, *seed), size.seconds)
    });
    let found: Vec<&[Found]> = found.chunks(size.seeds as usize).collect();
    page(size, &cells, &found)
}

fn cells(size: &Size) -> Vec<Cell> {
    let mut cells = Vec::new();
    for loss in &size.losses {
        for fanout in &size.fanouts {
            cells.extend(size.ttls.iter().map(|ttl| Cell {
                loss: *loss,
                fanout: *fanout,
                ttl: *ttl,
            }));
        }
    }
    cells
}

fn shape(size: &Size, cell: Cell, seed: u64) -> Shape {
    Shape {
        fanout: Some(cell.fanout),
        ttl: Some(cell.ttl),
        loss_ppm: cell.loss * 10_000,
        ..size.shape(size.middle(), seed)
    }
}

fn page(size: &Size, cells: &[Cell], found: &[&[Found]]) -> Page {
    let mut holes = Table::new("fig10", "Events that a node has missed", &HEAD);
    let mut reads = Table::new("fig10-reads", "Strong reads that are older than the order", &READS);
    let mut rest = Table::new("fig10-rest", "What clients and repair make of it", &REST);
    for (cell, found) in cells.iter().zip(found) {
        let sums = Sums::of(found);
        let names = [cell.loss.to_string(), cell.fanout.to_string(), cell.ttl.to_string()];
        let mut row = names.to_vec();
        row.extend([sums.events, sums.pairs.0, sums.pairs.1].map(|count| count.to_string()));
        row.extend(millionths(sums.pairs.1, sums.pairs.0));
        let (low, high) = sums.spread();
        row.extend([fixed(low, 1), fixed(high, 1)]);
        row.push(fixed(sums.requests.0 as f64 / (size.seconds * size.seeds) as f64, 1));
        holes.push(row);
        let mut row = names.to_vec();
        let [mean, _, high] = millionths(sums.words.1, sums.words.0);
        row.extend([sums.words.0.to_string(), sums.words.1.to_string(), mean, high]);
        let [mean, _, high] = millionths(sums.reads.1, sums.reads.0);
        row.extend([sums.reads.0.to_string(), sums.reads.1.to_string(), mean, high]);
        row.push(sums.reads.2.to_string());
        reads.push(row);
        let mut row = names.to_vec();
        row.extend([sums.requests.1.to_string(), sums.requests.0.to_string()]);
        row.push(quantile(&found[0].latency[0], 0.5));
        row.extend([sums.noticed.0, sums.noticed.1, sums.missing].map(|count| count.to_string()));
        rest.push(row);
    }
    let inversions: u64 = found.iter().map(|found| Sums::of(found).inversions).sum();
    let shape = size.shape(size.middle(), 1);
    Page {
        name: "fig10".to_owned(),
        title: "Figure 10: holes and stale strong reads for K, TTL and loss".to_owned(),
        notes: vec![
            format!(
                "{} nodes, {} clients with one request at a time for {} s, 80 % reads of {} keys, \
                 level strong, answers of {} replicas; rounds of {} ms, messages take {} ms in the \
                 median; seeds 1 to {}. Of every event that a node missed it counts that it did, \
                 whether it was filled later or not. Events delivered twice or out of order, in \
                 all runs together: {inversions}.",
                shape.nodes,
                shape.clients,
                size.seconds,
                shape.keys,
                size.acks,
                shape.round.as_millis(),
                shape.network.median_us as f64 / 1e3,
                size.seeds
            ),
            "The paper: K = 11 and TTL = 8 raise the throughput by 58 % against K = 18 and \
             TTL = 25, \"without compromising strong consistency\"; it gives no rate of holes."
                .to_owned(),
        ],
        tables: vec![holes, reads, rest],
        picture: picture(size, cells, found),
    }
}

fn picture(size: &Size, cells: &[Cell], found: &[&[Found]]) -> String {
    let rate = |loss: u32, fanout: usize| {
        let of = cells.iter().zip(found);
        let of = of.filter(move |(cell, _)| (cell.loss, cell.fanout) == (loss, fanout));
        of.map(|(cell, found)| {
            let sums = Sums::of(found);
            (f64::from(cell.ttl), proportion(sums.pairs.1, sums.pairs.0).mean)
        })
    };
    let chart = |loss: &u32| Chart {
        title: format!("{loss} % of messages lost; lines end where there are no holes"),
        x: Axis { label: "TTL (rounds)".to_owned(), scale: Scale::Linear },
        y: Axis { label: "holes for each event and node".to_owned(), scale: Scale::Log },
        series: size
            .fanouts
            .iter()
            .map(|fanout| Series {
                name: format!("K {fanout}"),
                points: rate(*loss, *fanout).filter(|(_, rate)| *rate > 0.0).collect(),
            })
            .collect(),
        marks: Vec::new(),
    };
    let charts: Vec<Chart> = size.losses.iter().map(chart).collect();
    render("DataFlagons Fig. 10: holes", &charts)
}
