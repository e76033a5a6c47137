//! Why a data directory was refused.

use quorate_kernel::ids::ClusterId;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A data directory could not be created or opened. Unless a variant says otherwise, nothing in
/// it was changed.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// There is no data directory yet, or an interrupted `init` left a part of one.
    #[error("{path} is not a data directory yet: create it with `quorate init`")]
    NotInitialised {
        /// The directory.
        path: PathBuf,
    },
    /// A new data directory needs an empty place.
    #[error("{path} is not empty (it holds `{found}`): choose another place or empty it first")]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of the things found there.
        found: String,
    },
    /// Another host runs on this directory.
    #[error("{path} is in use by {holder}: stop that host or choose another directory")]
    Locked {
        /// The directory.
        path: PathBuf,
        /// The process that holds the lock, in words.
        holder: String,
    },
    /// The directory was written by a newer build.
    #[error(
        "{path} has format {found}, this build knows formats up to {newest}: start it with a \
         build that knows format {found}"
    )]
    NewerFormat {
        /// The directory.
        path: PathBuf,
        /// The format found.
        found: u32,
        /// The newest format this build knows.
        newest: u32,
    },
    /// The directory was written by a build older than the oldest whose layout is still read;
    /// nothing in it was changed.
    #[error(
        "{path} has format {found}, this build reads formats from {oldest} on: start it with the \
         build that wrote it, and copy its data to a new cluster"
    )]
    OlderFormat {
        /// The directory.
        path: PathBuf,
        /// The format found.
        found: u32,
        /// The oldest format this build reads.
        oldest: u32,
    },
    /// The directory belongs to another cluster.
    #[error(
        "{path} belongs to cluster {found}, not to {expected}: point this host at its own \
         directory"
    )]
    ForeignCluster {
        /// The directory.
        path: PathBuf,
        /// The cluster it belongs to.
        found: ClusterId,
        /// The cluster that was asked for.
        expected: ClusterId,
    },
    /// A part of a directory that was in use is gone.
    #[error(
        "{path} was wiped in part: its {missing} is gone, so this node may have forgotten what it \
         promised. Nothing was changed; restore the directory as it was. Only \
         `quorate rejoin` may give this host a new node id, to join again by state transfer, and \
         never a majority of a group at once"
    )]
    Wiped {
        /// The directory.
        path: PathBuf,
        /// What is gone.
        missing: &'static str,
    },
    /// The directory lies elsewhere than when its host ran, and was not closed.
    #[error(
        "{path} is a copy that was made while its host ran, or was moved to another file system \
         after its host was killed: it lies elsewhere than in start {start}, which was not closed. \
         It may lack what its node acknowledged since. Nothing was changed. Start the original if \
         there is one; else `quorate rejoin` gives this host a new node id, to join again by state \
         transfer. If the original is gone, and was not started since, `quorate server --moved` \
         takes it as it is, once every other host agrees"
    )]
    Copied {
        /// The directory.
        path: PathBuf,
        /// The start in which it was copied.
        start: u32,
    },
    /// A file does not hold what was written to it.
    #[error(
        "{path} is damaged: {what}. Nothing was changed; keep the directory and restore the file \
         as it was. Only `quorate rejoin` may give this host a new node id, to join again by state \
         transfer, and never a majority of a group at once"
    )]
    Damaged {
        /// The file or directory.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Batches that were synced, so perhaps acknowledged, are not there any more.
    #[error(
        "{path} has lost writes: batches up to {synced} were synced, only those up to {recovered} \
         are there ({} missing): {what}. Keep the directory as it is. Only `quorate rejoin` \
         may give this host a new node id, to join again by state transfer, and never a majority \
         of a group at once",
        synced.saturating_sub(*recovered)
    )]
    WritesMissing {
        /// The database in the directory.
        path: PathBuf,
        /// The last batch that can be recovered.
        recovered: u64,
        /// The last batch known to have been synced.
        synced: u64,
        /// How it was noticed.
        what: String,
    },
    /// The operating system refused; what was being written may be there or not.
    #[error("{doing} {path} failed: {source}")]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl DirectoryError {
    /// Whether the disk may have lost what was written to it: the system tells nobody a second time
    /// of a write in the background that has failed.
    #[must_use]
    pub fn may_have_lost(&self) -> bool {
        let DirectoryError::Io { source, .. } = self else { return false };
        Errno::from_io_error(source) == Some(Errno::IO)
    }

    /// Wraps an error of the operating system: `.map_err(DirectoryError::io("reading", path))`.
    pub(crate) fn io(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> DirectoryError + use<> {
        let path = path.to_path_buf();
        move |source| DirectoryError::Io { path, doing, source }
    }

    /// Damage to a file.
    pub(crate) fn damaged(path: &Path, what: impl Into<String>) -> DirectoryError {
        DirectoryError::Damaged { path: path.to_path_buf(), what: what.into() }
    }
}

#[test]
fn only_who_may_have_lost_something_says_so() {
    let of = |error| DirectoryError::io("syncing", Path::new("mark"))(error);
    assert!(of(Errno::IO.into()).may_have_lost());
    for errno in [Errno::MFILE, Errno::ACCESS, Errno::NOENT, Errno::NOMEM, Errno::NOSPC] {
        assert!(!of(errno.into()).may_have_lost(), "{errno}");
    }
    assert!(!of(io::Error::other("beginning to write tables of the log: …")).may_have_lost());
    assert!(!DirectoryError::damaged(Path::new("mark"), "it is cut off").may_have_lost());
}
