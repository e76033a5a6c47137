//! Which version keys have that were used recently: what an update replaces need not be read then.
//! Keys with several versions are left out.

use crate::dots::dot::Dot;
use crate::dots::object::Object;
use crate::recent::RecentlyUsed;
use bytes::Bytes;
use core::hash::{BuildHasher, Hasher};

/// The dot of a key's only version; none if it has no version.
pub type Single = Option<Dot>;

/// Takes for a hash of a wire key the one that it begins with: a fixed function, so runs repeat.
/// The keys of one replica agree in the highest bits of theirs; a table looks at the lowest and at
/// the highest.
#[derive(Clone, Debug, Default)]
struct Leading(u64);

impl BuildHasher for Leading {
    type Hasher = Leading;

    fn build_hasher(&self) -> Leading {
        Leading(0)
    }
}

impl Hasher for Leading {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        let hash = bytes.first_chunk().map_or(0, |hash| u64::from_be_bytes(*hash));
        self.0 = hash.rotate_left(32);
    }

    // The length that a slice's hash is given first says nothing that its hash does not.
    fn write_usize(&mut self, _length: usize) {}
}

/// The versions that one replica remembers.
#[derive(Debug)]
pub struct VersionCache(RecentlyUsed<Single, Leading>);

impl VersionCache {
    /// Of at most so many keys.
    pub fn new(keys_max: usize) -> VersionCache {
        VersionCache(RecentlyUsed::new(keys_max))
    }

    /// What is known of a key.
    pub fn get(&self, key: &Bytes) -> Option<Single> {
        self.0.get(key)
    }

    /// An object is stored.
    pub fn set(&mut self, key: &Bytes, object: &Object) {
        match object.versions.len() {
            0 | 1 => self.0.set(key, object.versions.keys().next().copied()),
            _ => self.0.remove(key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::causal::keys::data_key;
    use crate::dots::dot::Actor;
    use crate::dots::object::Version;

    #[test]
    fn it_forgets_old_keys_and_never_lies() {
        let mut versions = VersionCache::new(8);
        let dot = |counter| Dot { actor: Actor::default(), counter };
        let object = |counters: &[u64]| {
            let version =
                |counter: &u64| (dot(*counter), Version { id: None, value: Bytes::new() });
            Object { versions: counters.iter().map(version).collect(), ..Object::default() }
        };
        let key = |n: u64| data_key(&n.to_be_bytes());
        for n in 1..100 {
            versions.set(&key(n), &object(&[n]));
            versions.set(&key(n), &object(&[n + 1]));
            assert_eq!(versions.get(&key(n)), Some(Some(dot(n + 1))));
        }
        let known = (1..100).filter(|n| versions.get(&key(*n)).is_some()).count();
        assert!((4..=8).contains(&known), "{known}");
        for n in [97, 99] {
            versions.set(&key(n), &object(&[]));
            assert_eq!(versions.get(&key(n)), Some(None));
            versions.set(&key(n), &object(&[7, 8]));
            assert_eq!(versions.get(&key(n)), None, "several are not kept");
        }
    }
}
