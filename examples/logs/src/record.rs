//! What both logs write, and how they are told to.

use std::path::Path;

/// Bytes of a record.
pub const RECORD_BYTES: usize = 1024;
/// How many of the newest records are kept.
pub const KEPT: u64 = 4096;
/// Records are given up each time that so many were written.
const TRIM_EVERY: u64 = 1024;

/// A log that is written to.
pub trait Subject {
    /// Writes the records from `first` on as one group, and returns when they are synced. With
    /// `give_up`, the group also gives up all records before that.
    fn write(&mut self, first: u64, group: &[Vec<u8>], give_up: Option<u64>);

    /// Waits until nothing is done in the background any more.
    fn settle(&mut self);
}

/// How a log is opened.
pub struct Kind {
    /// Its name in the table.
    pub name: &'static str,
    /// Opens it in a directory that is empty.
    pub open: fn(&Path) -> Box<dyn Subject>,
}

/// Makes groups of records, numbered from 1 on.
pub struct Source {
    group: Vec<Vec<u8>>,
    next: u64,
}

impl Source {
    /// Groups of so many records.
    pub fn new(next: u64, records: usize) -> Source {
        Source { group: vec![payload(); records], next }
    }

    /// The number of the next record.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The next group: its first number, its records, and what it gives up.
    pub fn group(&mut self) -> (u64, &[Vec<u8>], Option<u64>) {
        let first = self.next;
        for record in &mut self.group {
            record[..8].copy_from_slice(&self.next.to_be_bytes());
            self.next += 1;
        }
        let is_due = first / TRIM_EVERY != self.next / TRIM_EVERY;
        let give_up = (is_due && self.next > KEPT).then(|| self.next - KEPT);
        (first, &self.group, give_up)
    }
}

/// A record without its number. It cannot be compressed, and is always the same.
fn payload() -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut word = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_be_bytes()
    };
    (0..RECORD_BYTES / 8).flat_map(|_| word()).collect()
}

/// The record of a number.
pub fn record(number: u64) -> Vec<u8> {
    let mut record = payload();
    record[..8].copy_from_slice(&number.to_be_bytes());
    record
}
