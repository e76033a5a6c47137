//! The cluster's secret as text: what a host must know to be let in, and the file that keeps it.

use quorate_store::text::{bytes, of_bytes};
use quorate_store::{Secret, create_directory};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The file beside a new cluster's directories, and in a data directory once the secret was
/// changed.
pub const FILE_NAME: &str = "cluster.secret";
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

/// Writes the secrets that a cluster accepts into their place, which is made if it is not there.
/// Only the owner may read them.
///
/// # Errors
/// [`SecretError`]; the file may be there or not.
pub fn write(place: &Path, secrets: &[Secret]) -> Result<(), SecretError> {
    write_to(&prepared(place)?, secrets)
}

/// Writes the secret of a new cluster into its place, which is made if it is not there.
///
/// # Errors
/// [`SecretError`]; one that is there stays: it may be all that is left of another cluster's.
pub fn write_first(place: &Path, first: &Secret) -> Result<(), SecretError> {
    let path = prepared(place)?;
    let write = || {
        let new = write_beside(&path, std::slice::from_ref(first))?;
        // A link takes the place of nothing.
        let linked = std::fs::hard_link(&new, &path);
        std::fs::remove_file(&new)?;
        linked.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                let text = "it is there already, the secret of a cluster; write the new cluster \
                            elsewhere, or move this file away first";
                std::io::Error::new(ErrorKind::AlreadyExists, text)
            }
            _ => error,
        })?;
        sync_place_of(&path)
    };
    write().map_err(|source| SecretError { path: path.clone(), source })
}

/// Writes a file of secrets in the place of the one there may be: after a crash it is wholly the
/// old one or wholly the new one.
///
/// # Errors
/// [`SecretError`]; the file is as it was, unless the disk failed.
pub fn write_to(path: &Path, secrets: &[Secret]) -> Result<(), SecretError> {
    let write = || {
        std::fs::rename(write_beside(path, secrets)?, path)?;
        sync_place_of(path)
    };
    write().map_err(|source| SecretError { path: path.to_owned(), source })
}

/// The file of secrets of a place, which is made if it is not there.
fn prepared(place: &Path) -> Result<PathBuf, SecretError> {
    let path = place.join(FILE_NAME);
    match create_directory(place) {
        Ok(()) => Ok(path),
        Err(source) => Err(SecretError { path, source }),
    }
}

/// Writes what is to take the place of a file beside it, synced.
fn write_beside(path: &Path, secrets: &[Secret]) -> std::io::Result<PathBuf> {
    assert!((1..=SECRETS_MAX).contains(&secrets.len()), "a host accepts one secret or two");
    let new = path.with_extension("secret.new");
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    for secret in secrets {
        writeln!(file, "{}", text(secret))?;
    }
    file.sync_all()?;
    Ok(new)
}

fn sync_place_of(path: &Path) -> std::io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    std::fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
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

    #[test]
    fn a_secret_reads_what_it_prints() {
        let secret = Secret(std::array::from_fn(|index| index as u8 * 7));
        assert_eq!(parse(&format!(" {}\n", text(&secret))), Some(secret));
        assert_eq!(parse("7"), None);
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
