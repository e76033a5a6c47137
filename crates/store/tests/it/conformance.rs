//! What both stores promise, as one suite.

use crate::host::{
    Pairs, batch, contents, delete, fast_clock, identity, key, new_directory, put, serve_with,
    small,
};
use crate::image::Image;
use crate::lives::torn;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Lsn;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::{Log, Reader};
use quorate_store::{Crash, Directory, MemoryStore, Opened, Options, StoreLog, StoreReader};

/// A store that the suite can stop and kill.
pub trait Subject: Sized {
    type Log: Log;
    type Reader: Reader;

    fn new() -> Self;
    fn log(&mut self) -> &mut Self::Log;
    fn reader(&self) -> &Self::Reader;
    /// Stops cleanly and opens again; tells what was recovered.
    fn restart(self) -> (Self, Lsn);
    /// Is killed and opens again; tells what was recovered.
    fn kill(self) -> (Self, Lsn);
    /// Makes what was applied survive a loss of power.
    fn sync_all(&mut self);
    /// Loses power and opens again; tells what was recovered.
    fn lose_power(self, rng: &mut Rng) -> (Self, Lsn);
    /// A sync fails, the process ends for it and opens again; tells what was recovered.
    fn fail_sync(self, rng: &mut Rng) -> (Self, Lsn);

    fn contents(&self) -> Pairs {
        contents(self.reader())
    }

    /// Asserts that it says of itself that so many batches are written, and so many of them synced.
    fn check(&self, _written: usize, _synced: usize) {}
}

impl Subject for MemoryStore {
    type Log = MemoryStore;
    type Reader = MemoryStore;

    fn new() -> MemoryStore {
        MemoryStore::new()
    }

    fn log(&mut self) -> &mut MemoryStore {
        self
    }

    fn reader(&self) -> &MemoryStore {
        self
    }

    fn restart(mut self) -> (MemoryStore, Lsn) {
        self.sync_all();
        let recovered = self.reopen();
        (self, recovered)
    }

    fn kill(self) -> (MemoryStore, Lsn) {
        self.crash(Crash::ProcessKill, &mut Rng::new(1));
        let recovered = self.reopen();
        (self, recovered)
    }

    fn sync_all(&mut self) {
        self.sync().expect("synced");
    }

    fn check(&self, written: usize, synced: usize) {
        assert_eq!(self.durable().written.0 as usize, written);
        assert_eq!(self.durable().synced.0 as usize, synced);
    }

    fn lose_power(mut self, rng: &mut Rng) -> (MemoryStore, Lsn) {
        self.crash(Crash::PowerLoss, rng);
        assert!(self.sync().is_err(), "a crashed store refuses");
        let recovered = self.reopen();
        (self, recovered)
    }

    fn fail_sync(mut self, rng: &mut Rng) -> (MemoryStore, Lsn) {
        self.fail_next_sync();
        assert!(self.sync().is_err());
        assert!(self.apply(&[]).is_err(), "a failed log stays failed");
        self.crash(Crash::ProcessKill, rng);
        let recovered = self.reopen();
        (self, recovered)
    }
}

/// The store of a data directory.
pub struct OnDisk {
    options: Options,
    log: StoreLog,
    reader: StoreReader,
    directory: Directory,
    place: tempfile::TempDir,
    /// What the disk held when it was synced last.
    synced: Image,
    /// Whether there may be groups in the log.
    is_written: bool,
}

impl OnDisk {
    /// An empty store with these options.
    pub fn with(options: Options) -> OnDisk {
        let (subject, recovered) = OnDisk::open(new_directory(), options, false);
        assert_eq!(recovered, Lsn(0));
        subject
    }

    /// What the operating system holds of its files.
    pub fn image(&self) -> Image {
        Image::of(self.place.path())
    }

    fn open(place: tempfile::TempDir, options: Options, may_be_torn: bool) -> (OnDisk, Lsn) {
        let served = serve_with(place.path(), fast_clock(), &options);
        let (directory, opened) = served.expect("opened");
        let Opened { log, reader, recovered, cut, .. } = opened;
        assert!(may_be_torn || cut.is_none(), "nothing was torn: {cut:?}");
        // What was recovered was synced.
        let synced = Image::of(place.path());
        let is_written = recovered > Lsn(0);
        (OnDisk { options, log, reader, directory, place, synced, is_written }, recovered)
    }
}

impl Subject for OnDisk {
    type Log = StoreLog;
    type Reader = StoreReader;

    fn new() -> OnDisk {
        OnDisk::with(small())
    }

    fn log(&mut self) -> &mut StoreLog {
        self.is_written = true;
        &mut self.log
    }

    fn reader(&self) -> &StoreReader {
        &self.reader
    }

    fn restart(self) -> (OnDisk, Lsn) {
        self.log.close().expect("closed");
        drop(self.reader);
        self.directory.stop_cleanly().expect("stopped");
        OnDisk::open(self.place, self.options, false)
    }

    fn kill(self) -> (OnDisk, Lsn) {
        // What is copied is what the operating system has; closing would write more.
        self.log.settle().expect("tables are written");
        OnDisk::open(self.image().restore(), self.options, false)
    }

    fn sync_all(&mut self) {
        self.log.sync().expect("synced");
        self.synced = self.image();
    }

    /// Of the pages that were written since the last sync some are on the disk and some are not.
    fn lose_power(self, rng: &mut Rng) -> (OnDisk, Lsn) {
        if rng.below(2) == 0 {
            self.log.settle().expect("tables are written");
        }
        let now = self.image();
        // Where nothing was ever written there is nothing to tear.
        let image = if self.is_written { torn(&self.synced, &now, rng) } else { now };
        OnDisk::open(image.restore(), self.options, true)
    }

    /// Nobody knows what the disk holds of what was to be synced: the kernel may have given pages
    /// up that it could not write, and says they are clean. Images taken of such a disk differ from
    /// those after a loss of power in nothing that a start could tell.
    fn fail_sync(self, rng: &mut Rng) -> (OnDisk, Lsn) {
        self.lose_power(rng)
    }
}

fn pairs(expected: &[(&str, &str)]) -> Pairs {
    let bytes = |text: &str| text.as_bytes().to_vec();
    expected.iter().map(|(key, value)| (bytes(key), bytes(value))).collect()
}

fn a_batch_is_read_after_it_is_applied<S: Subject>() {
    let mut store = S::new();
    assert_eq!(store.reader().get(&key(b"a")), Ok(None));
    store.log().apply(&[batch(1, vec![put(b"a", b"1"), put(b"b", b"2")])]).expect("applied");
    let value = store.reader().get(&key(b"a")).expect("read");
    assert_eq!(value.as_deref(), Some(&b"1"[..]), "before any sync");
    store.log().apply(&[batch(2, vec![delete(b"a"), put(b"c", b"")])]).expect("applied");
    assert_eq!(store.reader().get(&key(b"a")), Ok(None));
    assert_eq!(store.contents(), pairs(&[("b", "2"), ("c", "")]));
    store.log().sync().expect("synced");
    assert_eq!(store.contents(), pairs(&[("b", "2"), ("c", "")]));
}

fn the_later_write_of_a_key_wins<S: Subject>() {
    let mut store = S::new();
    let first = batch(1, vec![put(b"a", b"1"), delete(b"a"), put(b"a", b"2"), put(b"b", b"1")]);
    let second = batch(2, vec![put(b"a", b"3"), put(b"b", b"2"), delete(b"b")]);
    let third = batch(3, vec![delete(b"c"), put(b"c", b"1"), delete(b"d")]);
    store.log().apply(&[first, second, third]).expect("applied");
    assert_eq!(store.contents(), pairs(&[("a", "3"), ("c", "1")]), "all in one group");
    let (store, _) = store.kill();
    assert_eq!(store.contents(), pairs(&[("a", "3"), ("c", "1")]), "and after recovery");
}

fn a_scan_ascends_within_its_bounds_and_stops_when_told<S: Subject>() {
    let mut store = S::new();
    let names = ["d", "b", "a", "c", "bb", "e"];
    let writes = names.iter().map(|name| put(name.as_bytes(), name.as_bytes())).collect();
    store.log().apply(&[batch(1, writes)]).expect("applied");
    let scan = |from: &[u8], to: &[u8], limit: usize| {
        let mut found = Vec::new();
        let mut each = |key: &bytes::Bytes, value: &bytes::Bytes| {
            assert_eq!(key[5..], value[..]);
            found.push(String::from_utf8_lossy(value).into_owned());
            found.len() < limit
        };
        store.reader().scan(from, to, &mut each).expect("scanned");
        found.join(" ")
    };
    assert_eq!(scan(&key(b"a"), &key(b"z"), 9), "a b bb c d e");
    assert_eq!(scan(&key(b"b"), &key(b"d"), 9), "b bb c", "the end is left out");
    assert_eq!(scan(&key(b"b"), &key(b"z"), 2), "b bb");
    assert_eq!(scan(&key(b"d"), &key(b"b"), 9), "", "an empty range");
    assert_eq!(scan(b"", &[0xff; 8], 9), "a b bb c d e", "nothing of the store's own");
    assert_eq!(store.reader().get(b"\0"), Ok(None), "nor by a get");
}

fn a_gap_between_numbers_is_refused_for_good<S: Subject>() {
    let mut store = S::new();
    store.log().apply(&[batch(1, vec![put(b"a", b"1")])]).expect("applied");
    let refused = store.log().apply(&[batch(3, vec![put(b"a", b"3")])]);
    assert!(matches!(refused, Err(Fatal::Corrupt(_))), "{refused:?}");
    assert_eq!(store.contents(), pairs(&[("a", "1")]), "nothing of it was applied");
    assert!(store.log().apply(&[batch(2, vec![put(b"a", b"2")])]).is_err(), "the log failed");
    assert!(store.log().sync().is_err());
}

fn groups_are_atomic_and_numbers_go_on_after_a_restart<S: Subject>() {
    let mut store = S::new();
    let mut expected = Pairs::new();
    for round in 0..4_u64 {
        let group = [0, 1, 2].map(|index| {
            let lsn = round * 3 + index + 1;
            expected.insert(vec![lsn as u8], lsn.to_be_bytes().to_vec());
            batch(lsn, vec![put(&[lsn as u8], &lsn.to_be_bytes())])
        });
        store.log().apply(&group).expect("applied");
        if round % 2 == 0 {
            store.log().sync().expect("synced");
        }
        let (next, recovered) = if round < 2 { store.restart() } else { store.kill() };
        assert_eq!(recovered, Lsn(round * 3 + 3));
        assert_eq!(next.contents(), expected);
        store = next;
    }
    assert!(store.log().apply(&[batch(1, Vec::new())]).is_err(), "numbers never start again");
}

fn an_empty_batch_counts<S: Subject>() {
    let mut store = S::new();
    store.log().apply(&[]).expect("applied");
    store.log().apply(&[batch(1, Vec::new()), batch(2, Vec::new())]).expect("applied");
    store.log().sync().expect("synced");
    let (store, recovered) = store.restart();
    assert_eq!((recovered, store.contents()), (Lsn(2), Pairs::new()));
}

fn values_of_every_size_come_back<S: Subject>() {
    let mut store = S::new();
    let sizes = [0_usize, 1, 20, 4095, 4096, 4097, 1 << 20];
    let value = |size: usize| (0..size).map(|at| (at * 7 + size) as u8).collect::<Vec<u8>>();
    let writes = sizes.iter().map(|size| put(&size.to_be_bytes(), &value(*size))).collect();
    store.log().apply(&[batch(1, writes)]).expect("applied");
    for _ in 0..2 {
        for size in sizes {
            let found = store.reader().get(&key(&size.to_be_bytes())).expect("read");
            assert_eq!(found.as_deref(), Some(&value(size)[..]));
        }
        (store, _) = store.kill();
    }
}

macro_rules! suite {
    ($($name:ident)*) => {
        mod memory {
            $(#[test]
            fn $name() {
                super::$name::<quorate_store::MemoryStore>();
            })*
        }
        mod on_disk {
            $(#[test]
            fn $name() {
                super::$name::<super::OnDisk>();
            })*
        }
    };
}

suite! {
    a_batch_is_read_after_it_is_applied
    the_later_write_of_a_key_wins
    a_scan_ascends_within_its_bounds_and_stops_when_told
    a_gap_between_numbers_is_refused_for_good
    groups_are_atomic_and_numbers_go_on_after_a_restart
    an_empty_batch_counts
    values_of_every_size_come_back
}

#[test]
fn a_key_that_the_database_cannot_hold_is_refused() {
    let mut store = OnDisk::new();
    let longest = vec![b'k'; quorate_store::STORE_KEY_BYTES_MAX - 5];
    store.log().apply(&[batch(1, vec![put(&longest, b"1")])]).expect("applied");
    assert!(store.reader().get(&key(&longest)).expect("read").is_some());
    assert_eq!(store.contents().len(), 1);
    let longer = [&longest[..], b"k"].concat();
    assert!(store.log().apply(&[batch(2, vec![put(&longer, b"1")])]).is_err());
    assert_eq!(store.directory.identity(), &identity());
}
