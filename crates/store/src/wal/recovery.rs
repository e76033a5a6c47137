//! What may be opened, what must be cut off first, and what must be refused.
//!
//! Everything here happens before a file is written to. What was surely synced is the higher of the
//! mark and what any group of the log claims. Damage behind all of that is a torn tail: it is
//! copied aside and erased. Anything else is refused, and the directory stays as it is.

use crate::data_directory::access::{FILE_MODE, create_directory};
use crate::data_directory::files::sync_directory;
use crate::error::DirectoryError;
use crate::tables::backlog::Retired;
use crate::tables::lists;
use crate::wal::chain::{Chain, Damage, Tail};
use crate::wal::segments::{Segment, path_of};
use quorate_kernel::ids::{Lsn, Start};
use quorate_kernel::mutant;
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Files without which the database would quietly begin anew, delete what it has, or, without its
/// own empty journal, count anew what orders its tables: old values would come back.
const NEEDED: [&str; 3] = ["version", "keyspaces/0/current", "0.jnl"];
/// The one of the keyspace. Databases of former builds have another number there.
const NEEDED_OF_KEYSPACE: &str = "keyspaces/1/current";

/// How many cut tails are kept. They hold nothing that anybody was told of, and only help to see
/// what happened.
const COPIES_MAX: usize = 8;

/// A torn tail that was cut off the log: batches that were never synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Where the bytes were copied to.
    pub copy: PathBuf,
    /// How many bytes were cut.
    pub bytes: u64,
}

/// The places recovery works on.
pub(crate) struct Places {
    /// The folder of the storage engine's tables.
    pub(crate) database: PathBuf,
    /// The folder of the log's segments.
    pub(crate) log: PathBuf,
    /// Where cut tails are copied to.
    pub(crate) cut: PathBuf,
    /// The present start, which names the copies.
    pub(crate) start: Start,
}

/// A store that may be opened, and what it must then hold.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The last batch that was surely synced.
    pub(crate) required: Lsn,
    /// What was cut off.
    pub(crate) cut: Option<Cut>,
}

/// Checks the log and cuts a torn tail off.
pub(crate) fn prepare(
    places: &Places,
    mark: Lsn,
    chain: &Chain,
) -> Result<Prepared, DirectoryError> {
    let required = mark.max(chain.claimed).max(chain.covered);
    let reading = || DirectoryError::io("reading", &places.database);
    let missing = missing(&places.database).map_err(reading())?;
    let is_new = required == Lsn(0) && chain.last == Lsn(0) && chain.damage.is_none();
    // The list of segments is written after the database was opened for the first time. Without it
    // that may have ended half way, where nothing is missing and a keyspace has no name yet: the
    // database would remove that, and begin another.
    let is_begun = chain.list.is_some() || mutant!("tables_half_made_kept");
    match missing {
        _ if is_new && !is_begun => {
            if let Some(table) = lists::any_table(&places.database).map_err(reading())? {
                let what = "it is there, but the list of the log's segments is gone";
                return Err(DirectoryError::damaged(&table, what));
            }
            empty(&places.database).map_err(DirectoryError::io("emptying", &places.database))?;
        }
        Some(_) if is_new => {
            // It was never finished, and holds nothing that anybody was told of.
            empty(&places.database).map_err(DirectoryError::io("emptying", &places.database))?;
        }
        Some(missing) => {
            let what = format!("its file `{missing}` is gone");
            let known = required.max(chain.last);
            return Err(missing_writes(&places.database, Lsn(0), known, what));
        }
        None if chain.list.is_none() && chain.damage.is_none() && required > Lsn(0) => {
            let what = "the list of the log's segments is gone".to_owned();
            return Err(missing_writes(&places.log, Lsn(0), required, what));
        }
        None => {}
    }
    let place = match &chain.damage {
        Some(damage) => format!("{} at byte {}", damage.what, damage.offset),
        None => "the log ends early".to_owned(),
    };
    if chain.last < required {
        return Err(missing_writes(&places.log, chain.last, required, place));
    }
    let Some(damage) = &chain.damage else { return Ok(Prepared { required, cut: None }) };
    if !damage.may_be_torn {
        return Err(DirectoryError::damaged(&damage.path, place));
    }
    let cut = cut_off(places, damage).map_err(DirectoryError::io("cutting", &damage.path))?;
    Ok(Prepared { required, cut: Some(cut) })
}

/// Checks what the tables hold against what they must, together with the log.
pub(crate) fn confirm(
    places: &Places,
    prepared: &Prepared,
    chain: &Chain,
    covered: Lsn,
) -> Result<(), DirectoryError> {
    let known = prepared.required.max(chain.last);
    let follows = chain.first.is_none_or(|first| first.0 <= covered.0 + 1);
    if covered >= chain.covered && follows && covered.max(chain.last) >= prepared.required {
        return Ok(());
    }
    let what = "the tables lack batches that the log does not hold any more".to_owned();
    Err(missing_writes(&places.database, covered, known, what))
}

/// Opens the segments of a log. Those of which nothing is needed come first. All are synced: what
/// is recovered must survive a loss of power, and what was cut off must not.
pub(crate) fn open_segments(
    log: &Path,
    chain: &Chain,
    covered: Lsn,
) -> io::Result<VecDeque<Retired>> {
    // A segment may have got its name from who was killed before that was synced.
    sync_directory(log)?;
    let mut needed = VecDeque::new();
    let mut free = VecDeque::new();
    for used in &chain.uses {
        let segment = Segment::open(log, used.number)?;
        if !mutant!("log_recovered_unsynced") {
            segment.sync()?;
        }
        let retired = Retired { segment, last: used.last };
        if used.last <= covered { free.push_back(retired) } else { needed.push_back(retired) }
    }
    free.append(&mut needed);
    Ok(free)
}

/// A file that the database needs and has not.
fn missing(database: &Path) -> io::Result<Option<&'static str>> {
    let missing = NEEDED.into_iter().find(|name| !database.join(name).exists());
    let of_keyspace = lists::finished(database)?.is_empty().then_some(NEEDED_OF_KEYSPACE);
    Ok(missing.or(of_keyspace))
}

fn missing_writes(place: &Path, recovered: Lsn, synced: Lsn, what: String) -> DirectoryError {
    DirectoryError::WritesMissing {
        path: place.to_path_buf(),
        recovered: recovered.0,
        synced: synced.0,
        what,
    }
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

/// Copies the tail of the log aside, synced, and only then erases it.
fn cut_off(places: &Places, damage: &Damage) -> io::Result<Cut> {
    create_directory(&places.cut)?;
    drop_oldest_copies(&places.cut)?;
    let segment = damage.path.file_name().map(|name| name.to_string_lossy().into_owned());
    let segment = segment.unwrap_or_default();
    let copy =
        places.cut.join(format!("start-{}-{segment}-from-{}", places.start.0, damage.offset));
    let mut target =
        OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&copy)?;
    let mut bytes = 0;
    for Tail { number, from, to } in &damage.tails {
        let mut tail = vec![0; to - from];
        File::open(path_of(&places.log, *number))?.read_exact_at(&mut tail, *from as u64)?;
        target.write_all(&tail)?;
        bytes += tail.len() as u64;
    }
    target.sync_all()?;
    sync_directory(&places.cut)?;
    // The last first: whatever is left of it when power is lost is a torn tail again.
    for Tail { number, from, to } in damage.tails.iter().rev() {
        Segment::open(&places.log, *number)?.erase(*from, *to)?;
    }
    Ok(Cut { copy, bytes })
}
