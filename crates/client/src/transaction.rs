//! Several keys at one moment, or nothing.

use crate::calls::{self, Manner};
use crate::client::Client;
use crate::error::ClientError;
use crate::expiry::{self, Expiry, Lifetime};
use crate::keyspace::value;
use bytes::Bytes;
use quorate_api::v1::change::Change;
use quorate_api::v1::changed::Told;
use quorate_api::v1::condition::Holds;
use quorate_api::v1::item::Action;
use quorate_api::v1::{
    self, Condition, Copied, ExpireWhen, Item, ItemAnswer, Kind, Read, Removal, Unchanged,
};
use std::time::{Duration, SystemTime};

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
    /// The integer that the key has after an addition.
    Integer(i64),
    /// The decimal number that the key has after an addition.
    Number(Bytes),
    /// How many bytes the value has that was changed.
    Length(u64),
    /// A change was not done, for this reason; the other items were.
    Unchanged(Unchanged),
    /// Whether what was asked was done to the time at which the key expires.
    Expiry(bool),
    /// How long the key has its value.
    Lifetime(Lifetime),
    /// What became of a copy.
    Copied(Copied),
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

    /// What it asks for, item by item, as the native API says it.
    #[must_use]
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    fn with(mut self, key: impl Into<Bytes>, action: Action) -> Transaction {
        self.items.push(Item { key: key.into(), action: Some(action), expiry: None });
        self
    }

    /// The last item puts a value that expires so.
    fn expiring(mut self, expiry: Expiry) -> Transaction {
        if let Some(item) = self.items.last_mut() {
            item.expiry = Some(expiry.into());
        }
        self
    }

    /// Reads a key.
    #[must_use]
    pub fn get(self, key: impl Into<Bytes>) -> Transaction {
        self.with(key, Action::Get(Read {}))
    }

    /// Sets the value of a key, which does not expire then.
    #[must_use]
    pub fn put(self, key: impl Into<Bytes>, value: impl Into<Bytes>) -> Transaction {
        self.with(key, Action::Put(value.into()))
    }

    /// Sets the value of a key, and when it expires.
    #[must_use]
    pub fn put_expiring(
        self,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
        expiry: Expiry,
    ) -> Transaction {
        self.put(key, value).expiring(expiry)
    }

    /// Removes a key.
    #[must_use]
    pub fn delete(self, key: impl Into<Bytes>) -> Transaction {
        self.with(key, Action::Delete(Removal {}))
    }

    fn changes(self, key: impl Into<Bytes>, change: Change) -> Transaction {
        self.with(key, Action::Change(v1::Change { change: Some(change) }))
    }

    /// Sets the value of a key that has one, or that has none; it does not expire then.
    #[must_use]
    pub fn put_if(
        self,
        key: impl Into<Bytes>,
        exists: bool,
        value: impl Into<Bytes>,
    ) -> Transaction {
        self.changes(key, Change::PutIf(v1::PutIf { exists, value: value.into() }))
    }

    /// The same, and sets when the key expires.
    #[must_use]
    pub fn put_if_expiring(
        self,
        key: impl Into<Bytes>,
        exists: bool,
        value: impl Into<Bytes>,
        expiry: Expiry,
    ) -> Transaction {
        self.put_if(key, exists, value).expiring(expiry)
    }

    /// Lets a key expire so long after the host has read the request, by its clock, if this holds
    /// of the time that it has. Nothing happens to a key without a value.
    #[must_use]
    pub fn expire_after(
        self,
        key: impl Into<Bytes>,
        after: Duration,
        when: ExpireWhen,
    ) -> Transaction {
        self.expire(key, expiry::after(after), when)
    }

    /// The same, at this time; one that has passed removes the key.
    #[must_use]
    pub fn expire_at(self, key: impl Into<Bytes>, at: SystemTime, when: ExpireWhen) -> Transaction {
        self.expire(key, expiry::at(at), when)
    }

    fn expire(self, key: impl Into<Bytes>, end: v1::expire::End, when: ExpireWhen) -> Transaction {
        let (end, when) = (Some(end), when.into());
        self.with(key, Action::Expire(v1::Expire { end, when }))
    }

    /// Lets a key expire no more.
    #[must_use]
    pub fn persist(self, key: impl Into<Bytes>) -> Transaction {
        self.with(key, Action::Persist(Removal {}))
    }

    /// Reads how long a key has its value.
    #[must_use]
    pub fn lifetime(self, key: impl Into<Bytes>) -> Transaction {
        self.with(key, Action::Lifetime(Read {}))
    }

    /// Gives another key the value of this one, and its time to expire if it has one; where the
    /// other one has a value only if that is to be replaced. Which of the three it came to is told.
    #[must_use]
    pub fn copy(self, key: impl Into<Bytes>, to: impl Into<Bytes>, replaces: bool) -> Transaction {
        let (to, removes) = (to.into(), false);
        self.with(key, Action::Copy(v1::CopyTo { to, replaces, removes }))
    }

    /// The same, and this key is removed.
    #[must_use]
    pub fn rename(
        self,
        key: impl Into<Bytes>,
        to: impl Into<Bytes>,
        replaces: bool,
    ) -> Transaction {
        let (to, removes) = (to.into(), true);
        self.with(key, Action::Copy(v1::CopyTo { to, replaces, removes }))
    }

    /// Adds to a decimal integer of 64 bits; an absent key counts as 0.
    #[must_use]
    pub fn add(self, key: impl Into<Bytes>, number: i64) -> Transaction {
        self.changes(key, Change::Add(number))
    }

    /// Adds a decimal number to one, as floating point of 64 bits; an absent key counts as 0.
    #[must_use]
    pub fn add_float(self, key: impl Into<Bytes>, number: impl Into<Bytes>) -> Transaction {
        self.changes(key, Change::AddFloat(number.into()))
    }

    /// Appends to the value of a key; an absent key counts as empty.
    #[must_use]
    pub fn append(self, key: impl Into<Bytes>, bytes: impl Into<Bytes>) -> Transaction {
        self.changes(key, Change::Append(bytes.into()))
    }

    /// Overwrites a part of the value of a key, which is filled up with zero bytes where it is too
    /// short.
    #[must_use]
    pub fn set_range(
        self,
        key: impl Into<Bytes>,
        offset: u64,
        bytes: impl Into<Bytes>,
    ) -> Transaction {
        let bytes = bytes.into();
        self.changes(key, Change::SetRange(v1::SetRange { offset, bytes }))
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
        Some(Action::Change(_)) => changed(answer)?,
        Some(Action::Expire(_) | Action::Persist(_)) => ItemOutcome::Expiry(answer.expiry_changed),
        Some(Action::Lifetime(_)) => ItemOutcome::Lifetime(expiry::lifetime(answer.lifetime)?),
        Some(Action::Copy(_)) => ItemOutcome::Copied(answer.copied()),
        Some(Action::Put(_) | Action::Check(_)) | None => ItemOutcome::Done,
    })
}

/// What a change was told.
fn changed(answer: ItemAnswer) -> Result<ItemOutcome, ClientError> {
    let nonsense = ClientError::Nonsense("a change that was told nothing");
    Ok(match answer.changed.and_then(|changed| changed.told).ok_or(nonsense)? {
        Told::Put(_) => ItemOutcome::Done,
        Told::Integer(number) => ItemOutcome::Integer(number),
        Told::Number(number) => ItemOutcome::Number(number),
        Told::Length(length) => ItemOutcome::Length(length),
        Told::Unchanged(why) => {
            ItemOutcome::Unchanged(Unchanged::try_from(why).unwrap_or(Unchanged::Unspecified))
        }
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
    fn puts_and_items_say_when_keys_expire() {
        let soon = Expiry::After(Duration::from_millis(9));
        let asked = Transaction::new()
            .put_expiring("a", "v", soon)
            .put_if_expiring("a", false, "v", Expiry::Keep)
            .expire_after("a", Duration::from_millis(9), ExpireWhen::IfNone)
            .persist("a")
            .lifetime("a")
            .rename("a", "b", true);
        let ends = [Some(soon.into()), Some(Expiry::Keep.into()), None, None, None, None];
        assert!(asked.items.iter().map(|item| item.expiry).eq(ends));
        let end = Some(v1::expire::End::AfterMs(9));
        let expire = Action::Expire(v1::Expire { end, when: ExpireWhen::IfNone.into() });
        assert_eq!(asked.items[2].action, Some(expire));
        let of = |item: usize, answer| told(&asked.items[item], answer);
        let done = ItemAnswer { expiry_changed: true, ..ItemAnswer::default() };
        assert_eq!(of(2, done.clone()), Ok(ItemOutcome::Expiry(true)));
        assert_eq!(of(3, ItemAnswer::default()), Ok(ItemOutcome::Expiry(false)));
        let state = Some(v1::lifetime::State::Endless(v1::Endless {}));
        let lifetime = Some(v1::Lifetime { state });
        let endless = ItemAnswer { lifetime, ..ItemAnswer::default() };
        assert_eq!(of(4, endless), Ok(ItemOutcome::Lifetime(Lifetime::Endless)));
        let copied = ItemAnswer { copied: Copied::Occupied.into(), ..ItemAnswer::default() };
        assert_eq!(of(5, copied), Ok(ItemOutcome::Copied(Copied::Occupied)));
        let copy = v1::CopyTo { to: Bytes::from("b"), replaces: true, removes: true };
        assert_eq!(asked.items[5].action, Some(Action::Copy(copy)));
        assert!(matches!(of(4, done), Err(ClientError::Nonsense(_))));
    }

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
