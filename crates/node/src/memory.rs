//! The data of a `memory` lane: a table for reads and writes, and the keys' order for scans.

use alloc::collections::BTreeSet;
use bytes::Bytes;
use core::cmp::Ordering;
use core::hash::{BuildHasherDefault, Hasher};
use hashbrown::HashMap;
use xxhash_rust::xxh3::xxh3_64;

/// A key with its first eight bytes at hand: keys begin with a hash, so most comparisons end there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sorted {
    prefix: u64,
    pub bytes: Bytes,
}

impl Sorted {
    pub fn new(bytes: Bytes) -> Sorted {
        let mut prefix = [0; 8];
        let known = bytes.len().min(8);
        prefix[..known].copy_from_slice(&bytes[..known]);
        Sorted { prefix: u64::from_be_bytes(prefix), bytes }
    }
}

impl Ord for Sorted {
    fn cmp(&self, other: &Sorted) -> Ordering {
        self.prefix.cmp(&other.prefix).then_with(|| self.bytes.cmp(&other.bytes))
    }
}

impl PartialOrd for Sorted {
    fn partial_cmp(&self, other: &Sorted) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A fixed hash, so that runs repeat.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 ^= xxh3_64(bytes);
    }

    // The length that a slice's hash is given first adds nothing to a hash of all its bytes.
    fn write_usize(&mut self, _length: usize) {}
}

/// The table. An overwrite touches the hash table alone.
#[derive(Default)]
pub(crate) struct Memory {
    values: HashMap<Bytes, Bytes, BuildHasherDefault<KeyHasher>>,
    order: BTreeSet<Sorted>,
}

impl Memory {
    pub fn get(&self, key: &Bytes) -> Option<Bytes> {
        self.values.get(key).cloned()
    }

    /// Sets or removes a key. What is kept for long is copied, so that it does not pin the buffers
    /// that it came in.
    pub fn set(&mut self, key: &Bytes, value: Option<Bytes>) {
        match value {
            Some(value) => {
                let value = Bytes::copy_from_slice(&value);
                if let Some(old) = self.values.get_mut(key) {
                    *old = value;
                } else {
                    let key = Bytes::copy_from_slice(key);
                    self.order.insert(Sorted::new(key.clone()));
                    self.values.insert(key, value);
                }
            }
            None => {
                self.values.remove(key);
                self.order.remove(&Sorted::new(key.clone()));
            }
        }
    }

    pub fn scan(&self, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        let start = Sorted::new(Bytes::copy_from_slice(from));
        for key in self.order.range(start..) {
            let value = self.values.get(&key.bytes).expect("every ordered key has a value");
            if !each(&key.bytes, value) {
                return;
            }
        }
    }
}

impl core::fmt::Debug for Memory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Memory({} keys)", self.values.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_is_an_ordered_map(steps: Vec<(Vec<u8>, Option<u8>)>, from: Vec<u8>) {
            let mut memory = Memory::default();
            let mut model = BTreeMap::new();
            for (key, value) in steps {
                let key = Bytes::from(key);
                memory.set(&key, value.map(|byte| Bytes::copy_from_slice(&[byte])));
                match value {
                    Some(byte) => model.insert(key.clone(), byte),
                    None => model.remove(&key),
                };
                prop_assert_eq!(memory.get(&key).map(|v| v[0]), model.get(&key).copied());
            }
            let mut scanned = Vec::new();
            memory.scan(&from, &mut |key, value| {
                scanned.push((Bytes::copy_from_slice(key), value[0]));
                true
            });
            let expected: Vec<(Bytes, u8)> =
                model.range(Bytes::from(from)..).map(|(k, v)| (k.clone(), *v)).collect();
            prop_assert_eq!(scanned, expected);
        }
    }
}
