//! What a node stores: ordered maps, and how many bytes of data are not objects.

use bytes::Bytes;
use quorate_kernel::entries;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Where the kind of a data key stands, behind the birth of its replica.
const KIND_AT: usize = 4;
/// Where the client's key stands, behind birth, kind and hash.
const CLIENT_KEY_AT: usize = 13;

/// The records of one node.
#[derive(Debug, Default)]
pub struct Stored {
    state: BTreeMap<Bytes, Bytes>,
    data: BTreeMap<Bytes, Bytes>,
    /// Entries of logs, and where these begin.
    log: BTreeMap<Bytes, Bytes>,
    objects: usize,
    beside: u64,
    reads: Cell<u64>,
}

/// The client's key of a data key that holds an object.
pub(super) fn object_key(key: &[u8]) -> Option<&[u8]> {
    (key.get(KIND_AT) == Some(&b'o')).then(|| &key[CLIENT_KEY_AT..])
}

impl Stored {
    /// Writes or deletes.
    pub(super) fn write(&mut self, class: Class, key: Bytes, value: Option<Bytes>) {
        if class == Class::State {
            match value {
                Some(value) => self.state.insert(key, value),
                None => self.state.remove(&key),
            };
            return;
        }
        if class == Class::Log {
            return self.write_log(key, value);
        }
        let is_object = object_key(&key).is_some();
        let bytes = |value: &Bytes| (key.len() + value.len()) as u64;
        let after = value.as_ref().map(bytes);
        let before = match value {
            Some(value) => self.data.insert(key.clone(), value),
            None => self.data.remove(&key),
        };
        let before = before.as_ref().map(bytes);
        if is_object {
            self.objects += usize::from(after.is_some());
            self.objects -= usize::from(before.is_some());
        } else {
            self.beside += after.unwrap_or(0);
            self.beside -= before.unwrap_or(0);
        }
    }

    /// Writes an entry of a log, or gives up all before one.
    fn write_log(&mut self, key: Bytes, value: Option<Bytes>) {
        let Some(value) = value else { unreachable!("entries are given up from the first on") };
        if let Some(entries::Place::Log(log)) = entries::place(&key) {
            let first = entries::first(&value).expect("it says where the log begins");
            let kept = self.log.split_off(&entries::key(log, first));
            let gone = std::mem::replace(&mut self.log, kept);
            for (key, value) in gone {
                match entries::place(&key) {
                    Some(entries::Place::Entry(of, _)) if of == log => {
                        self.beside -= (key.len() + value.len()) as u64;
                    }
                    _ => drop(self.log.insert(key, value)),
                }
            }
            self.log.insert(key, value);
            return;
        }
        self.beside += (key.len() + value.len()) as u64;
        self.log.insert(key, value);
    }

    /// How many objects there are, tombstones included.
    pub(super) fn objects(&self) -> usize {
        self.objects
    }

    /// How many records of data there are, entries of logs among them.
    pub(super) fn records(&self) -> usize {
        self.data.len() + self.log.len()
    }

    /// The bytes of keys and values of all data.
    pub(super) fn bytes(&self) -> u64 {
        self.data.iter().chain(&self.log).map(|(key, value)| (key.len() + value.len()) as u64).sum()
    }

    /// The bytes of keys and values of all data that is no object.
    pub(super) fn beside_objects(&self) -> u64 {
        self.beside
    }

    /// Every stored object, by the client's key.
    pub(super) fn each_object(&self) -> impl Iterator<Item = (&[u8], &Bytes)> {
        self.data.iter().filter_map(|(key, value)| Some((object_key(key)?, value)))
    }

    /// How many records were read since it was last asked.
    pub(super) fn take_reads(&self) -> u64 {
        self.reads.take()
    }

    fn map(&self, class: Class) -> &BTreeMap<Bytes, Bytes> {
        match class {
            Class::State => &self.state,
            Class::Data => &self.data,
            Class::Log => &self.log,
        }
    }
}

impl Table for Stored {
    fn get(&self, class: Class, key: &Bytes) -> Option<Bytes> {
        self.reads.set(self.reads.get() + 1);
        self.map(class).get(key).cloned()
    }

    fn scan(&self, class: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        let range = (Bound::Included(from), Bound::Unbounded);
        for (key, value) in self.map(class).range::<[u8], _>(range) {
            self.reads.set(self.reads.get() + 1);
            if !each(key, value) {
                return;
            }
        }
    }
}
