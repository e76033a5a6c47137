//! What is known of keys that were used recently, in bounded memory.
//!
//! Two generations: when the young one is full it becomes the old one and what was old is dropped,
//! so a key that was not used for long costs one read of the store.

use bytes::Bytes;
use core::hash::BuildHasher;
use hashbrown::HashMap;

/// Values by key. The hash must be a fixed function, so that runs repeat.
#[derive(Debug)]
pub(crate) struct RecentlyUsed<V, H> {
    young: HashMap<Bytes, V, H>,
    old: HashMap<Bytes, V, H>,
    generation_keys_max: usize,
}

impl<V: Copy, H: BuildHasher + Default> RecentlyUsed<V, H> {
    /// Of at most so many keys.
    pub fn new(keys_max: usize) -> RecentlyUsed<V, H> {
        let (young, old) = (HashMap::default(), HashMap::default());
        RecentlyUsed { young, old, generation_keys_max: (keys_max / 2).max(1) }
    }

    pub fn get(&self, key: &Bytes) -> Option<V> {
        self.young.get(key).or_else(|| self.old.get(key)).copied()
    }

    /// Forgets a key.
    pub fn remove(&mut self, key: &Bytes) {
        self.young.remove(key);
        self.old.remove(key);
    }

    pub fn set(&mut self, key: &Bytes, value: V) {
        if let Some(known) = self.young.get_mut(key) {
            *known = value;
            return;
        }
        if self.young.len() >= self.generation_keys_max {
            self.old = core::mem::take(&mut self.young);
        }
        // An exact copy: it outlives the frame that the key came in.
        self.young.insert(Bytes::copy_from_slice(key), value);
    }
}
