//! A bounded index from key to the head of its newest record, which spares a put most of its reads
//! of the store.

use crate::linearizable::record::Head;
use crate::recent::RecentlyUsed;
use core::hash::{BuildHasher, Hasher};
use xxhash_rust::xxh3::xxh3_64;

/// Hashes a stored key by its token, which follows its slot: a fixed function, so runs repeat.
#[derive(Clone, Default, Debug)]
pub(crate) struct ByToken;

#[derive(Default)]
pub(crate) struct TokenHasher(u64);

impl Hasher for TokenHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let token = bytes.get(4..).and_then(|rest| rest.first_chunk());
        let token = token.map(|first| u64::from_le_bytes(*first));
        self.0 = token.unwrap_or_else(|| xxh3_64(bytes));
    }

    // The length that a slice's hash is given first says nothing that its token does not.
    fn write_usize(&mut self, _length: usize) {}
}

impl BuildHasher for ByToken {
    type Hasher = TokenHasher;

    fn build_hasher(&self) -> TokenHasher {
        TokenHasher::default()
    }
}

/// The index.
pub(crate) type Index = RecentlyUsed<Head, ByToken>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linearizable::keys::Slot;
    use crate::linearizable::record::Ts;
    use crate::order::Order;
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
