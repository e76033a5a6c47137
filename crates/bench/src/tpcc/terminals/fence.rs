//! What keeps a transaction whose outcome is unknown from being done later.
//!
//! Such a transaction may be done after its client was told so, even while the conditions are
//! checked, which read the tables piece by piece. So each terminal has a key of its own, and all
//! that it commits checks the value of that key. After an unknown outcome the terminal changes the
//! value: what was not done by then is never done.

use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_client::Transaction;

use crate::error::BenchError;
use crate::tpcc::data::keys::Key;
use crate::tpcc::tables::{Failure, Tables};

/// How long a terminal tries to change its fence.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two tries, beside those of the client.
const PAUSE: Duration = Duration::from_millis(100);

/// The fence of one terminal.
#[derive(Debug)]
pub struct Fence {
    key: Key,
    value: Bytes,
    writer: u64,
    count: u64,
}

impl Fence {
    /// Puts the first fence of a terminal. `writer` is another one for each run, so what earlier
    /// runs have left open checks another value.
    ///
    /// # Errors
    /// It could not be put.
    pub async fn put(tables: &Tables, writer: u64, terminal: u32) -> Result<Fence, BenchError> {
        let fence = Fence { key: Key::Fence(terminal), value: value(writer, 0), writer, count: 0 };
        let begun = Instant::now();
        loop {
            let put = Transaction::new().put(fence.key.bytes(), fence.value.clone());
            match tables.transact(put).await {
                Ok(_) => return Ok(fence),
                // Nothing rests on it yet, so it may be put twice.
                Err(Failure::Unknown(_)) if begun.elapsed() < PATIENCE => {
                    tokio::time::sleep(PAUSE).await;
                }
                Err(failure) => {
                    return Err(BenchError::Tables(format!("cannot put a fence: {failure}")));
                }
            }
        }
    }

    /// What transactions check.
    #[must_use]
    pub fn now(&self) -> (&Key, &Bytes) {
        (&self.key, &self.value)
    }

    /// Changes the value: what was sent before is done by now, or never will be.
    ///
    /// # Errors
    /// It could not be changed in time.
    pub async fn advance(&mut self, tables: &Tables) -> Result<(), BenchError> {
        let next = value(self.writer, self.count + 1);
        let begun = Instant::now();
        loop {
            let change = Transaction::new()
                .check(self.key.bytes(), self.value.clone())
                .put(self.key.bytes(), next.clone());
            match tables.transact(change).await {
                // It does not hold if an earlier try was done after all.
                Ok(_) | Err(Failure::Conflict { .. }) => break,
                Err(failure) if begun.elapsed() > PATIENCE => {
                    return Err(BenchError::Unsettled { why: failure.to_string() });
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        }
        self.count += 1;
        self.value = next;
        Ok(())
    }
}

fn value(writer: u64, count: u64) -> Bytes {
    Bytes::from(format!("{writer}/{count}"))
}
