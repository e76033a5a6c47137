//! Clients of a simulated cluster that ask for transactions as the paper's do (§4.2).

use super::size::{LENGTH, VALUE_BYTES};
use crate::service::{Clients, Hearing};
use bytes::Bytes;
use quorate_bench::{Asking, Distribution, Draws, Gathered, Gathering, Workload, key};
use quorate_kernel::expiry::Expiry;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::rng::Rng;
use quorate_kernel::transaction::{Condition, Item};
use std::ops::Range;

/// How many keys one request writes at first.
const FILLED: u64 = 20;

/// What has ended in the time that counts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ended {
    /// Transactions that were committed.
    pub committed: u64,
    /// Transactions of which what they had read had changed.
    pub aborted: u64,
    /// What was refused for another reason.
    pub failed: u64,
    /// How long committed ones took, in nanoseconds.
    pub times: Vec<u64>,
}

/// Where a client is.
enum Stage {
    /// It writes its share of the keys.
    Fills(Range<u64>),
    /// It reads; the key whose reading is under way.
    Reads(Gathering, Option<Bytes>),
    /// It has asked for the commit.
    Commits,
}

/// A client.
struct Customer {
    stage: Stage,
    begun: u64,
}

/// The clients.
pub struct Transactions {
    draws: Draws,
    customers: Vec<Customer>,
    now: u64,
    /// How many still write their share of the keys.
    filling: usize,
    /// What has ended.
    pub ended: Ended,
}

impl Transactions {
    /// So many clients of a workload, over so many keys, which they write first.
    #[must_use]
    pub fn new(workload: Workload, count: usize, keys: u64, seed: u64) -> Transactions {
        let share = keys.div_ceil(count as u64);
        let customer = |number: u64| {
            let left = (number * share).min(keys)..((number + 1) * share).min(keys);
            Customer { stage: Stage::Fills(left), begun: 0 }
        };
        let mix = (workload, Distribution::Zipfian);
        Transactions {
            draws: Draws::new(mix, keys, VALUE_BYTES, LENGTH, seed),
            customers: (0..count as u64).map(customer).collect(),
            now: 0,
            filling: count,
            ended: Ended::default(),
        }
    }

    /// The next transaction of a client begins.
    fn begin(&mut self, client: usize) {
        let gathering = Gathering::new(Asking::Versions, self.draws.transaction());
        let customer = &mut self.customers[client];
        customer.begun = self.now;
        customer.stage = Stage::Reads(gathering, None);
    }
}

impl Clients for Transactions {
    fn are_ready(&self) -> bool {
        self.filling == 0
    }

    fn count(&self) -> usize {
        self.customers.len()
    }

    fn next(&mut self, client: usize, rng: &mut Rng) -> Operation {
        let filling = match &mut self.customers[client].stage {
            Stage::Fills(left) if !left.is_empty() => {
                let first = left.start;
                left.start = (first + FILLED).min(left.end);
                Some(first..left.start)
            }
            _ => None,
        };
        if let Some(keys) = filling {
            let value = Bytes::from(rng.next().to_be_bytes().repeat(VALUE_BYTES / 8));
            return transact(keys.map(|number| put(key(number), value.clone())).collect());
        }
        let stage = &self.customers[client].stage;
        self.filling -= usize::from(matches!(stage, Stage::Fills(_)));
        if !matches!(stage, Stage::Reads(..)) {
            self.begin(client);
        }
        let stage = std::mem::replace(&mut self.customers[client].stage, Stage::Commits);
        let Stage::Reads(mut gathering, _) = stage else {
            unreachable!("a transaction has begun");
        };
        match gathering.next_read() {
            Some(key) => {
                self.customers[client].stage = Stage::Reads(gathering, Some(key.clone()));
                Operation::get(key)
            }
            None => commit(gathering.gathered()),
        }
    }

    fn told(&mut self, client: usize, told: &Hearing<'_>) {
        self.now = told.at;
        let customer = &mut self.customers[client];
        let counted = u64::from(told.is_counted);
        match (&mut customer.stage, told.outcome) {
            (Stage::Fills(_), Outcome::Transacted(_)) => {
                assert!(!told.is_counted, "all keys are there before anything counts");
            }
            (Stage::Reads(gathering, asked), Outcome::Values { values, .. }) => {
                let key = asked.take().expect("a reading was under way");
                gathering.read(key, values.iter().next().cloned());
            }
            (Stage::Commits, Outcome::Transacted(_)) => {
                self.ended.committed += counted;
                if told.is_counted {
                    self.ended.times.push(told.at - customer.begun);
                }
            }
            (Stage::Commits, Outcome::Refused(Refusal::Unmet { .. })) => {
                self.ended.aborted += counted;
            }
            (Stage::Fills(_), other) => panic!("a key could not be written: {other:?}"),
            (stage, _) => {
                // The transaction is given up.
                *stage = Stage::Commits;
                self.ended.failed += counted;
            }
        }
    }
}

/// A transaction as hosts take it.
pub(super) fn transact(items: Vec<Item>) -> Operation {
    Operation::Transact { items, name: None }
}

fn put(key: Bytes, value: Bytes) -> Item {
    Item::Put { key, value, expiry: Expiry::Never }
}

fn commit(Gathered { checks, puts }: Gathered) -> Operation {
    let check = |(key, had): (Bytes, Option<Bytes>)| Item::Check {
        key,
        holds: had.map_or(Condition::Absent, Condition::Value),
    };
    let checks = checks.into_iter().map(check);
    transact(checks.chain(puts.into_iter().map(|(key, value)| put(key, value))).collect())
}
