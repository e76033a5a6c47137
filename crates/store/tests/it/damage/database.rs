//! What a store does that finds a file of its database gone or cut off.
//!
//! It refuses with a clear error, or it holds all that was synced, and what is written later wins.

use crate::damage::recycling::narrow;
use crate::host::{Pairs, batch, contents, delete, frozen_clock, new_directory, put, serve_with};
use crate::image::Image;
use quorate_kernel::storage::Log;
use quorate_store::{DirectoryError, Opened, Options};
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
        let (mut pairs, mut written) = (self.pairs.clone(), self.written);
        for life in 0..3 {
            let (directory, mut opened) = match serve_with(place.path(), frozen_clock(), &busy()) {
                Err(DirectoryError::WritesMissing { .. } | DirectoryError::Damaged { .. })
                    if life == 0 =>
                {
                    return true;
                }
                served => served.expect(what),
            };
            assert_eq!(opened.recovered.0, written, "{what}, life {life}");
            assert_eq!(contents(&opened.reader), pairs, "{what}, life {life}");
            write(&mut opened, &mut pairs, &mut written);
            assert_eq!(contents(&opened.reader), pairs, "{what}, life {life}: later");
            drop((opened, directory));
        }
        false
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
