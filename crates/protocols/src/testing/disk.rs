//! A node's bytes, and what of them a crash takes away.

use super::Scripted;
use super::world::World;
use bytes::Bytes;
use quorate_kernel::effects::Release;
use quorate_kernel::entries::{self, Place};
use quorate_kernel::ids::LogIndex;
use quorate_kernel::process::{Recovery, Table};
use quorate_kernel::storage::Class;
use std::collections::BTreeMap;
use std::vec::Vec;

type Key = (Class, Bytes);

/// The table of one lane with a log in front of it. Syncs at once, unless told to hold.
#[derive(Default)]
pub struct Disk {
    /// What the process sees.
    table: BTreeMap<Key, Bytes>,
    /// What survives a crash.
    synced: BTreeMap<Key, Bytes>,
    /// Logged writes that are not synced, oldest first.
    unsynced: Vec<(Key, Option<Bytes>)>,
    /// How many writes were ever synced.
    done: u64,
    /// Whether it waits for a command to sync.
    pub is_holding: bool,
    /// Whether data is kept in memory alone and never logged.
    pub is_memory: bool,
    /// Whether what rests on data alone may leave before the data is synced.
    pub is_periodic: bool,
}

/// What a disk held at some moment.
pub struct Kept(BTreeMap<Key, Bytes>);

impl Disk {
    /// Nothing is on it.
    pub fn new(is_memory: bool, is_periodic: bool) -> Disk {
        Disk { is_memory, is_periodic, ..Disk::default() }
    }

    /// A write that is not synced yet; without a value the key is deleted.
    pub fn write(&mut self, class: Class, key: &Bytes, value: Option<&Bytes>) {
        let key = (class, key.clone());
        apply(&mut self.table, key.clone(), value.cloned());
        if self.is_memory && class != Class::State {
            return;
        }
        self.unsynced.push((key, value.cloned()));
        if !self.is_holding {
            self.sync();
        }
    }

    /// Makes everything written so far survive a crash.
    pub fn sync(&mut self) {
        for (key, value) in self.unsynced.drain(..) {
            self.done += 1;
            apply(&mut self.synced, key, value);
        }
    }

    /// How many writes must be synced before an effect asked for now may leave.
    pub fn needs(&self, release: &Release) -> u64 {
        let newest = |matches: &dyn Fn(&Key) -> bool| {
            let counts = |key: &Key| key.0 == Class::State || !self.is_periodic;
            let place = self.unsynced.iter().rposition(|(key, _)| counts(key) && matches(key));
            place.map_or(0, |place| self.done + place as u64 + 1)
        };
        match release {
            Release::Lane => newest(&|_| true),
            Release::Key(asked) => newest(&|(class, key)| *class == Class::State || key == asked),
            Release::Keys(asked) => {
                newest(&|(class, key)| *class == Class::State || asked.contains(key))
            }
            Release::State => newest(&|(class, _)| *class == Class::State),
            Release::Early => 0,
        }
    }

    /// How many keys there are.
    pub fn keys(&self) -> usize {
        self.table.len()
    }

    /// How many batches are done with.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// What is not synced is gone.
    pub fn crash(&mut self) {
        self.unsynced.clear();
        self.table = self.synced.clone();
        self.is_holding = false;
    }

    /// What is there now: what a loss of power may leave of it later.
    pub fn kept(&self) -> Kept {
        Kept(self.synced.clone())
    }

    /// Data is as it was at an earlier moment. State is always synced, and what was written before
    /// it is too, so none may have been written since.
    pub fn fall_back(&mut self, kept: &Kept) {
        let state = |table: &BTreeMap<Key, Bytes>| -> Vec<(Key, Bytes)> {
            let state = table.iter().filter(|((class, _), _)| *class == Class::State);
            state.map(|(key, value)| (key.clone(), value.clone())).collect()
        };
        assert!(state(&self.synced) == state(&kept.0), "state was written since");
        self.synced.clone_from(&kept.0);
        self.table = self.synced.clone();
    }

    /// All data is gone, as after a restart of a node that keeps it in memory. A periodic one has
    /// lost no more than the crash has taken.
    pub fn forget(&mut self) {
        if self.is_periodic {
            return;
        }
        self.synced.retain(|(class, _), _| *class == Class::State);
        self.table = self.synced.clone();
    }
}

/// Where the log of this key begins.
fn first_of(table: &BTreeMap<Key, Bytes>, log: &Key) -> LogIndex {
    table.get(log).and_then(|known| entries::first(known)).unwrap_or_default()
}

/// Does what a write asks for. One of a log's own key gives entries up.
fn apply(table: &mut BTreeMap<Key, Bytes>, key: Key, value: Option<Bytes>) {
    if key.0 == Class::Log
        && let Some(Place::Log(log)) = entries::place(&key.1)
    {
        let first = value.as_deref().and_then(entries::first).expect("a trim has an index");
        let first = first.max(first_of(table, &key));
        let end = (Class::Log, entries::key(log, first));
        table.retain(|entry, _| *entry < key || *entry >= end);
        table.insert(key, entries::trim(first));
        return;
    }
    if key.0 == Class::Log
        && let Some(Place::Entry(log, index)) = entries::place(&key.1)
    {
        let first = first_of(table, &(Class::Log, entries::log_key(log)));
        assert!(value.is_none() || index >= first, "{key:?} was given up before");
    }
    match value {
        Some(value) => table.insert(key, value),
        None => table.remove(&key),
    };
}

impl Table for Disk {
    fn get(&self, class: Class, key: &Bytes) -> Option<Bytes> {
        self.table.get(&(class, key.clone())).cloned()
    }

    fn scan(&self, class: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        let from = (class, Bytes::copy_from_slice(from));
        for ((_, key), value) in self.table.range(from..).take_while(|((at, _), _)| *at == class) {
            if !each(key, value) {
                return;
            }
        }
    }
}

#[test]
fn a_crash_takes_what_was_not_synced() {
    let key = |name: &'static str| Bytes::from_static(name.as_bytes());
    let (one, mut disk) = (key("1"), Disk::new(false, false));
    disk.write(Class::Data, &key("a"), Some(&one));
    disk.is_holding = true;
    disk.write(Class::Data, &key("b"), Some(&one));
    disk.write(Class::Data, &key("a"), None);
    assert_eq!(disk.needs(&Release::Key(key("b"))), 2);
    assert_eq!(disk.needs(&Release::Key(key("c"))), 0);
    assert_eq!(disk.needs(&Release::Keys([key("b"), key("c")].into())), 2);
    assert_eq!(disk.needs(&Release::Lane), 3);
    assert_eq!(disk.needs(&Release::State), 0);
    assert_eq!((disk.get(Class::Data, &key("a")), disk.done()), (None, 1));
    disk.crash();
    assert_eq!(disk.get(Class::Data, &key("a")), Some(one));
    assert_eq!(disk.get(Class::Data, &key("b")), None);
}

impl<P: Scripted> World<P> {
    /// Whether a node says that it is ready.
    pub fn is_ready(&mut self, id: u64) -> bool {
        let process = self.node(id).process.as_ref().expect("the node is up");
        process.parts().iter().all(|part| !part.owes)
    }

    /// A node no longer syncs by itself.
    pub fn hold_sync(&mut self, id: u64) {
        self.node(id).disk.is_holding = true;
    }

    /// What a node's disk holds now.
    pub fn kept(&mut self, id: u64) -> Kept {
        self.node(id).disk.kept()
    }

    /// Starts a node that crashed, with a `periodic` lane and a disk that lost power: it holds what
    /// it held at an earlier moment.
    pub fn restart_from(&mut self, id: u64, kept: &Kept) {
        self.node(id).disk.fall_back(kept);
        self.boot(id, Recovery::Forgot);
    }
}
