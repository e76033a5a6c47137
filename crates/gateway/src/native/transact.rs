//! Several keys as one operation.

use super::expiry::{self, Asked, Timed};
use super::problem::{self, Problem};
use super::service::{Asking, Native};
use super::{changes, map, named};
use quorate_api::v1::change::Change;
use quorate_api::v1::changed::Told;
use quorate_api::v1::condition::Holds;
use quorate_api::v1::item::Action;
use quorate_api::v1::reading::State;
use quorate_api::v1::{self, Absent, ItemAnswer, Kind, Reading, WriteOptions};
use quorate_host::wall;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::refusal::Ended;
use quorate_kernel::time::WallTime;
use quorate_kernel::transaction::{Condition, Copied, Item, ItemOutcome, check_bounds};

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
        let items: Vec<Timed> =
            items.into_iter().enumerate().map(asked).collect::<Result<_, _>>()?;
        let options = options.unwrap_or_default();
        let (told, is_repeated) = self.transact(&keyspace, items, &options, asking).await?;
        let now = wall();
        let answers = told.into_iter().map(|told| answer(told, now)).collect();
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
        items: Vec<Timed>,
        options: &WriteOptions,
        asking: &Asking,
    ) -> Result<(Vec<ItemOutcome>, bool), Problem> {
        let keyspace = self.find(keyspace)?;
        if items.is_empty() {
            let what = "the transaction has no items";
            return Err(problem::invalid("items", what, "send one item at least"));
        }
        let Asked { operation, relative } = Asked::transaction(items, named::write_name(options));
        let operation = map::able(&keyspace, "a transaction", operation)?;
        let Operation::Transact { items, .. } = &operation else {
            return Err(problem::mismatch());
        };
        let within = check_bounds(items, keyspace.entry.value_bytes_max);
        within.map_err(|refusal| problem::refused(&refusal))?;
        let (count, is_write) = (items.len(), operation.is_write());
        let asked = Asked { operation, relative };
        let (outcome, is_repeated) = self.write(&keyspace, asked, options, asking).await?;
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

impl Native {
    /// `Kv.HowEnded`.
    ///
    /// # Errors
    /// See [`Native::get`].
    pub async fn how_ended(
        &self,
        request: v1::HowEndedRequest,
        asking: &Asking,
    ) -> Result<v1::HowEndedResponse, Problem> {
        let v1::HowEndedRequest { keyspace, token, timeout_ms } = request;
        let keyspace = self.find(&keyspace)?;
        let asked = Operation::HowEnded { token };
        let operation = map::able(&keyspace, "how a transaction ended", asked)?;
        let deadline = self.deadline(timeout_ms, asking);
        let told = self.call(&keyspace, operation, deadline, None).await;
        let told = told.map_err(|problem| match problem.kind() {
            Kind::BadContext => problem::token(problem.what),
            _ => problem,
        });
        match told? {
            (Outcome::Ended(ended), _) => {
                let ended = match ended {
                    Ended::Committed => v1::Ended::Committed,
                    Ended::Partial => v1::Ended::Partial,
                    Ended::Aborted => v1::Ended::Aborted,
                };
                Ok(v1::HowEndedResponse { ended: ended.into(), coordinator: Some(self.me()) })
            }
            _ => Err(problem::mismatch()),
        }
    }
}

/// An item as it came through the API.
fn asked((at, item): (usize, v1::Item)) -> Result<Timed, Problem> {
    let v1::Item { key, action, expiry } = item;
    let field = format!("items[{at}]");
    let lacks = |what: &str, right: &str| problem::invalid(&field, what, right);
    let Some(action) = action else {
        return Err(lacks(
            "the item says nothing of what to do",
            "set check, get, put, delete, change, expire, persist, lifetime or copy",
        ));
    };
    if expiry.is_some() && !puts(&action) {
        let right = "leave the expiry out; put, put_if and expire say when a key expires";
        return Err(lacks("the item has an expiry, but puts nothing", right));
    }
    let (expiry, is_relative) = expiry::of_put(expiry, &field)?;
    let item = match action {
        Action::Expire(asked) => return expiry::of_expire(key, asked, &field),
        Action::Persist(v1::Removal {}) => expiry::persist(key),
        Action::Lifetime(v1::Read {}) => Item::Lifetime { key },
        Action::Copy(v1::CopyTo { to, replaces, removes }) => {
            Item::Copy { key, to, replaces, removes }
        }
        Action::Get(v1::Read {}) => Item::Get { key },
        Action::Put(value) => Item::Put { key, value, expiry },
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
            Item::Change { key, change: changes::asked(change.ok_or_else(lack)?, expiry) }
        }
    };
    Ok(Timed { item, is_relative })
}

/// Whether it puts a value, so that it may say when the key expires.
fn puts(action: &Action) -> bool {
    match action {
        Action::Put(_) => true,
        Action::Change(v1::Change { change }) => matches!(change, Some(Change::PutIf(_))),
        _ => false,
    }
}

/// What an item is told, as the API says it at this time.
fn answer(told: ItemOutcome, now: WallTime) -> ItemAnswer {
    match told {
        ItemOutcome::Checked | ItemOutcome::Written => ItemAnswer::default(),
        ItemOutcome::Deleted { existed } => ItemAnswer { existed, ..ItemAnswer::default() },
        ItemOutcome::Value(value) => {
            let state = value.map_or(State::Absent(Absent {}), State::Value);
            let reading = Some(Reading { state: Some(state), receipt: None });
            ItemAnswer { reading, ..ItemAnswer::default() }
        }
        ItemOutcome::Changed(changed) => of_change(changes::changed(changed)),
        ItemOutcome::Unchanged(why) => of_change(changes::unchanged(why)),
        ItemOutcome::Expiry { changed } => {
            ItemAnswer { expiry_changed: changed, ..ItemAnswer::default() }
        }
        ItemOutcome::Lifetime(lifetime) => {
            let lifetime = Some(expiry::lifetime(lifetime, now));
            ItemAnswer { lifetime, ..ItemAnswer::default() }
        }
        ItemOutcome::Copied(copied) => {
            let copied = match copied {
                Copied::Done => v1::Copied::Done,
                Copied::NoSource => v1::Copied::NoSource,
                Copied::Occupied => v1::Copied::Occupied,
            };
            ItemAnswer { copied: copied.into(), ..ItemAnswer::default() }
        }
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
    use quorate_kernel::expiry::{Expiry, Lifetime, When};

    fn item(action: Option<Action>) -> Result<Item, Problem> {
        expiring(action, None).map(|timed| timed.item)
    }

    fn expiring(action: Option<Action>, expiry: Option<v1::Expiry>) -> Result<Timed, Problem> {
        asked((3, v1::Item { key: Bytes::from_static(b"k"), action, expiry }))
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
            (Some(Action::Persist(v1::Removal {})), expiry::persist(key())),
            (Some(Action::Lifetime(v1::Read {})), Item::Lifetime { key: key() }),
            (
                Some(Action::Copy(v1::CopyTo { to: value(), replaces: true, removes: false })),
                Item::Copy { key: key(), to: value(), replaces: true, removes: false },
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
    fn what_puts_a_value_may_say_when_it_expires_and_nothing_else_may() {
        let value = || Bytes::from_static(b"v");
        let after = || Some(v1::Expiry { end: Some(v1::expiry::End::AfterMs(9)) });
        let ends = Expiry::At(WallTime(9));
        let put_if = Change::PutIf(v1::PutIf { exists: false, value: value() });
        let change = |change| Some(Action::Change(v1::Change { change: Some(change) }));
        let told = expiring(Some(Action::Put(value())), after()).expect("it is said so");
        assert!(matches!(told.item, Item::Put { expiry, .. } if expiry == ends));
        assert!(told.is_relative);
        let told = expiring(change(put_if), after()).expect("it is said so");
        assert!(matches!(told.item, Item::Change { change, .. } if change.expiry() == ends));
        for other in [change(Change::Add(1)), Some(Action::Get(v1::Read {}))] {
            let problem = expiring(other, after()).expect_err("it puts nothing");
            assert_eq!((problem.kind(), &problem.field[..]), (Kind::Invalid, "items[3]"));
        }
        let end = Some(v1::expire::End::AfterMs(9));
        let expire = item(Some(Action::Expire(v1::Expire { end, when: 1 }))).expect("it is said");
        let key = Bytes::from_static(b"k");
        assert_eq!(expire, Item::Expire { key, at: Some(WallTime(9)), when: When::IfNone });
    }

    #[test]
    fn each_item_is_told_what_it_asked_for() {
        let of = |told| {
            let answer = answer(told, WallTime(100));
            assert_eq!((answer.changed, answer.lifetime), (None, None), "it is no change");
            let ItemAnswer { reading, existed, .. } = answer;
            (reading.and_then(|reading| reading.state), existed)
        };
        assert_eq!(of(ItemOutcome::Checked), (None, false));
        assert_eq!(of(ItemOutcome::Deleted { existed: true }), (None, true));
        assert_eq!(of(ItemOutcome::Value(None)), (Some(State::Absent(Absent {})), false));
        let value = Bytes::from_static(b"v");
        assert_eq!(of(ItemOutcome::Value(Some(value.clone()))), (Some(State::Value(value)), false));
        assert!(answer(ItemOutcome::Expiry { changed: true }, WallTime(100)).expiry_changed);
        let copied = |copied| answer(ItemOutcome::Copied(copied), WallTime(100)).copied();
        assert_eq!(copied(Copied::Done), v1::Copied::Done);
        assert_eq!(copied(Copied::NoSource), v1::Copied::NoSource);
        assert_eq!(copied(Copied::Occupied), v1::Copied::Occupied);
        let until = Lifetime::Until(WallTime(130));
        let told = answer(ItemOutcome::Lifetime(until), WallTime(100));
        assert_eq!(told.lifetime, Some(expiry::lifetime(until, WallTime(100))));
    }
}
