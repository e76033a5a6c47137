//! What a store does that finds a file of its database gone or cut off.
//!
//! It refuses with a clear error, or it holds all that was synced, and what is written later wins.

use crate::damage::recycling::narrow;
use crate::host::{Pairs, batch, contents, delete, frozen_clock, new_directory, put, serve_with};
use crate::image::Image;
use fjall::{Database, KeyspaceCreateOptions};
use lsm_tree::SequenceNumberCounter;
use quorate_kernel::storage::Log;
use quorate_store::{DirectoryError, Opened, Options};
use std::fs;
use std::path::Path;

/// Every few batches become a table.
fn busy() -> Options {
    Options { memtable_bytes: 400, ..narrow() }
}

/// A host that writes and deletes the same few keys over and over.
struct Victim {
    image: Image,
    pairs: Pairs,
    written: u64,
}

impl Victim {
    fn new() -> Victim {
        let place = new_directory();
        let served = serve_with(place.path(), frozen_clock(), &busy());
        let (directory, mut opened) = served.expect("opened");
        let (mut pairs, mut written) = (Pairs::new(), 0);
        write(&mut opened, &mut pairs, &mut written);
        let image = Image::of(place.path());
        drop((opened, directory));
        Victim { image, pairs, written }
    }

    fn names(&self) -> Vec<String> {
        let of_database = self.image.files.keys().filter(|name| name.starts_with("db"));
        of_database.map(|name| name.display().to_string()).collect()
    }

    /// Opens a changed image, and goes on with it over a restart unless it is refused.
    fn is_refused(&self, image: &Image, what: &str) -> bool {
        let place = image.restore();
        let served = serve_with(place.path(), frozen_clock(), &busy());
        let gone = |error: &DirectoryError| {
            matches!(error, DirectoryError::WritesMissing { .. } | DirectoryError::Damaged { .. })
        };
        if served.as_ref().is_err_and(gone) {
            return true;
        }
        drop(served.expect(what));
        live(place.path(), self.pairs.clone(), self.written, what);
        false
    }

    /// The file that holds the newest list of tables.
    fn newest_list(&self) -> String {
        let current = &self.image.files[Path::new("db/keyspaces/1/current")];
        let number = current.bytes.first_chunk().expect("eight bytes");
        format!("db/keyspaces/1/v{}", u64::from_le_bytes(*number))
    }
}

/// Opens a directory three times, finds all that was written, and writes more.
fn live(place: &Path, mut pairs: Pairs, mut written: u64, what: &str) {
    for life in 0..3 {
        let served = serve_with(place, frozen_clock(), &busy());
        let (directory, mut opened) = served.expect(what);
        assert_eq!(opened.recovered.0, written, "{what}, life {life}");
        assert_eq!(contents(&opened.reader), pairs, "{what}, life {life}");
        write(&mut opened, &mut pairs, &mut written);
        assert_eq!(contents(&opened.reader), pairs, "{what}, life {life}: later");
        drop((opened, directory));
    }
}

fn write(opened: &mut Opened, pairs: &mut Pairs, written: &mut u64) {
    for _ in 0..40 {
        *written += 1;
        let (name, value) = ([(*written % 7) as u8], written.to_be_bytes());
        let write = if written.is_multiple_of(5) {
            pairs.remove(&name[..]);
            delete(&name)
        } else {
            pairs.insert(name.to_vec(), value.to_vec());
            put(&name, &value)
        };
        opened.log.apply(&[batch(*written, vec![write])]).expect("applied");
        opened.log.sync().expect("synced");
        opened.log.settle().expect("settled");
    }
}

/// Whether it lists tables, or is one: of the lists the newest counts, and it may name a table no
/// more that is still there.
fn may_be_old(name: &str) -> bool {
    name.starts_with("db/keyspaces/") && (name.contains("/v") || name.contains("/tables/"))
}

#[test]
fn a_file_of_the_database_that_is_gone_is_missed() {
    let victim = Victim::new();
    assert!(!victim.is_refused(&victim.image, "whole"));
    let mut tables = 0;
    // Without the lock the system itself answers.
    for name in victim.names().iter().filter(|name| *name != "db/lock") {
        let mut image = victim.image.clone();
        image.remove(name);
        let is_refused = victim.is_refused(&image, name);
        assert!(is_refused || may_be_old(name), "{name} was needed");
        tables += u64::from(is_refused && name.contains("/tables/"));
    }
    assert!(tables > 0, "some table was needed");
}

#[test]
fn a_file_of_the_database_that_is_cut_off_is_missed_or_not_needed() {
    let victim = Victim::new();
    let mut tables = 0;
    for name in victim.names() {
        for quarters in [0, 1, 3] {
            let mut image = victim.image.clone();
            let content = image.files.get_mut(Path::new(&name)).expect("it is listed");
            content.length = content.length * quarters / 4;
            content.bytes.truncate(content.length as usize);
            let is_refused = victim.is_refused(&image, &format!("{quarters} quarters of {name}"));
            tables += u64::from(is_refused && name.contains("/tables/"));
        }
    }
    assert!(tables > 0, "some table was needed");
}

/// A database as a first start leaves it that is killed between the two steps in which the keyspace
/// is made: its directory is there, and its name is not.
fn begin_nameless(database: &Path) {
    drop(Database::builder(database).open().expect("opened"));
    let (next, visible) = (SequenceNumberCounter::default(), SequenceNumberCounter::default());
    let tree = lsm_tree::Config::new(database.join("keyspaces/1"), next, visible).open();
    drop(tree.expect("opened"));
    assert!(database.join("keyspaces/1/current").exists());
}

#[test]
fn a_first_start_that_is_killed_before_its_keyspace_has_a_name_loses_nothing_of_later_ones() {
    let place = new_directory();
    begin_nameless(&place.path().join("db"));
    live(place.path(), Pairs::new(), 0, "begun twice");
    assert!(place.path().join("db/keyspaces/1/current").exists(), "it is where all have it");
}

#[test]
fn a_keyspace_of_another_number_is_found() {
    let place = new_directory();
    let served = serve_with(place.path(), frozen_clock(), &busy()).expect("opened");
    drop(served);
    let database = place.path().join("db");
    fs::remove_dir_all(&database).expect("it holds nothing");
    fs::create_dir(&database).expect("a free name");
    // What such a start has left until now: the database makes a second one.
    begin_nameless(&database);
    let opened = Database::builder(&database).open().expect("opened");
    drop(opened.keyspace("data", KeyspaceCreateOptions::default).expect("made"));
    drop(opened);
    assert!(!database.join("keyspaces/1").exists() && database.join("keyspaces/2").exists());
    live(place.path(), Pairs::new(), 0, "keyspace 2");
    assert!(!database.join("keyspaces/1").exists());
}

#[test]
fn tables_without_the_logs_list_are_kept() {
    let mut image = Victim::new().image;
    for name in
        image.files.keys().filter(|name| name.starts_with("log")).cloned().collect::<Vec<_>>()
    {
        image.remove(&name.display().to_string());
    }
    // Within the first second of its life nothing else says that batches were written.
    let new = Image::of(new_directory().path());
    let image = image.with("mark", &new);
    let place = image.restore();
    let error = serve_with(place.path(), frozen_clock(), &busy()).expect_err("refused");
    assert!(matches!(error, DirectoryError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("the list of the log's segments is gone"), "{error}");
    assert!(Image::of(place.path()).store() == image.store(), "nothing was removed");
}

#[test]
fn a_list_of_tables_that_was_changed_is_refused_before_a_table_is_removed() {
    let victim = Victim::new();
    let list = victim.newest_list();
    for name in [&list[..], "db/keyspaces/1/current", "db/keyspaces/0/current"] {
        let length = victim.image.files[Path::new(name)].length as usize;
        for at in 0..length {
            let mut image = victim.image.clone();
            image.padded(name)[at] ^= 1 << (at % 8);
            let (place, what) = (image.restore(), format!("{name}, byte {at}"));
            let error = serve_with(place.path(), frozen_clock(), &busy()).expect_err(&what);
            assert!(matches!(error, DirectoryError::Damaged { .. }), "{what}: {error}");
            let left = Image::of(place.path()).trimmed();
            assert!(left.store() == image.trimmed().store(), "{what}: it is as it was");
        }
    }
}
