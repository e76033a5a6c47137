//! What a client asks for, as keys that are read and acts that are committed.

use super::place;
use crate::serializable::Done;
use crate::serializable::{Act, Expiry, Item as Read, Raw, Results, Version};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::GroupId;
use quorate_kernel::limits::TRANSACTION_BYTES_MAX;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::transaction::{Item, ItemOutcome};

/// What a client asks for, and what was read for it.
#[derive(Debug, Default)]
pub struct Sheet {
    items: Vec<Item>,
    /// Whether it was asked as one operation on one key.
    is_single: bool,
    /// What was read for it.
    pub got: BTreeMap<Raw, Read>,
}

impl Sheet {
    /// An operation on one key.
    pub fn single(item: Item) -> Sheet {
        Sheet { items: Vec::from([item]), is_single: true, got: BTreeMap::new() }
    }

    /// Several items.
    pub fn several(items: Vec<Item>) -> Sheet {
        Sheet { items, is_single: false, got: BTreeMap::new() }
    }

    /// What is asked.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The keys that must be read before it is known what to do.
    pub fn to_read(&self) -> impl Iterator<Item = Raw> {
        let reads = |item: &&Item| matches!(item, Item::Check { .. } | Item::Get { .. });
        self.items.iter().filter(reads).map(|item| place::stored(item.key()))
    }

    /// Whether it changes something.
    pub fn is_write(&self) -> bool {
        self.items.iter().any(Item::is_write)
    }

    /// The versions that it rests on.
    pub fn versions(&self) -> BTreeMap<Raw, Version> {
        self.got.iter().map(|(key, read)| (key.clone(), read.version)).collect()
    }

    /// What it does, in order.
    pub fn acts(&self) -> Vec<(Raw, Act)> {
        let act = |item: &Item| match item {
            Item::Put { key, value } => {
                let value = Raw(value.clone());
                Some((place::stored(key), Act::Put { value, expiry: Expiry::Never }))
            }
            Item::Delete { key } => Some((place::stored(key), Act::Delete)),
            Item::Check { .. } | Item::Get { .. } => None,
        };
        self.items.iter().filter_map(act).collect()
    }

    /// What its items are told, given what was read; of keys that were not read, whether a delete
    /// has found a value is said by [`Sheet::answer`].
    ///
    /// # Errors
    /// A check does not hold, or the answer is too long.
    pub fn evaluate(&self) -> Result<Vec<ItemOutcome>, Refusal> {
        let of_read = |(key, read): (&Raw, &Read)| {
            let value = read.content.as_ref().map(|(value, _)| value.0.clone());
            (key.clone(), value)
        };
        let mut has: BTreeMap<Raw, Option<Bytes>> = self.got.iter().map(of_read).collect();
        let mut told = Vec::with_capacity(self.items.len());
        for (at, item) in self.items.iter().enumerate() {
            let key = place::stored(item.key());
            let found = has.get(&key).cloned().flatten();
            told.push(match item {
                Item::Check { holds, .. } if !holds.is_met(found.as_ref()) => {
                    return Err(Refusal::Unmet { item: at });
                }
                Item::Check { .. } => ItemOutcome::Checked,
                Item::Get { .. } => ItemOutcome::Value(found),
                Item::Put { value, .. } => {
                    has.insert(key, Some(value.clone()));
                    ItemOutcome::Written
                }
                Item::Delete { .. } => {
                    has.insert(key, None);
                    ItemOutcome::Deleted { existed: found.is_some() }
                }
            });
        }
        let length = told.iter().map(ItemOutcome::bytes).sum();
        let limit = TRANSACTION_BYTES_MAX;
        if length > limit && !self.is_single {
            return Err(Refusal::TooLarge { what: "transaction", length, limit });
        }
        Ok(told)
    }

    /// The answer, with what each group's acts have answered; none if these are not those of what
    /// was asked.
    pub fn answer(
        &self,
        results: &[(GroupId, Results)],
        group_of: impl Fn(&[u8]) -> GroupId,
    ) -> Option<Outcome> {
        let mut told = self.evaluate().ok()?;
        let mut of: BTreeMap<GroupId, _> =
            results.iter().map(|(group, results)| (*group, results.iter())).collect();
        for (item, told) in self.items.iter().zip(&mut told).filter(|(item, _)| item.is_write()) {
            let group = group_of(&place::stored(item.key()));
            let done = of.get_mut(&group)?.next()?.as_ref().ok()?;
            match (item, done) {
                (Item::Put { .. }, Done::Put) => {}
                (Item::Delete { .. }, Done::Deleted { existed }) => {
                    *told = ItemOutcome::Deleted { existed: *existed };
                }
                _ => return None,
            }
        }
        Some(self.outcome(told))
    }

    /// What the client is told.
    pub fn outcome(&self, mut told: Vec<ItemOutcome>) -> Outcome {
        if self.is_single && told.len() == 1 {
            return told.remove(0).into();
        }
        Outcome::Transacted(told)
    }
}
