//! What the database has on disk, looked at before it is opened: it believes its lists of tables,
//! and removes what none of them names.
//!
//! A keyspace of the database is a directory below `keyspaces`, named by its number; 0 is the
//! database's own, with the names of the others. Its file `current` has the number of its newest
//! list of tables, and that list's checksum, which the database writes and never compares: one bit
//! of a list would drop a table, or let an old one win over all newer ones.

use crate::error::DirectoryError;
use quorate_kernel::mutant;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_128;

/// The directory of all keyspaces.
pub(crate) const KEYSPACES: &str = "keyspaces";
/// The database's own keyspace.
pub(crate) const OWN: &str = "0";
/// Where a keyspace keeps the number of its newest list, in the first eight bytes.
pub(crate) const NEWEST_LIST: &str = "current";
/// Where a keyspace has its tables.
const TABLES: &str = "tables";
/// The kind of checksum that all lists have: 128-bit XXH3.
const XXH3: u8 = 0;

/// The directories of keyspaces, the database's own among them.
pub(crate) fn keyspaces(database: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(database.join(KEYSPACES)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// The directories of keyspaces that were made whole, but for the database's own.
pub(crate) fn finished(database: &Path) -> io::Result<Vec<PathBuf>> {
    let is_other = |path: &PathBuf| path.file_name().is_some_and(|name| name != OWN);
    let mut found = keyspaces(database)?;
    found.retain(|path| is_other(path) && path.join(NEWEST_LIST).exists());
    Ok(found)
}

/// A table of a keyspace that is not the database's own, if there is one.
pub(crate) fn any_table(database: &Path) -> io::Result<Option<PathBuf>> {
    for keyspace in keyspaces(database)?.iter().filter(|path| !path.ends_with(OWN)) {
        let first = match fs::read_dir(keyspace.join(TABLES)) {
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            entries => entries?.next().transpose()?,
        };
        if let Some(entry) = first {
            return Ok(Some(entry.path()));
        }
    }
    Ok(None)
}

/// Compares the newest list of tables of each keyspace with its checksum.
pub(crate) fn check(database: &Path) -> Result<(), DirectoryError> {
    let all = keyspaces(database).map_err(DirectoryError::io("reading", database))?;
    all.iter().try_for_each(|keyspace| check_newest(keyspace))
}

fn check_newest(keyspace: &Path) -> Result<(), DirectoryError> {
    let newest = keyspace.join(NEWEST_LIST);
    let stored = match fs::read(&newest) {
        // Whether it is needed was asked before.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        stored => stored.map_err(DirectoryError::io("reading", &newest))?,
    };
    let Some((number, checksum)) = parse(&stored) else {
        return Err(DirectoryError::damaged(&newest, "it does not name a list of tables"));
    };
    let list = keyspace.join(format!("v{number}"));
    let bytes = match fs::read(&list) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(DirectoryError::damaged(&list, "the newest list of tables is gone"));
        }
        bytes => bytes.map_err(DirectoryError::io("reading", &list))?,
    };
    if xxh3_128(&bytes) != checksum && !mutant!("tables_list_believed") {
        let what = "the newest list of tables does not have the checksum that `current` says";
        return Err(DirectoryError::damaged(&list, what));
    }
    Ok(())
}

/// The number and the checksum of the newest list: u64 and u128, little-endian, and the kind.
fn parse(stored: &[u8]) -> Option<(u64, u128)> {
    let (number, rest) = stored.split_first_chunk()?;
    let (checksum, kind) = rest.split_first_chunk()?;
    (kind == [XXH3]).then(|| (u64::from_le_bytes(*number), u128::from_le_bytes(*checksum)))
}
