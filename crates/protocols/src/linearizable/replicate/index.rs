//! A bounded index from key to the head of its newest record, which spares a put most of its reads
//! of the store.

use crate::lately::Lately;
use crate::linearizable::record::Head;
use core::hash::{BuildHasher, Hasher};
use xxhash_rust::xxh3::xxh3_64;

/// Hashes a stored key by its position, which follows its slot: a fixed function, so runs repeat.
#[derive(Clone, Default, Debug)]
pub(crate) struct ByPosition;

#[derive(Default)]
pub(crate) struct PositionHasher(u64);

impl Hasher for PositionHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let position = bytes.get(4..).and_then(|rest| rest.first_chunk());
        let position = position.map(|first| u64::from_le_bytes(*first));
        self.0 = position.unwrap_or_else(|| xxh3_64(bytes));
    }

    // The length that a slice's hash is given first says nothing that its position does not.
    fn write_usize(&mut self, _length: usize) {}
}

impl BuildHasher for ByPosition {
    type Hasher = PositionHasher;

    fn build_hasher(&self) -> PositionHasher {
        PositionHasher::default()
    }
}

/// The index.
pub(crate) type Index = Lately<Head, ByPosition>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linearizable::keys::{Order, Slot};
    use crate::linearizable::record::Ts;
    use quorate_kernel::ids::Incarnation;

    #[test]
    fn it_forgets_old_keys_and_never_lies() {
        let mut index = Index::new(8);
        let head =
            |n| Head { ts: Ts { n, writer: Incarnation::default(), sequence: 0 }, live: true };
        let key = |n: u64| Slot(1).stored(&Order::Hash.data_key(&n.to_be_bytes()));
        for n in 0..100 {
            index.set(&key(n), head(n));
            index.set(&key(n), head(n + 1));
            assert_eq!(index.get(&key(n)), Some(head(n + 1)));
        }
        let known = (0..100).filter(|n| index.get(&key(*n)).is_some()).count();
        assert!((4..=8).contains(&known), "{known}");
    }
}
