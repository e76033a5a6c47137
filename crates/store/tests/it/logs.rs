//! Logs: entries by their place, given up from the first on.

use crate::conformance::{OnDisk, Subject};
use crate::damage::recycling::narrow;
use crate::host::{
    batch, contents, delete_entry, entry_key, fast_clock, new_directory, put, put_entry,
    serve_with, trim,
};
use bytes::Bytes;
use quorate_kernel::error::Fatal;
use quorate_kernel::storage::{Log, Reader, Write};
use quorate_store::{MemoryStore, Opened, Options};

fn has<S: Subject>(store: &S, log: u64, index: u64) -> bool {
    store.reader().get(&entry_key(log, index)).expect("read").is_some()
}

fn indexes<S: Subject>(store: &S) -> Vec<(u64, u64)> {
    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
    store.contents().keys().map(|key| (number(&key[..8]), number(&key[8..]))).collect()
}

fn entries_before_the_first_are_gone_for_good<S: Subject>() {
    let mut store = S::new();
    let writes = (1..=4).flat_map(|index| [1, 2].map(|log| put_entry(log, index, b"entry")));
    store.log().apply(&[batch(1, writes.collect())]).expect("applied");
    store.log().apply(&[batch(2, vec![trim(1, 3), put_entry(1, 5, b"entry")])]).expect("applied");
    let left = vec![(1, 3), (1, 4), (1, 5), (2, 1), (2, 2), (2, 3), (2, 4)];
    assert_eq!(indexes(&store), left);
    assert!(!has(&store, 1, 2) && has(&store, 1, 3));
    let first = |store: &S, log| store.reader().get(&trim(log, 0).key).expect("read");
    assert_eq!((first(&store, 1), first(&store, 2)), (trim(1, 3).value, None));
    let late = vec![put_entry(1, 2, b"late"), trim(1, 1), delete_entry(1, 5)];
    store.log().apply(&[batch(3, late)]).expect("applied");
    let left: Vec<_> = left.into_iter().filter(|place| *place != (1, 5)).collect();
    assert_eq!(indexes(&store), left, "an entry that comes late is gone, a lower trim is nothing");
    let (store, _) = store.kill();
    assert_eq!(indexes(&store), left);
    assert_eq!(first(&store, 1), trim(1, 3).value);
    let (mut store, _) = store.restart();
    assert_eq!(indexes(&store), left);
    store.log().apply(&[batch(4, vec![put_entry(1, 1, b"late")])]).expect("applied");
    assert!(!has(&store, 1, 1));
}

fn a_write_that_is_none_of_a_log_is_refused<S: Subject>() {
    let of_log = |key: &[u8], value: Option<&'static [u8]>| {
        let key = [&entry_key(0, 0)[..5], key].concat();
        vec![Write { key: Bytes::from(key), value: value.map(Bytes::from_static) }]
    };
    let unsound = [of_log(b"k", Some(b"v")), of_log(&[0; 8], None), of_log(&[0; 8], Some(b"v"))];
    for writes in unsound {
        let refused = S::new().log().apply(&[batch(1, writes)]);
        assert!(matches!(refused, Err(Fatal::Corrupt(_))), "{refused:?}");
    }
}

#[test]
fn both_stores_give_entries_up_from_the_first_on() {
    entries_before_the_first_are_gone_for_good::<MemoryStore>();
    entries_before_the_first_are_gone_for_good::<OnDisk>();
}

#[test]
fn both_stores_refuse_what_is_no_write_of_a_log() {
    a_write_that_is_none_of_a_log_is_refused::<MemoryStore>();
    a_write_that_is_none_of_a_log_is_refused::<OnDisk>();
}

const ENTRY: [u8; 4000] = [7; 4000];

/// Writes entries one by one, each after a trim that leaves so many.
fn append(opened: &mut Opened, from: u64, count: u64, kept: u64) {
    for lsn in from..from + count {
        let writes = vec![put_entry(1, lsn, &ENTRY), trim(1, (lsn + 1).saturating_sub(kept))];
        opened.log.apply(&[batch(lsn, writes)]).expect("applied");
    }
}

#[test]
fn entries_that_are_given_up_in_time_never_come_into_a_table() {
    let (place, options) = (new_directory(), Options { memtable_bytes: 100_000, ..narrow() });
    let (_directory, mut opened) = serve_with(place.path(), fast_clock(), &options).expect("open");
    append(&mut opened, 1, 500, 5);
    opened.log.sync().expect("synced");
    opened.log.settle().expect("settled");
    let stats = opened.reader.stats();
    assert!(stats.log_bytes <= options.log_bytes_max, "segments are used again: {stats:?}");
    assert!(stats.memtable_bytes < 40_000, "{stats:?}");
    // Of what 2 MB of entries left, each table has the five that were needed then, compressed.
    assert!(stats.table_bytes < 300_000, "{stats:?}");
    assert_eq!(contents(&opened.reader).len(), 5);
}

#[test]
fn entries_in_tables_that_are_given_up_leave_nothing_when_tables_are_merged() {
    let (place, options) = (new_directory(), Options { memtable_bytes: 100_000, ..narrow() });
    let (_directory, mut opened) = serve_with(place.path(), fast_clock(), &options).expect("open");
    let mut noise = quorate_kernel::rng::Rng::new(1);
    let mut lsn = 0;
    let mut write = |opened: &mut Opened, write: Write| {
        lsn += 1;
        opened.log.apply(&[batch(lsn, vec![write])]).expect("applied");
    };
    for index in 0..4000 {
        let entry: Vec<u8> = (0..4000).map(|_| noise.next() as u8).collect();
        write(&mut opened, put_entry(1, index, &entry));
    }
    write(&mut opened, put(b"k", b"v"));
    opened.log.sync().expect("synced");
    opened.log.settle().expect("settled");
    let before = opened.reader.stats().table_bytes;
    assert!(before > 12 << 20, "{before} bytes of tables");
    write(&mut opened, trim(1, 3999));
    opened.log.sync().expect("synced");
    while opened.reader.stats().table_bytes > 1 << 20 {
        opened.log.reclaim().expect("looked");
        std::thread::yield_now();
    }
    assert_eq!(contents(&opened.reader).len(), 2, "the last entry and the key");
}

#[test]
fn where_a_log_begins_is_known_when_its_trim_is_in_the_tables_alone() {
    let (place, options) = (new_directory(), Options { memtable_bytes: 70_000, ..narrow() });
    let (directory, mut opened) = serve_with(place.path(), fast_clock(), &options).expect("open");
    let of_log = |opened: &Opened| {
        let pairs = contents(&opened.reader);
        pairs.into_keys().filter(|key| key.len() == 16).count()
    };
    append(&mut opened, 1, 20, 20);
    // Those that are given up are in a table by then. There are too few tables to merge any.
    opened.log.sync().expect("synced");
    opened.log.settle().expect("settled");
    let mut lsn = 21;
    let mut write = |opened: &mut Opened, write: Write| {
        opened.log.apply(&[batch(lsn, vec![write])]).expect("applied");
        opened.log.sync().expect("synced");
        lsn += 1;
    };
    write(&mut opened, trim(1, 11));
    // Enough for two tables more.
    for name in 0..40_u8 {
        write(&mut opened, put(&[name], &ENTRY));
    }
    opened.log.settle().expect("settled");
    assert_eq!(of_log(&opened), 10);
    opened.log.close().expect("closed");
    drop(opened.reader);
    directory.stop_cleanly().expect("stopped");
    let (_directory, opened) = serve_with(place.path(), fast_clock(), &options).expect("open");
    assert_eq!(of_log(&opened), 10);
}
