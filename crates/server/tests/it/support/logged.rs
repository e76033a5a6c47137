//! The log in a data directory, as a test finds and damages it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// What groups begin at.
const PAGE: usize = 4096;

/// The newest group of a log.
pub struct Newest {
    /// The segment that it lies in.
    pub segment: PathBuf,
    /// Where it begins.
    pub at: usize,
    /// Where it ends.
    pub end: usize,
    /// The last batch in it.
    pub last: u64,
    head: [u8; 64],
    salt: u64,
}

/// What the checksums of groups begin with.
fn salt(data: &Path) -> u64 {
    let list = fs::read_to_string(data.join("log/segments.toml")).expect("a list of segments");
    let salt = list.lines().find_map(|line| line.strip_prefix("salt = "));
    salt.and_then(|salt| salt.parse().ok()).expect("a log has a salt")
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// What the mark of a directory says was synced, and what was seen of the other nodes.
pub fn marked(data: &Path) -> (u64, Vec<(String, u64)>) {
    let bytes = fs::read(data.join("mark")).expect("a mark");
    let word = |at: usize| word(&bytes, at);
    let newest = [0, bytes.len() / 2].into_iter().max_by_key(|slot| word(slot + 8));
    let slot = newest.expect("there are two");
    let others = (0..word(slot + 24) as usize).map(|one| slot + 32 + 28 * one);
    let others = others.map(|at| (format!("{:016x}", word(at)), word(at + 20)));
    (word(slot + 16), others.collect())
}

/// The head of the group that begins at a page, if one does.
fn head_at(bytes: &[u8], at: usize, salt: u64) -> Option<[u8; 64]> {
    let head: [u8; 64] = bytes[at..at + 64].try_into().expect("a page is longer");
    let checksum = || xxh3_64_with_seed(&head[8..], salt);
    (head[8..12] == *b"QGR\x01" && word(&head, 0) == checksum()).then_some(head)
}

/// Finds the newest group of a host's log.
pub fn newest(data: &Path) -> Newest {
    let (mut newest, salt) = (None::<Newest>, salt(data));
    for entry in fs::read_dir(data.join("log")).expect("there is a log") {
        let segment = entry.expect("an entry").path();
        if segment.extension().is_none_or(|extension| extension != "segment") {
            continue;
        }
        // One that is not finished yet may get its name meanwhile.
        let Ok(bytes) = fs::read(&segment) else { continue };
        for at in (PAGE..bytes.len()).step_by(PAGE) {
            let Some(head) = head_at(&bytes, at, salt) else { continue };
            let last = word(&head, 32);
            if newest.as_ref().is_none_or(|newest| newest.last < last) {
                let length = u32::from_be_bytes(head[12..16].try_into().expect("four bytes"));
                let end = (at + head.len() + length as usize).next_multiple_of(PAGE);
                newest = Some(Newest { segment: segment.clone(), at, end, last, head, salt });
            }
        }
    }
    newest.expect("there are groups")
}

/// Overwrites bytes of a file.
pub fn overwrite(path: &Path, bytes: &[u8], at: usize) {
    let file = File::options().write(true).open(path).expect("the file is there");
    file.write_all_at(bytes, at as u64).expect("the file can be written");
}

impl Newest {
    /// Whether groups of an earlier use of its segment lie behind it.
    pub fn is_before_older(&self) -> bool {
        let bytes = fs::read(&self.segment).expect("the segment is there");
        let behind = (self.end..bytes.len()).step_by(PAGE);
        behind.into_iter().any(|at| {
            let head = head_at(&bytes, at, self.salt);
            head.is_some_and(|head| word(&head, 32) < self.last)
        })
    }

    /// Writes the begin of a group that would follow, and then nothing that belongs to it.
    pub fn tear(&self) {
        let mut head = self.head;
        head[24..32].copy_from_slice(&(self.last + 1).to_be_bytes());
        head[32..40].copy_from_slice(&(self.last + 1).to_be_bytes());
        let checksum = xxh3_64_with_seed(&head[8..], self.salt);
        head[..8].copy_from_slice(&checksum.to_be_bytes());
        let mut torn = head.to_vec();
        torn.extend([0xa5; 700]);
        overwrite(&self.segment, &torn, self.end);
    }

    /// Erases what lies behind the first so many hundredths of the segment's groups.
    pub fn cut(&self, hundredths: usize) {
        let from = (self.at * hundredths / 100).next_multiple_of(PAGE).max(PAGE);
        overwrite(&self.segment, &vec![0; self.end - from], from);
    }
}
