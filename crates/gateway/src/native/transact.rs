//! Several keys as one operation.

use super::problem::{self, Problem};
use super::service::{Asking, Native};
use super::{changes, map, named};
use quorate_api::v1::changed::Told;
use quorate_api::v1::condition::Holds;
use quorate_api::v1::item::Action;
use quorate_api::v1::reading::State;
use quorate_api::v1::{self, Absent, ItemAnswer, Reading, WriteOptions};
use quorate_kernel::expiry::Expiry;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::transaction::{Condition, Item, ItemOutcome, check_bounds};

impl Native {
    /// `Kv.Transact`.
    ///
    /// # Errors
    /// See [`Native::get`].
    pub async fn transact_as_asked(
        &self,
        request: v1::TransactRequest,
        asking: &Asking,
    ) -> Result<v1::TransactResponse, Problem> {
        let v1::TransactRequest { keyspace, items, options } = request;
        let items: Vec<Item> =
            items.into_iter().enumerate().map(asked).collect::<Result<_, _>>()?;
        let options = options.unwrap_or_default();
        let (told, is_repeated) = self.transact(&keyspace, items, &options, asking).await?;
        let answers = told.into_iter().map(answer).collect();
        Ok(v1::TransactResponse { answers, coordinator: Some(self.me()), is_repeated })
    }

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

/// An item as it came through the API.
fn asked((at, item): (usize, v1::Item)) -> Result<Item, Problem> {
    let v1::Item { key, action } = item;
    let lacks = |what: &str, right: &str| problem::invalid(&format!("items[{at}]"), what, right);
    let Some(action) = action else {
        return Err(lacks(
            "the item says nothing of what to do",
            "set check, get, put, delete or change",
        ));
    };
    Ok(match action {
        Action::Get(v1::Read {}) => Item::Get { key },
        Action::Put(value) => Item::Put { key, value, expiry: Expiry::Never },
        Action::Delete(v1::Removal {}) => Item::Delete { key },
        Action::Check(v1::Condition { holds }) => {
            let holds = match holds {
                Some(Holds::Exists(true)) => Condition::Present,
                Some(Holds::Exists(false)) => Condition::Absent,
                Some(Holds::Value(value)) => Condition::Value(value),
                None => return Err(lacks("the check has no condition", "set exists or value")),
            };
            Item::Check { key, holds }
        }
        Action::Change(v1::Change { change }) => {
            let lack = || lacks("the change says nothing of what to do", "set one of its fields");
            Item::Change { key, change: changes::asked(change.ok_or_else(lack)?) }
        }
    })
}

/// What an item is told, as the API says it.
fn answer(told: ItemOutcome) -> ItemAnswer {
    match told {
        ItemOutcome::Checked | ItemOutcome::Written => ItemAnswer::default(),
        ItemOutcome::Deleted { existed } => ItemAnswer { existed, ..ItemAnswer::default() },
        ItemOutcome::Value(value) => {
            let state = value.map_or(State::Absent(Absent {}), State::Value);
            let reading = Some(Reading { state: Some(state) });
            ItemAnswer { reading, ..ItemAnswer::default() }
        }
        ItemOutcome::Changed(changed) => of_change(changes::changed(changed)),
        ItemOutcome::Unchanged(why) => of_change(changes::unchanged(why)),
        // Nobody asks for them here.
        ItemOutcome::Expiry { .. } | ItemOutcome::Lifetime(_) => ItemAnswer::default(),
    }
}

fn of_change(told: Told) -> ItemAnswer {
    ItemAnswer { changed: Some(v1::Changed { told: Some(told) }), ..ItemAnswer::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use quorate_api::v1::Kind;

    fn item(action: Option<Action>) -> Result<Item, Problem> {
        asked((3, v1::Item { key: Bytes::from_static(b"k"), action }))
    }

    #[test]
    fn items_are_taken_as_they_are_meant() {
        let (key, value) = (|| Bytes::from_static(b"k"), || Bytes::from_static(b"v"));
        let check = |holds| Some(Action::Check(v1::Condition { holds }));
        let table = [
            (Some(Action::Get(v1::Read {})), Item::Get { key: key() }),
            (
                Some(Action::Put(value())),
                Item::Put { key: key(), value: value(), expiry: Expiry::Never },
            ),
            (Some(Action::Delete(v1::Removal {})), Item::Delete { key: key() }),
            (
                check(Some(Holds::Exists(true))),
                Item::Check { key: key(), holds: Condition::Present },
            ),
            (
                check(Some(Holds::Exists(false))),
                Item::Check { key: key(), holds: Condition::Absent },
            ),
            (
                check(Some(Holds::Value(value()))),
                Item::Check { key: key(), holds: Condition::Value(value()) },
            ),
        ];
        for (action, expected) in table {
            assert_eq!(item(action), Ok(expected));
        }
        for action in [None, check(None), Some(Action::Change(v1::Change::default()))] {
            let problem = item(action).expect_err("it says too little");
            assert_eq!((problem.kind(), &problem.field[..]), (Kind::Invalid, "items[3]"));
        }
    }

    #[test]
    fn each_item_is_told_what_it_asked_for() {
        let of = |told| {
            let ItemAnswer { reading, existed, changed: None } = answer(told) else {
                panic!("it is no change")
            };
            (reading.and_then(|reading| reading.state), existed)
        };
        assert_eq!(of(ItemOutcome::Checked), (None, false));
        assert_eq!(of(ItemOutcome::Deleted { existed: true }), (None, true));
        assert_eq!(of(ItemOutcome::Value(None)), (Some(State::Absent(Absent {})), false));
        let value = Bytes::from_static(b"v");
        assert_eq!(of(ItemOutcome::Value(Some(value.clone()))), (Some(State::Value(value)), false));
    }
}
