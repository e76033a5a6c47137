//! Small files that are either wholly the old one or wholly the new one after a crash.

use crate::data_directory::access::FILE_MODE;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// The start of the last line of a sealed text.
const SEAL: &str = "# checksum ";

/// Makes the names in a directory survive a loss of power.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Replaces a file by a new one, synced. Only the owner may read it: one of these files holds the
/// cluster's secret.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(FILE_MODE).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    sync_directory(path.parent().unwrap_or(Path::new(".")))
}

/// Appends a line with the checksum of the text.
pub(crate) fn seal(text: &str) -> String {
    format!("{text}{SEAL}{:016x}\n", xxh3_64(text.as_bytes()))
}

/// Checks and removes the line with the checksum.
pub(crate) fn unseal(sealed: &str) -> Result<&str, &'static str> {
    let body = sealed.strip_suffix('\n').ok_or("it is cut off")?;
    let at = body.rfind('\n').map_or(0, |newline| newline + 1);
    let (text, line) = body.split_at(at);
    let found = line.strip_prefix(SEAL).ok_or("its last line is not a checksum")?;
    if found == format!("{:016x}", xxh3_64(text.as_bytes())) {
        Ok(text)
    } else {
        Err("its checksum does not match its text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_text_notices_every_changed_byte() {
        let sealed = seal("a = 1\nb = 2\n");
        assert_eq!(unseal(&sealed), Ok("a = 1\nb = 2\n"));
        for at in 0..sealed.len() {
            let mut bytes = sealed.clone().into_bytes();
            bytes[at] ^= 1;
            let text = String::from_utf8(bytes).expect("a flipped low bit stays ASCII");
            assert!(unseal(&text).is_err(), "byte {at}");
            assert!(unseal(&sealed[..at]).is_err(), "cut at {at}");
        }
    }
}
