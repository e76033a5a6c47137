//! A client: one transaction after the other.

use std::rc::Rc;

use quorate_client::{ClientError, Keyspace, Transaction};

use super::config::Asking;
use super::draws::{Draws, Step};
use super::floor::{Ended, Floor};
use super::gathering::{Gathered, Gathering};
use crate::report::record::Class;
use crate::tpcc::word;

/// A client.
#[derive(Debug)]
pub struct Asker {
    /// What it shares with the others.
    pub floor: Rc<Floor>,
    /// Where the keys are.
    pub keyspace: Keyspace,
    /// What it asks for.
    pub draws: Draws,
    /// How.
    pub asking: Asking,
}

impl Asker {
    /// Asks until the run is over.
    pub async fn work(mut self) {
        while !self.floor.is_over.get() {
            let steps = self.draws.transaction();
            let writes = steps.iter().any(|step| !matches!(step, Step::Read(_)));
            let class = if writes { Class::Write } else { Class::Read };
            let begun = self.floor.now();
            let ended = match self.ask(steps).await {
                Ok(()) => Ended::Committed(class),
                Err(ClientError::Unmet { .. }) => Ended::Aborted,
                Err(error) => Ended::Failed(word(&error)),
            };
            self.floor.count(begun, ended);
        }
    }

    async fn ask(&self, steps: Vec<Step>) -> Result<(), ClientError> {
        let transaction = match self.asking {
            Asking::Whole => whole(steps),
            Asking::Versions | Asking::Blind => self.gather(steps).await?,
        };
        self.keyspace.transact(transaction).await.map(|_| ())
    }

    /// Reads what is to be read, one key after the other; what comes of it is the commit.
    async fn gather(&self, steps: Vec<Step>) -> Result<Transaction, ClientError> {
        let mut gathering = Gathering::new(self.asking, steps);
        while let Some(key) = gathering.next_read() {
            let value = self.keyspace.get(key.clone()).await?;
            gathering.read(key, value);
        }
        let Gathered { checks, puts } = gathering.gathered();
        let checks = checks.into_iter().fold(Transaction::new(), |all, (key, had)| match had {
            Some(value) => all.check(key, value),
            None => all.check_exists(key, false),
        });
        Ok(puts.into_iter().fold(checks, |all, (key, value)| all.put(key, value)))
    }
}

/// All operations in one request.
fn whole(steps: Vec<Step>) -> Transaction {
    steps.into_iter().fold(Transaction::new(), |all, step| match step {
        Step::Read(key) => all.get(key),
        Step::Write(key, value) => all.put(key, value),
        Step::Modify(key, value) => all.get(key.clone()).put(key, value),
    })
}
