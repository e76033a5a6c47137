//! Nobody's log: the bytes of a group, written into a file full of zeros, and synced.

use crate::record::{RECORD_BYTES, Subject};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of the file, which is used again from its beginning.
const FILE_BYTES: usize = 64 << 20;
const PAGE_BYTES: usize = 4096;

/// A file.
pub struct Bare {
    file: File,
    at: usize,
    pages: Vec<u8>,
}

/// Makes the file, with all its blocks.
pub fn open(directory: &Path) -> Box<dyn Subject> {
    let file = File::create(directory.join("file")).expect("the disk takes it");
    let zeros = vec![0; 1 << 20];
    for at in (0..FILE_BYTES).step_by(zeros.len()) {
        file.write_all_at(&zeros, at as u64).expect("the disk takes it");
    }
    file.sync_all().expect("the disk takes it");
    Box::new(Bare { file, at: 0, pages: Vec::new() })
}

impl Subject for Bare {
    fn write(&mut self, _first: u64, group: &[Vec<u8>], _give_up: Option<u64>) {
        self.pages.clear();
        group.iter().for_each(|record| self.pages.extend_from_slice(record));
        self.pages.resize((group.len() * RECORD_BYTES).next_multiple_of(PAGE_BYTES), 0);
        if self.at + self.pages.len() > FILE_BYTES {
            self.at = 0;
        }
        self.file.write_all_at(&self.pages, self.at as u64).expect("the disk takes it");
        self.file.sync_data().expect("the disk takes it");
        self.at += self.pages.len();
    }

    fn settle(&mut self) {}
}
