//! What the engine is meant to cost, counted in the simulator; the baseline beside it.

use super::super::page::{Page, Table, fixed};
use super::simulated::quiet::{self, Differing, Emptied, Quiet};
use super::simulated::{Run, measure};
use super::size::Size;
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_merkle::Merkle;
use quorate_protocols::causal::Causal;

/// The page of the marks.
#[must_use]
pub fn table(size: &Size) -> Page {
    let (keys, differing) = size.quiet;
    eprintln!("marks: two DottedDB replicas of {keys} keys");
    let dotted = quiet::measure::<Causal>(keys, differing);
    eprintln!("marks: two MerkleDB replicas of {keys} keys");
    let merkle = quiet::measure::<Merkle>(keys, differing);
    let diff = differ(&dotted.1, &merkle.1);
    let chart = Chart {
        title: format!("Two replicas of {keys} keys"),
        x: Axis { label: "keys that differ (logarithmic)".to_owned(), scale: Scale::Log },
        y: Axis { label: "bytes".to_owned(), scale: Scale::Log },
        series: vec![line("DottedDB", &dotted.1), line("MerkleDB", &merkle.1)],
        marks: Vec::new(),
    };
    Page {
        name: "marks".to_owned(),
        title: "What the engine is meant to cost".to_owned(),
        notes: vec![
            format!(
                "Two replicas, {keys} keys, 16-byte values, exchanges every 100 ms. The time is \
                 that which both nodes together took on this machine for a whole exchange \
                 (question, answer, answer), the simulator's own work included. Bytes until \
                 replicas that differ are equal are those of all messages, less those that equal \
                 replicas exchange in the same time. The trees of MerkleDB have 10,000 leaves, as \
                 in the paper's code."
            ),
            "Metadata for each object under churn is on the page of figure 1, bytes that nodes \
             keep on that of figure 4."
                .to_owned(),
            "In the end all keys are deleted at one moment; contexts and dots go page after page, \
             with room for clients in between, which is what takes the seconds."
                .to_owned(),
        ],
        tables: vec![equal(&dotted.0, &merkle.0), diff, emptied(&dotted.2, &merkle.2), lossy(size)],
        picture: render("Bytes until two replicas are equal", &[chart]),
    }
}

fn line(name: &str, differing: &[Differing]) -> Series {
    let points = differing.iter().map(|it| (f64::from(it.keys), it.bytes)).collect();
    Series { name: name.to_owned(), points }
}

fn equal(dotted: &Quiet, merkle: &Quiet) -> Table {
    let mut table = Table::new(
        "marks-equal",
        "One exchange of two replicas that are equal",
        &["engine", "bytes each way", "CPU of both (µs)", "kept beside objects (kB)", "meant"],
    );
    let meant = "< 1 kB; < 1 ms; < 10 kB";
    for (name, quiet, meant) in [("DottedDB", dotted, meant), ("MerkleDB", merkle, "-")] {
        table.push(vec![
            name.to_owned(),
            fixed(quiet.bytes_each_way, 0),
            fixed(quiet.cpu_us, 1),
            fixed(quiet.metadata / 1000.0, 1),
            meant.to_owned(),
        ]);
    }
    table
}

fn differ(dotted: &[Differing], merkle: &[Differing]) -> Table {
    let mut table = Table::new(
        "marks-differ",
        "Bytes until two replicas that differ in some keys are equal",
        &["keys", "DottedDB", "DottedDB per key", "MerkleDB", "MerkleDB per key"],
    );
    for (dotted, merkle) in dotted.iter().zip(merkle) {
        let each = |it: &Differing| fixed(it.bytes / f64::from(it.keys), 0);
        table.push(vec![
            dotted.keys.to_string(),
            fixed(dotted.bytes, 0),
            each(dotted),
            fixed(merkle.bytes, 0),
            each(merkle),
        ]);
    }
    table
}

/// All keys deleted.
fn emptied(dotted: &Emptied, merkle: &Emptied) -> Table {
    let mut table = Table::new(
        "marks-emptied",
        "What a node stores when all keys were deleted and every replica knows",
        &["engine", "records", "bytes", "s from the last delete on", "meant"],
    );
    let meant = "no record of a key";
    for (name, emptied, meant) in [("DottedDB", dotted, meant), ("MerkleDB", merkle, "-")] {
        table.push(vec![
            name.to_owned(),
            fixed(emptied.left.0, 0),
            fixed(emptied.left.1, 0),
            fixed(emptied.seconds, 1),
            meant.to_owned(),
        ]);
    }
    table
}

/// All replication messages lost, exchanges every 100 ms.
fn lossy(size: &Size) -> Table {
    eprintln!("marks: anti-entropy alone");
    let (keys, rate, seconds) = size.strip;
    let run = Run { loss_ppm: 1_000_000, is_watched: true, ..size.run(keys, rate, seconds) };
    let found = measure::<Causal>(&run);
    let mut table = Table::new(
        "marks-lossy",
        "DottedDB with every replication message lost and exchanges every 100 ms: time to another \
         replica, and clocks of objects",
        &[
            "50 % (ms)",
            "99 % (ms)",
            "all (ms)",
            "99 % is meant to be",
            "entries under load",
            "entries at rest",
        ],
    );
    let millis = |share: f64| match found.replication.quantile(share) {
        Some(micros) => fixed(micros as f64 / 1e3, 0),
        None => "-".to_owned(),
    };
    table.push(vec![
        millis(0.5),
        millis(0.99),
        millis(1.0),
        "< 1000".to_owned(),
        fixed(found.entries_at_end, 3),
        fixed(found.entries_at_quiescence, 3),
    ]);
    table
}
