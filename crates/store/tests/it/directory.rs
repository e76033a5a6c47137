//! Creating, opening and refusing a data directory.

use crate::host::{fast_clock, identity, new_directory, serve};
use crate::image::Image;
use quorate_kernel::ids::{ClusterId, Incarnation, Lsn, Start};
use quorate_kernel::sighting::Spoken;
use quorate_kernel::storage::Durability;
use quorate_store::directory::{FORMAT_VERSION, check_unused};
use quorate_store::{Directory, DirectoryError, create, identity_of};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn open(path: &Path) -> Result<Directory, DirectoryError> {
    Directory::open(path, Some(identity().cluster))
}

/// The error's text after a check that the directory was left as it was, but for the lock.
fn refused(path: &Path, expected: Option<ClusterId>) -> (DirectoryError, String) {
    let without_lock = || {
        let mut image = Image::of(path);
        image.files.remove(Path::new("lock"));
        image
    };
    let before = without_lock();
    let error = Directory::open(path, expected).expect_err("refused");
    assert!(without_lock() == before, "a refused directory is left as it is: {error}");
    let text = error.to_string();
    assert!(text.contains(&path.display().to_string()), "it names the directory: {text}");
    (error, text)
}

#[test]
fn each_open_is_a_new_start_of_the_same_node() {
    let place = new_directory();
    for start in 1..4 {
        let directory = open(place.path()).expect("opened");
        assert_eq!(directory.identity(), &identity());
        let incarnation = Incarnation { node: identity().node, start: Start(start) };
        assert_eq!(directory.incarnation(), incarnation);
    }
    assert_eq!(identity_of(place.path()).expect("read"), identity());
}

#[test]
fn a_lane_remembers_what_its_durability_promises() {
    let place = new_directory();
    let periodic = Durability::Periodic { every_ms: 50 };
    let remembers = |directory: &Directory| {
        [Durability::Sync, periodic, Durability::Memory].map(|level| directory.remembers(level))
    };
    let first = open(place.path()).expect("opened");
    assert_eq!(remembers(&first), [true, true, true], "there is nothing to forget yet");
    drop(first);
    let killed = open(place.path()).expect("opened");
    assert_eq!(remembers(&killed), [true, true, false], "the machine went on");
    killed.stop_cleanly().expect("stopped");
    let mut stopped = open(place.path()).expect("opened");
    assert_eq!(remembers(&stopped), [true, true, false]);
    stopped.note_failure().expect("noted");
    drop(stopped);
    let mut failed = open(place.path()).expect("opened");
    assert_eq!(remembers(&failed), [true, false, false], "a failed sync is not to be trusted");
    failed.refilled().expect("noted");
    drop(failed);
    let refilled = open(place.path()).expect("opened");
    assert_eq!(remembers(&refilled), [true, true, false]);
}

#[test]
fn a_lost_machine_is_remembered_until_the_lanes_are_refilled() {
    let place = new_directory();
    drop(open(place.path()).expect("opened"));
    // The same file with the boot of another machine, as if it had lost power.
    rewrite_start(place.path(), "boot", "boot = \"another\"");
    for _ in 0..2 {
        let directory = open(place.path()).expect("opened");
        assert!(!directory.unsynced_survived(), "a kill before the refill changes nothing");
    }
    let mut directory = open(place.path()).expect("opened");
    directory.refilled().expect("noted");
    drop(directory);
    assert!(open(place.path()).expect("opened").unsynced_survived());
}

/// Replaces a line of the start file and seals it again, as an earlier start would have.
fn rewrite_start(path: &Path, field: &str, line: &str) {
    let file = path.join("start.toml");
    let text = fs::read_to_string(&file).expect("readable");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let body: String = lines
        .map(|old| if old.starts_with(field) { line } else { old }.to_owned() + "\n")
        .collect();
    let checksum = xxhash_rust::xxh3::xxh3_64(body.as_bytes());
    fs::write(&file, format!("{body}# checksum {checksum:016x}\n")).expect("written");
}

#[test]
fn a_second_host_is_told_who_holds_the_directory() {
    let place = new_directory();
    let held = open(place.path()).expect("opened");
    let (error, text) = refused(place.path(), None);
    assert!(matches!(error, DirectoryError::Locked { .. }));
    assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
    let error = check_unused(place.path()).expect_err("refused");
    assert!(matches!(error, DirectoryError::Locked { .. }), "{error}");
    drop(held);
    check_unused(place.path()).expect("no host runs on it");
    assert_eq!(open(place.path()).expect("opened").start(), Start(2), "a refusal is no start");
}

#[test]
fn a_directory_is_in_use_while_anything_of_its_store_is() {
    let place = new_directory();
    let (directory, opened) = serve(place.path(), fast_clock()).expect("opened");
    let reader = opened.reader.clone();
    drop((opened, directory));
    let error = serve(place.path(), fast_clock()).expect_err("refused");
    assert!(matches!(&error, DirectoryError::Locked { path, .. } if path == place.path()));
    drop(reader);
    drop(serve(place.path(), fast_clock()).expect("nobody uses it"));
}

#[test]
fn a_directory_that_another_process_creates_is_left_alone() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let lock = fs::File::create(place.path().join("lock")).expect("created");
    lock.try_lock().expect("nobody else is there");
    let before = Image::of(place.path());
    let error = create(place.path(), &identity()).expect_err("refused");
    assert!(matches!(error, DirectoryError::Locked { .. }), "{error}");
    assert!(Image::of(place.path()) == before, "nothing was changed");
    drop(lock);
    create(place.path(), &identity()).expect("created");
    open(place.path()).expect("opened");
}

#[test]
fn a_directory_is_created_with_those_above_it() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let path = place.path().join("a/b/c");
    create(&path, &identity()).expect("created");
    open(&path).expect("opened");
}

#[test]
fn a_directory_that_is_none_is_refused() {
    let place = tempfile::tempdir().expect("a temporary directory");
    for path in [place.path().to_path_buf(), place.path().join("absent")] {
        let error = open(&path).expect_err("refused");
        assert!(matches!(error, DirectoryError::NotInitialised { .. }), "{error}");
        assert!(error.to_string().contains("quorate init"), "it says what to do");
    }
}

#[test]
fn a_place_that_is_not_empty_is_refused() {
    let place = tempfile::tempdir().expect("a temporary directory");
    fs::write(place.path().join("letter.txt"), "dear").expect("written");
    let error = create(place.path(), &identity()).expect_err("refused");
    assert!(matches!(&error, DirectoryError::NotEmpty { found, .. } if found == "letter.txt"));
    let used = new_directory();
    let error = create(used.path(), &identity()).expect_err("refused");
    assert!(matches!(error, DirectoryError::NotEmpty { .. }), "a node is never created over");
}

#[test]
fn an_interrupted_init_can_be_done_again() {
    let place = new_directory();
    fs::remove_file(place.path().join("identity.toml")).expect("removed");
    let error = open(place.path()).expect_err("refused");
    assert!(matches!(error, DirectoryError::NotInitialised { .. }), "{error}");
    create(place.path(), &identity()).expect("created");
    assert_eq!(open(place.path()).expect("opened").start(), Start(1));
}

#[test]
fn a_foreign_clusters_directory_is_refused() {
    let place = new_directory();
    let (error, text) = refused(place.path(), Some(ClusterId(0xbad)));
    assert!(matches!(error, DirectoryError::ForeignCluster { .. }));
    assert!(text.contains(&ClusterId(0xbad).to_string()), "{text}");
    assert!(text.contains(&identity().cluster.to_string()), "{text}");
    assert_eq!(open(place.path()).expect("opened").start(), Start(1));
}

#[test]
fn a_newer_format_is_refused() {
    let place = new_directory();
    let newer = FORMAT_VERSION + 1;
    let says = |format: u32| format!("quorate data directory format {format}\n");
    fs::write(place.path().join("format"), says(newer)).expect("written");
    let (error, text) = refused(place.path(), None);
    let DirectoryError::NewerFormat { found, newest, .. } = error else { panic!("{error}") };
    assert_eq!((found, newest), (newer, FORMAT_VERSION));
    assert!(text.contains(&format!("format {newer}")), "{text}");
    assert!(text.contains(&format!("up to {FORMAT_VERSION}")), "{text}");
    fs::write(place.path().join("format"), says(1)).expect("written");
    let (error, text) = refused(place.path(), None);
    assert!(matches!(error, DirectoryError::OlderFormat { found: 1, .. }), "{text}");
    fs::write(place.path().join("format"), "what\n").expect("written");
    assert!(matches!(refused(place.path(), None).0, DirectoryError::Damaged { .. }));
}

#[test]
fn a_wiped_directory_is_refused() {
    let place = new_directory();
    let (directory, opened) = serve(place.path(), fast_clock()).expect("opened");
    opened.log.close().expect("closed");
    drop(opened.reader);
    directory.stop_cleanly().expect("stopped");
    let image = Image::of(place.path());
    for name in ["identity.toml", "start.toml", "mark", "db", "log", "format"] {
        let mut wiped = image.clone();
        wiped.remove(name);
        let place = wiped.restore();
        let (error, text) = refused(place.path(), None);
        assert!(matches!(error, DirectoryError::Wiped { .. }), "{name}: {text}");
        assert!(text.contains("new node id"), "{text}");
        let error = create(place.path(), &identity()).expect_err("refused");
        assert!(matches!(error, DirectoryError::NotEmpty { .. }), "{name}: {error}");
    }
    // Each of these alone says that a host ran here.
    for kept in ["start.toml", "db", "log"] {
        let mut wiped = image.clone();
        wiped.remove("identity.toml");
        ["start.toml", "db", "log"].iter().filter(|name| **name != kept).for_each(|name| {
            wiped.remove(name);
        });
        let place = wiped.restore();
        let (error, text) = refused(place.path(), None);
        assert!(matches!(error, DirectoryError::Wiped { .. }), "{kept}: {text}");
        let error = create(place.path(), &identity()).expect_err("refused");
        let is_named = matches!(&error, DirectoryError::NotEmpty { found, .. } if found == kept);
        assert!(is_named, "{kept}: {error}");
    }
}

#[test]
fn every_damaged_byte_of_the_small_files_is_noticed() {
    let place = new_directory();
    for name in ["identity.toml", "start.toml"] {
        let file = place.path().join(name);
        let sound = fs::read(&file).expect("readable");
        for at in (0..sound.len()).step_by(7) {
            let mut bytes = sound.clone();
            bytes[at] ^= 0x81;
            fs::write(&file, &bytes).expect("written");
            let (error, text) = refused(place.path(), None);
            assert!(matches!(error, DirectoryError::Damaged { .. }), "byte {at}: {text}");
            assert!(text.contains(name), "it names the file: {text}");
        }
        fs::write(&file, &sound).expect("written");
    }
    assert_eq!(open(place.path()).expect("opened").start(), Start(1));
}

#[test]
fn a_copy_of_a_running_hosts_directory_is_refused() {
    let place = new_directory();
    let (directory, opened) = serve(place.path(), fast_clock()).expect("opened");
    opened.log.settle().expect("segments are made");
    let copy = Image::of(place.path()).restore();
    let (error, text) = refused(copy.path(), None);
    assert!(matches!(error, DirectoryError::Copied { start: 1, .. }), "{text}");
    assert!(text.contains("quorate rejoin") && text.contains("--moved"), "it says what to do");
    let moved = Directory::open_moved(copy.path(), None).expect("it was asked for");
    assert_eq!(moved.start(), Start(2));
    assert!(!moved.unsynced_survived(), "what was not synced may be missing");
    drop(moved);
    assert_eq!(open(copy.path()).expect("it lies there now").start(), Start(3));
    opened.log.close().expect("closed");
    drop((opened.reader, directory));
    assert_eq!(open(place.path()).expect("the original is").start(), Start(2));
}

#[test]
fn a_directory_is_moved_until_its_node_speaks() {
    let place = new_directory();
    drop(open(place.path()).expect("opened"));
    let copy = Image::of(place.path()).restore();
    assert!(Directory::open_moved(copy.path(), None).expect("it was asked for").is_moved());
    // However it ends, and whoever starts it next.
    open(copy.path()).expect("it lies there now").stop_cleanly().expect("stopped");
    let mut again = open(copy.path()).expect("opened");
    assert!(again.is_moved() && !again.unsynced_survived());
    again.speak(7).expect("noted");
    assert!(!again.is_moved());
    drop(again);
    assert!(!open(copy.path()).expect("opened").is_moved(), "it has met the others");
}

#[test]
fn what_was_not_synced_counts_as_lost_where_that_is_ordered() {
    let place = new_directory();
    drop(open(place.path()).expect("opened"));
    assert!(open(place.path()).expect("opened").unsynced_survived(), "only its process ended");
    let ordered = Directory::open_moved(place.path(), None).expect("opened");
    assert!(!ordered.unsynced_survived() && ordered.is_moved());
    drop(ordered);
    assert!(!open(place.path()).expect("opened").unsynced_survived(), "until it is refilled");
}

#[test]
fn a_directory_that_was_closed_may_be_moved() {
    let place = new_directory();
    let (directory, opened) = serve(place.path(), fast_clock()).expect("opened");
    opened.log.close().expect("closed");
    drop(opened.reader);
    directory.stop_cleanly().expect("stopped");
    let copy = Image::of(place.path()).restore();
    let moved = open(copy.path()).expect("opened");
    assert_eq!((moved.start(), moved.unsynced_survived()), (Start(2), true));
}

#[test]
fn a_directory_knows_its_past() {
    let place = new_directory();
    let spoken =
        |start, run, end: Option<u64>| Spoken { start: Start(start), run, end: end.map(Lsn) };
    let mut first = open(place.path()).expect("opened");
    first.recovered(Lsn(0)).expect("noted");
    first.speak(11).expect("noted");
    drop(first);
    // Two starts in which nobody was spoken to.
    let mut second = open(place.path()).expect("opened");
    assert_eq!(second.past().spoken(), [spoken(1, 11, None)]);
    second.recovered(Lsn(40)).expect("noted");
    drop(second);
    let mut third = open(place.path()).expect("opened");
    third.recovered(Lsn(45)).expect("noted");
    assert_eq!(
        third.past().spoken(),
        [spoken(1, 11, Some(40))],
        "what it wrote alone is not of then"
    );
    third.speak(33).expect("noted");
    drop(third);
    let fourth = open(place.path()).expect("opened");
    assert_eq!(fourth.past().spoken(), [spoken(1, 11, Some(40)), spoken(3, 33, None)]);
}

/// What of a directory others than its owner may read or enter.
fn open_to_others(path: &Path) -> Vec<PathBuf> {
    let mut open = Vec::new();
    let mode = fs::metadata(path).expect("it is there").permissions().mode();
    if mode & 0o077 != 0 {
        open.push(path.to_path_buf());
    }
    if path.is_dir() {
        let entries = fs::read_dir(path).expect("a directory");
        let below = entries.map(|entry| entry.expect("an entry").path());
        open.extend(below.flat_map(|path| open_to_others(&path)));
    }
    open
}

#[test]
fn only_its_owner_may_read_a_directory() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let data = place.path().join("host");
    fs::create_dir(&data).expect("a place");
    let allow = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
    };
    allow(&data, 0o755);
    create(&data, &identity()).expect("created");
    assert_eq!(open_to_others(&data), Vec::<PathBuf>::new(), "as it is created");
    assert_eq!(open(&data).expect("opened").opened_to_others(), 0);
    // As an older release left it; what operators put there is theirs.
    fs::write(data.join("db/table"), "x").expect("written");
    fs::write(data.join("quorate.toml"), "").expect("written");
    for name in ["db/table", "identity.toml", "quorate.toml"] {
        allow(&data.join(name), 0o644);
    }
    allow(&data.join("db"), 0o755);
    allow(&data, 0o750);
    assert_eq!(open(&data).expect("opened").opened_to_others(), 4);
    assert_eq!(open_to_others(&data), [data.join("quorate.toml")]);
}
