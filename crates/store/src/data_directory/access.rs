//! Who may read a data directory: its owner alone. It holds the cluster's secret and all data.

use crate::data_directory::files::sync_directory;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

/// Its owner alone lists, enters and changes it.
pub(crate) const DIRECTORY_MODE: u32 = 0o700;
/// Its owner alone reads and writes it.
pub(crate) const FILE_MODE: u32 = 0o600;

/// Makes a directory, with those above it, that only its owner can enter. The names of all that
/// were made are synced, and that of the directory itself also if it was there.
///
/// # Errors
/// It cannot be made, or the disk failed; some of it may be there.
pub fn create_directory(path: &Path) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let is_made = |one: &&Path| !one.exists();
    // The one above the directory, and above each that is not there yet.
    let count = 1 + path.ancestors().skip(1).take_while(is_made).count();
    let above: Vec<&Path> = path.ancestors().skip(1).take(count).collect();
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(&path)?;
    above.into_iter().try_for_each(sync_directory)
}

/// Takes a file, or a directory with all that is in it, away from everybody but its owner. Returns
/// how many were open to others; what is not there is left out.
pub(crate) fn close(path: &Path) -> io::Result<u64> {
    let metadata = match fs::symlink_metadata(path) {
        // The host that ran before may have left something that it takes away.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(0),
        metadata => metadata?,
    };
    if metadata.is_symlink() {
        return Ok(0);
    }
    let mut count = close_one(path, metadata.permissions().mode(), metadata.is_dir())?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            count += close(&entry?.path())?;
        }
    }
    Ok(count)
}

/// The same for a directory alone, whatever else is in it.
pub(crate) fn close_directory(path: &Path) -> io::Result<u64> {
    close_one(path, fs::metadata(path)?.permissions().mode(), true)
}

fn close_one(path: &Path, mode: u32, is_directory: bool) -> io::Result<u64> {
    let allowed = if is_directory { DIRECTORY_MODE } else { FILE_MODE };
    if mode & 0o077 == 0 {
        return Ok(0);
    }
    fs::set_permissions(path, Permissions::from_mode(allowed))?;
    Ok(1)
}
