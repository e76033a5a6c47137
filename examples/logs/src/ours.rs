//! The store's log, by the way that a host writes: batches, and a sync of the group.

use crate::record::Subject;
use bytes::Bytes;
use quorate_kernel::entries;
use quorate_kernel::ids::{ClusterId, LaneId, LogId, LogIndex, Lsn, NodeId};
use quorate_kernel::keyspace::NewKeyspace;
use quorate_kernel::storage::{Batch, Class, Log, Reader, Write, store_key};
use quorate_store::{
    Clock, Directory, DirectoryError, HostRecord, Identity, Opened, Options, Secret, create,
    machine_clock, open,
};
use std::collections::BTreeMap;
use std::path::Path;

const LOG: LogId = LogId(1);
const LANE: LaneId = LaneId(1);

/// An open store, with its directory's lock.
pub struct Ours {
    opened: Opened,
    _directory: Directory,
    next: Lsn,
}

/// A store with the settings that a host has.
pub fn begin(path: &Path) -> Box<dyn Subject> {
    founded(path);
    let ours = Ours::open(path, &Options::default(), machine_clock());
    Box::new(ours.expect("a new directory opens"))
}

/// Writes a new data directory.
pub fn founded(path: &Path) {
    let node = NodeId(1);
    let tokens = vec![u64::MAX];
    let (address, zone) = ("127.0.0.1:7001".to_owned(), String::new());
    let default = NewKeyspace {
        name: "default".to_owned(),
        engine: "linearizable".to_owned(),
        settings: BTreeMap::new(),
    };
    let identity = Identity {
        cluster: ClusterId(1),
        node,
        host: 1,
        is_founder: true,
        secret: Secret([7; 32]),
        context_key: None,
        hosts: vec![HostRecord { host: 1, node, address, zone, tokens }],
        keyspaces: vec![default],
    };
    create(path, &identity).expect("the directory is empty");
}

impl Ours {
    /// Opens a directory, which may be a copy.
    pub fn open(path: &Path, options: &Options, clock: Clock) -> Result<Ours, DirectoryError> {
        let mut directory = Directory::open_moved(path, Some(ClusterId(1)))?;
        let opened = open(&directory, options, clock)?;
        directory.recovered(opened.recovered)?;
        let next = Lsn(opened.recovered.0 + 1);
        Ok(Ours { opened, _directory: directory, next })
    }

    /// What the log has at a number.
    pub fn read(&self, number: u64) -> Option<Bytes> {
        self.opened.reader.get(&entry(number)).expect("an open store reads")
    }

    /// Writes a group, and syncs it if `is_synced`.
    pub fn append(&mut self, first: u64, group: &[Vec<u8>], give_up: Option<u64>, is_synced: bool) {
        let mut writes: Vec<Write> = Vec::with_capacity(group.len() + 1);
        for (number, record) in (first..).zip(group) {
            writes.push(Write { key: entry(number), value: Some(Bytes::copy_from_slice(record)) });
        }
        if let Some(first) = give_up {
            let key = store_key(LANE, Class::Log, &entries::log_key(LOG));
            writes.push(Write { key, value: Some(entries::trim(LogIndex(first))) });
        }
        let batch = Batch { lsn: self.next, must_sync: true, writes };
        self.next.0 += 1;
        self.opened.log.apply(&[batch]).expect("the disk takes it");
        if is_synced {
            self.opened.log.sync().expect("the disk takes it");
        }
    }
}

fn entry(number: u64) -> Bytes {
    store_key(LANE, Class::Log, &entries::key(LOG, LogIndex(number)))
}

impl Subject for Ours {
    fn write(&mut self, first: u64, group: &[Vec<u8>], give_up: Option<u64>) {
        self.append(first, group, give_up, true);
    }

    fn settle(&mut self) {
        self.opened.log.settle().expect("the disk takes it");
    }
}
