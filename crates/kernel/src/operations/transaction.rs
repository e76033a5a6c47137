//! Operations over several keys: what is asked of each, and what each is told.

use crate::change::{Change, Changed, Unchanged};
use crate::expiry::{Expiry, Lifetime, When};
use crate::limits::{KEY_BYTES_MAX, TRANSACTION_BYTES_MAX, TRANSACTION_ITEMS_MAX};
use crate::operation::{Operation, Outcome, Refusal, Which};
use crate::time::WallTime;
use crate::write::Replaces;
use bytes::Bytes;

/// One item of a transaction. Items are done in their order, and each sees what those before it
/// did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Does nothing, but the transaction is done only if this holds.
    Check {
        /// Which key is looked at; nothing of it is returned.
        key: Bytes,
        /// What must hold of it.
        holds: Condition,
    },
    /// Reads a key.
    Get {
        /// Whose value the client is told.
        key: Bytes,
    },
    /// Sets the value of a key, whatever it has.
    Put {
        /// Where it is written; made if there is none.
        key: Bytes,
        /// What it has afterwards.
        value: Bytes,
        /// What becomes of its end.
        expiry: Expiry,
    },
    /// Removes a key, whatever it has.
    Delete {
        /// What is removed; nothing happens if there is none.
        key: Bytes,
    },
    /// Changes the value of a key where it stands. If it cannot be done the key stays as it is, and
    /// the other items are done all the same.
    Change {
        /// Whose value is changed.
        key: Bytes,
        /// What is made of it.
        change: Change,
    },
    /// Sets or drops the end of a key; of an absent one, nothing.
    Expire {
        /// Which key.
        key: Bytes,
        /// When it ends; none if it shall not end by itself. A time that had passed when this was
        /// asked removes the key.
        at: Option<WallTime>,
        /// Whether it is set. Not looked at where it is dropped.
        when: When,
    },
    /// Reads how long a key is there.
    Lifetime {
        /// Which key.
        key: Bytes,
    },
    /// Gives another key what a key has: its value, and its end. If it cannot be done both stay as
    /// they are, and the other items are done all the same.
    Copy {
        /// What is copied.
        key: Bytes,
        /// What has it then. If it is the same key nothing changes.
        to: Bytes,
        /// Whether it may have a value already.
        replaces: bool,
        /// Whether the key that is copied is removed.
        removes: bool,
    },
}

/// What must hold of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// It has no value.
    Absent,
    /// It has a value.
    Present,
    /// It has this value.
    Value(Bytes),
}

/// What an item of a transaction that was done is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemOutcome {
    /// It holds.
    Checked,
    /// What was read; `None` if the key is absent.
    Value(Option<Bytes>),
    /// The value was set.
    Written,
    /// The key has no value any more.
    Deleted {
        /// Whether it had one.
        existed: bool,
    },
    /// The change was done.
    Changed(Changed),
    /// The change was not done.
    Unchanged(Unchanged),
    /// The end of a key was looked at.
    Expiry {
        /// Whether it was set or dropped, or has removed the key.
        changed: bool,
    },
    /// How long the key is there.
    Lifetime(Lifetime),
    /// What became of a copy.
    Copied(Copied),
}

/// What became of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copied {
    /// It was made.
    Done,
    /// There is nothing to copy.
    NoSource,
    /// The other key has a value, which is not replaced.
    Occupied,
}

impl Item {
    /// The key that it is about; that of which it reads, if it is about two.
    #[must_use]
    pub fn key(&self) -> &Bytes {
        match self {
            Item::Check { key, .. }
            | Item::Get { key }
            | Item::Put { key, .. }
            | Item::Delete { key }
            | Item::Change { key, .. }
            | Item::Expire { key, .. }
            | Item::Lifetime { key }
            | Item::Copy { key, .. } => key,
        }
    }

    /// All keys that it is about.
    pub fn keys(&self) -> impl Iterator<Item = &Bytes> {
        let other = match self {
            Item::Copy { to, .. } => Some(to),
            _ => None,
        };
        core::iter::once(self.key()).chain(other)
    }

    /// The value that it carries, if any.
    #[must_use]
    pub fn value(&self) -> Option<&Bytes> {
        match self {
            Item::Put { value, .. } | Item::Check { holds: Condition::Value(value), .. } => {
                Some(value)
            }
            Item::Change { change, .. } => change.bytes(),
            _ => None,
        }
    }

    /// Whether it may change data.
    #[must_use]
    pub fn is_write(&self) -> bool {
        match self {
            Item::Put { .. }
            | Item::Delete { .. }
            | Item::Change { .. }
            | Item::Expire { .. }
            | Item::Copy { .. } => true,
            Item::Check { .. } | Item::Get { .. } | Item::Lifetime { .. } => false,
        }
    }

    /// Whether it is about when keys end.
    #[must_use]
    pub fn is_about_expiry(&self) -> bool {
        match self {
            Item::Expire { .. } | Item::Lifetime { .. } => true,
            Item::Put { expiry, .. }
            | Item::Change { change: Change::PutIf { expiry, .. }, .. } => *expiry != Expiry::Never,
            _ => false,
        }
    }

    /// Lets the end that it sets, if it sets one, come so many milliseconds later.
    pub fn postpone(&mut self, by: i64) {
        let at = match self {
            Item::Put { expiry: Expiry::At(at), .. }
            | Item::Change { change: Change::PutIf { expiry: Expiry::At(at), .. }, .. }
            | Item::Expire { at: Some(at), .. } => at,
            _ => return,
        };
        at.0 = at.0.saturating_add(by);
    }

    /// How many bytes its keys and value have.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.keys().map(Bytes::len).sum::<usize>() + self.value().map_or(0, Bytes::len)
    }

    /// The item that does what an operation on one key does by itself, if there is one.
    #[must_use]
    pub fn of(operation: Operation) -> Option<Item> {
        match operation {
            Operation::Get { key, which: Which::One, replies: None } => Some(Item::Get { key }),
            Operation::Put { key, value, replaces: Replaces::Whatever, .. } => {
                Some(Item::Put { key, value, expiry: Expiry::Never })
            }
            Operation::Delete { key, replaces: Replaces::Whatever } => Some(Item::Delete { key }),
            _ => None,
        }
    }

    /// Whether it can be told this.
    #[must_use]
    pub fn takes(&self, outcome: &ItemOutcome) -> bool {
        match outcome {
            ItemOutcome::Checked => matches!(self, Item::Check { .. }),
            ItemOutcome::Value(_) => matches!(self, Item::Get { .. }),
            ItemOutcome::Written => matches!(self, Item::Put { .. }),
            ItemOutcome::Deleted { .. } => matches!(self, Item::Delete { .. }),
            ItemOutcome::Changed(_) | ItemOutcome::Unchanged(_) => {
                matches!(self, Item::Change { .. })
            }
            ItemOutcome::Expiry { .. } => matches!(self, Item::Expire { .. }),
            ItemOutcome::Lifetime(_) => matches!(self, Item::Lifetime { .. }),
            ItemOutcome::Copied(_) => matches!(self, Item::Copy { .. }),
        }
    }
}

impl Condition {
    /// Whether it holds of a key with this value.
    #[must_use]
    pub fn is_met(&self, found: Option<&Bytes>) -> bool {
        match self {
            Condition::Absent => found.is_none(),
            Condition::Present => found.is_some(),
            Condition::Value(value) => found == Some(value),
        }
    }
}

impl ItemOutcome {
    /// How many bytes it holds.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match self {
            ItemOutcome::Value(value) => value.as_ref().map_or(0, Bytes::len),
            ItemOutcome::Changed(Changed::Float(number)) => number.len(),
            _ => 0,
        }
    }
}

/// What an operation on one key would be told.
impl From<ItemOutcome> for Outcome {
    fn from(outcome: ItemOutcome) -> Outcome {
        match outcome {
            ItemOutcome::Value(value) => Outcome::value(value),
            ItemOutcome::Deleted { existed } => Outcome::deleted(existed),
            ItemOutcome::Checked | ItemOutcome::Written => Outcome::written(),
            // No operation on one key is one of these.
            other @ (ItemOutcome::Changed(_)
            | ItemOutcome::Unchanged(_)
            | ItemOutcome::Expiry { .. }
            | ItemOutcome::Lifetime(_)
            | ItemOutcome::Copied(_)) => Outcome::Transacted(alloc::vec![other]),
        }
    }
}

/// Whether a transaction of these items is within the bounds of a keyspace whose values have at
/// most so many bytes. Doors ask it before they hand one over, so engines need not.
///
/// # Errors
/// It has too many items or bytes, or one of its keys or values has too many.
pub fn check_bounds(items: &[Item], value_bytes_max: usize) -> Result<(), Refusal> {
    let (count, limit) = (items.len(), TRANSACTION_ITEMS_MAX);
    if count > limit {
        return Err(Refusal::TooMany { count, limit });
    }
    let within = |what, length, limit| match length <= limit {
        true => Ok(()),
        false => Err(Refusal::TooLarge { what, length, limit }),
    };
    for item in items {
        item.keys().try_for_each(|key| within("key", key.len(), KEY_BYTES_MAX))?;
        // What a key is compared with may have been put while longer values were taken.
        let is_compared = matches!(item, Item::Check { .. });
        let limit = if is_compared { TRANSACTION_BYTES_MAX } else { value_bytes_max };
        within("value", item.value().map_or(0, Bytes::len), limit)?;
    }
    within("transaction", items.iter().map(Item::bytes).sum(), TRANSACTION_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Capability;
    use alloc::vec;
    use alloc::vec::Vec;

    fn key(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn a_transaction_is_of_all_its_keys_and_writes_if_one_of_its_items_does() {
        let get = Item::Get { key: key("a") };
        let put = Item::Put { key: key("b"), value: key("v"), expiry: Expiry::Never };
        let of = |items: &[Item]| Operation::Transact { items: items.to_vec(), name: None };
        let both = of(&[get.clone(), put.clone()]);
        assert!(both.key().is_none() && both.keys().eq(["a", "b"]));
        assert!(both.is_write() && !of(core::slice::from_ref(&get)).is_write());
        assert!(both.needs().eq([Capability::Transactions]));
        let both = of(&[get.clone(), Item::Lifetime { key: key("b") }]);
        assert!(both.needs().eq([Capability::Transactions, Capability::Expiry]));
        assert!(!both.is_write());
        let until = |expiry| Change::PutIf { exists: true, value: key("v"), expiry };
        let change = |expiry| of(&[Item::Change { key: key("b"), change: until(expiry) }]);
        let changes = [Capability::Transactions, Capability::Changes, Capability::Expiry];
        assert!(change(Expiry::Keep).needs().eq(changes));
        assert!(change(Expiry::Never).needs().eq(changes.into_iter().take(2)));
        assert!(Operation::get(key("a")).keys().eq(["a"]));
        assert_eq!(Item::of(Operation::get(key("a"))), Some(get));
        assert_eq!(Item::of(Operation::put(key("b"), key("v"))), Some(put));
        assert_eq!(Item::of(Operation::get_all(key("a"), None)), None);
        assert_eq!(Item::of(Operation::delete_over(key("a"), key("c"))), None);
    }

    #[test]
    fn an_end_that_is_postponed_comes_later_and_none_stays_none() {
        let (key, value) = (|| key("k"), || key("v"));
        let all = |expiry, at| {
            let change = Change::PutIf { exists: true, value: value(), expiry };
            [
                Item::Put { key: key(), value: value(), expiry },
                Item::Change { key: key(), change },
                Item::Expire { key: key(), at, when: When::Always },
            ]
        };
        let at = |ms| all(Expiry::At(WallTime(ms)), Some(WallTime(ms)));
        let later = |items: [Item; 3], by| {
            items.map(|mut item| {
                item.postpone(by);
                item
            })
        };
        assert_eq!(later(at(5), 7), at(12));
        assert_eq!(later(at(i64::MAX), 7), at(i64::MAX));
        assert_eq!(later(all(Expiry::Keep, None), 7), all(Expiry::Keep, None));
    }

    #[test]
    fn conditions_are_of_what_a_key_has() {
        let all = [Condition::Absent, Condition::Present, Condition::Value(key("v"))];
        let met = |found: Option<Bytes>| all.clone().map(|holds| holds.is_met(found.as_ref()));
        assert_eq!(met(None), [true, false, false]);
        assert_eq!(met(Some(key("v"))), [false, true, true]);
        assert_eq!(met(Some(key(""))), [false, true, false]);
    }

    #[test]
    fn a_transaction_has_bounds() {
        let long = |length: usize| Bytes::from(vec![0; length]);
        let put = |key: usize, value: usize| Item::Put {
            key: long(key),
            value: long(value),
            expiry: Expiry::Never,
        };
        let told = |items: Vec<Item>| check_bounds(&items, TRANSACTION_BYTES_MAX);
        let too_large = |what, length, limit| Err(Refusal::TooLarge { what, length, limit });
        let limit = TRANSACTION_ITEMS_MAX;
        assert_eq!(told(vec![put(1, 1); limit]), Ok(()));
        let many = Err(Refusal::TooMany { count: limit + 1, limit });
        assert_eq!(told(vec![put(1, 1); limit + 1]), many);
        let (length, limit) = (KEY_BYTES_MAX + 1, KEY_BYTES_MAX);
        assert_eq!(told(vec![put(length, 1)]), too_large("key", length, limit));
        let (key, to) = (long(1), long(length));
        let copy = Item::Copy { key, to, replaces: true, removes: false };
        assert_eq!(copy.bytes(), length + 1);
        assert_eq!(told(vec![copy]), too_large("key", length, limit));
        let (half, limit) = (TRANSACTION_BYTES_MAX / 2, TRANSACTION_BYTES_MAX);
        assert_eq!(told(vec![put(0, half), put(0, half)]), Ok(()));
        let whole = told(vec![put(0, half), put(1, half)]);
        assert_eq!(whole, too_large("transaction", limit + 1, limit));
        assert_eq!(check_bounds(&[put(1, 9)], 8), too_large("value", 9, 8));
    }
}
