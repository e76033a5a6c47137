//! Several keys as one operation.

use super::problem::{self, Problem};
use super::service::{Asking, Native};
use super::{map, named};
use quorate_api::v1::WriteOptions;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::transaction::{Item, ItemOutcome, check_bounds};

impl Native {
    /// Does all of these items at one moment, or none of them. What each is told, and whether an
    /// earlier request had it done.
    ///
    /// # Errors
    /// See [`Native::get`].
    pub async fn transact(
        &self,
        keyspace: &str,
        items: Vec<Item>,
        options: &WriteOptions,
        asking: &Asking,
    ) -> Result<(Vec<ItemOutcome>, bool), Problem> {
        let keyspace = self.find(keyspace)?;
        if items.is_empty() {
            let what = "the transaction has no items";
            return Err(problem::invalid("items", what, "send one item at least"));
        }
        let operation = Operation::Transact { items, name: named::write_name(options) };
        let operation = map::able(&keyspace, "a transaction", operation)?;
        let Operation::Transact { items, .. } = &operation else {
            return Err(problem::mismatch());
        };
        let within = check_bounds(items, keyspace.entry.value_bytes_max);
        within.map_err(|refusal| problem::refused(&refusal))?;
        let (count, is_write) = (items.len(), operation.is_write());
        let (outcome, is_repeated) = self.write(&keyspace, operation, options, asking).await?;
        let told = match outcome {
            Outcome::Transacted(told) if told.len() == count => told,
            _ => return Err(problem::mismatch()),
        };
        let bytes = told.iter().map(ItemOutcome::bytes).sum();
        match asking.allowance.take(bytes) {
            Ok(()) => Ok((told, is_repeated)),
            // It was done.
            Err(_) if is_write => Err(problem::untold()),
            Err(_) => Err(problem::overloaded()),
        }
    }
}
