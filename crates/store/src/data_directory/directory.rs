//! The data directory of a host: one process at a time, one node for its whole life.
//!
//! | name | what it holds |
//! |---|---|
//! | `lock` | locked while a host runs; holds its process id |
//! | `format` | the version of this layout |
//! | `identity.toml` | [`Identity`], sealed with a checksum |
//! | `start.toml` | the start counter and how the last start ended, sealed with a checksum |
//! | `mark` | the highest batch known to be synced, and what peers were seen to have synced |
//! | `log/` | the log: its segments, and the list of them |
//! | `db/` | the database with the tables |
//! | `cut/` | copies of torn tails that were cut off the log |
//!
//! `init` writes the identity last: a directory without one was in use only if others say so.

mod found;
mod held;

use self::found::{check_format, occupant, read_identity};
pub use self::held::{HeldDirectory, check_unused, hold};
use crate::data_directory::access::{self, FILE_MODE, create_directory};
use crate::data_directory::files::write_atomically;
use crate::data_directory::mark::Mark;
use crate::data_directory::start::{START, StartText, boot, raise, read_start, start_text};
use crate::error::DirectoryError;
use crate::identity::Identity;
use quorate_kernel::ids::{ClusterId, Incarnation, Lsn, Start};
use quorate_kernel::sighting::Past;
use quorate_kernel::storage::Durability;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The layout this build writes, and the only one it reads. Format 1 had one fixed group for each
/// keyspace and no places on a ring. Format 2 had no catalog: a build of then would serve keyspaces
/// that were dropped since. Format 3 kept the contexts of causal keyspaces within their objects.
/// Format 4 remembered nothing of what others had seen of it, nor it of others. Format 5 had a form
/// of its own for keyspaces. Format 7 had decrees of its catalog that said either of two things.
/// Format 8 called partitions and tokens by one name, also in the settings of keyspaces. Format 9
/// had no log of its own: what was not in tables was in the database's journals. A build of format
/// 10 would not know where logs begin. In format 12 replicated logs had no lives. In 13 nodes
/// of `epidemic` did not know what they never had. In 14 each dot of `causal` had its own record.
pub const FORMAT_VERSION: u32 = 15;

const LOCK: &str = "lock";
const FORMAT: &str = "format";
const IDENTITY: &str = "identity.toml";
const MARK: &str = "mark";
const DATABASE: &str = "db";
const SEGMENTS: &str = "log";
const CUT: &str = "cut";
/// What a new host writes before its identity. A directory with nothing else is as good as empty,
const BEFORE_IDENTITY: [&str; 8] =
    [LOCK, FORMAT, START, MARK, DATABASE, SEGMENTS, "start.new", "identity.new"];
/// also with its settings, which its operator may put there before anything else.
const SETTINGS: [&str; 2] = ["quorate.toml", "quorate.toml.new"];
const FORMAT_TEXT: &str = "quorate data directory format ";

/// Writes the data directory of a new node, synced.
///
/// # Errors
/// [`DirectoryError::NotEmpty`] when something is there, [`DirectoryError::Locked`] when another
/// process creates it; then nothing was changed. [`DirectoryError::Io`] when the disk refuses; what
/// an interrupted call leaves behind is taken over by the next one.
pub fn create(path: &Path, identity: &Identity) -> Result<(), DirectoryError> {
    check_empty(path)?;
    create_directory(path).map_err(DirectoryError::io("creating", path))?;
    let _held = hold(path)?;
    // Somebody else may have been here just before.
    check_empty(path)?;
    write_new(path, identity).map_err(DirectoryError::io("creating", path))
}

/// Checks that [`create`] would find an empty place, or none.
///
/// # Errors
/// [`DirectoryError::NotEmpty`] when something is there. Nothing was changed.
pub fn check_empty(path: &Path) -> Result<(), DirectoryError> {
    match occupant(path)? {
        Some(found) => Err(DirectoryError::NotEmpty { path: path.to_path_buf(), found }),
        None => Ok(()),
    }
}

/// Reads the identity of a directory that may be in use, without opening it.
///
/// # Errors
/// As [`Directory::open`], for the identity alone.
pub fn identity_of(path: &Path) -> Result<Identity, DirectoryError> {
    check_format(path)?;
    read_identity(path)
}

/// An open data directory. The lock is released when it is dropped or the process ends.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    identity: Identity,
    start: StartText,
    past: Past,
    opened_to_others: u64,
    /// The system's memory may have what an earlier start wrote and the disk has not.
    pub(crate) memory_may_differ: bool,
    _held: HeldDirectory,
}

impl Directory {
    /// Opens a directory to serve from it. When this returns, the start counter is raised and
    /// synced: no incarnation is ever used twice.
    ///
    /// # Errors
    /// A [`DirectoryError`] that says what to do. Nothing but the lock file was changed, unless
    /// writing the start counter itself failed.
    pub fn open(path: &Path, expected: Option<ClusterId>) -> Result<Directory, DirectoryError> {
        Directory::open_at(path, expected, false)
    }

    /// The same for a directory that was moved or copied after its host was killed. Nobody can tell
    /// from it alone whether its host ran on elsewhere; what was not synced counts as lost, and
    /// [`Directory::is_moved`] holds until the node speaks. Also where no failure could be noted.
    ///
    /// # Errors
    /// As [`Directory::open`], but for [`DirectoryError::Copied`].
    pub fn open_moved(
        path: &Path,
        expected: Option<ClusterId>,
    ) -> Result<Directory, DirectoryError> {
        Directory::open_at(path, expected, true)
    }

    fn open_at(
        path: &Path,
        expected: Option<ClusterId>,
        is_moved: bool,
    ) -> Result<Directory, DirectoryError> {
        check_format(path)?;
        let mut directory = Directory::begin(hold(path)?, expected, is_moved)?;
        directory.opened_to_others =
            close_to_others(path).map_err(DirectoryError::io("closing to others", path))?;
        directory.write_start()?;
        Ok(directory)
    }

    /// Judges a directory as [`Directory::open`] does, and what its next start is to be. That is
    /// not written yet: nothing was changed.
    fn begin(
        held: HeldDirectory,
        expected: Option<ClusterId>,
        is_moved: bool,
    ) -> Result<Directory, DirectoryError> {
        let path = held.path.clone();
        let identity = read_identity(&path)?;
        if let Some(expected) = expected.filter(|expected| *expected != identity.cluster) {
            return Err(DirectoryError::ForeignCluster { path, found: identity.cluster, expected });
        }
        let needed =
            [(START, "start counter"), (MARK, "mark"), (DATABASE, "database"), (SEGMENTS, "log")];
        for (name, missing) in needed {
            if !exists(&path.join(name))? {
                return Err(DirectoryError::Wiped { path, missing });
            }
        }
        let (last, place) = (read_start(&path)?, place(&path)?);
        if last.is_copy(&place) && !is_moved {
            return Err(DirectoryError::Copied { path, start: last.starts });
        }
        let damaged = || DirectoryError::damaged(&path.join(START), "its past makes no sense");
        let past = last.past().ok_or_else(damaged)?;
        let boot = boot();
        Ok(Directory {
            identity,
            start: raise(&last, &boot, &place, is_moved),
            past,
            opened_to_others: 0,
            memory_may_differ: last.memory_may_differ(&boot),
            path,
            _held: held,
        })
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

    /// Whether this start, or one before it in which the node did not speak, was ordered to take
    /// the directory as one that was moved: every other host must agree before the node speaks.
    #[must_use]
    pub fn is_moved(&self) -> bool {
        self.start.is_moved
    }

    /// Whether all that earlier starts handed to the system is there: the machine ended none of
    /// them, or what that lost was refilled since.
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

    /// How many of its files and directories others could read or enter until it was opened.
    #[must_use]
    pub fn opened_to_others(&self) -> u64 {
        self.opened_to_others
    }

    /// The starts in which the node spoke to others.
    #[must_use]
    pub fn past(&self) -> &Past {
        &self.past
    }

    /// Notes how far the store came when it was opened: that is what is left of earlier starts. To
    /// be called before anything is written to it.
    ///
    /// # Errors
    /// [`DirectoryError::Io`]; the note may be there or not, and nothing may be written.
    pub fn recovered(&mut self, recovered: Lsn) -> Result<(), DirectoryError> {
        if self.past.end(recovered) {
            self.start.set_past(&self.past);
            self.write_start()?;
        }
        Ok(())
    }

    /// Notes that the node is about to speak to others in this start, as this run of it. It has
    /// met them: if the directory was moved, it is at home from now on.
    ///
    /// # Errors
    /// [`DirectoryError::Io`]; the note may be there or not, and the node may not speak.
    pub fn speak(&mut self, run: u64) -> Result<(), DirectoryError> {
        self.past.begin(self.start(), run);
        self.start.is_moved = false;
        self.start.set_past(&self.past);
        self.write_start()
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

    /// Notes that the host stops after everything was synced. The log must have finished before,
    /// and nothing is written to it any more.
    ///
    /// # Errors
    /// [`DirectoryError::Io`]; the note may be there or not.
    pub fn note_clean(&mut self) -> Result<(), DirectoryError> {
        self.start.stopped_cleanly = true;
        self.write_start()
    }

    /// The same, and releases the directory: the log must be closed, and every reader dropped.
    ///
    /// # Errors
    /// [`DirectoryError::Io`]; the note may be there or not.
    pub fn stop_cleanly(mut self) -> Result<(), DirectoryError> {
        self.note_clean()
    }

    /// Notes that the host stops because its disk failed. After a failed sync nobody knows what the
    /// disk holds of what was written, though the machine runs on. The directory is not released.
    ///
    /// # Errors
    /// [`DirectoryError::Io`]; the note may be there or not.
    pub fn note_failure(&mut self) -> Result<(), DirectoryError> {
        self.start.unsynced_survived = false;
        self.start.stopped_cleanly = false;
        self.write_start()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join(SEGMENTS)
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

fn write_new(path: &Path, identity: &Identity) -> io::Result<()> {
    create_directory(&path.join(DATABASE))?;
    create_directory(&path.join(SEGMENTS))?;
    // The directory may have been there before.
    access::close_directory(path)?;
    let mut format = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(FILE_MODE)
        .open(path.join(FORMAT))?;
    writeln!(format, "{FORMAT_TEXT}{FORMAT_VERSION}")?;
    format.sync_all()?;
    Mark::create(&path.join(MARK))?;
    write_atomically(&path.join(START), start_text(&StartText::first()).as_bytes())?;
    write_atomically(&path.join(IDENTITY), identity.to_text().as_bytes())
}

/// Takes what hosts have written, and the directory itself, away from everybody but its owner. What
/// the operator has put there is the operator's.
fn close_to_others(path: &Path) -> io::Result<u64> {
    let mut count = access::close_directory(path)?;
    for name in [LOCK, FORMAT, IDENTITY, START, MARK, DATABASE, SEGMENTS, CUT] {
        count += access::close(&path.join(name))?;
    }
    Ok(count)
}

/// The inodes of the files that are written once and never replaced.
fn place(path: &Path) -> Result<String, DirectoryError> {
    let inode = |name: &str| {
        let file = path.join(name);
        let found = fs::metadata(&file).map_err(DirectoryError::io("reading", &file))?;
        Ok::<u64, DirectoryError>(found.ino())
    };
    Ok(format!("{:x} {:x}", inode(IDENTITY)?, inode(MARK)?))
}

fn exists(path: &Path) -> Result<bool, DirectoryError> {
    path.try_exists().map_err(DirectoryError::io("reading", path))
}
