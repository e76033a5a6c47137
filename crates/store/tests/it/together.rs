//! Reads beside writes, while memtables become tables and tables are merged.

use crate::damage::recycling::narrow;
use crate::host::{batch, delete, fast_clock, key, new_directory, put, serve_with};
use bytes::Bytes;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::{Log, Reader};
use quorate_store::{Options, StoreReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const KEYS: usize = 200;
const BATCHES: u64 = 2500;

/// The newest version of each key. Odd ones are values that say which they are, even ones deletes.
struct Versions(Vec<AtomicU64>);

impl Versions {
    fn of(&self, name: usize) -> u64 {
        self.0[name].load(Ordering::SeqCst)
    }

    /// Checks what was found of a key of which this version was there before.
    fn check(&self, name: usize, before: u64, found: Option<u64>, what: &str) {
        // One more may have been applied already.
        let mut possible = before..=self.of(name) + 1;
        let is_right = match found {
            Some(version) => possible.contains(&version),
            None => possible.any(|version| version.is_multiple_of(2)),
        };
        assert!(is_right, "{what} of {name}: {found:?}, not of {before} to {}", self.of(name));
    }
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_be_bytes(bytes[..8].try_into().expect("eight bytes"))
}

fn read(reader: &StoreReader, versions: &Versions, rng: &mut Rng) {
    for _ in 0..5 {
        let name = rng.below(KEYS as u64) as usize;
        let before = versions.of(name);
        let found = reader.get(&key(&name.to_be_bytes())).expect("read");
        versions.check(name, before, found.map(|value| number(&value)), "a get");
    }
    let before: Vec<u64> = (0..KEYS).map(|name| versions.of(name)).collect();
    let mut found = vec![None; KEYS];
    let mut each = |key: &Bytes, value: &Bytes| {
        let twice = found[number(&key[5..]) as usize].replace(number(value));
        assert_eq!(twice, None, "a scan shows a key once");
        true
    };
    reader.scan(&key(b""), &key(&[0xff; 9]), &mut each).expect("scanned");
    for (name, (before, found)) in before.into_iter().zip(found).enumerate() {
        versions.check(name, before, found, "a scan");
    }
}

#[test]
fn a_read_beside_new_tables_sees_nothing_older_than_what_was_there() {
    let place = new_directory();
    let options = Options { memtable_bytes: 6000, ..narrow() };
    let served = serve_with(place.path(), fast_clock(), &options);
    let (_directory, mut opened) = served.expect("opened");
    let versions = Arc::new(Versions((0..KEYS).map(|_| AtomicU64::new(0)).collect()));
    let is_done = Arc::new(AtomicBool::new(false));
    let begin = |seed| {
        let (reader, versions) = (opened.reader.clone(), Arc::clone(&versions));
        let is_done = Arc::clone(&is_done);
        std::thread::spawn(move || {
            let mut rng = Rng::new(seed);
            while !is_done.load(Ordering::SeqCst) {
                read(&reader, &versions, &mut rng);
            }
        })
    };
    let readers = [begin(1), begin(2)];
    let mut rng = Rng::new(3);
    for lsn in 1..=BATCHES {
        let name = rng.below(KEYS as u64) as usize;
        let version = versions.of(name) + 1;
        let mut value = version.to_be_bytes().to_vec();
        value.resize(8 + rng.below(100) as usize, 7);
        let bytes = name.to_be_bytes();
        let is_delete = version.is_multiple_of(2);
        let write = if is_delete { delete(&bytes) } else { put(&bytes, &value) };
        opened.log.apply(&[batch(lsn, vec![write])]).expect("applied");
        versions.0[name].store(version, Ordering::SeqCst);
        if lsn.is_multiple_of(64) {
            opened.log.sync().expect("synced");
            opened.log.reclaim().expect("merged");
        }
    }
    is_done.store(true, Ordering::SeqCst);
    readers.into_iter().for_each(|reader| reader.join().expect("it saw nothing older"));
}
