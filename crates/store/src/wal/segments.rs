//! The files of the log: preallocated segments, and the list that says which there are.
//!
//! A segment is written full of zeros and synced before it gets its name, and keeps its length and
//! its blocks for good: a sync after a write to it moves data alone. Where nobody can wait for
//! that, as in a new directory, its blocks are taken and not written: a sync of its first use says
//! of them that they are. The list is replaced whole after each new segment, so one that is gone is
//! missed.

use crate::data_directory::access::FILE_MODE;
use crate::data_directory::files::{seal, settle, sync_directory, unseal, write_atomically};
use crate::wal::group::{Header, PAGE_BYTES, Salt};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The name of the list.
pub(crate) const LIST: &str = "segments.toml";
/// The name of a segment that is not finished.
const UNFINISHED: &str = "new.segment";
/// Zeros are written, and synced, in pieces of so many bytes: others use the disk too.
pub(crate) const PIECE_BYTES: u64 = 256 << 10;
/// The least bytes of a segment: a header, and a group of one page.
pub(crate) const SEGMENT_BYTES_LEAST: u64 = 4 * PAGE_BYTES as u64;
/// The most bytes of a segment: places within it are counted in 32 bits.
pub(crate) const SEGMENT_BYTES_MOST: u64 = 1 << 30;

/// Which segments a log has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// How many, with the numbers from 0.
    pub(crate) count: u32,
    /// The bytes of each.
    pub(crate) bytes: u64,
    /// What the checksums of groups begin with.
    pub(crate) salt: Salt,
}

/// The next segment while it is made. It gets its name when it is whole, so half of one is never
/// found.
#[derive(Debug)]
pub(crate) struct Making {
    file: File,
    bytes: u64,
    filled: u64,
}

/// A segment that is open for writing.
#[derive(Debug)]
pub(crate) struct Segment(File);

/// The file of a segment.
pub(crate) fn path_of(log: &Path, number: u32) -> PathBuf {
    log.join(format!("{number}.segment"))
}

impl List {
    /// Reads the list of a log; nothing when there is none yet.
    pub(crate) fn read(log: &Path) -> io::Result<Option<List>> {
        let invalid = |what: &str| io::Error::new(ErrorKind::InvalidData, what.to_owned());
        let text = match fs::read_to_string(log.join(LIST)) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text?,
        };
        let body = unseal(&text).map_err(invalid)?;
        let list: List = toml::from_str(body).map_err(|error| invalid(error.message()))?;
        let is_sound = (SEGMENT_BYTES_LEAST..=SEGMENT_BYTES_MOST).contains(&list.bytes)
            && list.bytes.is_multiple_of(PAGE_BYTES as u64);
        if is_sound { Ok(Some(list)) } else { Err(invalid("it makes no sense")) }
    }

    /// Replaces the list of a log, synced.
    pub(crate) fn write(&self, log: &Path) -> io::Result<()> {
        let text = toml::to_string(self).expect("numbers always have a TOML form");
        write_atomically(&log.join(LIST), seal(&text).as_bytes())
    }
}

impl Making {
    /// Begins the next segment of a log, in place of one that was never finished.
    pub(crate) fn begin(log: &Path, bytes: u64) -> io::Result<Making> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(FILE_MODE);
        let file = options.open(log.join(UNFINISHED))?;
        file.set_len(bytes)?;
        Ok(Making { file, bytes, filled: 0 })
    }

    /// How many bytes of it have their blocks.
    pub(crate) fn filled(&self) -> u64 {
        self.filled
    }

    /// Whether all of it has.
    pub(crate) fn is_full(&self) -> bool {
        self.filled == self.bytes
    }

    /// Writes the next piece of zeros, synced: a sync of the log beside it waits for one at most.
    pub(crate) fn fill(&mut self) -> io::Result<()> {
        let piece = PIECE_BYTES.min(self.bytes - self.filled);
        let zeros = vec![0; usize::try_from(piece).expect("a piece is small")];
        self.file.write_all_at(&zeros, self.filled)?;
        self.file.sync_data()?;
        self.filled += piece;
        Ok(())
    }

    /// Takes the blocks of what has none, unwritten: nobody waits for zeros, and the disk may be
    /// full when it comes to them.
    pub(crate) fn reserve(&mut self) -> io::Result<()> {
        let (from, rest) = (self.filled, self.bytes - self.filled);
        let take = || fallocate(&self.file, FallocateFlags::empty(), from, rest);
        match retry_on_intr(take) {
            Err(errno @ (Errno::NOSPC | Errno::DQUOT | Errno::IO)) => Err(errno.into()),
            // A file system that has no such call gives blocks when they are written.
            _ => Ok(()),
        }
    }

    /// Gives it the header of its first use and its name, and puts it on the list.
    pub(crate) fn finish(self, log: &Path, list: &mut List, header: Header) -> io::Result<Segment> {
        let number = list.count;
        assert_eq!(self.bytes, list.bytes, "all segments have one length");
        self.file.write_all_at(&header.encode(), 0)?;
        self.file.sync_all()?;
        fs::rename(log.join(UNFINISHED), path_of(log, number))?;
        sync_directory(log)?;
        let more = List { count: number + 1, ..*list };
        more.write(log)?;
        *list = more;
        Ok(Segment(self.file))
    }
}

/// Gives back what was taken for a segment that was never finished.
pub(crate) fn remove_unfinished(log: &Path) -> io::Result<()> {
    match fs::remove_file(log.join(UNFINISHED)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Sees to it that the disk has what the system's memory has of all segments, synced.
pub(crate) fn settle_all(log: &Path) -> io::Result<()> {
    for entry in fs::read_dir(log)? {
        let path = entry?.path();
        let is_segment = path.extension().is_some_and(|extension| extension == "segment");
        if is_segment && !path.ends_with(UNFINISHED) {
            settle(&path)?;
        }
    }
    Ok(())
}

impl Segment {
    /// Opens a segment that is on the list.
    pub(crate) fn open(log: &Path, number: u32) -> io::Result<Segment> {
        let file = OpenOptions::new().read(true).write(true).open(path_of(log, number))?;
        Ok(Segment(file))
    }

    /// Begins another use of it, synced.
    pub(crate) fn renew(&self, header: Header) -> io::Result<()> {
        self.0.write_all_at(&header.encode(), 0)?;
        self.0.sync_data()
    }

    /// Writes whole pages.
    pub(crate) fn write(&self, pages: &[u8], at: usize) -> io::Result<()> {
        assert!(pages.len().is_multiple_of(PAGE_BYTES), "groups fill their pages");
        assert!(at >= PAGE_BYTES && at.is_multiple_of(PAGE_BYTES), "behind the header, on a page");
        self.0.write_all_at(pages, at as u64)
    }

    /// Makes what was written to it survive a loss of power.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    /// Overwrites a part with zeros, synced.
    pub(crate) fn erase(&self, from: usize, to: usize) -> io::Result<()> {
        self.0.write_all_at(&vec![0; to - from], from as u64)?;
        self.0.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::Lsn;

    const HEADER: Header = Header { generation: 3, covered: Lsn(2) };

    #[test]
    fn a_segment_is_on_the_list_once_it_is_whole() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let log = place.path();
        assert_eq!(List::read(log).expect("read"), None);
        let salt = Salt::draw().expect("drawn");
        let mut list = List { count: 0, bytes: 3 * PIECE_BYTES / 2, salt };
        for number in 0..3 {
            // One that was never finished is nothing.
            Making::begin(log, list.bytes).expect("begun").fill().expect("filled");
            let mut making = Making::begin(log, list.bytes).expect("begun");
            for pieces in 1..=number {
                assert!(!making.is_full() && !path_of(log, number).exists());
                making.fill().expect("filled");
                assert_eq!(making.filled(), list.bytes.min(u64::from(pieces) * PIECE_BYTES));
            }
            assert_eq!(making.is_full(), number == 2);
            making.finish(log, &mut list, HEADER).expect("finished");
            let bytes = fs::read(path_of(log, number)).expect("readable");
            assert_eq!(bytes.len() as u64, list.bytes);
            assert_eq!(Header::decode(&bytes), Some(HEADER));
            assert!(bytes[PAGE_BYTES..].iter().all(|byte| *byte == 0));
            assert_eq!(List::read(log).expect("read"), Some(list));
            assert_eq!(list.count, number + 1);
        }
        Making::begin(log, list.bytes).expect("begun").fill().expect("filled");
        for _ in 0..2 {
            remove_unfinished(log).expect("nothing of it is left");
            assert_eq!(fs::read_dir(log).expect("readable").count(), 4);
        }
    }

    #[test]
    fn a_damaged_list_is_refused() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let list = List { count: 2, bytes: 1 << 20, salt: Salt::default() };
        list.write(place.path()).expect("written");
        let whole = fs::read(place.path().join(LIST)).expect("readable");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(place.path().join(LIST), &bytes).expect("written");
            let error = List::read(place.path()).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::InvalidData, "byte {at}");
        }
        List { bytes: 12, ..list }.write(place.path()).expect("written");
        assert!(List::read(place.path()).is_err(), "no segment is so short");
    }
}
