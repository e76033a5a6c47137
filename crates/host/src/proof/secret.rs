//! The cluster's secret as text: what a host must know to be let in, and the file that keeps it.

use quorate_store::text::{bytes, of_bytes};
use quorate_store::{Secret, create_directory};
use std::fs::OpenOptions;
use std::io::Write;
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

/// Writes the secrets of a new cluster into their place, which is made if it is not there. Only the
/// owner may read them.
///
/// # Errors
/// [`SecretError`]; the file may be there or not.
pub fn write(place: &Path, secrets: &[Secret]) -> Result<(), SecretError> {
    let path = place.join(FILE_NAME);
    create_directory(place).map_err(|source| SecretError { path: path.clone(), source })?;
    write_to(&path, secrets)
}

/// Writes a file of secrets in the place of the one there may be: after a crash it is wholly the
/// old one or wholly the new one.
///
/// # Errors
/// [`SecretError`]; the file is as it was, unless the disk failed.
pub fn write_to(path: &Path, secrets: &[Secret]) -> Result<(), SecretError> {
    assert!((1..=SECRETS_MAX).contains(&secrets.len()), "a host accepts one secret or two");
    let new = path.with_extension("secret.new");
    let write = || {
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        for secret in secrets {
            writeln!(file, "{}", text(secret))?;
        }
        file.sync_all()?;
        std::fs::rename(&new, path)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        std::fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
    };
    write().map_err(|source| SecretError { path: path.to_owned(), source })
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
        failed(std::io::Error::new(std::io::ErrorKind::InvalidData, what))
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
