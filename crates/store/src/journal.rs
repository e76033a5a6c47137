//! Reading the database's journals before the database does.
//!
//! The database opens silently with a part of its writes when a page of its journal is zeroed or a
//! tag in it is damaged, and cuts the rest off while it does so. This module reads the journals
//! first and changes nothing: it says how far they are whole and what the batches claim. It knows
//! the layout of fjall 3 journals (fjall's `journal/entry.rs`), little-endian:
//!
//! ```text
//! batch   start item* end                zeros up to the end of the file are the clean end
//! start   1 | items u32 | sequence u64
//! item    2 | kind u8 | compression u8 | keyspace u64 | key length u16 | value length u32
//!           | stored length u32 | key | stored value
//! end     3 | xxh3 of the items u64 | "FJL\x03"
//! ```
//!
//! The first item of each batch is the store's own [`BatchNumber`].

use quorate_kernel::ids::Lsn;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64;

/// The key of the [`BatchNumber`]. It sorts below every key of a lane.
pub(crate) const NUMBER_KEY: &[u8] = b"\0";
/// How far the database's own sequence may run ahead of what was noted; its background work draws
/// a few numbers.
const SEQUENCE_SLACK: u64 = 1 << 20;
const PIECE_BYTES: usize = 1 << 20;
const TRAILER: &[u8; 4] = b"FJL\x03";

/// What every batch of the database says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BatchNumber {
    /// The first of the node's batches in it.
    pub(crate) first: Lsn,
    /// The last of the node's batches in it.
    pub(crate) last: Lsn,
    /// The highest batch that was known to be synced when it was written.
    pub(crate) synced: Lsn,
    /// The least sequence number that the database can have given it. The database's checksum
    /// does not cover the sequence number, and one that is too low makes it skip the batch.
    pub(crate) sequence_floor: u64,
}

impl BatchNumber {
    /// Its stored form.
    pub(crate) fn encode(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        let words = [self.first.0, self.last.0, self.synced.0, self.sequence_floor];
        for (slot, word) in bytes.chunks_exact_mut(8).zip(words) {
            slot.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Reads the stored form; nothing when it makes no sense.
    pub(crate) fn decode(bytes: &[u8]) -> Option<BatchNumber> {
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        let word = |at: usize| bytes[at..at + 8].try_into().map(u64::from_be_bytes).ok();
        let number = BatchNumber {
            first: Lsn(word(0)?),
            last: Lsn(word(8)?),
            synced: Lsn(word(16)?),
            sequence_floor: word(24)?,
        };
        let is_sound = number.synced < number.first && number.first <= number.last;
        is_sound.then_some(number)
    }
}

/// How far the journals are whole.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// The last of the node's batches before any damage; nothing when there is no batch.
    pub(crate) last: Option<Lsn>,
    /// The highest batch that any whole batch, on either side of a damage, claims to be synced.
    pub(crate) claimed: Lsn,
    /// The first damage.
    pub(crate) damage: Option<Damage>,
    /// How many journals there are; a database has at least one.
    pub(crate) journal_count: usize,
    sequence: Option<u64>,
}

/// A place where a journal stops being whole.
#[derive(Debug)]
pub(crate) struct Damage {
    /// The journal.
    pub(crate) path: PathBuf,
    /// Where the first batch that is not whole begins.
    pub(crate) offset: u64,
    /// Where the last byte that is not zero ends.
    pub(crate) end: u64,
    /// What is wrong.
    pub(crate) what: &'static str,
    /// Whether it can be the tail of a write that was never finished: the last journal's end.
    pub(crate) may_be_torn: bool,
}

/// Reads all journals of a database.
pub(crate) fn scan(database: &Path) -> io::Result<Scan> {
    let mut scan = Scan::default();
    let journals = journals(database)?;
    scan.journal_count = journals.len();
    for (index, path) in journals.iter().enumerate() {
        let bytes = read_data(path)?;
        scan.read_journal(path, &bytes, index + 1 == journals.len());
    }
    Ok(scan)
}

/// The bytes of a file up to the last that is not zero. Journals are allocated ahead, so most of
/// a young one is a hole, which is read in pieces and never held in memory.
fn read_data(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut end = file.metadata()?.len();
    while end > 0 {
        let at = (end - 1) / PIECE_BYTES as u64 * PIECE_BYTES as u64;
        let length = usize::try_from(end - at).expect("a piece fits into memory");
        file.read_exact_at(&mut piece[..length], at)?;
        if let Some(last) = last_nonzero(&piece[..length]) {
            end = at + last as u64 + 1;
            break;
        }
        end = at;
    }
    let mut bytes = vec![0; usize::try_from(end).map_err(io::Error::other)?];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Where the last byte that is not zero lies. Whole pages are compared first.
fn last_nonzero(bytes: &[u8]) -> Option<usize> {
    const PAGE: [u8; 4096] = [0; 4096];
    let mut end = bytes.len();
    for page in bytes.rchunks(PAGE.len()) {
        if page != &PAGE[..page.len()] {
            let at = end - page.len();
            return page.iter().rposition(|byte| *byte != 0).map(|last| at + last);
        }
        end -= page.len();
    }
    None
}

/// The journals of a database, oldest first.
fn journals(database: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(database)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "jnl") {
            let number = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
            let number = number.ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "a journal's name is not a number")
            })?;
            found.push((number, path));
        }
    }
    found.sort_unstable();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

impl Scan {
    fn read_journal(&mut self, path: &Path, bytes: &[u8], is_newest: bool) {
        let mut at = 0;
        while self.damage.is_none() && at < bytes.len() {
            let fault = match batch_at(bytes, at) {
                Ok(batch) => match self.accept(&batch) {
                    Ok(()) => {
                        at = batch.end;
                        continue;
                    }
                    Err(fault) => fault,
                },
                Err(what) => (what, true),
            };
            self.damage = Some(Damage {
                path: path.to_path_buf(),
                offset: at as u64,
                end: bytes.len() as u64,
                what: fault.0,
                may_be_torn: fault.1 && is_newest,
            });
        }
        // Whole batches behind a damage are lost, but what they know to be synced is not.
        while self.damage.is_some() && at < bytes.len() {
            match batch_at(bytes, at) {
                Ok(batch) => {
                    self.claimed = self.claimed.max(batch.number.synced);
                    at = batch.end;
                }
                Err(_) => at += 1,
            }
        }
    }

    /// Takes the next batch of the chain, or says why it is not, and whether that can be a torn
    /// write.
    fn accept(&mut self, batch: &BatchAt) -> Result<(), (&'static str, bool)> {
        let number = batch.number;
        if self.last.is_some_and(|last| number.first.0 != last.0 + 1) {
            return Err(("batches are missing before this one", false));
        }
        let floor = number.sequence_floor.max(self.sequence.map_or(0, |last| last + 1));
        if !(floor..number.sequence_floor.saturating_add(SEQUENCE_SLACK)).contains(&batch.sequence)
        {
            return Err(("a batch has the sequence number of another", true));
        }
        self.last = Some(number.last);
        self.claimed = self.claimed.max(number.synced);
        self.sequence = Some(batch.sequence);
        Ok(())
    }
}

/// A whole batch.
struct BatchAt {
    end: usize,
    sequence: u64,
    number: BatchNumber,
}

/// The bytes of a journal from a place on; every take is checked.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], &'static str> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or("a batch is cut off")?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn number(&mut self, length: usize) -> Result<u64, &'static str> {
        let taken = self.take(length)?;
        Ok(taken.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// Reads the batch that begins at `at` and checks all that can be checked of it alone.
fn batch_at(bytes: &[u8], at: usize) -> Result<BatchAt, &'static str> {
    let mut cursor = Cursor { bytes, at };
    if cursor.number(1)? != 1 {
        return Err("no batch begins where one should");
    }
    let count = cursor.number(4)?;
    let sequence = cursor.number(8)?;
    let items_at = cursor.at;
    let (key, value) = item(&mut cursor)?;
    let number = if key == NUMBER_KEY { BatchNumber::decode(value) } else { None };
    let number = number.ok_or("a batch has no number")?;
    if count == 0 {
        return Err("a batch has no items");
    }
    for _ in 1..count {
        item(&mut cursor)?;
    }
    let items = &bytes[items_at..cursor.at];
    if cursor.number(1)? != 3 {
        return Err("a batch has no end");
    }
    if cursor.number(8)? != xxh3_64(items) {
        return Err("the checksum of a batch does not match its bytes");
    }
    if cursor.take(TRAILER.len())? != TRAILER {
        return Err("the end of a batch is damaged");
    }
    Ok(BatchAt { end: cursor.at, sequence, number })
}

fn item<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a [u8], &'a [u8]), &'static str> {
    if cursor.number(1)? != 2 {
        return Err("a batch has fewer items than it says");
    }
    cursor.take(10)?; // The kind, the compression and the keyspace: the checksum covers them.
    let key_length = cursor.number(2)? as usize;
    cursor.take(4)?; // The length before compression.
    let stored_length = cursor.number(4)? as usize;
    let key = cursor.take(key_length)?;
    Ok((key, cursor.take(stored_length)?))
}
