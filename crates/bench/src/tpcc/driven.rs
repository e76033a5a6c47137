//! Terminals without a network: each says which transaction it asks for, and is told what became of
//! it. Who drives them has the clock, so they run in a simulator as well.
//!
//! They write the rows first, each its share, and begin when all of these are there.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use quorate_client::v1::change::Change;
use quorate_client::v1::condition::Holds;
use quorate_client::v1::item::Action;
use quorate_client::{ClientError, ItemOutcome, Transaction, v1};
use quorate_kernel::expiry::Expiry;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::rng::{Rng, mix};
use quorate_kernel::transaction::{Condition, Item, ItemOutcome as Told};
use quorate_kernel::{change, change::Changed};

use crate::error::BenchError;
use crate::tpcc::data::draws::Constants;
use crate::tpcc::data::keys::Key;
use crate::tpcc::data::population::Population;
use crate::tpcc::data::sizes::Sizes;
use crate::tpcc::inputs::Inputs;
use crate::tpcc::load::{BATCH_ROWS_MAX, write};
use crate::tpcc::tables::{Failure, Tables};
use crate::tpcc::terminals::NUMBERS_PER_TERMINAL;
use crate::tpcc::transactions::{Attempt, Done};

/// Names the history of a run; the load's is 0.
const WRITER: u64 = 1;

/// How an attempt at one of the five transactions ended, or what comes before the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptEnd {
    /// All rows are there.
    Loaded,
    /// It was committed.
    Committed,
    /// It named an item that is not there, so nothing was changed, as it should be.
    RolledBack,
    /// What it had read was changed meanwhile. It is attempted again.
    Aborted,
    /// The cluster did not do it, or nobody can say whether it did.
    Failed,
}

/// What a terminal and who drives it hand each other.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    asked: RefCell<Option<Transaction>>,
    told: RefCell<Option<Result<Vec<ItemOutcome>, ClientError>>>,
    ended: RefCell<Vec<AttemptEnd>>,
    now_ms: Cell<u64>,
}

impl Exchange {
    /// Has a transaction done by who drives the terminal.
    pub(super) async fn transact(
        &self,
        transaction: Transaction,
    ) -> Result<Vec<ItemOutcome>, ClientError> {
        let before = self.asked.replace(Some(transaction));
        assert!(before.is_none(), "a terminal asks for one transaction after the other");
        poll_fn(|_| self.told.take().map_or(Poll::Pending, Poll::Ready)).await
    }
}

/// A terminal.
pub struct DrivenTerminal {
    exchange: Rc<Exchange>,
    loading: Rc<Cell<u32>>,
    work: Pin<Box<dyn Future<Output = Result<Infallible, BenchError>>>>,
}

impl DrivenTerminal {
    /// All terminals of a run over tables of this size, which have nothing at first.
    #[must_use]
    pub fn all(sizes: Sizes, seed: u64, count: u32) -> Vec<DrivenTerminal> {
        let loading = Rc::new(Cell::new(count));
        let terminal = |number| {
            let exchange = Rc::new(Exchange::default());
            let work = Routine {
                tables: Tables::driven(Rc::clone(&exchange)),
                exchange: Rc::clone(&exchange),
                loading: Rc::clone(&loading),
                population: Population::new(sizes, seed, 0),
                inputs: inputs(sizes, seed, number),
                share: (number, count),
            };
            let loading = Rc::clone(&loading);
            DrivenTerminal { exchange, loading, work: Box::pin(work.run()) }
        };
        (0..count).map(terminal).collect()
    }

    /// Whether all rows are there.
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.loading.get() == 0
    }

    /// What it asks for. It must be told what became of that before it is asked again.
    ///
    /// # Errors
    /// The rows could not be written, or are not as they were written.
    ///
    /// # Panics
    /// It was asked twice.
    pub fn ask(&mut self) -> Result<Vec<Item>, BenchError> {
        let mut context = Context::from_waker(Waker::noop());
        match self.work.as_mut().poll(&mut context) {
            Poll::Ready(Err(error)) => return Err(error),
            Poll::Ready(Ok(never)) => match never {},
            Poll::Pending => {}
        }
        let asked = self.exchange.asked.take().expect("it waits for an answer alone");
        Ok(asked.items().iter().map(item).collect())
    }

    /// Tells it what became of what it asked for, so many milliseconds after some beginning.
    pub fn tell(&mut self, outcome: &Outcome, now_ms: u64) {
        self.exchange.now_ms.set(now_ms);
        *self.exchange.told.borrow_mut() = Some(told(outcome));
    }

    /// How the attempts ended that have ended since this was asked last: known when it asks on.
    #[must_use]
    pub fn take_ended(&mut self) -> Vec<AttemptEnd> {
        self.exchange.ended.take()
    }
}

fn inputs(sizes: Sizes, seed: u64, number: u32) -> Inputs {
    let constants = Constants::of_run(seed, Constants::of_load(seed).name);
    let rng = Rng::new(mix(seed ^ 1)).fork(u64::from(number));
    Inputs::new(sizes, constants, number, rng)
}

/// What a terminal does.
struct Routine {
    tables: Tables,
    exchange: Rc<Exchange>,
    /// How many terminals still write rows.
    loading: Rc<Cell<u32>>,
    population: Population,
    inputs: Inputs,
    /// Its number, and how many there are.
    share: (u32, u32),
}

impl Routine {
    async fn run(mut self) -> Result<Infallible, BenchError> {
        let fence = self.load().await?;
        self.exchange.ended.borrow_mut().push(AttemptEnd::Loaded);
        let mut number = u64::from(self.share.0) * NUMBERS_PER_TERMINAL;
        loop {
            let input = self.inputs.draw();
            loop {
                number += 1;
                let attempt = Attempt {
                    tables: &self.tables,
                    fence: (&fence.0, &fence.1),
                    writer: WRITER,
                    number,
                    date: self.exchange.now_ms.get(),
                };
                let ended = match attempt.run(&input).await {
                    Ok(Done::Committed { .. }) => AttemptEnd::Committed,
                    Ok(Done::RolledBack) => AttemptEnd::RolledBack,
                    Err(Failure::Conflict { .. }) => AttemptEnd::Aborted,
                    Err(Failure::Unknown(_) | Failure::Refused(_)) => AttemptEnd::Failed,
                    Err(Failure::Damaged(why)) => return Err(BenchError::Tables(why)),
                };
                self.exchange.ended.borrow_mut().push(ended);
                if ended != AttemptEnd::Aborted {
                    break;
                }
            }
        }
    }

    /// Writes its share of the rows and its fence, and looks at that until the others have written
    /// theirs.
    async fn load(&self) -> Result<(Key, Bytes), BenchError> {
        let (number, count) = self.share;
        let pieces = self.population.pieces();
        for piece in pieces.iter().skip(number as usize).step_by(count as usize) {
            for batch in self.population.rows(piece).chunks(BATCH_ROWS_MAX) {
                write(&self.tables, batch).await?;
            }
        }
        let fence = (Key::Fence(number), Bytes::from_static(b"1"));
        write(&self.tables, std::slice::from_ref(&fence)).await?;
        self.loading.set(self.loading.get() - 1);
        while self.loading.get() > 0 {
            let read = self.tables.read(std::slice::from_ref(&fence.0)).await;
            read.map_err(|failure| BenchError::Tables(failure.to_string()))?;
        }
        Ok(fence)
    }
}

/// An item of what a terminal asks for, as hosts take it.
fn item(item: &v1::Item) -> Item {
    let key = item.key.clone();
    match item.action.clone().expect("the client sets what an item does") {
        Action::Get(v1::Read {}) => Item::Get { key },
        Action::Put(value) => Item::Put { key, value, expiry: Expiry::Never },
        Action::Delete(v1::Removal {}) => Item::Delete { key },
        Action::Check(v1::Condition { holds: Some(holds) }) => {
            let holds = match holds {
                Holds::Exists(true) => Condition::Present,
                Holds::Exists(false) => Condition::Absent,
                Holds::Value(value) => Condition::Value(value),
            };
            Item::Check { key, holds }
        }
        Action::Change(v1::Change { change: Some(Change::Add(number)) }) => {
            Item::Change { key, change: change::Change::Add(number) }
        }
        other => unreachable!("the five transactions ask for nothing such: {other:?}"),
    }
}

/// What hosts answer, as a client tells it.
fn told(outcome: &Outcome) -> Result<Vec<ItemOutcome>, ClientError> {
    let one = |told: &Told| match told {
        Told::Checked | Told::Written => ItemOutcome::Done,
        Told::Value(value) => ItemOutcome::Value(value.clone()),
        Told::Deleted { existed } => ItemOutcome::Deleted(*existed),
        Told::Changed(Changed::Integer(number)) => ItemOutcome::Integer(*number),
        Told::Unchanged(_) => ItemOutcome::Unchanged(v1::Unchanged::Unspecified),
        other => unreachable!("the five transactions are told nothing such: {other:?}"),
    };
    match outcome {
        Outcome::Transacted(all) => Ok(all.iter().map(one).collect()),
        Outcome::Refused(Refusal::Unmet { item }) => Err(ClientError::Unmet { item: *item }),
        Outcome::Refused(refusal) => {
            let error = v1::Error { what: refusal.to_string(), ..v1::Error::default() };
            Err(ClientError::Refused(Box::new(error)))
        }
        other => {
            let why = format!("{other:?}");
            Err(ClientError::OutcomeUnknown { why, token: None })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::audit::{conditions, facts::Facts};
    use quorate_kernel::evaluate::Items;
    use quorate_kernel::operation::Operation;
    use std::collections::BTreeMap;

    /// Does a transaction on values in a map.
    fn transact(values: &mut BTreeMap<Bytes, Bytes>, items: Vec<Item>) -> Outcome {
        let items = Items::of(Operation::Transact { items, name: None }).expect("it has items");
        let done = items.evaluate(usize::MAX, |key| values.get(key).cloned());
        let told = match done.told.clone() {
            Ok(told) => told,
            Err(refusal) => return Outcome::Refused(refusal),
        };
        for (key, value) in done.written() {
            match value {
                Some(value) => drop(values.insert(key, value)),
                None => drop(values.remove(&key)),
            }
        }
        Outcome::Transacted(told)
    }

    #[test]
    fn terminals_load_work_together_and_try_again_what_others_changed() {
        let sizes = Sizes { warehouses: 1, scale: 100 };
        let mut terminals = DrivenTerminal::all(sizes, 7, 3);
        let mut values = BTreeMap::new();
        let mut ends: BTreeMap<String, u32> = BTreeMap::new();
        // What one asks is done when the others have asked too, so they change what others read.
        for now_ms in 0..3_000 {
            let asked: Vec<_> = terminals.iter_mut().map(|it| it.ask().expect("sound")).collect();
            for (terminal, items) in terminals.iter_mut().zip(asked) {
                terminal.tell(&transact(&mut values, items), now_ms);
                for end in terminal.take_ended() {
                    *ends.entry(format!("{end:?}")).or_default() += 1;
                }
            }
        }
        assert!(terminals.iter().all(DrivenTerminal::is_loaded));
        assert!(ends["Committed"] > 1_000 && ends["Aborted"] > 10, "{ends:?}");
        assert_eq!(ends["Loaded"], 3, "each begins once");
        assert!(ends.contains_key("RolledBack") && !ends.contains_key("Failed"), "{ends:?}");
        let mut facts = Facts::default();
        values.iter().for_each(|(key, value)| facts.add(key, value).expect("a row"));
        let violations = conditions::judge(&facts, sizes);
        assert!(violations.is_empty(), "{violations:?}");
    }

    #[test]
    fn refusals_and_what_nobody_knows_are_told_apart() {
        let unmet = Outcome::Refused(Refusal::Unmet { item: 2 });
        assert_eq!(told(&unmet), Err(ClientError::Unmet { item: 2 }));
        let refused = told(&Outcome::Refused(Refusal::Stopping));
        assert!(matches!(refused, Err(ClientError::Refused(_))), "{refused:?}");
        let other = told(&Outcome::Written { context: Bytes::new() });
        assert!(matches!(other, Err(ClientError::OutcomeUnknown { .. })), "{other:?}");
    }
}
