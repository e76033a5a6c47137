//! The mark: the highest batch known to be synced, and what peers were seen to have synced.
//!
//! The database opens silently with less than it was given after some kinds of damage. The mark is
//! what it must reach. It is rewritten at most once a second, also when nothing more is
//! written, and on a clean stop: it lags what was synced by a second, and never runs ahead of it.
//!
//! The file has two slots, written in turn: a torn write of one leaves the other, which is a second
//! older. A slot is `magic (8) | count (8) | lsn (8) | how many sightings (8) | each: node (8),
//! start (4), run (8), synced (8) | checksum (8)`, big-endian.

use crate::data_directory::access::FILE_MODE;
use quorate_kernel::ids::{Lsn, NodeId, Start};
use quorate_kernel::limits::HOSTS_MAX;
use quorate_kernel::sighting::Sighting;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"QMARK\0\0\x02";
const HEAD_BYTES: usize = 32;
const SIGHTING_BYTES: usize = 28;
const CHECKSUM_BYTES: usize = 8;
const SLOT_STRIDE: u64 = 128 * 1024;
const _: () = assert!(
    HEAD_BYTES + HOSTS_MAX * SIGHTING_BYTES + CHECKSUM_BYTES <= SLOT_STRIDE as usize,
    "a slot has room for every host"
);

/// The open mark file.
#[derive(Debug)]
pub(crate) struct Mark {
    file: File,
    count: u64,
    lsn: Lsn,
    seen: Vec<Sighting>,
}

impl Mark {
    /// Writes the mark file of a new directory, synced; the caller syncs the directory.
    pub(crate) fn create(path: &Path) -> io::Result<()> {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(FILE_MODE)
            .open(path)?;
        file.set_len(2 * SLOT_STRIDE)?;
        for count in 0..2 {
            file.write_all_at(&encode(count, Lsn(0), &[]), count * SLOT_STRIDE)?;
        }
        file.sync_all()
    }

    /// Opens the mark file. `InvalidData` means that neither slot is whole.
    pub(crate) fn open(path: &Path) -> io::Result<Mark> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        // Who was killed while it wrote a slot has not synced it, and nobody may write it again.
        file.sync_data()?;
        let slots = (0..2).filter_map(|slot| read_slot(&file, slot * SLOT_STRIDE));
        match slots.max_by_key(|(count, ..)| *count) {
            Some((count, lsn, seen)) => Ok(Mark { file, count, lsn, seen }),
            None => Err(io::Error::new(io::ErrorKind::InvalidData, "neither slot is whole")),
        }
    }

    /// The highest batch known to be synced.
    pub(crate) fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// What peers were seen to have synced.
    pub(crate) fn seen(&self) -> &[Sighting] {
        &self.seen
    }

    /// Raises the mark, synced. The slot that holds the present mark is left alone.
    pub(crate) fn advance(&mut self, lsn: Lsn, seen: &[Sighting]) -> io::Result<()> {
        assert!(seen.len() <= HOSTS_MAX, "hosts are limited");
        assert!(lsn >= self.lsn, "the mark {} never falls, not to {}", self.lsn.0, lsn.0);
        let count = self.count + 1;
        self.file.write_all_at(&encode(count, lsn, seen), count % 2 * SLOT_STRIDE)?;
        self.file.sync_data()?;
        self.count = count;
        self.lsn = lsn;
        self.seen = seen.to_vec();
        Ok(())
    }
}

fn encode(count: u64, lsn: Lsn, seen: &[Sighting]) -> Vec<u8> {
    let mut slot = Vec::with_capacity(HEAD_BYTES + seen.len() * SIGHTING_BYTES + CHECKSUM_BYTES);
    slot.extend(MAGIC);
    for word in [count, lsn.0, seen.len() as u64] {
        slot.extend(word.to_be_bytes());
    }
    for one in seen {
        slot.extend(one.node.0.to_be_bytes());
        slot.extend(one.start.0.to_be_bytes());
        slot.extend(one.run.to_be_bytes());
        slot.extend(one.synced.0.to_be_bytes());
    }
    let checksum = xxh3_64(&slot);
    slot.extend(checksum.to_be_bytes());
    slot
}

/// A big-endian word of a slot.
fn word(slot: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(slot[at..at + 8].try_into().expect("eight bytes were sliced"))
}

/// Count, batch and sightings of a slot, if it is whole.
fn read_slot(file: &File, at: u64) -> Option<(u64, Lsn, Vec<Sighting>)> {
    let mut head = [0; HEAD_BYTES];
    file.read_exact_at(&mut head, at).ok()?;
    let length = usize::try_from(word(&head, 24)).ok().filter(|length| *length <= HOSTS_MAX)?;
    if head[..8] != *MAGIC {
        return None;
    }
    let end = HEAD_BYTES + length * SIGHTING_BYTES;
    let mut slot = vec![0; end + CHECKSUM_BYTES];
    file.read_exact_at(&mut slot, at).ok()?;
    if word(&slot, end) != xxh3_64(&slot[..end]) {
        return None;
    }
    let sighting = |bytes: &[u8]| Sighting {
        node: NodeId(word(bytes, 0)),
        start: Start((word(bytes, 4) & u64::from(u32::MAX)) as u32),
        run: word(bytes, 12),
        synced: Lsn(word(bytes, 20)),
    };
    let seen = slot[HEAD_BYTES..end].chunks_exact(SIGHTING_BYTES).map(sighting).collect();
    Some((word(&slot, 8), Lsn(word(&slot, 16)), seen))
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
        let seen = |synced| Sighting {
            node: NodeId(u64::MAX - 1),
            start: Start(u32::MAX - 1),
            run: 1 << 63 | 5,
            synced: Lsn(synced),
        };
        for (lsn, count) in [(5, 0), (9, 2), (9, 1), (12, 3)] {
            let all = vec![seen(lsn); count];
            mark.advance(Lsn(lsn), &all).expect("advanced");
            let read = Mark::open(&path).expect("opened");
            assert_eq!((read.lsn(), read.seen()), (Lsn(lsn), &all[..]));
        }
        let newest = mark.count % 2 * SLOT_STRIDE;
        let bytes = HEAD_BYTES + 3 * SIGHTING_BYTES + CHECKSUM_BYTES;
        for at in 0..bytes as u64 {
            let mut byte = [0];
            mark.file.read_exact_at(&mut byte, newest + at).expect("read");
            mark.file.write_all_at(&[byte[0] ^ 0x40], newest + at).expect("damaged");
            let read = Mark::open(&path).expect("opened");
            assert_eq!((read.lsn(), read.seen()), (Lsn(9), &[seen(9)][..]), "byte {at}");
            mark.file.write_all_at(&byte, newest + at).expect("restored");
        }
        mark.file.set_len(0).expect("emptied");
        let error = Mark::open(&path).expect_err("no slot is left");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
