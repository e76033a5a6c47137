//! The lock of a data directory, and a look at one that leaves it as it was.

use super::found::check_format;
use super::{Directory, LOCK, exists};
use crate::data_directory::access::FILE_MODE;
use crate::data_directory::files::write_atomically;
use crate::data_directory::start::START;
use crate::error::DirectoryError;
use crate::identity::Identity;
use crate::store::{self, Opened, Options};
use crate::wal::log::machine_clock;
use crate::wal::segments::LIST;
use quorate_kernel::error::Fatal;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// A data directory that no host can run on, wherever it is moved, until this is dropped.
#[derive(Debug)]
pub struct HeldDirectory {
    pub(super) path: PathBuf,
    lock: File,
}

/// Keeps hosts off a directory.
///
/// # Errors
/// [`DirectoryError::Locked`] when one runs there. Nothing but the lock file was changed.
pub fn hold(path: &Path) -> Result<HeldDirectory, DirectoryError> {
    Ok(HeldDirectory { path: path.to_path_buf(), lock: lock(path)? })
}

/// Checks that no host runs on a directory at this moment.
///
/// # Errors
/// [`DirectoryError::Locked`] when one does. Nothing but the lock file was changed.
pub fn check_unused(path: &Path) -> Result<(), DirectoryError> {
    hold(path).map(drop)
}

impl HeldDirectory {
    /// Opens the directory and its store as a host would, and closes both. That is no start: if all
    /// is well, `start.toml` is what it was, and the settings of a store that was never begun stay
    /// open.
    ///
    /// # Errors
    /// What a host would be told. Unless something else still uses the store, `start.toml` may say
    /// then what it says after a start that failed.
    pub fn look(&self) -> Result<Identity, DirectoryError> {
        check_format(&self.path)?;
        let lock = self.lock.try_clone().map_err(DirectoryError::io("locking", &self.path))?;
        let again = HeldDirectory { path: self.path.clone(), lock };
        let mut directory = Directory::begin(again, None, false)?;
        // Without a log nothing is cut off, and it is not said how long its segments are.
        if !exists(&directory.log().join(LIST))? {
            store::find(&directory)?;
            return Ok(directory.identity);
        }
        let file = self.path.join(START);
        let before = fs::read(&file).map_err(DirectoryError::io("reading", &file))?;
        // Whoever is killed from here on has left a store that was not closed; a tail that is cut
        // off may have failed to reach the disk.
        directory.write_start()?;
        let looked = open_and_close(&directory);
        if matches!(&looked, Ok(()) | Err(DirectoryError::Locked { .. })) {
            write_atomically(&file, &before).map_err(DirectoryError::io("writing", &file))?;
        }
        looked?;
        Ok(directory.identity)
    }
}

fn open_and_close(directory: &Directory) -> Result<(), DirectoryError> {
    let opened = store::open(directory, &Options::default(), machine_clock())?;
    let Opened { log, reader, .. } = opened;
    log.close().map_err(|fatal| match fatal {
        Fatal::Disk(text) => DirectoryError::io("closing", &directory.path)(io::Error::other(text)),
        fatal => DirectoryError::damaged(&directory.path, fatal.to_string()),
    })?;
    drop(reader);
    Ok(())
}

fn lock(path: &Path) -> Result<File, DirectoryError> {
    let name = path.join(LOCK);
    let failed = || DirectoryError::io("locking", &name);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .open(&name)
        .map_err(failed())?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = match fs::read_to_string(&name) {
                Ok(text) if !text.trim().is_empty() => format!("process {}", text.trim()),
                _ => "another process".to_owned(),
            };
            return Err(DirectoryError::Locked { path: path.to_path_buf(), holder });
        }
        Err(TryLockError::Error(error)) => return Err(failed()(error)),
    }
    let pid = std::process::id();
    file.set_len(0).and_then(|()| writeln!(file, "{pid}")).map_err(failed())?;
    Ok(file)
}
