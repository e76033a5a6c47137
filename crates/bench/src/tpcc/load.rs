//! Writes what the tables begin with, in transactions of some hundred rows.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use quorate_client::Transaction;
use tokio::task::JoinSet;

use crate::config::Stop;
use crate::error::BenchError;
use crate::progress::Progress;
use crate::report::findings::{LoadReport, ratio};
use crate::tpcc::data::keys::Key;
use crate::tpcc::data::population::{Piece, Population, Row};
use crate::tpcc::data::rows::{Meta, encode};
use crate::tpcc::tables::{Failure, Tables};

/// Pieces that are written side by side.
const WRITERS: usize = 8;
/// The most rows of one transaction.
pub(super) const BATCH_ROWS_MAX: usize = 250;
/// How often a batch is tried that the cluster does not write.
const TRIES: u32 = 5;

/// What the loaders share.
struct Yard {
    population: Population,
    pieces: RefCell<Vec<Piece>>,
    progress: Progress,
    stop: Stop,
}

/// Writes all rows to an empty keyspace, and at last that all are there.
///
/// # Errors
/// The keyspace is not empty, or some rows could not be written.
pub async fn load(
    tables: &Tables,
    population: Population,
    meta: Meta,
    progress: Progress,
    stop: &Stop,
) -> Result<LoadReport, BenchError> {
    assert_empty(tables).await?;
    let begun = Instant::now();
    let pieces = RefCell::new(population.pieces());
    let yard = Rc::new(Yard { population, pieces, progress, stop: stop.clone() });
    let mut writers = JoinSet::new();
    for _ in 0..WRITERS {
        writers.spawn_local(write_pieces(Rc::clone(&yard), tables.clone()));
    }
    let mut keys = 1;
    while let Some(ended) = writers.join_next().await {
        keys += ended.expect("a writer neither panics nor is cancelled")?;
    }
    write(tables, &[(Key::Meta, encode(&meta))]).await?;
    let seconds = begun.elapsed().as_secs_f64();
    Ok(LoadReport { keys, seconds, keys_per_second: ratio(keys as f64, seconds) })
}

async fn assert_empty(tables: &Tables) -> Result<(), BenchError> {
    let mut listing = tables.list();
    while let Some(page) = listing.page().await.map_err(BenchError::Client)? {
        if !page.is_empty() {
            let text = "the keyspace is not empty; make another one to load, or give --no-load \
                        for tables that are there";
            return Err(BenchError::Settings(text.to_owned()));
        }
    }
    Ok(())
}

/// Takes pieces and writes them until there are none; how many rows that were.
async fn write_pieces(yard: Rc<Yard>, tables: Tables) -> Result<u64, BenchError> {
    let mut count = 0;
    loop {
        let piece = yard.pieces.borrow_mut().pop();
        let Some(piece) = piece else { return Ok(count) };
        for batch in yard.population.rows(&piece).chunks(BATCH_ROWS_MAX) {
            if yard.stop.is_raised() {
                return Err(BenchError::Interrupted);
            }
            write(&tables, batch).await?;
            count += batch.len() as u64;
            yard.progress.advance(batch.len() as u64);
        }
    }
}

/// Writes rows that are not there. The check of the first keeps a try whose answer was lost from
/// being done after another one, when the run has changed the rows.
pub(super) async fn write(tables: &Tables, batch: &[Row]) -> Result<(), BenchError> {
    let mut puts = Transaction::new().check_exists(batch[0].0.bytes(), false);
    for (key, value) in batch {
        puts = puts.put(key.bytes(), value.clone());
    }
    let mut is_open = false;
    for tried in 1.. {
        let failure = match tables.transact(puts.clone()).await {
            Ok(_) => break,
            Err(Failure::Conflict { .. }) if is_open => break,
            Err(failure) => failure,
        };
        is_open |= matches!(failure, Failure::Unknown(_));
        let is_final = matches!(failure, Failure::Conflict { .. } | Failure::Damaged(_));
        if is_final || tried == TRIES {
            return Err(BenchError::Tables(format!("cannot load: {failure}")));
        }
    }
    Ok(())
}
