//! The data directory of a host: one process at a time, one node for its whole life.
//!
//! | name | what it holds |
//! |---|---|
//! | `lock` | locked while a host runs; holds its process id |
//! | `format` | the version of this layout |
//! | `identity.toml` | [`Identity`], sealed with a checksum |
//! | `start.toml` | the start counter and how the last start ended, sealed with a checksum |
//! | `mark` | the highest batch known to be synced |
//! | `db/` | the database |
//! | `cut/` | copies of torn tails that were cut off the database's journal |
//!
//! `init` writes the identity last, so a directory without one was never in use unless something
//! else in it says so.

use crate::error::DirectoryError;
use crate::files::{seal, sync_directory, unseal, write_atomically};
use crate::identity::Identity;
use crate::mark::Mark;
use quorate_kernel::ids::{ClusterId, Incarnation, Start};
use quorate_kernel::storage::Durability;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// The layout this build writes, and the newest it reads.
pub const FORMAT_VERSION: u32 = 1;

const LOCK: &str = "lock";
const FORMAT: &str = "format";
const IDENTITY: &str = "identity.toml";
const START: &str = "start.toml";
const MARK: &str = "mark";
const DATABASE: &str = "db";
const CUT: &str = "cut";
/// What `init` writes before the identity. A directory with nothing else is as good as empty.
const BEFORE_IDENTITY: [&str; 7] =
    [LOCK, FORMAT, START, MARK, DATABASE, "start.new", "identity.new"];
const FORMAT_TEXT: &str = "quorate data directory format ";

/// Writes the data directory of a new node, synced.
///
/// # Errors
/// [`DirectoryError::NotEmpty`] when something is there, [`DirectoryError::Io`] when the disk
/// refuses; what an interrupted call leaves behind is taken over by the next one.
pub fn create(path: &Path, identity: &Identity) -> Result<(), DirectoryError> {
    if let Some(found) = occupant(path)? {
        return Err(DirectoryError::NotEmpty { path: path.to_path_buf(), found });
    }
    write_new(path, identity).map_err(DirectoryError::io("creating", path))
}

/// Reads the identity of a directory that may be in use, without opening it.
///
/// # Errors
/// As [`Directory::open`], for the identity alone.
pub fn identity_of(path: &Path) -> Result<Identity, DirectoryError> {
    check_format(path)?;
    read_identity(path)
}

/// Checks that no host runs on a directory at this moment.
///
/// # Errors
/// [`DirectoryError::Locked`] when one does. Nothing but the lock file was changed.
pub fn check_unused(path: &Path) -> Result<(), DirectoryError> {
    lock(path).map(drop)
}

/// An open data directory. The lock is released when it is dropped or the process ends.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    identity: Identity,
    start: StartText,
    _lock: File,
}

/// The start counter and how the last start ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartText {
    /// How many times the directory was opened to serve.
    starts: u32,
    /// The boot of the machine during the newest start; empty when it cannot be known.
    boot: String,
    /// Whether the newest start ended with everything synced.
    stopped_cleanly: bool,
    /// Whether all that was ever handed to the operating system is still there. It stays false
    /// over restarts until [`Directory::refilled`].
    unsynced_survived: bool,
}

impl Directory {
    /// Opens a directory to serve from it. When this returns, the start counter is raised and
    /// synced: no incarnation is ever used twice.
    ///
    /// # Errors
    /// A [`DirectoryError`] that says what to do. Nothing but the lock file was changed, unless
    /// writing the start counter itself failed.
    pub fn open(path: &Path, expected: Option<ClusterId>) -> Result<Directory, DirectoryError> {
        check_format(path)?;
        let lock = lock(path)?;
        let identity = read_identity(path)?;
        if let Some(expected) = expected.filter(|expected| *expected != identity.cluster) {
            let (path, found) = (path.to_path_buf(), identity.cluster);
            return Err(DirectoryError::ForeignCluster { path, found, expected });
        }
        for (name, missing) in [(START, "start counter"), (MARK, "mark"), (DATABASE, "database")] {
            if !exists(&path.join(name))? {
                return Err(DirectoryError::Wiped { path: path.to_path_buf(), missing });
            }
        }
        let start = raise(&read_start(path)?, &boot());
        let mut directory = Directory { path: path.to_path_buf(), identity, start, _lock: lock };
        directory.write_start()?;
        Ok(directory)
    }

    /// Who the directory is.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Where the directory is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which start this is, from 1.
    #[must_use]
    pub fn start(&self) -> Start {
        Start(self.start.starts)
    }

    /// The node and this start of it.
    #[must_use]
    pub fn incarnation(&self) -> Incarnation {
        Incarnation { node: self.identity.node, start: self.start() }
    }

    /// Whether everything that earlier starts handed to the operating system is still there: none
    /// of them was ended by the machine itself, or what that lost was refilled since.
    #[must_use]
    pub fn unsynced_survived(&self) -> bool {
        self.start.unsynced_survived
    }

    /// Whether a lane of this durability still has all it ever acknowledged. One that has not must
    /// refill from the others before it answers.
    #[must_use]
    pub fn remembers(&self, durability: Durability) -> bool {
        match durability {
            Durability::Sync => true,
            Durability::Periodic { .. } => self.unsynced_survived(),
            Durability::Memory => self.start.starts == 1,
        }
    }

    /// Notes that every periodic lane was refilled and synced, so that the next start need not do
    /// it again.
    ///
    /// # Errors
    /// [`DirectoryError::Io`]; the note may be there or not.
    pub fn refilled(&mut self) -> Result<(), DirectoryError> {
        if !self.start.unsynced_survived {
            self.start.unsynced_survived = true;
            self.write_start()?;
        }
        Ok(())
    }

    /// Notes that the host stopped after everything was synced, and releases the directory. The
    /// log must have been closed before.
    ///
    /// # Errors
    /// [`DirectoryError::Io`]; the note may be there or not.
    pub fn stop_cleanly(mut self) -> Result<(), DirectoryError> {
        self.start.stopped_cleanly = true;
        self.write_start()
    }

    /// Notes that the host stops because its disk failed. After a failed sync nobody knows what the
    /// disk holds of what was written, though the machine runs on.
    ///
    /// # Errors
    /// [`DirectoryError::Io`]; the note may be there or not.
    pub fn stop_failed(mut self) -> Result<(), DirectoryError> {
        self.start.unsynced_survived = false;
        self.write_start()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    pub(crate) fn mark(&self) -> PathBuf {
        self.path.join(MARK)
    }

    pub(crate) fn cut(&self) -> PathBuf {
        self.path.join(CUT)
    }

    fn write_start(&mut self) -> Result<(), DirectoryError> {
        let path = self.path.join(START);
        write_atomically(&path, start_text(&self.start).as_bytes())
            .map_err(DirectoryError::io("writing", &path))
    }
}

/// The next start after the last one, on a machine of this boot.
fn raise(last: &StartText, boot: &str) -> StartText {
    let same_boot = !boot.is_empty() && boot == last.boot;
    let kept = last.starts == 0 || last.stopped_cleanly || same_boot;
    StartText {
        starts: last.starts.checked_add(1).expect("a start a second lasts for 136 years"),
        boot: boot.to_owned(),
        stopped_cleanly: false,
        unsynced_survived: last.unsynced_survived && kept,
    }
}

fn start_text(start: &StartText) -> String {
    seal(&toml::to_string(start).expect("strings, numbers and flags always have a TOML form"))
}

/// The name of something in the directory that `create` must not write over.
fn occupant(path: &Path) -> Result<Option<String>, DirectoryError> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(DirectoryError::io("reading", path)(error)),
    };
    for entry in entries {
        let name = entry.map_err(DirectoryError::io("reading", path))?.file_name();
        let name = name.to_string_lossy().into_owned();
        let is_ours = BEFORE_IDENTITY.contains(&name.as_str());
        if !(is_ours || name == "lost+found") {
            return Ok(Some(name));
        }
    }
    if was_in_use(path)? { Ok(Some(DATABASE.to_owned())) } else { Ok(None) }
}

/// Whether a directory without an identity holds what only a start can have written.
fn was_in_use(path: &Path) -> Result<bool, DirectoryError> {
    let database = path.join(DATABASE);
    let has_data = match fs::read_dir(&database) {
        Ok(mut entries) => entries.next().is_some(),
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(DirectoryError::io("reading", &database)(error)),
    };
    Ok(has_data || read_start(path).is_ok_and(|start| start.starts > 0))
}

fn write_new(path: &Path, identity: &Identity) -> io::Result<()> {
    fs::create_dir_all(path.join(DATABASE))?;
    fs::write(path.join(FORMAT), format!("{FORMAT_TEXT}{FORMAT_VERSION}\n"))?;
    File::open(path.join(FORMAT))?.sync_all()?;
    Mark::create(&path.join(MARK))?;
    let start = StartText {
        starts: 0,
        boot: String::new(),
        stopped_cleanly: false,
        unsynced_survived: true,
    };
    write_atomically(&path.join(START), start_text(&start).as_bytes())?;
    write_atomically(&path.join(IDENTITY), identity.to_text().as_bytes())?;
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_directory(parent),
        _ => sync_directory(Path::new(".")),
    }
}

/// Refuses a directory that is none, was never finished, or has a newer format.
fn check_format(path: &Path) -> Result<(), DirectoryError> {
    let file = path.join(FORMAT);
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Err(absent(path)),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            return Err(DirectoryError::damaged(&file, "it is not text"));
        }
        Err(error) => return Err(DirectoryError::io("reading", &file)(error)),
    };
    let number = text.strip_prefix(FORMAT_TEXT).and_then(|rest| rest.strip_suffix('\n'));
    match number.and_then(|digits| digits.parse::<u32>().ok()) {
        Some(FORMAT_VERSION) => Ok(()),
        Some(found) if found > FORMAT_VERSION => Err(DirectoryError::NewerFormat {
            path: path.to_path_buf(),
            found,
            newest: FORMAT_VERSION,
        }),
        _ => Err(DirectoryError::damaged(&file, "it names no format version")),
    }
}

/// What a directory without a format file is: never initialised, or wiped.
fn absent(path: &Path) -> DirectoryError {
    let has_identity = path.join(IDENTITY).exists();
    match was_in_use(path) {
        Ok(false) if !has_identity => DirectoryError::NotInitialised { path: path.to_path_buf() },
        Ok(_) => DirectoryError::Wiped { path: path.to_path_buf(), missing: "format version" },
        Err(error) => error,
    }
}

fn read_identity(path: &Path) -> Result<Identity, DirectoryError> {
    let file = path.join(IDENTITY);
    match fs::read_to_string(&file) {
        Ok(text) => Identity::from_text(&text).map_err(|what| DirectoryError::damaged(&file, what)),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(if was_in_use(path)? {
            DirectoryError::Wiped { path: path.to_path_buf(), missing: "identity" }
        } else {
            DirectoryError::NotInitialised { path: path.to_path_buf() }
        }),
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            Err(DirectoryError::damaged(&file, "it is not text"))
        }
        Err(error) => Err(DirectoryError::io("reading", &file)(error)),
    }
}

fn read_start(path: &Path) -> Result<StartText, DirectoryError> {
    let file = path.join(START);
    let text = fs::read_to_string(&file).map_err(|error| match error.kind() {
        ErrorKind::InvalidData => DirectoryError::damaged(&file, "it is not text"),
        _ => DirectoryError::io("reading", &file)(error),
    })?;
    let body = unseal(&text).map_err(|what| DirectoryError::damaged(&file, what))?;
    toml::from_str(body).map_err(|error| DirectoryError::damaged(&file, error.message()))
}

fn lock(path: &Path) -> Result<File, DirectoryError> {
    let name = path.join(LOCK);
    let failed = || DirectoryError::io("locking", &name);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
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

fn exists(path: &Path) -> Result<bool, DirectoryError> {
    path.try_exists().map_err(DirectoryError::io("reading", path))
}

/// The id of the machine's present boot, or nothing where the system does not tell.
fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(boot: &str, stopped_cleanly: bool, unsynced_survived: bool) -> StartText {
        StartText { starts: 4, boot: boot.to_owned(), stopped_cleanly, unsynced_survived }
    }

    #[test]
    fn only_an_unclean_stop_of_the_machine_loses_what_was_not_synced() {
        let survived = |last: &StartText, boot| raise(last, boot).unsynced_survived;
        assert!(survived(&ended("a", false, true), "a"), "the process was killed");
        assert!(survived(&ended("a", true, true), "b"), "the machine restarted after a stop");
        assert!(!survived(&ended("a", false, true), "b"), "the machine lost power");
        assert!(!survived(&ended("", false, true), ""), "nothing is known of the boot");
        assert!(!survived(&ended("a", true, false), "a"), "it is remembered until refilled");
        assert_eq!(raise(&ended("a", true, true), "a").starts, 5);
        assert!(!raise(&ended("a", true, true), "a").stopped_cleanly);
    }
}
