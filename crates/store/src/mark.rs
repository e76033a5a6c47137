//! The mark: the highest batch known to be synced, in a file of its own.
//!
//! The database opens silently with less than it was given after some kinds of damage. The mark is
//! what it must reach. It is rewritten at most once a second, also when nothing more is
//! written, and on a clean stop: it lags what was synced by a second, and never runs ahead of it.
//!
//! The file has two slots in pages of their own, written in turn: a torn write of one leaves the
//! other, which is a second older. A slot is `magic (8) | count (8) | lsn (8) | checksum (8)`,
//! big-endian.

use quorate_kernel::ids::Lsn;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"QMARK\0\0\x01";
const SLOT_BYTES: usize = 32;
const SLOT_STRIDE: u64 = 4096;

/// The open mark file.
#[derive(Debug)]
pub(crate) struct Mark {
    file: File,
    count: u64,
    lsn: Lsn,
}

impl Mark {
    /// Writes the mark file of a new directory, synced; the caller syncs the directory.
    pub(crate) fn create(path: &Path) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        file.set_len(2 * SLOT_STRIDE)?;
        for count in 0..2 {
            file.write_all_at(&encode(count, Lsn(0)), count * SLOT_STRIDE)?;
        }
        file.sync_all()
    }

    /// Opens the mark file. `InvalidData` means that neither slot is whole.
    pub(crate) fn open(path: &Path) -> io::Result<Mark> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut newest = None;
        for slot in 0..2 {
            let mut bytes = [0; SLOT_BYTES];
            if file.read_exact_at(&mut bytes, slot * SLOT_STRIDE).is_ok() {
                newest = newest.max(decode(&bytes));
            }
        }
        match newest {
            Some((count, lsn)) => Ok(Mark { file, count, lsn }),
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "neither slot is whole")),
        }
    }

    /// The highest batch known to be synced.
    pub(crate) fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Raises the mark, synced. The slot that holds the present mark is left alone.
    pub(crate) fn advance(&mut self, lsn: Lsn) -> io::Result<()> {
        assert!(lsn >= self.lsn, "the mark {} never falls, not to {}", self.lsn.0, lsn.0);
        let count = self.count + 1;
        self.file.write_all_at(&encode(count, lsn), count % 2 * SLOT_STRIDE)?;
        self.file.sync_data()?;
        self.count = count;
        self.lsn = lsn;
        Ok(())
    }
}

fn encode(count: u64, lsn: Lsn) -> [u8; SLOT_BYTES] {
    let mut slot = [0; SLOT_BYTES];
    slot[..8].copy_from_slice(MAGIC);
    slot[8..16].copy_from_slice(&count.to_be_bytes());
    slot[16..24].copy_from_slice(&lsn.0.to_be_bytes());
    let checksum = xxh3_64(&slot[..24]);
    slot[24..].copy_from_slice(&checksum.to_be_bytes());
    slot
}

fn decode(slot: &[u8; SLOT_BYTES]) -> Option<(u64, Lsn)> {
    let word = |at: usize| {
        let bytes = slot[at..at + 8].try_into().expect("eight bytes were sliced");
        u64::from_be_bytes(bytes)
    };
    let whole = slot[..8] == *MAGIC && word(24) == xxh3_64(&slot[..24]);
    whole.then(|| (word(8), Lsn(word(16))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_slot_leaves_the_mark_before() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("mark");
        Mark::create(&path).expect("created");
        let mut mark = Mark::open(&path).expect("opened");
        assert_eq!(mark.lsn(), Lsn(0));
        for lsn in [5, 9, 9, 12] {
            mark.advance(Lsn(lsn)).expect("advanced");
            assert_eq!(Mark::open(&path).expect("opened").lsn(), Lsn(lsn));
        }
        let newest = mark.count % 2 * SLOT_STRIDE;
        for at in 0..SLOT_BYTES as u64 {
            let mut byte = [0];
            mark.file.read_exact_at(&mut byte, newest + at).expect("read");
            mark.file.write_all_at(&[byte[0] ^ 0x40], newest + at).expect("damaged");
            assert_eq!(Mark::open(&path).expect("opened").lsn(), Lsn(9), "byte {at}");
            mark.file.write_all_at(&byte, newest + at).expect("restored");
        }
        mark.file.set_len(0).expect("emptied");
        let error = Mark::open(&path).expect_err("no slot is left");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
