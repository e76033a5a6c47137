//! Several keys at one moment, or nothing.

use crate::calls::{self, Manner};
use crate::client::Client;
use crate::error::ClientError;
use crate::keyspace::value;
use bytes::Bytes;
use quorate_api::v1::condition::Holds;
use quorate_api::v1::item::Action;
use quorate_api::v1::{self, Condition, Item, ItemAnswer, Kind, Read, Removal};

/// What shall be done at one moment, or not at all, in this order: each item sees what those before
/// it did. [`Keyspace::transact`](crate::Keyspace::transact) has it done.
///
/// ```
/// use quorate_client::Transaction;
///
/// let sale = Transaction::new().check("stock", "7").put("stock", "6").get("price");
/// assert_eq!(sale.len(), 3);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transaction {
    items: Vec<Item>,
}

/// What an item of a transaction that was done was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemOutcome {
    /// It was done, or holds.
    Done,
    /// What was read; `None` if the key has no value.
    Value(Option<Bytes>),
    /// The key has no value any more; whether it had one.
    Deleted(bool),
}

impl Transaction {
    /// One without items.
    #[must_use]
    pub fn new() -> Transaction {
        Transaction::default()
    }

    /// How many items it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it has no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn with(mut self, key: impl Into<Bytes>, action: Action) -> Transaction {
        self.items.push(Item { key: key.into(), action: Some(action) });
        self
    }

    /// Reads a key.
    #[must_use]
    pub fn get(self, key: impl Into<Bytes>) -> Transaction {
        self.with(key, Action::Get(Read {}))
    }

    /// Sets the value of a key.
    #[must_use]
    pub fn put(self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Transaction {
        self.with(key, Action::Put(value.into()))
    }

    /// Removes a key.
    #[must_use]
    pub fn delete(self, key: impl Into<Bytes>) -> Transaction {
        self.with(key, Action::Delete(Removal {}))
    }

    /// Does it only if the key has this value. It may have had others since it was read.
    #[must_use]
    pub fn check(self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Transaction {
        let holds = Some(Holds::Value(value.into()));
        self.with(key, Action::Check(Condition { holds }))
    }

    /// Does it only if the key has a value, or has none.
    #[must_use]
    pub fn check_exists(self, key: impl Into<Bytes>, exists: bool) -> Transaction {
        self.with(key, Action::Check(Condition { holds: Some(Holds::Exists(exists)) }))
    }

    /// Has it done.
    pub(crate) async fn run(
        self,
        client: &Client,
        name: &str,
    ) -> Result<Vec<ItemOutcome>, ClientError> {
        let items = self.items;
        let routed = items.first().and_then(|item| client.route(name, &item.key));
        let make = |options| v1::TransactRequest {
            keyspace: name.to_owned(),
            items: items.clone(),
            options: Some(options),
        };
        let call = async |mut kv: calls::Kv, asked| kv.transact(asked).await;
        let done = calls::write(client, (routed, Manner::AtOne), make, call).await;
        let answers = done.map_err(unmet)?.answers;
        if answers.len() != items.len() {
            return Err(ClientError::Nonsense(
                "a transaction with other items than were asked for",
            ));
        }
        items.iter().zip(answers).map(|(item, answer)| told(item, answer)).collect()
    }
}

/// What an item was told.
fn told(item: &Item, answer: ItemAnswer) -> Result<ItemOutcome, ClientError> {
    Ok(match &item.action {
        Some(Action::Get(_)) => ItemOutcome::Value(value(answer.reading)?),
        Some(Action::Delete(_)) => ItemOutcome::Deleted(answer.existed),
        Some(Action::Put(_) | Action::Check(_)) | None => ItemOutcome::Done,
    })
}

/// A refusal of a check by its item, as the error of its own that it is.
fn unmet(error: ClientError) -> ClientError {
    let ClientError::Refused(said) = &error else { return error };
    let number = said.field.strip_prefix("items[").and_then(|rest| rest.strip_suffix(']'));
    match number.and_then(|number| number.parse().ok()) {
        Some(item) if said.kind() == Kind::Conflict => ClientError::Unmet { item },
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_that_does_not_hold_is_an_error_of_its_own() {
        let of = |kind: Kind, field: &str| {
            let (kind, field) = (kind.into(), field.to_owned());
            let error = v1::Error { kind, field, ..v1::Error::default() };
            unmet(ClientError::Refused(Box::new(error)))
        };
        assert_eq!(of(Kind::Conflict, "items[12]"), ClientError::Unmet { item: 12 });
        for (kind, field) in [(Kind::Invalid, "items[12]"), (Kind::Conflict, "name")] {
            assert!(matches!(of(kind, field), ClientError::Refused(_)), "{field}");
        }
    }
}
