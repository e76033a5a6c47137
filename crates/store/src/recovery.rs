//! What may be opened, what must be cut off first, and what must be refused.
//!
//! Everything here happens before the database touches its files. What was surely synced is the
//! higher of the mark and what any whole batch claims. Damage behind all of that is a torn tail: it
//! is copied aside and cut. Anything else is refused, and the directory stays as it is.

use crate::access::{FILE_MODE, create_directory};
use crate::error::DirectoryError;
use crate::files::sync_directory;
use crate::journal::{Damage, Scan, scan};
use quorate_kernel::ids::{Lsn, Start};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// Files without which the database would quietly begin anew, or delete what it has.
const NEEDED: [&str; 3] = ["version", "keyspaces/0/current", "keyspaces/1/current"];

/// How many cut tails are kept. They hold nothing that anybody was told of, and only help to see
/// what happened.
const COPIES_MAX: usize = 8;

/// A torn tail that was cut off a journal: batches that were never synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where the bytes were copied to.
    pub copy: PathBuf,
    /// How many bytes were cut.
    pub bytes: u64,
}

/// The places recovery works on.
pub(crate) struct Places {
    /// The database.
    pub(crate) database: PathBuf,
    /// Where cut tails are copied to.
    pub(crate) cut: PathBuf,
    /// The present start, which names the copies.
    pub(crate) start: Start,
}

/// A database that may be opened, and what it must then hold.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The last batch of the journals, when they have one.
    pub(crate) last: Option<Lsn>,
    /// The last batch that was surely synced.
    pub(crate) required: Lsn,
    /// What was cut off.
    pub(crate) cut: Option<Cut>,
}

/// Checks a database and cuts a torn tail off. `in_tables` reads the last batch outside the
/// journals, for the rare case that they hold no whole batch.
pub(crate) fn prepare(
    places: &Places,
    mark: Lsn,
    in_tables: impl FnOnce(&Path) -> Result<Lsn, DirectoryError>,
) -> Result<Prepared, DirectoryError> {
    let database = &places.database;
    let scan = scan(database).map_err(DirectoryError::io("reading", database))?;
    let required = mark.max(scan.claimed);
    if let Some(missing) = missing_file(database, &scan) {
        return begin_anew(database, missing, &scan, required);
    }
    let place = match &scan.damage {
        Some(damage) => format!("{} at byte {}", damage.what, damage.offset),
        None => "its journals end early".to_owned(),
    };
    let last = match scan.last {
        Some(last) => last,
        None if required > Lsn(0) => in_tables(database)?,
        None => Lsn(0),
    };
    if last < required {
        return Err(missing_writes(database, last, required, place));
    }
    let Some(damage) = &scan.damage else {
        return Ok(Prepared { last: scan.last, required, cut: None });
    };
    if !damage.may_be_torn {
        return Err(DirectoryError::damaged(&damage.path, place));
    }
    let cut = cut_off(places, damage).map_err(DirectoryError::io("cutting", &damage.path))?;
    Ok(Prepared { last: scan.last, required, cut: Some(cut) })
}

/// Checks what the database recovered against what it had to.
pub(crate) fn confirm(
    places: &Places,
    prepared: &Prepared,
    recovered: Lsn,
) -> Result<(), DirectoryError> {
    let expected = prepared.last.unwrap_or(prepared.required);
    let agrees = prepared.last.is_none_or(|last| last == recovered);
    if recovered >= prepared.required && agrees {
        return Ok(());
    }
    let what = "the database opened without them".to_owned();
    Err(missing_writes(&places.database, recovered, expected, what))
}

fn missing_writes(database: &Path, recovered: Lsn, synced: Lsn, what: String) -> DirectoryError {
    DirectoryError::WritesMissing {
        path: database.to_path_buf(),
        recovered: recovered.0,
        synced: synced.0,
        what,
    }
}

/// The first thing that a database has and this one has not.
fn missing_file(database: &Path, scan: &Scan) -> Option<&'static str> {
    let missing = NEEDED.into_iter().find(|name| !database.join(name).exists());
    missing.or((scan.journal_count == 0).then_some("0.jnl"))
}

/// A database that lacks a needed file was either never finished, and then holds nothing that
/// anybody was told of, or lost it.
fn begin_anew(
    database: &Path,
    missing: &str,
    scan: &Scan,
    required: Lsn,
) -> Result<Prepared, DirectoryError> {
    if required > Lsn(0) || scan.last.is_some() {
        let what = format!("its file `{missing}` is gone");
        let known = required.max(scan.last.unwrap_or_default());
        return Err(missing_writes(database, Lsn(0), known, what));
    }
    empty(database).map_err(DirectoryError::io("emptying", database))?;
    Ok(Prepared { last: None, required, cut: None })
}

fn empty(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    sync_directory(directory)
}

/// Makes room for one more copy.
fn drop_oldest_copies(directory: &Path) -> io::Result<()> {
    let mut copies = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        copies.push((entry.metadata()?.modified()?, entry.path()));
    }
    copies.sort_unstable();
    let surplus = (copies.len() + 1).saturating_sub(COPIES_MAX);
    copies.iter().take(surplus).try_for_each(|(_, path)| fs::remove_file(path))
}

/// Copies the tail of a journal aside, synced, and only then cuts it off.
fn cut_off(places: &Places, damage: &Damage) -> io::Result<Cut> {
    create_directory(&places.cut)?;
    drop_oldest_copies(&places.cut)?;
    let journal = damage.path.file_name().map(|name| name.to_string_lossy().into_owned());
    let journal = journal.unwrap_or_default();
    let copy =
        places.cut.join(format!("start-{}-{journal}-from-{}", places.start.0, damage.offset));
    let bytes = damage.end - damage.offset;
    let mut source = File::open(&damage.path)?;
    source.seek(SeekFrom::Start(damage.offset))?;
    let mut target =
        OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&copy)?;
    io::copy(&mut source.take(bytes), &mut target)?;
    target.flush()?;
    target.sync_all()?;
    sync_directory(&places.cut)?;
    let file = OpenOptions::new().write(true).open(&damage.path)?;
    file.set_len(damage.offset)?;
    file.sync_all()?;
    Ok(Cut { copy, bytes })
}

/// Links every file but the journals. fjall replaces its files and never writes into one.
pub(crate) fn link_tables(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            link_tables(&source, &target)?;
        } else if entry.file_name() == "lock" {
            fs::File::create(&target)?;
        } else if source.extension().is_none_or(|extension| extension != "jnl") {
            fs::hard_link(&source, &target)?;
        }
    }
    Ok(())
}
