//! A map in one piece: its pairs stand side by side in the order of their keys.
//!
//! For maps of a few dozen entries that are searched and walked through far more often than they
//! grow: a search touches little memory, and a copy is one allocation. An entry is added or removed
//! in the time that it takes to move those behind it.

use alloc::vec::{self, Vec};
use core::slice;

/// Pairs in ascending order of their keys, each key once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortedMap<K, V> {
    pairs: Vec<(K, V)>,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> SortedMap<K, V> {
        SortedMap { pairs: Vec::new() }
    }
}

impl<K: Ord + Copy, V> SortedMap<K, V> {
    fn place(&self, key: K) -> Result<usize, usize> {
        self.pairs.binary_search_by(|(known, _)| known.cmp(&key))
    }

    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: K) -> Option<&V> {
        self.place(key).ok().map(|place| &self.pairs[place].1)
    }

    /// The value of a key, which is the default one if it had none.
    pub fn entry(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        let place = match self.place(key) {
            Ok(place) => place,
            Err(place) => {
                self.pairs.insert(place, (key, V::default()));
                place
            }
        };
        &mut self.pairs[place].1
    }

    /// The pairs from a key on, it among them.
    #[must_use]
    pub fn range_from(&self, key: K) -> &[(K, V)] {
        &self.pairs[self.pairs.partition_point(|(known, _)| *known < key)..]
    }

    /// The pairs behind a key.
    #[must_use]
    pub fn after(&self, key: K) -> &[(K, V)] {
        &self.pairs[self.pairs.partition_point(|(known, _)| *known <= key)..]
    }

    /// Takes out the pairs from one key on up to another, which is not among them.
    pub fn drain(&mut self, from: K, to: K) -> vec::Drain<'_, (K, V)> {
        let begin = self.pairs.partition_point(|(known, _)| *known < from);
        let end = self.pairs.partition_point(|(known, _)| *known < to);
        self.pairs.drain(begin..end.max(begin))
    }

    /// Keeps the pairs for which this holds.
    pub fn retain(&mut self, mut keep: impl FnMut(K, &V) -> bool) {
        self.pairs.retain(|(key, value)| keep(*key, value));
    }

    /// All pairs, in order.
    pub fn iter(&self) -> slice::Iter<'_, (K, V)> {
        self.pairs.iter()
    }

    /// All pairs, in order, side by side.
    #[must_use]
    pub fn as_slice(&self) -> &[(K, V)] {
        &self.pairs
    }

    /// How many pairs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }
}

impl<K: Ord + Copy, V> FromIterator<(K, V)> for SortedMap<K, V> {
    /// Of several values of one key the last one stays.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> SortedMap<K, V> {
        let mut pairs: Vec<(K, V)> = pairs.into_iter().collect();
        if !pairs.windows(2).all(|pair| pair[0].0 < pair[1].0) {
            // The sort is stable, so the last of equal keys comes first once all are turned round.
            pairs.reverse();
            pairs.sort_by_key(|(key, _)| *key);
            pairs.dedup_by_key(|(key, _)| *key);
        }
        SortedMap { pairs }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_an_ordered_map(
            first in prop::collection::vec((0u8..12, any::<u8>()), 0..20),
            steps in prop::collection::vec((0u8..4, 0u8..12, 0u8..12), 0..40),
        ) {
            let mut map: SortedMap<u8, u8> = first.iter().copied().collect();
            let mut model: BTreeMap<u8, u8> = first.into_iter().collect();
            for (step, one, other) in steps {
                match step {
                    0 => *map.entry(one) = other,
                    1 => map.retain(|key, value| key != one && *value != other),
                    2 => drop(map.drain(one, other)),
                    _ => {
                        let value = map.get(one).map_or(other, |value| value / 2);
                        *map.entry(one) = value;
                    }
                }
                match step {
                    0 => drop(model.insert(one, other)),
                    1 => model.retain(|key, value| *key != one && *value != other),
                    2 => model.retain(|key, _| !(one..other).contains(key)),
                    _ => {
                        let value = model.get(&one).map_or(other, |value| value / 2);
                        model.insert(one, value);
                    }
                }
                let pair = |(key, value): (&u8, &u8)| (*key, *value);
                let pairs: Vec<(u8, u8)> = model.iter().map(pair).collect();
                prop_assert_eq!(map.as_slice(), &pairs[..]);
                prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!(map.get(one), model.get(&one));
                let at = pairs.partition_point(|(key, _)| *key < one);
                prop_assert_eq!(map.range_from(one), &pairs[at..]);
                let at = pairs.partition_point(|(key, _)| *key <= one);
                prop_assert_eq!(map.after(one), &pairs[at..]);
            }
        }
    }
}
