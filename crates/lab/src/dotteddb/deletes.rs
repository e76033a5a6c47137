//! Fig. 3: objects in storage while half of the updates are deletes.

use super::super::page::{Page, Table, fixed};
use super::simulated::run::Piece;
use super::simulated::{Run, measure};
use super::size::Size;
use super::workers;
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_merkle::Merkle;
use quorate_protocols::causal::Causal;

/// How many pieces the time line has.
const PIECES: u64 = 20;
/// Between two passes over contexts, in milliseconds, as in the paper.
const STRIP_MS: u64 = 2500;

/// Simulates figure 3.
#[must_use]
pub fn figure(size: &Size, threads: usize) -> Page {
    let (keys, rate, seconds) = size.deletes;
    let run = Run {
        delete_percent: 50,
        strip_us: STRIP_MS * 1000,
        bucket_s: (seconds / PIECES).max(1),
        ..size.run(keys, rate, seconds)
    };
    let found = workers::all(&[true, false], threads, |is_dotted| {
        eprintln!("figure 3: {}", if *is_dotted { "DottedDB" } else { "MerkleDB" });
        match is_dotted {
            true => measure::<Causal>(&run),
            false => measure::<Merkle>(&run),
        }
    });
    let replicas = f64::from(run.replicas);
    let stored = |piece: &Piece| piece.mean_stored() / replicas;
    let mut table = Table::new(
        "fig3",
        "Objects in storage, for each replica of a key, on average over the seconds of each piece",
        &["until (s)", "DottedDB", "ideal", "above ideal", "MerkleDB"],
    );
    for (dotted, merkle) in found[0].pieces.iter().zip(&found[1].pieces) {
        table.push(vec![
            dotted.at_s.to_string(),
            fixed(stored(dotted), 0),
            fixed(dotted.mean_live(), 0),
            fixed(stored(dotted) - dotted.mean_live(), 0),
            fixed(stored(merkle), 0),
        ]);
    }
    let line = |name: &str, of: &dyn Fn(&Piece) -> f64, pieces: &[Piece]| Series {
        name: name.to_owned(),
        points: pieces.iter().map(|piece| (piece.at_s as f64, of(piece))).collect(),
    };
    let axis = |label: &str| Axis { label: label.to_owned(), scale: Scale::Linear };
    let chart = Chart {
        title: format!("{keys} objects at first; {rate} updates per second, half of them deletes"),
        x: axis("time (s)"),
        y: axis("objects"),
        series: vec![
            line("DottedDB", &stored, &found[0].pieces),
            line("MerkleDB", &stored, &found[1].pieces),
            line("ideal", &Piece::mean_live, &found[0].pieces),
        ],
        marks: Vec::new(),
    };
    Page {
        name: "fig3".to_owned(),
        title: "Figure 3: objects in storage".to_owned(),
        notes: vec![
            format!(
                "{} nodes, {keys} keys, {rate} updates per second for {seconds} seconds, of which \
                 half are deletes and half puts, of random keys. Exchanges every 100 ms, stripping \
                 every {} s. Counted are records of objects in all stores, tombstones included, \
                 divided by the {} replicas. Ideal is the number of keys whose last update \
                 is a put.",
                size.nodes,
                STRIP_MS as f64 / 1000.0,
                run.replicas
            ),
            "The paper: MerkleDB keeps every object as a tombstone; DottedDB follows the ideal \
             with a small delay that is proportional to the strip interval."
                .to_owned(),
        ],
        tables: vec![table],
        picture: render("DottedDB Fig. 3: objects in storage", &[chart]),
    }
}
