//! The keyspace that has the tables: reads and transactions through the native client, or through
//! who drives a terminal.

use bytes::Bytes;
use quorate_client::v1::Kind;
use quorate_client::{Client, ClientError, ItemOutcome, Keyspace, Listing, Scan, Transaction};
use serde::de::DeserializeOwned;
use std::rc::Rc;

use crate::tpcc::data::keys::Key;
use crate::tpcc::data::rows;
use crate::tpcc::driven::Exchange;

/// Why something of the tables was not read or done.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Failure {
    /// The item of this number checks what does not hold any more. Nothing was changed.
    #[error("what item {item} of the transaction checks does not hold")]
    Conflict {
        /// Its number, from 0.
        item: usize,
    },
    /// It may have been done, or may yet be.
    #[error("{0}")]
    Unknown(ClientError),
    /// The cluster did not do it. Nothing was changed.
    #[error("{0}")]
    Refused(ClientError),
    /// The tables are not as they were loaded, or somebody else changes them. Nothing was changed.
    #[error("{0}")]
    Damaged(String),
}

impl Failure {
    /// The same of what only reads: an answer that did not come leaves nothing open.
    fn of_reads(self) -> Failure {
        match self {
            Failure::Unknown(error) => Failure::Refused(error),
            other => other,
        }
    }
}

/// The word under which refusals of its sort are counted.
#[must_use]
pub fn word(error: &ClientError) -> &'static str {
    match error {
        ClientError::Unreachable { .. } | ClientError::OutcomeUnknown { .. } => "NO_ANSWER",
        other => {
            let name = other.kind().unwrap_or(Kind::Unspecified).as_str_name();
            name.strip_prefix("KIND_").unwrap_or(name)
        }
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Failure {
        match error {
            ClientError::Unmet { item } => Failure::Conflict { item },
            ClientError::OutcomeUnknown { .. } => Failure::Unknown(error),
            _ => Failure::Refused(error),
        }
    }
}

/// The tables, through one client. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Tables {
    through: Through,
}

/// Who has transactions done.
#[derive(Clone, Debug)]
enum Through {
    Keyspace(Keyspace),
    Exchange(Rc<Exchange>),
}

impl Tables {
    /// Those in a keyspace.
    #[must_use]
    pub fn new(client: &Client, keyspace: &str) -> Tables {
        Tables { through: Through::Keyspace(client.keyspace(keyspace)) }
    }

    /// Those that who drives a terminal has.
    #[must_use]
    pub(super) fn driven(exchange: Rc<Exchange>) -> Tables {
        Tables { through: Through::Exchange(exchange) }
    }

    /// The values of keys at one moment.
    ///
    /// # Errors
    /// They could not be read.
    pub async fn read(&self, keys: &[Key]) -> Result<Vec<Option<Bytes>>, Failure> {
        self.read_if(Transaction::new(), keys).await
    }

    /// The same, at a moment at which all that `checks` has holds.
    ///
    /// # Errors
    /// They could not be read, or a check does not hold.
    pub async fn read_if(
        &self,
        checks: Transaction,
        keys: &[Key],
    ) -> Result<Vec<Option<Bytes>>, Failure> {
        let reads = keys.iter().fold(checks, |reads, key| reads.get(key.bytes()));
        let outcomes = self.transact(reads).await.map_err(Failure::of_reads)?;
        let value = |outcome| match outcome {
            ItemOutcome::Value(value) => Some(value),
            _ => None,
        };
        Ok(outcomes.into_iter().filter_map(value).collect())
    }

    /// Has a transaction done.
    ///
    /// # Errors
    /// See [`Failure`].
    pub async fn transact(&self, transaction: Transaction) -> Result<Vec<ItemOutcome>, Failure> {
        let outcomes = match &self.through {
            Through::Keyspace(keyspace) => keyspace.transact(transaction).await?,
            Through::Exchange(exchange) => exchange.transact(transaction).await?,
        };
        let undone = |one: &ItemOutcome| matches!(one, ItemOutcome::Unchanged(_));
        match outcomes.iter().position(undone) {
            Some(item) => Err(Failure::Damaged(format!("item {item} adds to what is no number"))),
            None => Ok(outcomes),
        }
    }

    /// Lists all that is there, with its values.
    ///
    /// # Panics
    /// They are those of who drives a terminal.
    #[must_use]
    pub fn list(&self) -> Listing {
        let Through::Keyspace(keyspace) = &self.through else {
            panic!("who drives a terminal lists nothing");
        };
        keyspace.scan(Scan { with_values: true, ..Scan::default() })
    }
}

/// The row that was read under a key which has one.
///
/// # Errors
/// [`Failure::Damaged`].
pub fn row<T: DeserializeOwned>(key: &Key, value: Option<&Bytes>) -> Result<T, Failure> {
    value.and_then(|value| rows::decode(value)).ok_or_else(|| damaged(key))
}

/// The number that was read under a key which has one.
///
/// # Errors
/// [`Failure::Damaged`].
pub fn number<T: std::str::FromStr>(key: &Key, value: Option<&Bytes>) -> Result<T, Failure> {
    value.and_then(|value| rows::parse(value)).ok_or_else(|| damaged(key))
}

/// A key has no such value as it was loaded with.
#[must_use]
pub fn damaged(key: &Key) -> Failure {
    let key = String::from_utf8_lossy(&key.bytes()).into_owned();
    Failure::Damaged(format!("{key} has no value as it was loaded; was it all loaded?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_client::v1;

    #[test]
    fn failures_are_told_apart() {
        assert_eq!(Failure::from(ClientError::Unmet { item: 3 }), Failure::Conflict { item: 3 });
        let unknown =
            Failure::from(ClientError::OutcomeUnknown { why: String::new(), token: None });
        assert!(matches!(unknown, Failure::Unknown(_)));
        assert!(matches!(unknown.of_reads(), Failure::Refused(_)));
        let kind = Kind::NoQuorum.into();
        let refused = ClientError::Refused(Box::new(v1::Error { kind, ..v1::Error::default() }));
        assert_eq!(word(&refused), "NO_QUORUM");
        assert!(matches!(Failure::from(refused), Failure::Refused(_)));
        assert_eq!(word(&ClientError::Unreachable { why: String::new() }), "NO_ANSWER");
    }
}
