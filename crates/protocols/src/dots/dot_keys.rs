//! The dot-key map: which key an update concerned, until every replica of the key has seen it
//! (DottedDB §IV-D), and the same the other way round.

use super::dot::{Actor, Counter, Dot, Partition};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use bytes::Bytes;
use core::ops::Bound;
use quorate_kernel::ids::NodeId;
use quorate_kernel::write::WriteId;

/// A key with the hash that it begins with at hand: comparisons mostly end there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hashed {
    /// Of a shorter key, as if zeros followed.
    hash: u64,
    key: Bytes,
}

impl Hashed {
    fn new(key: &Bytes) -> Hashed {
        let mut hash = [0; 8];
        let length = key.len().min(hash.len());
        hash[..length].copy_from_slice(&key[..length]);
        Hashed { hash: u64::from_be_bytes(hash), key: key.clone() }
    }
}

/// No dot is greater.
const LAST: Dot = Dot {
    actor: Actor {
        partition: Partition(u16::MAX),
        since: u64::MAX,
        birth: u32::MAX,
        node: NodeId(u64::MAX),
    },
    counter: Counter::MAX,
};

/// The map. Keys are in their wire form: hash, then the client's key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DotKeys {
    keys: BTreeMap<Actor, BTreeMap<Counter, Bytes>>,
    dots: BTreeSet<(Hashed, Dot)>,
    /// The names of those that have one.
    names: BTreeMap<Dot, WriteId>,
    /// The same the other way round: a write that was sent again has several.
    named: BTreeSet<(WriteId, Dot)>,
}

impl DotKeys {
    /// Adds an entry, with the name of the write if it has one.
    pub fn insert(&mut self, dot: Dot, key: &Bytes, name: Option<WriteId>) {
        if let Some(name) = name {
            self.names.insert(dot, name);
            self.named.insert((name, dot));
        }
        self.keys.entry(dot.actor).or_default().insert(dot.counter, key.clone());
        self.dots.insert((Hashed::new(key), dot));
    }

    /// Drops an entry; returns its key.
    pub fn remove(&mut self, dot: Dot) -> Option<Bytes> {
        let counters = self.keys.get_mut(&dot.actor)?;
        let key = counters.remove(&dot.counter)?;
        if let Some(name) = self.names.remove(&dot) {
            self.named.remove(&(name, dot));
        }
        if counters.is_empty() {
            self.keys.remove(&dot.actor);
        }
        self.dots.remove(&(Hashed::new(&key), dot));
        Some(key)
    }

    /// The key of an entry, if there is one.
    #[must_use]
    pub fn get(&self, dot: Dot) -> Option<&Bytes> {
        self.keys.get(&dot.actor)?.get(&dot.counter)
    }

    /// The actors that have entries.
    pub fn actors(&self) -> impl Iterator<Item = Actor> + '_ {
        self.keys.keys().copied()
    }

    /// The first actor from one on that has entries.
    #[must_use]
    pub fn first_actor(&self, from: Bound<Actor>) -> Option<Actor> {
        self.keys.range((from, Bound::Unbounded)).next().map(|(actor, _)| *actor)
    }

    /// The entries of an actor above a counter, ascending.
    pub fn above(&self, actor: Actor, base: Counter) -> impl Iterator<Item = (Counter, &Bytes)> {
        let counters = self.keys.get(&actor);
        let above = counters.map(|counters| counters.range(base.saturating_add(1)..));
        above.into_iter().flatten().map(|(counter, key)| (*counter, key))
    }

    /// The dots of a key.
    #[must_use]
    pub fn of(&self, key: &Bytes) -> Vec<Dot> {
        self.dots_upto(key, LAST).collect()
    }

    /// The dots of a key up to one, it among them, ascending.
    fn dots_upto(&self, key: &Bytes, last: Dot) -> impl DoubleEndedIterator<Item = Dot> {
        let key = Hashed::new(key);
        self.dots.range((key.clone(), Dot::default())..=(key, last)).map(|(_, dot)| *dot)
    }

    /// The name of the write that an entry is of.
    #[must_use]
    pub fn name(&self, dot: Dot) -> Option<WriteId> {
        self.names.get(&dot).copied()
    }

    /// Whether any entry is of a write of this name.
    #[must_use]
    pub fn has_name(&self, name: WriteId) -> bool {
        self.named.range((name, Dot::default())..).next().is_some_and(|(at, _)| *at == name)
    }

    /// The newest dots of a key whose writes have names: those among so many of each actor.
    #[must_use]
    pub fn newest_names(&self, key: &Bytes, most: usize) -> Vec<(Dot, WriteId)> {
        let (mut newest, mut end) = (Vec::new(), LAST);
        if self.names.is_empty() {
            return newest;
        }
        while let Some(last) = self.dots_upto(key, end).next_back() {
            let its = self.dots_upto(key, end).rev();
            let its = its.take_while(|dot| dot.actor == last.actor).take(most);
            newest.extend(its.filter_map(|dot| Some((dot, self.name(dot)?))));
            // No dot has this counter.
            end = Dot { actor: last.actor, counter: 0 };
        }
        newest
    }

    /// The dots of a key whose writes have names.
    pub fn names(&self, key: &Bytes) -> impl Iterator<Item = (Dot, WriteId)> {
        let dots = self.dots_upto(key, LAST);
        dots.filter_map(|dot| self.name(dot).map(|name| (dot, name)))
    }

    /// The keys that have entries, from one on, ascending.
    pub fn keys_from(&self, from: &[u8]) -> impl Iterator<Item = &Bytes> {
        let first = (Hashed::new(&Bytes::copy_from_slice(from)), Dot::default());
        let first = self.dots.range(first..).next();
        core::iter::successors(first, |(key, _)| {
            let behind = Bound::Excluded((key.clone(), LAST));
            self.dots.range((behind, Bound::Unbounded)).next()
        })
        .map(|(key, _)| &key.key)
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.keys.values().map(BTreeMap::len).sum()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_directions_say_the_same(
            steps in proptest::collection::vec((0u16..3, 1u64..8, any::<bool>()), 0..60)
        ) {
            let mut map = DotKeys::default();
            let mut model = BTreeMap::new();
            for (actor, counter, is_added) in steps {
                let actor = Actor { birth: u32::from(actor), ..Actor::default() };
                let dot = Dot { actor, counter };
                // A dot is of one key for ever.
                let key = Bytes::from(Vec::from([(counter % 3) as u8]));
                let name = counter.is_multiple_of(2).then_some(WriteId(counter.into()));
                if is_added {
                    map.insert(dot, &key, name);
                    model.insert(dot, key);
                } else {
                    prop_assert_eq!(map.remove(dot), model.remove(&dot));
                }
                prop_assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
                for key in [0u8, 1, 2] {
                    let of: Vec<Dot> =
                        model.iter().filter(|(_, at)| at[0] == key).map(|(dot, _)| *dot).collect();
                    let at = Bytes::from(Vec::from([key]));
                    let named: Vec<Dot> = map.names(&at).map(|(dot, _)| dot).collect();
                    let is_named = |dot: &&Dot| dot.counter.is_multiple_of(2);
                    prop_assert_eq!(named, of.iter().filter(is_named).copied().collect::<Vec<_>>());
                    prop_assert_eq!(map.of(&Bytes::from(Vec::from([key]))), of);
                }
                prop_assert_eq!(map.get(dot), model.get(&dot));
                for (dot, key) in &model {
                    let found = map.above(dot.actor, dot.counter - 1).next();
                    prop_assert_eq!(found, Some((dot.counter, key)));
                }
            }
            let keys: BTreeSet<&Bytes> = model.values().collect();
            prop_assert!(map.keys_from(&[]).eq(keys));
        }
    }
}
