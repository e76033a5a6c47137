//! What each log says of files that lack what it acknowledged.

use crate::ours::{self, Ours};
use crate::raft::{self, Raft};
use crate::record::record;
use quorate_kernel::time::{Span, Time};
use quorate_store::Options;
use raft_engine::{Config, ReadableSize, RecoveryMode};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Groups that are synced, and their records.
const GROUPS: u64 = 100;
const RECORDS: u64 = 16;
const WRITTEN: u64 = GROUPS * RECORDS;
/// A record in a group of the last file, with groups behind it.
const LATE: u64 = WRITTEN - 3 * RECORDS + 5;
/// A record in an earlier file.
const EARLY: u64 = 33 * RECORDS + 5;
/// Bytes of a file, for several of them.
const FILE_BYTES: u64 = 256 << 10;

/// How a copy is spoilt.
type Damage = fn(&Path);

const DAMAGES: [(&str, Damage); 9] = [
    ("nothing: a kill", |_| ()),
    ("a bit of a record in the last file, 2 groups behind it", |path| flip(path, LATE)),
    ("a bit of a record of the last group", |path| flip(path, WRITTEN)),
    ("a bit of a record in an earlier file", |path| flip(path, EARLY)),
    ("a bit before a group in the last file, 2 groups behind it", |path| flip_before(path, LATE)),
    ("a bit before a group in an earlier file", |path| flip_before(path, EARLY)),
    ("zeros from a record to the end of the last file", zero_the_end),
    ("the last file is gone", |path| remove(path, WRITTEN)),
    ("an earlier file is gone", |path| remove(path, EARLY)),
];

/// A way to open a copy: the records that are there, or what was said instead.
type Look = fn(&Path) -> Result<Found, String>;

/// What an open log has.
#[derive(Default)]
struct Found {
    there: u64,
    /// Refused when they were read.
    unreadable: u64,
    /// Not there, and nothing was said.
    missing: u64,
}

/// Spoils both, and prints what they say.
pub fn run(directory: &Path) {
    // What a panic says is printed below.
    std::panic::set_hook(Box::new(|_| ()));
    let place = || TempDir::new_in(directory).expect("the directory takes it");
    let (quorate, raft) = (place(), place());
    let _ours = write_ours(quorate.path());
    let _raft = write_raft(raft.path());
    let looks: [(&str, &Path, Look); 3] = [
        ("quorate", quorate.path(), look_at_ours),
        ("raft-engine, tolerate-tail-corruption", raft.path(), |path| {
            look_at_raft(path, RecoveryMode::TolerateTailCorruption)
        }),
        ("raft-engine, absolute-consistency", raft.path(), |path| {
            look_at_raft(path, RecoveryMode::AbsoluteConsistency)
        }),
    ];
    println!("{WRITTEN} records were acknowledged.");
    for (what, damage) in DAMAGES {
        println!("\n{what}");
        for (name, path, look) in looks {
            let copy = place();
            copy_all(path, copy.path());
            damage(copy.path());
            println!("  {name}: {}", verdict(look, copy.path()));
        }
    }
}

fn verdict(look: Look, path: &Path) -> String {
    let panicked = |panic: Box<dyn std::any::Any + Send>| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        format!("panics: {}", text.unwrap_or_default())
    };
    match catch_unwind(AssertUnwindSafe(|| look(path))) {
        Err(panic) => panicked(panic),
        Ok(Err(text)) => {
            let text = text.replace(path.to_str().unwrap_or_default(), "");
            format!("refused: {}", text.split(". ").next().unwrap_or_default())
        }
        Ok(Ok(Found { there, unreadable, missing })) => {
            let silently = if missing > 0 { ", SILENTLY" } else { "" };
            format!("opens; {there} there, {unreadable} unreadable, {missing} missing{silently}")
        }
    }
}

fn group(number: u64) -> Vec<Vec<u8>> {
    (0..RECORDS).map(|at| record(number * RECORDS + at + 1)).collect()
}

fn options() -> Options {
    Options { segment_bytes: FILE_BYTES, log_bytes_max: 64 << 20, ..Options::default() }
}

fn write_ours(path: &Path) -> Ours {
    ours::founded(path);
    // The mark is as new as it is after a second in which nothing was written.
    let mut now = Time(0);
    let clock = Box::new(move || {
        now = now + Span::secs(1);
        now
    });
    let mut log = Ours::open(path, &options(), clock).expect("a new directory opens");
    for number in 0..GROUPS {
        log.append(number * RECORDS + 1, &group(number), None, true);
    }
    log
}

fn look_at_ours(path: &Path) -> Result<Found, String> {
    let clock = Box::new(|| Time(0));
    let log = Ours::open(path, &options(), clock).map_err(|error| error.to_string())?;
    let mut found = Found::default();
    for number in 1..=WRITTEN {
        match log.read(number) {
            Some(value) if value == record(number) => found.there += 1,
            Some(_) => return Err(format!("record {number} has other bytes")),
            None => found.missing += 1,
        }
    }
    Ok(found)
}

fn small(path: &Path) -> Config {
    Config {
        target_file_size: ReadableSize(FILE_BYTES),
        purge_threshold: ReadableSize::mb(4),
        ..raft::settings(path, true)
    }
}

fn write_raft(path: &Path) -> Raft {
    let mut log = Raft::open(small(path)).expect("a new directory opens");
    for number in 0..GROUPS {
        log.append(&group(number), None, true);
    }
    log
}

fn look_at_raft(path: &Path, recovery_mode: RecoveryMode) -> Result<Found, String> {
    let config = Config { recovery_mode, ..small(path) };
    let log = Raft::open(config).map_err(|error| error.to_string())?;
    let mut found = Found::default();
    for number in 1..=WRITTEN {
        match log.read(number) {
            Ok(Some(value)) if value == record(number) => found.there += 1,
            Ok(Some(_)) => return Err(format!("record {number} has other bytes")),
            Ok(None) => found.missing += 1,
            Err(_) => found.unreadable += 1,
        }
    }
    Ok(found)
}

fn copy_all(from: &Path, to: &Path) {
    for path in files(from) {
        let name = path.strip_prefix(from).expect("it is below");
        let copy = to.join(name);
        fs::create_dir_all(copy.parent().expect("it is below")).expect("the disk takes it");
        fs::copy(&path, &copy).expect("the disk takes it");
    }
}

fn files(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).expect("it is there").map(|entry| entry.expect("readable"));
    let below = entries.map(|entry| entry.path());
    below.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The file that has a record, and where.
fn find(path: &Path, number: u64) -> (PathBuf, usize) {
    let record = record(number);
    let holds = |file: PathBuf| {
        let bytes = fs::read(&file).expect("readable");
        let at = bytes.windows(record.len()).position(|window| window == record)?;
        Some((file, at))
    };
    files(path).into_iter().find_map(holds).expect("it was written")
}

fn change(path: &Path, change: impl FnOnce(&mut [u8])) {
    let mut bytes = fs::read(path).expect("readable");
    change(&mut bytes);
    fs::write(path, bytes).expect("the disk takes it");
}

fn flip(path: &Path, number: u64) {
    let (file, at) = find(path, number);
    change(&file, |bytes| bytes[at + 500] ^= 1);
}

/// Close before the first record of a group, where both have what the group needs to be found.
fn flip_before(path: &Path, number: u64) {
    let (file, at) = find(path, number - 4);
    change(&file, |bytes| bytes[at - 6] ^= 1);
}

fn zero_the_end(path: &Path) {
    let (file, at) = find(path, LATE);
    assert_eq!(file, find(path, WRITTEN).0, "both are in the last file");
    change(&file, |bytes| bytes[at..].fill(0));
}

fn remove(path: &Path, number: u64) {
    fs::remove_file(find(path, number).0).expect("the disk lets it go");
}
