//! The five transactions, each an attempt that reads first and then does all it does at one moment,
//! if what it rests on is still so.
//!
//! What a commit `check`s is what it computes new values from; rows that never change are read and
//! not checked. So the ones that write, and OrderStatus, are strictly serializable. StockLevel
//! reads three times, each at one moment, as clause 2.8.2.3 lets it.

mod delivery;
mod new_order;
mod payment;
mod status;

use bytes::Bytes;
use quorate_client::{ItemOutcome, Transaction};

use crate::tpcc::data::keys::Key;
use crate::tpcc::data::sizes::District;
use crate::tpcc::inputs::{Input, Selection};
use crate::tpcc::tables::{Failure, Tables, row};

/// How a transaction ended that did what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was committed.
    Committed {
        /// What was ordered, paid or delivered, in cents; 0 where nothing was changed.
        amount: i64,
        /// Districts that had nothing to deliver.
        skipped: u64,
    },
    /// An item is not there, so nothing was changed, as it should be.
    RolledBack,
}

impl Done {
    fn of(amount: i64) -> Done {
        Done::Committed { amount, skipped: 0 }
    }
}

/// What an attempt knows besides its input.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// Where the rows are.
    pub tables: &'a Tables,
    /// The key and value of the terminal's fence, see `terminals/fence.rs`.
    pub fence: (&'a Key, &'a Bytes),
    /// Names the history that this run writes.
    pub writer: u64,
    /// Names a row of that history: no other transaction of the run has it.
    pub number: u64,
    /// Milliseconds since 1970.
    pub date: u64,
}

impl Attempt<'_> {
    /// Makes the attempt.
    ///
    /// # Errors
    /// See [`Failure`]; after a conflict another attempt may do better.
    pub async fn run(&self, input: &Input) -> Result<Done, Failure> {
        match input {
            Input::NewOrder { place, customer, lines } => {
                new_order::run(self, *place, *customer, lines).await
            }
            Input::Payment { place, home, customer, amount } => {
                payment::run(self, *place, *home, customer, *amount).await
            }
            Input::OrderStatus { home, customer } => status::order(self, *home, customer).await,
            Input::Delivery { warehouse, carrier } => {
                delivery::run(self, *warehouse, *carrier).await
            }
            Input::StockLevel { place, threshold } => status::stock(self, *place, *threshold).await,
        }
    }

    /// A transaction that is done only while the fence stands.
    fn begin(&self) -> Transaction {
        let (key, value) = self.fence;
        Transaction::new().check(key.bytes(), value.clone())
    }

    async fn commit(&self, transaction: Transaction) -> Result<Vec<ItemOutcome>, Failure> {
        let outcome = self.tables.transact(transaction).await;
        if let Err(Failure::Conflict { item: 0 }) = outcome {
            return Err(Failure::Damaged("another run works on the same tables".to_owned()));
        }
        outcome
    }

    /// The number of a customer who was given in either way; of several with one last name it is
    /// the one in the middle (clause 2.5.2.2).
    async fn select(&self, home: District, customer: &Selection) -> Result<u32, Failure> {
        let name = match customer {
            Selection::Number(number) => return Ok(*number),
            Selection::Name(name) => name,
        };
        let key = Key::Named(home, name.clone());
        let read = self.tables.read(std::slice::from_ref(&key)).await?;
        let customers: Vec<u32> = row(&key, read[0].as_ref())?;
        middle(&customers).ok_or_else(|| crate::tpcc::tables::damaged(&key))
    }
}

/// Of n customers the one at n/2, rounded up, counted from 1.
fn middle(customers: &[u32]) -> Option<u32> {
    customers.get(customers.len().div_ceil(2).checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_is_rounded_up() {
        for (customers, expected) in [
            (&[][..], None),
            (&[7], Some(7)),
            (&[7, 8], Some(7)),
            (&[7, 8, 9], Some(8)),
            (&[7, 8, 9, 10], Some(8)),
        ] {
            assert_eq!(middle(customers), expected);
        }
    }
}
