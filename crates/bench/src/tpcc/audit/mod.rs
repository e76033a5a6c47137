//! Whether the tables are consistent at the end of a run: all rows are read through the client and
//! judged by the conditions of clause 3.3.2. No transaction is open then, nor may become done, so
//! a listing that is read piece by piece shows the tables as they are.

pub(super) mod conditions;
pub(super) mod facts;
#[cfg(test)]
mod tests;
pub mod violations;

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::config::Stop;
use crate::error::BenchError;
use crate::progress::Progress;
use crate::tpcc::data::sizes::Sizes;
use crate::tpcc::tables::Tables;

use facts::Facts;
use violations::Violation;

/// How many violations a report lists.
const LISTED_MAX: usize = 20;

/// What the check of all rows found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AuditReport {
    /// Rows that were read: all of the keyspace.
    pub rows: u64,
    /// Seconds that took.
    pub seconds: f64,
    /// The conditions of clause 3.3.2 that were checked, by their numbers.
    pub conditions: Vec<u8>,
    /// How many numbers are not what others say; 0 if all conditions hold.
    pub violation_count: u64,
    /// The first of them.
    pub violations: Vec<Violation>,
}

/// Reads all rows and judges them.
///
/// # Errors
/// Some could not be read, or are no rows of the tables.
pub async fn audit(
    tables: &Tables,
    sizes: Sizes,
    progress: &Progress,
    stop: &Stop,
) -> Result<AuditReport, BenchError> {
    let begun = Instant::now();
    let mut facts = Facts::default();
    let mut listing = tables.list();
    while let Some(page) = listing.page().await.map_err(BenchError::Client)? {
        for entry in &page {
            let value = entry.value.as_ref().ok_or_else(|| {
                let key = String::from_utf8_lossy(&entry.key);
                BenchError::Tables(format!("{key} has lost its value since it was listed"))
            })?;
            facts.add(&entry.key, value).map_err(BenchError::Tables)?;
        }
        progress.advance(page.len() as u64);
        if stop.is_raised() {
            return Err(BenchError::Interrupted);
        }
    }
    let mut violations = conditions::judge(&facts, sizes);
    let violation_count = violations.len() as u64;
    violations.truncate(LISTED_MAX);
    Ok(AuditReport {
        rows: facts.row_count,
        seconds: begun.elapsed().as_secs_f64(),
        conditions: conditions::CHECKED.to_vec(),
        violation_count,
        violations,
    })
}
