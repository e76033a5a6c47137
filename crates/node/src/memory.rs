//! The data of a `memory` lane: a table for reads and writes, and the keys' order for scans.

use crate::records::Records;
use alloc::collections::BTreeSet;
use bytes::Bytes;
use core::cmp::Ordering;
use quorate_kernel::ids::LaneId;
use quorate_kernel::storage::ValueHead;

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

/// What the entries of its own table are filed under: there is one lane.
const LANE: LaneId = LaneId(0);

/// The table. An overwrite touches the hash table alone, and the value in place.
#[derive(Debug)]
pub(crate) struct Memory {
    records: Records,
    order: BTreeSet<Sorted>,
}

impl Default for Memory {
    fn default() -> Memory {
        Memory { records: Records::new(usize::MAX), order: BTreeSet::new() }
    }
}

impl Memory {
    pub fn get(&self, key: &[u8]) -> Option<Bytes> {
        self.records.value(LANE, key)
    }

    pub fn head(&self, key: &[u8]) -> Option<ValueHead> {
        self.records.kept_head(LANE, key)
    }

    /// Sets or removes a key. What is kept for long is copied, so that it does not pin the buffers
    /// that it came in.
    pub fn set(&mut self, key: &Bytes, value: Option<Bytes>) {
        match value {
            Some(value) => {
                if self.records.keep(LANE, key, &value) {
                    self.order.insert(Sorted::new(Bytes::copy_from_slice(key)));
                }
            }
            None => {
                self.records.remove_key(LANE, key);
                self.order.remove(&Sorted::new(key.clone()));
            }
        }
    }

    pub fn scan(&self, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        let start = Sorted::new(Bytes::copy_from_slice(from));
        for key in self.order.range(start..) {
            let value = self.get(&key.bytes).expect("every ordered key has a value");
            if !each(&key.bytes, &value) {
                return;
            }
        }
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
