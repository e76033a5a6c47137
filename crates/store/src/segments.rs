//! The files of the log: preallocated segments, and the list that says which there are.
//!
//! A segment is written full of zeros and synced before it gets its name, and keeps its length and
//! its blocks for good: a sync after a write to it moves data alone. The list is replaced whole
//! after each new segment, so one that is gone is missed.

use crate::access::FILE_MODE;
use crate::files::{seal, sync_directory, unseal, write_atomically};
use crate::group::{Header, PAGE_BYTES};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The name of the list.
pub(crate) const LIST: &str = "segments.toml";
/// Zeros are written, and synced, in pieces of so many bytes: others use the disk too.
const PIECE_BYTES: u64 = 1 << 20;
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

impl Segment {
    /// Makes the next segment of a log, with the header of its first use, and puts it on the list.
    /// Between pieces it asks whether to go on; nothing comes of it if not, or if it fails.
    pub(crate) fn create(
        log: &Path,
        list: &mut List,
        header: Header,
        mut may_go_on: impl FnMut() -> bool,
    ) -> io::Result<Option<Segment>> {
        let number = list.count;
        let new = log.join("new.segment");
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(FILE_MODE).open(&new)?;
        let zeros = vec![0; usize::try_from(PIECE_BYTES).expect("a piece is small")];
        let mut at = 0;
        while at < list.bytes {
            if !may_go_on() {
                fs::remove_file(&new)?;
                return Ok(None);
            }
            let piece = PIECE_BYTES.min(list.bytes - at);
            let written = file.write_all_at(&zeros[..piece as usize], at);
            if let Err(error) = written.and_then(|()| file.sync_data()) {
                // What was taken for it is given back.
                drop(fs::remove_file(&new));
                return Err(error);
            }
            at += piece;
        }
        file.write_all_at(&header.encode(), 0)?;
        file.sync_all()?;
        fs::rename(&new, path_of(log, number))?;
        sync_directory(log)?;
        let more = List { count: number + 1, ..*list };
        more.write(log)?;
        *list = more;
        Ok(Some(Segment(file)))
    }

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
        assert_eq!(List::read(place.path()).expect("read"), None);
        let mut list = List { count: 0, bytes: 3 * PIECE_BYTES / 2 };
        let mut pieces = 0;
        let stopped = Segment::create(place.path(), &mut list, HEADER, || {
            pieces += 1;
            pieces < 2
        });
        assert!(stopped.expect("no error").is_none(), "it was told to stop");
        assert_eq!(fs::read_dir(place.path()).expect("readable").count(), 0, "nothing is left");
        for number in 0..2 {
            let made = Segment::create(place.path(), &mut list, HEADER, || true);
            assert!(made.expect("created").is_some());
            let bytes = fs::read(path_of(place.path(), number)).expect("readable");
            assert_eq!(bytes.len() as u64, list.bytes);
            assert_eq!(Header::decode(&bytes), Some(HEADER));
            assert!(bytes[PAGE_BYTES..].iter().all(|byte| *byte == 0));
        }
        assert_eq!(List::read(place.path()).expect("read"), Some(list));
        assert_eq!(list.count, 2);
    }

    #[test]
    fn a_damaged_list_is_refused() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let list = List { count: 2, bytes: 1 << 20 };
        list.write(place.path()).expect("written");
        let whole = fs::read(place.path().join(LIST)).expect("readable");
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            fs::write(place.path().join(LIST), &bytes).expect("written");
            let error = List::read(place.path()).expect_err("refused");
            assert_eq!(error.kind(), ErrorKind::InvalidData, "byte {at}");
        }
        List { count: 2, bytes: 12 }.write(place.path()).expect("written");
        assert!(List::read(place.path()).is_err(), "no segment is so short");
    }
}
