//! A look at a data directory is no start of it.

use crate::host::{batch, contents, fast_clock, identity, new_directory, put, serve};
use crate::image::Image;
use quorate_kernel::ids::Start;
use quorate_kernel::storage::{Durability, Log};
use quorate_store::directory::hold;
use quorate_store::{Directory, DirectoryError, Opened};
use std::fs;
use std::path::Path;

fn start_text(path: &Path) -> Vec<u8> {
    fs::read(path.join("start.toml")).expect("readable")
}

/// Looks, and says whether all is well; then `start.toml` is as it was.
fn look(path: &Path) -> Result<(), DirectoryError> {
    let before = start_text(path);
    let found = hold(path).expect("nobody uses it").look()?;
    assert_eq!(found, identity());
    assert_eq!(start_text(path), before, "it was no start");
    Ok(())
}

#[test]
fn a_directory_that_was_never_started_stays_so() {
    let place = new_directory();
    look(place.path()).expect("it is well");
    let entries = |name: &str| fs::read_dir(place.path().join(name)).expect("there").count();
    assert_eq!((entries("log"), entries("db")), (0, 0), "how long segments are is still open");
    let directory = Directory::open(place.path(), None).expect("opened");
    assert_eq!(directory.start(), Start(1));
    assert!(directory.remembers(Durability::Memory), "it has nothing to forget");
    drop(directory);
    look(place.path()).expect("its first start was killed");
    assert_eq!(entries("log"), 0, "it was so before it wrote anything");
}

#[test]
fn a_directory_that_was_closed_stays_closed() {
    let place = new_directory();
    let (directory, mut opened) = serve(place.path(), fast_clock()).expect("opened");
    opened.log.apply(&[batch(1, vec![put(b"a", b"1")])]).expect("applied");
    opened.log.sync().expect("synced");
    let before = contents(&opened.reader);
    let Opened { log, reader, .. } = opened;
    log.close().expect("closed");
    drop(reader);
    directory.stop_cleanly().expect("stopped");
    look(place.path()).expect("it is well");
    look(place.path()).expect("it is well");
    // To a copy of a directory that was not closed this is refused.
    let copy = Image::of(place.path()).restore();
    Directory::open(copy.path(), None).expect("it may be moved");
    let (directory, opened) = serve(place.path(), fast_clock()).expect("opened");
    assert_eq!((directory.start(), contents(&opened.reader)), (Start(2), before));
    assert!(directory.unsynced_survived());
}

#[test]
fn a_directory_whose_host_was_killed_is_looked_at_and_one_that_lost_something_is_told() {
    let place = new_directory();
    let (directory, mut opened) = serve(place.path(), fast_clock()).expect("opened");
    opened.log.apply(&[batch(1, vec![put(b"a", b"1")])]).expect("applied");
    opened.log.sync().expect("synced");
    let before = contents(&opened.reader);
    drop((opened, directory));
    look(place.path()).expect("it is well");
    let held = hold(place.path()).expect("nobody uses it");
    held.look().expect("once more");
    let error = Directory::open(place.path(), None).expect_err("refused");
    assert!(matches!(error, DirectoryError::Locked { .. }), "a look does not let go: {error}");
    drop(held);
    let (directory, opened) = serve(place.path(), fast_clock()).expect("opened");
    assert_eq!((directory.start(), contents(&opened.reader)), (Start(2), before));
    drop((opened, directory));
    let (list, before) = (place.path().join("log/segments.toml"), start_text(place.path()));
    let text = fs::read(&list).expect("readable");
    fs::write(&list, "nothing").expect("a place");
    hold(place.path()).expect("nobody uses it").look().expect_err("refused");
    assert_ne!(start_text(place.path()), before, "it is noted before the log is touched");
    fs::write(&list, text).expect("a place");
    look(place.path()).expect("it is well");
    fs::remove_file(list).expect("it was there");
    let error = look(place.path()).expect_err("refused");
    assert!(matches!(error, DirectoryError::WritesMissing { .. }), "{error}");
}
