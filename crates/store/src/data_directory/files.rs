//! Files that are either wholly the old one or wholly the new one after a crash, and files of which
//! the disk may lack what the system's memory has.

use crate::data_directory::access::FILE_MODE;
use quorate_kernel::mutant;
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// The start of the last line of a sealed text.
const SEAL: &str = "# checksum ";
/// What reads past the system's memory are aligned to, and what is written once more at a time.
const PAGE_BYTES: usize = 4096;
/// How much is compared at a time.
const PIECE_BYTES: usize = 1 << 20;

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

/// Syncs a file of whole pages, and writes pages once more that the system has in its memory and
/// not on disk. After a sync that failed there may be some: Linux counts them as clean, tells
/// nobody again, and answers reads with them until it forgets them. What the disk has is not
/// written to. Where reads cannot pass the system's memory, nothing is written.
pub(crate) fn settle(path: &Path) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    if !mutant!("log_recovered_unsynced") {
        file.sync_data()?;
    }
    let direct = OFlags::DIRECT.bits().cast_signed();
    let disk = match OpenOptions::new().read(true).custom_flags(direct).open(path) {
        Err(error) if error.kind() == ErrorKind::InvalidInput => return Ok(()),
        disk => disk?,
    };
    match settle_with(&file, |piece, at| read_piece(&disk, piece, at)) {
        Ok(0) => Ok(()),
        Ok(_) => file.sync_data(),
        Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
        Err(error) => Err(error),
    }
}

/// Writes pages of a file once more that the disk, read by `read_disk`, does not have, or cannot
/// read: it may take those in another place. Returns how many; an invalid input is handed on.
fn settle_with(
    file: &File,
    mut read_disk: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut here = vec![0; PIECE_BYTES];
    let mut room = vec![0; PIECE_BYTES + PAGE_BYTES];
    let aligned = room.as_ptr().align_offset(PAGE_BYTES);
    let there = &mut room[aligned..aligned + PIECE_BYTES];
    let (mut at, mut written) = (0, 0);
    loop {
        let length = read_piece(file, &mut here, at)?;
        if length == 0 {
            return Ok(written);
        }
        let known = match read_disk(there, at) {
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(error),
            known => known.ok(),
        };
        for from in (0..length).step_by(PAGE_BYTES) {
            let page = from..length.min(from + PAGE_BYTES);
            let known = known.unwrap_or_else(|| {
                let read = read_disk(&mut there[from..from + PAGE_BYTES], at + from as u64);
                read.map_or(0, |count| from + count)
            });
            let is_there = page.end <= known && here[page.clone()] == there[page.clone()];
            if !is_there && !mutant!("memory_is_believed") {
                file.write_all_at(&here[page], at + from as u64)?;
                written += 1;
            }
        }
        at += length as u64;
    }
}

/// Reads until a piece is full or the file ends; how much there is.
fn read_piece(file: &File, piece: &mut [u8], at: u64) -> io::Result<usize> {
    let mut length = 0;
    while length < piece.len() {
        match file.read_at(&mut piece[length..], at + length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length)
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
    use std::io::Seek;

    #[test]
    fn a_page_that_the_disk_cannot_read_is_written_once_more() {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.write_all(&vec![7; PIECE_BYTES + 3 * PAGE_BYTES]).expect("written");
        file.rewind().expect("from the start");
        let has_all = |piece: &mut [u8], at| read_piece(&file, piece, at);
        assert_eq!(settle_with(&file, has_all).expect("settled"), 0);
        let bad = (PIECE_BYTES + PAGE_BYTES) as u64;
        let cannot = |piece: &mut [u8], at: u64| {
            let has_bad = at <= bad && bad < at + piece.len() as u64;
            if has_bad { Err(io::Error::other("bad sector")) } else { read_piece(&file, piece, at) }
        };
        assert_eq!(settle_with(&file, cannot).expect("settled"), 1);
        let lacks_the_end = |piece: &mut [u8], at| {
            let count = read_piece(&file, piece, at)?;
            Ok(if at == 0 { count } else { count.min(PAGE_BYTES) })
        };
        assert_eq!(settle_with(&file, lacks_the_end).expect("settled"), 2);
        let refuses = |_: &mut [u8], _| Err(io::Error::from(ErrorKind::InvalidInput));
        assert!(settle_with(&file, refuses).is_err(), "nothing passes the system's memory");
    }

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
