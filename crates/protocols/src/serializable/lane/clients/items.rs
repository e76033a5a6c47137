//! What a client asks for, as keys that are read and acts that are committed.

use super::acts::{self, Found};
use crate::serializable::lane::places::place;
use crate::serializable::{Act, Done, Item as Read, Raw, Results, Version, WallMs};
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::evaluate::{Evaluation, Items};
use quorate_kernel::ids::GroupId;
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::transaction::{Item, ItemOutcome};

/// What a client asks for, and what was read for it.
#[derive(Debug, Default)]
pub struct Sheet {
    items: Items,
    /// The most bytes of a value, as it was when it was asked.
    pub value_max: usize,
    /// When it was asked, by this host's clock: which of the times in it have passed. It stays so
    /// however often it is tried.
    asked: WallMs,
    /// What was read for it.
    pub got: BTreeMap<Raw, Read>,
}

impl Sheet {
    /// What is asked at this time where values have at most so many bytes, with nothing read yet.
    pub fn new(items: Items, value_max: usize, asked: WallMs) -> Sheet {
        Sheet { items, value_max, asked, got: BTreeMap::new() }
    }

    /// What is asked.
    pub fn items(&self) -> &[Item] {
        self.items.list()
    }

    /// Whether an act on one key follows from what another has. Then all keys are read, all of it
    /// is evaluated here, and what is left in each key is put, if the versions that were read are
    /// still current: the paper's own form of a transaction (§4.2).
    fn copies(&self) -> bool {
        self.items().iter().any(|item| matches!(item, Item::Copy { .. }))
    }

    /// The keys that must be read before it is known what to do.
    pub fn to_read(&self) -> impl Iterator<Item = Raw> {
        let copies = self.copies();
        let reads = self.items().iter().filter(move |item| copies || !item.is_write());
        reads.flat_map(Item::keys).map(|key| place::stored(key))
    }

    /// How many bytes the values are that were read.
    pub fn got_bytes(&self) -> usize {
        let contents = self.got.values().filter_map(|item| item.content.as_ref());
        contents.map(|(value, _)| value.len()).sum()
    }

    /// Whether it changes something, by what was read.
    pub fn changes(&self) -> bool {
        match self.copies() {
            true => !self.acts().is_empty(),
            false => self.items().iter().any(Item::is_write),
        }
    }

    /// The versions that it rests on.
    pub fn versions(&self) -> BTreeMap<Raw, Version> {
        self.got.iter().map(|(key, read)| (key.clone(), read.version)).collect()
    }

    /// What it does, in order.
    pub fn acts(&self) -> Vec<(Raw, Act)> {
        if self.copies() {
            let written = self.evaluated().written();
            return written.map(|(key, found)| (place::stored(&key), found.left())).collect();
        }
        let act = |item: &Item| Some((place::stored(item.key()), acts::of_item(item, self.asked)?));
        self.items().iter().filter_map(act).collect()
    }

    /// What its items are told, given what was read; of keys that were not read, whether a delete
    /// has found a value, and what a change came to, is said by [`Sheet::answer`].
    ///
    /// # Errors
    /// A check does not hold, or the answer is too long.
    pub fn evaluate(&self) -> Result<Vec<ItemOutcome>, Refusal> {
        self.evaluated().told
    }

    fn evaluated(&self) -> Evaluation<Found> {
        let found = |key: &Bytes| Found::of(self.got.get(&place::stored(key)), self.asked);
        self.items.evaluate(self.value_max, found)
    }

    /// The answer, with what each group's acts have answered; none if these are not those of what
    /// was asked. Where what was read keeps it from being done, that is told: then nothing was.
    pub fn answer(
        &self,
        results: &[(GroupId, Results)],
        group_of: impl Fn(&Raw) -> GroupId,
    ) -> Option<Outcome> {
        // What reads nothing is told all by the groups.
        let told = match self.got.is_empty() && !mutant!("lane_answer_is_bounded") {
            true => Ok(vec![ItemOutcome::Written; self.items().len()]),
            false => self.evaluate(),
        };
        let mut told = match told {
            Ok(told) => told,
            Err(refusal) => {
                let has_no_act = results.iter().all(|(_, results)| results.is_empty());
                return has_no_act.then_some(Outcome::Refused(refusal));
            }
        };
        if self.copies() {
            let mut results = results.iter().flat_map(|(_, results)| results);
            return results.all(Result::is_ok).then(|| self.outcome(told));
        }
        let mut of: BTreeMap<GroupId, _> =
            results.iter().map(|(group, results)| (*group, results.iter())).collect();
        for (item, told) in self.items().iter().zip(&mut told).filter(|(item, _)| item.is_write()) {
            let group = group_of(&place::stored(item.key()));
            let done = of.get_mut(&group)?.next()?.as_ref();
            *told = match (item, done) {
                (Item::Put { .. }, Ok(Done::Put)) => ItemOutcome::Written,
                (Item::Delete { .. }, Ok(Done::Deleted { existed })) => {
                    ItemOutcome::Deleted { existed: *existed }
                }
                (Item::Change { .. }, Ok(done)) => ItemOutcome::Changed(acts::changed(done)?),
                (Item::Expire { .. }, Ok(Done::Expiry { changed })) => {
                    ItemOutcome::Expiry { changed: *changed }
                }
                (Item::Change { .. }, Err(error)) => ItemOutcome::Unchanged((*error).into()),
                _ => return None,
            }
        }
        Some(self.outcome(told))
    }

    /// What the client is told.
    pub fn outcome(&self, told: Vec<ItemOutcome>) -> Outcome {
        self.items.outcome(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serializable::Expiry;
    use quorate_kernel::operation::Operation;

    /// The clock of this host may be ahead of that which says when the key ends.
    #[test]
    fn a_copy_ends_when_the_key_does_whatever_the_time_is_here() {
        let [one, two] = ["a", "b"].map(|key| Bytes::from_static(key.as_bytes()));
        let copy = Item::Copy { key: one.clone(), to: two.clone(), replaces: true, removes: true };
        let items = vec![copy, Item::Get { key: two.clone() }];
        let items = Items::of(Operation::Transact { items, name: None }).expect("it has items");
        let mut sheet = Sheet::new(items, 100, 1000);
        let value = Raw(Bytes::from_static(b"v"));
        let has = |content| Read { version: Version(1), content };
        sheet.got.insert(place::stored(&one), has(Some((value.clone(), Some(999)))));
        sheet.got.insert(place::stored(&two), has(None));
        let put = Act::Put { value: value.clone(), expiry: Expiry::At(999) };
        let acts = [(place::stored(&one), Act::Delete), (place::stored(&two), put)];
        assert_eq!(sheet.acts(), acts);
        let told = sheet.evaluate().expect("it can be done");
        assert_eq!(told[1], ItemOutcome::Value(Some(value.0)));
    }
}
