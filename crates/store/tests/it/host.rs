//! Data directories and batches for the tests.

use bytes::Bytes;
use quorate_kernel::entries;
use quorate_kernel::ids::{ClusterId, LaneId, LogId, LogIndex, Lsn, NodeId};
use quorate_kernel::keyspace::NewKeyspace;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::{Batch, Class, Reader, Write, store_end, store_key};
use quorate_kernel::time::{Span, Time};
use quorate_store::{
    Clock, Directory, DirectoryError, HostRecord, Identity, Opened, Options, Secret, create, open,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Keys and values as a test compares them.
pub type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

pub fn identity() -> Identity {
    Identity {
        cluster: ClusterId(0xc1),
        node: NodeId(0xfedc_ba98_7654_3210),
        host: 1,
        is_founder: true,
        secret: Secret([7; 32]),
        context_key: None,
        hosts: vec![HostRecord {
            host: 1,
            node: NodeId(0xfedc_ba98_7654_3210),
            address: "127.0.0.1:7001".to_owned(),
            zone: String::new(),
            tokens: vec![u64::MAX],
        }],
        keyspaces: vec![NewKeyspace {
            name: "default".to_owned(),
            engine: "linearizable".to_owned(),
            settings: BTreeMap::new(),
        }],
    }
}

/// A clock that says a second passed each time it is asked, so that every sync is marked.
pub fn fast_clock() -> Clock {
    let mut now = Time(0);
    Box::new(move || {
        now = now + Span::secs(1);
        now
    })
}

/// A clock that stands still, so that only the first sync of a start is marked.
pub fn frozen_clock() -> Clock {
    Box::new(|| Time(0))
}

pub fn small() -> Options {
    Options {
        cache_bytes: 1 << 20,
        worker_threads: 1,
        segment_bytes: 256 << 10,
        log_bytes_max: 1 << 20,
        ..Options::default()
    }
}

/// Opens a directory and its store; the directory's lock lives as long as the first part.
pub fn serve(path: &Path, clock: Clock) -> Result<(Directory, Opened), DirectoryError> {
    serve_with(path, clock, &small())
}

pub fn serve_with(
    path: &Path,
    clock: Clock,
    options: &Options,
) -> Result<(Directory, Opened), DirectoryError> {
    // An image of a directory is a copy.
    let mut directory = Directory::open_moved(path, Some(identity().cluster))?;
    let opened = open(&directory, options, clock)?;
    directory.recovered(opened.recovered)?;
    Ok((directory, opened))
}

/// A new data directory in a temporary place.
pub fn new_directory() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a temporary directory");
    create(place.path(), &identity()).expect("created");
    place
}

pub fn key(name: &[u8]) -> Bytes {
    store_key(LaneId(1), Class::Data, name)
}

pub fn put(name: &[u8], value: &[u8]) -> Write {
    Write { key: key(name), value: Some(Bytes::copy_from_slice(value)) }
}

pub fn delete(name: &[u8]) -> Write {
    Write { key: key(name), value: None }
}

pub fn batch(lsn: u64, writes: Vec<Write>) -> Batch {
    Batch { lsn: Lsn(lsn), must_sync: true, writes }
}

/// The key of an entry of a log.
pub fn entry_key(log: u64, index: u64) -> Bytes {
    store_key(LaneId(1), Class::Log, &entries::key(LogId(log), LogIndex(index)))
}

pub fn put_entry(log: u64, index: u64, value: &[u8]) -> Write {
    Write { key: entry_key(log, index), value: Some(Bytes::copy_from_slice(value)) }
}

pub fn delete_entry(log: u64, index: u64) -> Write {
    Write { key: entry_key(log, index), value: None }
}

pub fn trim(log: u64, first: u64) -> Write {
    let key = store_key(LaneId(1), Class::Log, &entries::log_key(LogId(log)));
    Write { key, value: Some(entries::trim(LogIndex(first))) }
}

/// Everything of the tests' lane: its data, and entries of logs.
pub fn contents(reader: &impl Reader) -> Pairs {
    let mut pairs = Pairs::new();
    for class in [Class::Data, Class::Log] {
        let mut last = Bytes::new();
        let mut collect = |key: &Bytes, value: &Bytes| {
            assert!(last < *key, "a scan ascends");
            last = key.clone();
            pairs.insert(key[5..].to_vec(), value.to_vec());
            true
        };
        let from = store_key(LaneId(1), class, b"");
        reader.scan(&from, &store_end(LaneId(1), class), &mut collect).expect("scanned");
    }
    pairs
}

/// What a store must hold, as a model of its own: keys of data, and entries by the 16 bytes of log
/// and index.
#[derive(Clone, Default)]
pub struct State {
    pub pairs: Pairs,
    /// Where logs begin.
    firsts: BTreeMap<u64, u64>,
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    bytes.chunks(8).map(number).collect()
}

impl State {
    pub fn apply(&mut self, write: &Write) {
        let key = &write.key[5..];
        if write.key[4] != Class::Log as u8 {
            match &write.value {
                Some(value) => drop(self.pairs.insert(key.to_vec(), value.to_vec())),
                None => drop(self.pairs.remove(key)),
            }
        } else if let [log] = numbers(key)[..] {
            let first = self.firsts.entry(log).or_default();
            *first = numbers(write.value.as_ref().expect("an index"))[0].max(*first);
            let first = *first;
            let is_gone =
                |key: &[u8]| key.len() == 16 && numbers(key)[0] == log && numbers(key)[1] < first;
            self.pairs.retain(|key, _| !is_gone(key));
        } else if numbers(key)[1] >= self.firsts.get(&numbers(key)[0]).copied().unwrap_or(0) {
            match &write.value {
                Some(value) => drop(self.pairs.insert(key.to_vec(), value.to_vec())),
                None => drop(self.pairs.remove(key)),
            }
        }
    }

    /// A write of one of two logs: mostly the next entry, or a trim.
    pub fn log_write(&self, rng: &mut Rng, value: &[u8]) -> Write {
        let log = rng.below(2);
        let first = self.firsts.get(&log).copied().unwrap_or(0);
        let of_log = self.pairs.range(numbers_key(log, 0)..numbers_key(log + 1, 0));
        let last = of_log.map(|(key, _)| numbers(key)[1]).next_back();
        let next = last.map_or(first, |last| last + 1);
        match rng.below(16) {
            0..4 => trim(log, rng.between(first, next)),
            4 => trim(log, first.saturating_sub(1)),
            5 => delete_entry(log, next.saturating_sub(1)),
            6 => put_entry(log, rng.below(next + 1), value),
            _ => put_entry(log, next, value),
        }
    }
}

fn numbers_key(log: u64, index: u64) -> Vec<u8> {
    [log.to_be_bytes(), index.to_be_bytes()].concat()
}
