//! The cluster's secret as text: what a host must show to be let in, and the file that keeps it.

use super::error::ProvisionError;
use quorate_store::Secret;
use quorate_store::text::{bytes, of_bytes};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// The file beside a new cluster's directories.
pub const FILE_NAME: &str = "cluster.secret";

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

/// Whether two secrets are the same, in a time that does not depend on where they differ.
#[must_use]
pub fn is_same(one: &Secret, other: &Secret) -> bool {
    let differences = one.0.iter().zip(&other.0).fold(0, |all, (a, b)| all | (a ^ b));
    std::hint::black_box(differences) == 0
}

/// Writes the secret of a new cluster into its place. Only the owner may read it.
///
/// # Errors
/// [`ProvisionError::Io`]; the file may be there or not.
pub fn write(place: &Path, secret: &Secret) -> Result<(), ProvisionError> {
    let path = place.join(FILE_NAME);
    let write = || {
        std::fs::create_dir_all(place)?;
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&path)?;
        writeln!(file, "{}", text(secret))?;
        file.sync_all()
    };
    write().map_err(|source| ProvisionError::Io { path: path.clone(), source })
}

/// Reads the secret of a file.
///
/// # Errors
/// [`ProvisionError::Io`] when it cannot be read, or holds no secret.
pub fn read(path: &Path) -> Result<Secret, ProvisionError> {
    let failed = |source| ProvisionError::Io { path: path.to_owned(), source };
    let text = std::fs::read_to_string(path).map_err(failed)?;
    parse(&text).ok_or_else(|| {
        let what = "it holds no cluster secret; expected 64 hexadecimal digits";
        failed(std::io::Error::new(std::io::ErrorKind::InvalidData, what))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_reads_what_it_prints_and_differs_in_any_byte() {
        let secret = Secret(std::array::from_fn(|index| index as u8 * 7));
        assert_eq!(parse(&format!(" {}\n", text(&secret))), Some(secret));
        assert!(is_same(&secret, &secret));
        for index in 0..32 {
            let mut other = secret;
            other.0[index] ^= 0x10;
            assert!(!is_same(&secret, &other));
        }
        for bad in ["", "ab", &"g".repeat(64), &"ü".repeat(32)] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
