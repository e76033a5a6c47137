//! Operations evaluated: what each item of one is told, and what its keys have then.
//!
//! For engines that have at hand what an operation reads. Nothing is written here: the engine
//! writes what has changed, once every item can be done.

use crate::change::{Change, Changed, Unchanged};
use crate::expiry::{Expiry, Lifetime, When};
use crate::limits::TRANSACTION_BYTES_MAX;
use crate::operation::{Operation, Outcome, Refusal};
use crate::time::WallTime;
use crate::transaction::{Copied, Item, ItemOutcome};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

/// What one key has, while items are done one after the other.
pub trait Cell {
    /// Its value, as clients are shown it; none if the key is absent.
    fn value(&self) -> Option<Bytes>;

    /// Takes the value of a put, and what becomes of the key's end; that is asked only of engines
    /// whose keys end.
    ///
    /// # Errors
    /// The engine does not take it. The cell is as it was.
    fn put(&mut self, value: &Bytes, expiry: Expiry) -> Result<(), Refusal>;

    /// Takes a delete.
    fn delete(&mut self);

    /// Takes a change of its value where it stands, which has at most so many bytes then; or says
    /// why that is not done.
    ///
    /// # Errors
    /// The engine does not take the value that would come of it. The cell is as it was.
    fn change(
        &mut self,
        change: &Change,
        bytes_max: usize,
    ) -> Result<Result<Changed, Unchanged>, Refusal> {
        let mut value = self.value();
        Ok(match change.apply(&mut value, bytes_max) {
            Ok((changed, is_other)) => {
                if let Some(value) = value.filter(|_| is_other) {
                    self.put(&value, change.expiry())?;
                }
                Ok(changed)
            }
            Err(why) => Err(why),
        })
    }

    /// How long the key is there.
    fn lifetime(&self) -> Lifetime {
        self.value().map_or(Lifetime::Absent, |_| Lifetime::Endless)
    }

    /// Takes what another cell has, which has a value: that, and its end.
    ///
    /// # Errors
    /// The engine does not take it. The cell is as it was.
    fn copy(&mut self, from: &Self) -> Result<(), Refusal> {
        let expiry = match from.lifetime() {
            Lifetime::Until(at) => Expiry::At(at),
            _ => Expiry::Never,
        };
        from.value().map_or(Ok(()), |value| self.put(&value, expiry))
    }

    /// Sets or drops the key's end; whether it did so, or has removed the key. Asked only of
    /// engines whose keys end.
    fn expire(&mut self, _at: Option<WallTime>, _when: When) -> bool {
        false
    }
}

/// A register: a put is its value from then on.
impl Cell for Option<Bytes> {
    fn value(&self) -> Option<Bytes> {
        self.clone()
    }

    fn put(&mut self, value: &Bytes, _expiry: Expiry) -> Result<(), Refusal> {
        *self = Some(value.clone());
        Ok(())
    }

    fn delete(&mut self) {
        *self = None;
    }

    fn change(
        &mut self,
        change: &Change,
        bytes_max: usize,
    ) -> Result<Result<Changed, Unchanged>, Refusal> {
        Ok(change.apply(self, bytes_max).map(|(changed, _)| changed))
    }
}

/// An operation as items that are done in their order, each seeing what those before it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Items {
    list: Vec<Item>,
    /// Whether it was asked as one operation on one key.
    is_single: bool,
}

/// What has become of the items of one operation.
#[derive(Debug)]
pub struct Evaluation<C> {
    /// The keys that were come to, each as it is left, and whether an item wrote it.
    pub cells: BTreeMap<Bytes, (C, bool)>,
    /// What each item is told; or why none is done.
    pub told: Result<Vec<ItemOutcome>, Refusal>,
}

impl Items {
    /// The items of an operation; none of a listing, nor of one on values side by side or on a
    /// number of replicas.
    #[must_use]
    pub fn of(operation: Operation) -> Option<Items> {
        match operation {
            Operation::Transact { items, .. } => Some(Items { list: items, is_single: false }),
            single => Item::of(single).map(|item| Items { list: vec![item], is_single: true }),
        }
    }

    /// What is asked, in order.
    #[must_use]
    pub fn list(&self) -> &[Item] {
        &self.list
    }

    /// Does all of it on cells that `read` gives, one for each key. A value grows to so many bytes
    /// at most where it stands.
    pub fn evaluate<C: Cell>(
        &self,
        bytes_max: usize,
        mut read: impl FnMut(&Bytes) -> C,
    ) -> Evaluation<C> {
        let (mut cells, mut told) = (BTreeMap::new(), Vec::with_capacity(self.list.len()));
        let (mut grown, mut bytes) = (BTreeMap::new(), 0_usize);
        for (at, item) in self.list.iter().enumerate() {
            let key = item.key();
            let entry = cells.entry(key.clone()).or_insert_with(|| (read(key), false));
            let outcome = if let Item::Copy { key, to, replaces, removes } = item {
                cells.entry(to.clone()).or_insert_with(|| (read(to), false));
                bytes = bytes.saturating_add(cells[key].0.value().map_or(0, |it| it.len()));
                copy((key, to), (*replaces, *removes), &mut cells).map(ItemOutcome::Copied)
            } else {
                entry.1 |= item.is_write();
                step(at, item, bytes_max, &mut entry.0)
            };
            let outcome = match outcome {
                Ok(outcome) => outcome,
                Err(refusal) => return Evaluation { cells, told: Err(refusal) },
            };
            // What is shown, and what was made of values that grow: one that is shown or put anew
            // is copied when it grows again.
            bytes += outcome.bytes();
            match &outcome {
                ItemOutcome::Changed(Changed::Length(length)) => {
                    let length = usize::try_from(*length).unwrap_or(usize::MAX);
                    let before = grown.insert(key, length).unwrap_or(0);
                    bytes = bytes.saturating_add(length.saturating_sub(before));
                }
                ItemOutcome::Unchanged(_)
                | ItemOutcome::Checked
                | ItemOutcome::Expiry { .. }
                | ItemOutcome::Lifetime(_) => {}
                _ => item.keys().for_each(|key| _ = grown.remove(key)),
            }
            told.push(outcome);
            let (length, limit) = (bytes, TRANSACTION_BYTES_MAX);
            if length > limit && !self.is_single {
                let told = Err(Refusal::TooLarge { what: "transaction", length, limit });
                return Evaluation { cells, told };
            }
        }
        Evaluation { cells, told: Ok(told) }
    }

    /// What the client is told, if each item is told this.
    ///
    /// # Panics
    /// An operation on one key was told nothing, or several things.
    #[must_use]
    pub fn outcome(&self, mut told: Vec<ItemOutcome>) -> Outcome {
        if self.is_single {
            assert_eq!(told.len(), 1, "an operation on one key has one outcome");
            return told.remove(0).into();
        }
        Outcome::Transacted(told)
    }
}

impl<C> Evaluation<C> {
    /// The keys that were come to: what the answer shows rests on them, a refusal too.
    #[must_use]
    pub fn keys(&self) -> Arc<[Bytes]> {
        self.cells.keys().cloned().collect()
    }

    /// The keys that were written, each as it is left.
    pub fn written(self) -> impl Iterator<Item = (Bytes, C)> {
        let written = self.cells.into_iter().filter(|(_, (_, is_written))| *is_written);
        written.map(|(key, (cell, _))| (key, cell))
    }
}

/// Does a copy between two of the cells.
fn copy<C: Cell>(
    (key, to): (&Bytes, &Bytes),
    (replaces, removes): (bool, bool),
    cells: &mut BTreeMap<Bytes, (C, bool)>,
) -> Result<Copied, Refusal> {
    if cells[key].0.value().is_none() {
        return Ok(Copied::NoSource);
    }
    if cells[to].0.value().is_some() && !replaces {
        return Ok(Copied::Occupied);
    }
    if key == to {
        return Ok(Copied::Done);
    }
    let (mut target, _) = cells.remove(to).expect("it was read");
    let (from, is_written) = cells.get_mut(key).expect("it was read");
    let taken = target.copy(from);
    if removes && taken.is_ok() {
        from.delete();
        *is_written = true;
    }
    cells.insert(to.clone(), (target, true));
    taken.map(|()| Copied::Done)
}

fn step<C: Cell>(
    at: usize,
    item: &Item,
    bytes_max: usize,
    cell: &mut C,
) -> Result<ItemOutcome, Refusal> {
    Ok(match item {
        Item::Check { holds, .. } if !holds.is_met(cell.value().as_ref()) => {
            return Err(Refusal::Unmet { item: at });
        }
        Item::Check { .. } => ItemOutcome::Checked,
        Item::Get { .. } => ItemOutcome::Value(cell.value()),
        Item::Put { value, expiry, .. } => {
            cell.put(value, *expiry)?;
            ItemOutcome::Written
        }
        Item::Change { change, .. } => {
            let told = cell.change(change, bytes_max)?;
            told.map_or_else(ItemOutcome::Unchanged, ItemOutcome::Changed)
        }
        Item::Delete { .. } => {
            let existed = cell.value().is_some();
            cell.delete();
            ItemOutcome::Deleted { existed }
        }
        Item::Expire { at, when, .. } => ItemOutcome::Expiry { changed: cell.expire(*at, *when) },
        Item::Lifetime { .. } => ItemOutcome::Lifetime(cell.lifetime()),
        Item::Copy { .. } => unreachable!("it is about two cells"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transaction::Condition;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    fn items(list: Vec<Item>) -> Items {
        Items::of(Operation::Transact { items: list, name: None }).expect("it has items")
    }

    fn put(key: &'static str, value: &'static str) -> Item {
        Item::Put { key: bytes(key), value: bytes(value), expiry: Expiry::Never }
    }

    fn check(key: &'static str, holds: Condition) -> Item {
        Item::Check { key: bytes(key), holds }
    }

    #[test]
    fn each_item_sees_what_those_before_it_did_and_each_key_is_read_once() {
        let (get, delete) = (Item::Get { key: bytes("a") }, Item::Delete { key: bytes("a") });
        let all = items(vec![
            check("a", Condition::Absent),
            put("a", "1"),
            get.clone(),
            check("a", Condition::Value(bytes("1"))),
            delete.clone(),
            delete,
            check("b", Condition::Present),
        ]);
        let mut read = Vec::new();
        let done = all.evaluate(9, |key| {
            read.push(key.clone());
            (key == "b").then(|| bytes("2"))
        });
        assert_eq!(read, ["a", "b"]);
        assert_eq!(done.keys()[..], [bytes("a"), bytes("b")]);
        let told = done.told.clone().expect("all of it can be done");
        let deleted = |existed| ItemOutcome::Deleted { existed };
        let [checked, written] = [ItemOutcome::Checked, ItemOutcome::Written];
        let value = ItemOutcome::Value(Some(bytes("1")));
        let expected =
            [&checked, &written, &value, &checked, &deleted(true), &deleted(false), &checked];
        assert!(told.iter().eq(expected), "{told:?}");
        assert!(done.written().eq([(bytes("a"), None)]), "what was read alone is not written");
        assert_eq!(all.outcome(told.clone()), Outcome::Transacted(told));
    }

    #[test]
    fn a_change_that_cannot_be_done_ends_nothing() {
        let change = |change| Item::Change { key: bytes("a"), change };
        let append = |text| change(Change::Append(bytes(text)));
        let all = items(vec![change(Change::Add(1)), append("2345678"), append("0"), append("x")]);
        let done = all.evaluate(9, |_| Some(bytes("9")));
        let length = |length| ItemOutcome::Changed(Changed::Length(length));
        let first = ItemOutcome::Changed(Changed::Integer(10));
        let last = ItemOutcome::Unchanged(Unchanged::TooLong);
        assert_eq!(done.told.clone(), Ok(vec![first, length(9), last.clone(), last]));
        assert!(done.written().eq([(bytes("a"), Some(bytes("102345678")))]));
    }

    #[test]
    fn a_copy_takes_what_items_before_it_left_and_writes_what_it_changes_alone() {
        let copy = |key, to, replaces, removes| {
            let (key, to) = (bytes(key), bytes(to));
            Item::Copy { key, to, replaces, removes }
        };
        let all = items(vec![
            copy("none", "a", true, true),
            copy("a", "b", false, true),
            copy("a", "a", true, true),
            copy("a", "a", false, true),
            put("a", "2"),
            copy("a", "b", true, true),
            copy("b", "c", false, false),
        ]);
        let done = all.evaluate(9, |key| (key == "a" || key == "b").then(|| bytes("1")));
        use Copied::{Done, NoSource, Occupied};
        let told = [NoSource, Occupied, Done, Occupied, Done, Done].map(ItemOutcome::Copied);
        let told = [&told[..4], &[ItemOutcome::Written], &told[4..]].concat();
        assert_eq!(done.told.clone(), Ok(told));
        let two = Some(bytes("2"));
        let left = [(bytes("a"), None), (bytes("b"), two.clone()), (bytes("c"), two)];
        assert!(done.written().eq(left), "where nothing was to copy nothing is written");

        let long = Bytes::from(vec![0; TRANSACTION_BYTES_MAX / 2 + 1]);
        let two = items(vec![copy("a", "b", true, false), copy("a", "c", true, false)]);
        let refused = two.evaluate(9, |_| Some(long.clone())).told;
        assert!(matches!(refused, Err(Refusal::TooLarge { what: "transaction", .. })));
    }

    #[test]
    fn what_cannot_be_done_ends_it_with_the_keys_that_were_come_to() {
        let unmet = items(vec![put("a", "1"), check("b", Condition::Present), put("c", "1")]);
        let done = unmet.evaluate(9, |_| None);
        assert_eq!(done.told, Err(Refusal::Unmet { item: 1 }));
        assert_eq!(done.keys()[..], [bytes("a"), bytes("b")]);
        let long = Bytes::from(vec![0; TRANSACTION_BYTES_MAX / 2 + 1]);
        let reads = |count| items(vec![Item::Get { key: bytes("a") }; count]);
        assert!(reads(1).evaluate(9, |_| Some(long.clone())).told.is_ok());
        let refused = reads(2).evaluate(9, |_| Some(long.clone())).told;
        assert!(matches!(refused, Err(Refusal::TooLarge { what: "transaction", .. })));

        let grow = |key| {
            let (offset, bytes) = (TRANSACTION_BYTES_MAX as u64 / 2, bytes("x"));
            Item::Change { key, change: Change::SetRange { offset, bytes } }
        };
        let one = items(vec![grow(bytes("a")); 9]);
        assert!(one.evaluate(TRANSACTION_BYTES_MAX, |_| None).told.is_ok(), "one value grows");
        let two = items(vec![grow(bytes("a")), grow(bytes("b")), put("c", "1")]);
        let again = items(vec![[grow(bytes("a")), put("a", "1")]; 9].concat());
        let done = again.evaluate(TRANSACTION_BYTES_MAX, |_| None);
        assert!(matches!(done.told, Err(Refusal::TooLarge { .. })), "it is made anew each time");
        let done = two.evaluate(TRANSACTION_BYTES_MAX, |_| None);
        assert!(matches!(done.told, Err(Refusal::TooLarge { what: "transaction", .. })));
        assert_eq!(done.keys()[..], [bytes("a"), bytes("b")], "what is too large is not gone on");
    }

    #[test]
    fn an_operation_on_one_key_is_one_item_and_told_what_it_asks() {
        let single = Items::of(Operation::get(bytes("a"))).expect("it is of one key");
        let told = single.evaluate(9, |_| Some(bytes("1"))).told.expect("it can be done");
        assert_eq!(single.outcome(told), Outcome::value(Some(bytes("1"))));
        assert_eq!(Items::of(Operation::get_all(bytes("a"), None)), None);
    }
}
