//! The cluster's secret as text: what a host must know to be let in, and the file that keeps it.

use quorate_store::text::{bytes, of_bytes};
use quorate_store::{Secret, create_directory};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;
use thiserror::Error;

/// The file beside a new cluster's directories, and in a data directory once the secret was
/// changed.
pub const FILE_NAME: &str = "cluster.secret";
/// The file beside it that is locked while it is changed, and tells that it was.
const LOCK_NAME: &str = "cluster.secret.lock";
/// The most secrets that a host accepts at one time.
pub const SECRETS_MAX: usize = 2;

/// Why a file of secrets was not read or written.
#[derive(Debug, Error)]
#[error("{}: {source}", path.display())]
pub struct SecretError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    pub source: std::io::Error,
}

/// The secret as 64 hexadecimal digits.
#[must_use]
pub fn text(secret: &Secret) -> String {
    of_bytes(&secret.0)
}

/// Reads a secret from text; white space around it does not count.
#[must_use]
pub fn parse(text: &str) -> Option<Secret> {
    bytes(text.trim(), "secret").ok().map(Secret)
}

/// Reads the secrets of a file's text: one a line; empty lines and those that begin with `#` do not
/// count.
fn parse_all(text: &str) -> Option<Vec<Secret>> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let secrets: Vec<Secret> = lines.map(parse).collect::<Option<_>>()?;
    (1..=SECRETS_MAX).contains(&secrets.len()).then_some(secrets)
}

/// Writes the secrets that a cluster accepts into their place, which is made if it is not there, in
/// place of those there may be: after a crash it has wholly the old ones or wholly the new ones.
/// Only the owner may read them. Who changes what it has read there [`lock`]s them.
///
/// # Errors
/// [`SecretError`]; the file is as it was, unless the disk failed.
pub fn write(place: &Path, secrets: &[Secret]) -> Result<(), SecretError> {
    let path = prepared(place)?;
    let write = || {
        draft(&path, secrets)?.persist(&path).map_err(|error| error.error)?;
        sync_place_of(&path)
    };
    write().map_err(|source| SecretError { path: path.clone(), source })
}

/// Writes a new file of secrets, which only the owner may read.
///
/// # Errors
/// [`SecretError`]; what is there already stays as it is, whenever it came.
pub fn write_new(path: &Path, secrets: &[Secret]) -> Result<(), SecretError> {
    let write = || {
        draft(path, secrets)?.persist_noclobber(path).map_err(|error| error.error)?;
        sync_place_of(path)
    };
    write().map_err(|source| SecretError { path: path.to_owned(), source })
}

/// Waits until nobody else changes the secrets of a data directory, and keeps others from it until
/// the file is dropped.
///
/// # Errors
/// [`SecretError`]
pub fn lock(place: &Path) -> Result<File, SecretError> {
    let path = place.join(LOCK_NAME);
    let lock = || {
        let lock = open(&path)?;
        lock.lock()?;
        Ok(lock)
    };
    lock().map_err(|source| SecretError { path: path.clone(), source })
}

/// Writes the secrets of a data directory, and notes that they are no longer those of its birth.
///
/// # Errors
/// [`SecretError`]; the secrets are as they were, unless the disk failed.
pub fn change(place: &Path, lock: &mut File, secrets: &[Secret]) -> Result<(), SecretError> {
    write(place, secrets)?;
    note_change(place, lock)
}

/// Notes that a data directory has a file of secrets, if it has one.
///
/// # Errors
/// [`SecretError`]
pub fn note_change(place: &Path, lock: &mut File) -> Result<(), SecretError> {
    let path = place.join(LOCK_NAME);
    let mut note = || {
        // What was noted stays: a crash in the middle must not take it back.
        if lock.metadata()?.len() == 0 && place.join(FILE_NAME).exists() {
            writeln!(lock, "{FILE_NAME} was written")?;
            lock.sync_all()?;
            sync_place_of(&path)?;
        }
        Ok(())
    };
    note().map_err(|source| SecretError { path: path.clone(), source })
}

/// Whether the secrets of a data directory were ever changed, as far as anybody has noted.
///
/// # Errors
/// [`SecretError`]; nobody can say.
pub fn was_changed(place: &Path) -> Result<bool, SecretError> {
    let path = place.join(LOCK_NAME);
    match std::fs::metadata(&path) {
        Ok(note) => Ok(note.len() > 0),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(source) => Err(SecretError { path, source }),
    }
}

/// What is said of secrets that were changed and whose file is gone.
#[must_use]
pub fn gone(path: PathBuf) -> SecretError {
    let text = "it is gone, and the secret was changed since the host was made: put it back, from \
                another host if need be";
    SecretError { path, source: std::io::Error::new(ErrorKind::NotFound, text) }
}

/// The secret of a cluster whose directories are not all written: its draft beside it is the same
/// file by another name, and the next cluster made there may write over both.
#[must_use = "until it is ended the secret counts for nothing"]
#[derive(Debug)]
pub struct Begun {
    draft: PathBuf,
    /// Locked while the cluster is made.
    _lock: File,
}

impl Begun {
    /// Writes the secret of a new cluster into its place, which is made if it is not there.
    ///
    /// # Errors
    /// [`SecretError`]; one that is there stays, if it is not what an interrupted call left behind:
    /// it may be all that is left of another cluster's.
    pub fn begin(place: &Path, first: &Secret) -> Result<Begun, SecretError> {
        let path = prepared(place)?;
        let draft = draft_of(&path);
        let begin = || {
            if path.exists() && !draft.exists() {
                return Err(in_use());
            }
            let mut lock = open(&draft)?;
            lock.try_lock().map_err(|_| in_use())?;
            if path.exists() {
                let (one, other) = (lock.metadata()?, std::fs::metadata(&path)?);
                if (one.dev(), one.ino()) != (other.dev(), other.ino()) {
                    return Err(in_use());
                }
                std::fs::remove_file(&path)?;
            }
            fill(&mut lock, std::slice::from_ref(first))?;
            // A link takes the place of nothing.
            std::fs::hard_link(&draft, &path).map_err(|error| match error.kind() {
                ErrorKind::AlreadyExists => in_use(),
                _ => error,
            })?;
            sync_place_of(&path)?;
            Ok(lock)
        };
        let lock = begin().map_err(|source| SecretError { path: path.clone(), source })?;
        Ok(Begun { draft, _lock: lock })
    }

    /// All directories are written.
    ///
    /// # Errors
    /// [`SecretError`]
    pub fn end(self) -> Result<(), SecretError> {
        let removed = std::fs::remove_file(&self.draft).and_then(|()| sync_place_of(&self.draft));
        removed.map_err(|source| SecretError { path: self.draft, source })
    }
}

fn in_use() -> std::io::Error {
    let text = "it is there already, the secret of a cluster; write the new cluster elsewhere, or \
                move this file away first";
    std::io::Error::new(ErrorKind::AlreadyExists, text)
}

/// The file of secrets of a place, which is made if it is not there.
fn prepared(place: &Path) -> Result<PathBuf, SecretError> {
    let path = place.join(FILE_NAME);
    match create_directory(place) {
        Ok(()) => Ok(path),
        Err(source) => Err(SecretError { path, source }),
    }
}

/// Where a cluster that is begun keeps its secret, too.
fn draft_of(path: &Path) -> PathBuf {
    path.with_extension("secret.begun")
}

/// Opens a file that only the owner may read, whatever it holds.
fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Secrets in a file that is nobody else's, beside the one that they are for.
fn draft(path: &Path, secrets: &[Secret]) -> std::io::Result<NamedTempFile> {
    let mut draft = tempfile::Builder::new().prefix(".secret-").tempfile_in(place_of(path))?;
    fill(draft.as_file_mut(), secrets)?;
    Ok(draft)
}

fn fill(draft: &mut File, secrets: &[Secret]) -> std::io::Result<()> {
    assert!((1..=SECRETS_MAX).contains(&secrets.len()), "a host accepts one secret or two");
    draft.set_len(0)?;
    for secret in secrets {
        writeln!(draft, "{}", text(secret))?;
    }
    draft.sync_all()
}

fn place_of(path: &Path) -> &Path {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    parent.unwrap_or(Path::new("."))
}

fn sync_place_of(path: &Path) -> std::io::Result<()> {
    File::open(place_of(path))?.sync_all()
}

/// Reads the secrets of a file: one, or two while a cluster changes its secret.
///
/// # Errors
/// [`SecretError`] when it cannot be read, or holds no secret.
pub fn read(path: &Path) -> Result<Vec<Secret>, SecretError> {
    let failed = |source| SecretError { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    parse_all(&text).ok_or_else(|| {
        let what = "it holds no cluster secret; expected 64 hexadecimal digits, or two such lines \
                    while the secret is changed";
        failed(std::io::Error::new(ErrorKind::InvalidData, what))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_secret_reads_what_it_prints() {
        let secret = Secret(std::array::from_fn(|index| index as u8 * 7));
        assert_eq!(parse(&format!(" {}\n", text(&secret))), Some(secret));
        assert_eq!(parse("7"), None);
    }

    #[test]
    fn what_was_begun_gives_way_and_a_cluster_does_not() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join(FILE_NAME);
        let [dead, first, second] = [1, 2, 3].map(|byte| Secret([byte; 32]));
        drop(Begun::begin(place.path(), &dead).expect("an empty place"));
        let begun = Begun::begin(place.path(), &first).expect("the one before did not end");
        assert_eq!(read(&path).expect("written"), [first]);
        Begun::begin(place.path(), &second).expect_err("it is being made");
        begun.end().expect("removed");
        Begun::begin(place.path(), &second).expect_err("it was made");
        // What a change of secrets left behind is no cluster that was begun.
        for left in [&[first][..], &[first, second]] {
            fill(&mut open(&draft_of(&path)).expect("a place"), left).expect("a place");
            Begun::begin(place.path(), &second).expect_err("it was made");
        }
        assert_eq!(read(&path).expect("as it was"), [first]);
        write(place.path(), &[first, second]).expect("a place");
        assert_eq!(read(&path).expect("changed"), [first, second]);
    }

    #[test]
    fn what_is_written_takes_no_other_file() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join(FILE_NAME);
        let [old, new] = [7, 9].map(|byte| Secret([byte; 32]));
        // What an operator may have called his own, and what others can read.
        let own = place.path().join("cluster.secret.new");
        std::fs::write(&own, text(&new)).expect("a place");
        std::fs::set_permissions(&own, Permissions::from_mode(0o666)).expect("ours");
        write(place.path(), &[old]).expect("a place");
        write(place.path(), &[old, new]).expect("a place");
        assert_eq!(read(&own).expect("as it was"), [new]);
        assert_eq!(read(&path).expect("changed"), [old, new]);
        assert_eq!(std::fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o600);
        let refused = write_new(&path, &[new]).expect_err("it is there");
        assert_eq!(refused.source.kind(), ErrorKind::AlreadyExists);
        assert_eq!(read(&path).expect("as it was"), [old, new]);
        let names = std::fs::read_dir(place.path()).expect("there").count();
        assert_eq!(names, 2, "the secrets and the operator's file");
    }

    #[test]
    fn of_two_who_change_secrets_one_waits() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let first = lock(place.path()).expect("nobody has it");
        let again = open(&place.path().join(LOCK_NAME)).expect("it is there");
        assert!(again.try_lock().is_err(), "the first one has it");
        drop(first);
        again.try_lock().expect("the first one has ended");
    }

    #[test]
    fn a_file_holds_one_secret_or_two() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let path = place.path().join(FILE_NAME);
        let (old, new) = (Secret([7; 32]), Secret([9; 32]));
        for secrets in [&[old][..], &[old, new]] {
            write(place.path(), secrets).expect("a place");
            assert_eq!(read(&path).expect("what was written"), secrets);
        }
        let lines = |count: usize| format!("{}\n", text(&old)).repeat(count);
        for (bad, why) in [(lines(0), "none"), (lines(3), "three"), (lines(1) + "x", "no secret")] {
            std::fs::write(&path, bad).expect("a place");
            assert!(read(&path).is_err(), "{why}");
        }
        std::fs::write(&path, format!("# new\n\n  {}\r\n", text(&new))).expect("a place");
        assert_eq!(read(&path).expect("notes do not count"), [new]);
    }
}
