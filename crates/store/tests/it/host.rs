//! Data directories and batches for the tests.

use bytes::Bytes;
use quorate_kernel::ids::{ClusterId, LaneId, Lsn, NodeId};
use quorate_kernel::keyspace::NewKeyspace;
use quorate_kernel::storage::{Batch, Class, Reader, Write, store_key};
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

/// Everything of the tests' lane.
pub fn contents(reader: &impl Reader) -> Pairs {
    let mut pairs = Pairs::new();
    let mut collect = |key: &Bytes, value: &Bytes| {
        let after = pairs.last_key_value().is_none_or(|(last, _)| last[..] < key[5..]);
        assert!(after, "a scan ascends");
        pairs.insert(key[5..].to_vec(), value.to_vec());
        true
    };
    reader.scan(&key(b""), &key(&[0xff; 32]), &mut collect).expect("scanned");
    pairs
}
