//! The tables as of some moment, at hand for reads.
//!
//! The database locks its list of tables while it syncs the next one, three times for each table
//! that is added or merged, and while it removes files. Who read through it would wait for that.
//! So whoever adds or merges tables takes the list that there is then, and reads go by the newest
//! that was taken: they share a pointer, under a lock that nobody holds for longer than that takes.
//!
//! Nothing is missed: a memtable is let go of only after the list with its table was taken, and who
//! reads looks into memtables first. A newer list never gives way to an older one: lists are taken
//! one after the other. Files of tables that were merged are removed when no list has them. The
//! last to let go of a list is never who reads, so no read waits for that either.

use fjall::{AbstractTree, Keyspace, SeqNo, Slice};
use lsm_tree::table::filter::standard_bloom::Builder;
use lsm_tree::{InternalValue, Tree};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Found = lsm_tree::Result<Option<Slice>>;
type Pairs = Box<dyn Iterator<Item = lsm_tree::Result<InternalValue>>>;
type Get = dyn Fn(&[u8]) -> Found + Send + Sync;
type Scan = dyn Fn(&[u8], &[u8]) -> Pairs + Send + Sync;

/// The tables that there were at one moment. The database has no name for the type of its lists.
pub(super) struct View {
    /// The database's number of the list; a later one has a higher one.
    id: u64,
    /// Bytes of the tables on disk.
    pub(super) bytes: u64,
    /// Records in the tables, deletes and what they delete included.
    pub(super) records: u64,
    get: Box<Get>,
    range: Box<Scan>,
}

impl View {
    /// The tables that there are now. Waits while the database writes a list.
    fn of(keyspace: &Keyspace) -> View {
        let tree = &keyspace.tree;
        // What comes between these is seen by some of them only. All have what there was before.
        let version = tree.current_version();
        let whole = tree.get_version_history_lock().latest_version();
        let (bytes, records) = (keyspace.disk_space(), keyspace.approximate_len() as u64);
        let id = version.id();
        let get = move |key: &[u8]| {
            let hash = Builder::get_hash(key);
            // Newer tables come first.
            let runs = version.iter_levels().flat_map(|level| level.iter());
            for table in runs.filter_map(|run| run.get_for_key(key)) {
                if let Some(found) = table.get(key, SeqNo::MAX, hash)? {
                    return Ok((!found.is_tombstone()).then_some(found.value));
                }
            }
            Ok(None)
        };
        let range = move |from: &[u8], to: &[u8]| -> Pairs {
            let (whole, bounds) = (whole.clone(), from..to);
            Box::new(Tree::create_internal_range::<&[u8], _>(whole, &bounds, SeqNo::MAX, None))
        };
        View { id, bytes, records, get: Box::new(get), range: Box::new(range) }
    }

    /// The newest value of a key, unless it was deleted.
    pub(super) fn get(&self, key: &[u8]) -> Found {
        (self.get)(key)
    }

    /// The newest values of the keys in `from..to` that were not deleted, ascending.
    pub(super) fn range(self: Arc<View>, from: &[u8], to: &[u8]) -> Range {
        Range { pairs: (self.range)(from, to), _view: self }
    }
}

/// What a list has of a range.
pub(super) struct Range {
    pairs: Pairs,
    /// Dropped after what has a part of it.
    _view: Arc<View>,
}

impl Iterator for Range {
    type Item = fjall::Result<(Slice, Slice)>;

    fn next(&mut self) -> Option<Self::Item> {
        let pair = self.pairs.next()?;
        Some(pair.map(|pair| (pair.key.user_key, pair.value)).map_err(fjall::Error::from))
    }
}

/// The newest view. Clones are handles to the same.
#[derive(Clone)]
pub(super) struct Views(Arc<Shared>);

struct Shared {
    newest: Mutex<Arc<View>>,
    /// Those before it that somebody still reads. Held by whoever takes the next one.
    earlier: Mutex<Vec<Arc<View>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here is left half done by a panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Views {
    /// Of a database that was just opened.
    pub(super) fn of(keyspace: &Keyspace) -> Views {
        let newest = Mutex::new(Arc::new(View::of(keyspace)));
        Views(Arc::new(Shared { newest, earlier: Mutex::default() }))
    }

    /// The newest view. Waits for nothing.
    pub(super) fn newest(&self) -> Arc<View> {
        Arc::clone(&lock(&self.0.newest))
    }

    /// Takes the list that there is now, and lets go of those that nobody reads any more. What was
    /// in the tables before this call is in what reads see after it. Waits for the disk.
    pub(super) fn renew(&self, keyspace: &Keyspace) {
        let mut earlier = lock(&self.0.earlier);
        let now = keyspace.tree.current_version().id();
        if now != self.newest().id {
            let view = Arc::new(View::of(keyspace));
            assert!(view.id >= now, "lists are numbered upwards");
            let before = std::mem::replace(&mut *lock(&self.0.newest), view);
            earlier.push(before);
        }
        // Nobody can begin to read one of these.
        earlier.retain(|view| Arc::strong_count(view) > 1);
    }
}

#[cfg(test)]
mod tests {
    use crate::tables::lsm::{Tables, TablesOptions};
    use crate::tables::reclaim;
    use crate::wal::trimmed::Trimmed;
    use bytes::Bytes;
    use quorate_kernel::error::Fatal;
    use std::path::Path;

    const TABLES: u8 = 3;

    /// Tables that nobody merges unless told to.
    fn open(path: &Path) -> Tables {
        let options = TablesOptions { cache_bytes: 1 << 20, files_max: 64 };
        Tables::open(path, options, &Trimmed::default()).expect("opened")
    }

    /// Adds a table, which reads do not see before the view is renewed.
    fn add(tables: &Tables, value: u8, is_deleted: bool) {
        let mut ingestion = tables.keyspace.tree.ingestion().expect("it begins");
        ingestion.write(&b"a"[..], &[value][..]).expect("written");
        if is_deleted {
            ingestion.write_tombstone(&b"b"[..]).expect("written");
        } else {
            ingestion.write(&b"b"[..], &[value][..]).expect("written");
        }
        ingestion.write([b'c', value], &[value][..]).expect("written");
        ingestion.finish().expect("added");
    }

    fn scan(tables: &Tables) -> Vec<(Bytes, Bytes)> {
        tables.range(b"a", b"z").collect::<Result<_, Fatal>>().expect("scanned")
    }

    fn files(tables: &Tables) -> usize {
        let folder = tables.keyspace.path().join("tables");
        std::fs::read_dir(folder).expect("a folder").count()
    }

    #[test]
    fn reads_show_the_newest_of_what_was_there_when_the_view_was_renewed() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let tables = open(place.path());
        assert_eq!((tables.get(b"a"), tables.records()), (Ok(None), 0));
        add(&tables, 1, false);
        add(&tables, 2, true);
        assert_eq!((tables.get(b"a"), scan(&tables)), (Ok(None), Vec::new()));
        tables.renew();
        let pair = |key: &'static [u8], value: &'static [u8]| (key.into(), value.into());
        let expected = [pair(b"a", &[2]), pair(b"c\x01", &[1]), pair(b"c\x02", &[2])];
        assert_eq!(scan(&tables), expected);
        assert_eq!(tables.get(b"a"), Ok(Some(Bytes::from_static(&[2]))));
        assert_eq!(tables.get(b"b"), Ok(None), "the newest says that it is deleted");
        assert_eq!(tables.get(b"c\x01"), Ok(Some(Bytes::from_static(&[1]))));
        assert_eq!(tables.get(b"d"), Ok(None));
        assert_eq!((tables.records(), tables.bytes()), (6, tables.keyspace.disk_space()));
    }

    #[test]
    fn a_scan_goes_on_in_tables_that_were_merged_and_removes_none_of_them() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let tables = open(place.path());
        (0..TABLES).for_each(|value| add(&tables, value, false));
        tables.renew();
        let before = scan(&tables);
        assert_eq!((before.len(), files(&tables)), (2 + usize::from(TABLES), usize::from(TABLES)));
        let mut pairs = tables.range(b"a", b"z");
        let mut found = vec![pairs.next().expect("a pair").expect("scanned")];
        tables.keyspace.major_compact().expect("merged");
        reclaim::look(&tables).expect("looked");
        reclaim::look(&tables).expect("looked");
        assert_eq!(files(&tables), usize::from(TABLES) + 1, "who reads keeps them");
        found.extend(pairs.by_ref().map(|pair| pair.expect("scanned")));
        assert_eq!(found, before);
        drop(pairs);
        assert_eq!(files(&tables), usize::from(TABLES) + 1, "who reads removes nothing");
        tables.renew();
        assert_eq!(files(&tables), 1);
        assert_eq!(scan(&tables), before);
    }
}
