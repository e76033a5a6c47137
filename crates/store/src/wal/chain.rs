//! Reading the log at a start: how far it is whole, and what its groups claim. Nothing is changed.
//!
//! Segments are read in the order of their generations, each from its first group on. A group
//! counts if it follows the one before it. Who begins a segment has synced the one before, and its
//! first group says so: a hole with groups of a later segment behind it is never a torn tail.

use crate::wal::group::{Found, HEAD_BYTES, Head, Header, PAGE_BYTES, Salt, look};
use crate::wal::segments::{List, path_of};
use quorate_kernel::ids::Lsn;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// What a log holds.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    /// Which segments there are; nothing if the log was never begun.
    pub(crate) list: Option<List>,
    /// Every batch up to here is in the tables, as the segments' headers say.
    pub(crate) covered: Lsn,
    /// The first of the batches behind that; nothing if there is none.
    pub(crate) first: Option<Lsn>,
    /// The last batch before any damage, or what is covered.
    pub(crate) last: Lsn,
    /// The highest batch that any group, on either side of a damage, says to be synced.
    pub(crate) claimed: Lsn,
    /// The first damage.
    pub(crate) damage: Option<Damage>,
    /// The highest generation there is.
    pub(crate) generation: u64,
    /// The segments, in the order of their use.
    pub(crate) uses: Vec<Use>,
    salt: Salt,
    open: Option<Parts>,
}

/// The present use of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// The segment.
    pub(crate) number: u32,
    /// The number of the use; 0 if its header was torn while it was free.
    pub(crate) generation: u64,
    /// The last batch in it; 0 if there is none.
    pub(crate) last: Lsn,
}

/// A place where the log stops being whole.
#[derive(Debug)]
pub(crate) struct Damage {
    /// The file.
    pub(crate) path: PathBuf,
    /// Where the first group that is not whole begins.
    pub(crate) offset: u64,
    /// What is wrong.
    pub(crate) what: &'static str,
    /// Whether it can be the tail of a write that was never finished.
    pub(crate) may_be_torn: bool,
    /// Segments and parts of them that belong to groups that do not count.
    pub(crate) tails: Vec<Tail>,
}

/// A part of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The segment.
    pub(crate) number: u32,
    /// Where it begins.
    pub(crate) from: usize,
    /// Where it ends.
    pub(crate) to: usize,
}

/// A group of which some parts were read.
#[derive(Debug)]
struct Parts {
    next: Head,
    tails: Vec<Tail>,
    path: PathBuf,
}

/// Reads a log.
pub(crate) fn read(log: &Path) -> io::Result<Chain> {
    let mut chain = Chain::default();
    let list = match List::read(log) {
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            chain.fault(log.join(crate::wal::segments::LIST), 0, "the list of segments is damaged");
            return Ok(chain);
        }
        list => list?,
    };
    let Some(list) = list else { return Ok(chain) };
    chain.list = Some(list);
    chain.salt = list.salt;
    let mut headless = Vec::new();
    for number in 0..list.count {
        match read_header(&path_of(log, number), list.bytes)? {
            Ok(Some(header)) => {
                chain.covered = chain.covered.max(header.covered);
                chain.generation = chain.generation.max(header.generation);
                let generation = header.generation;
                chain.uses.push(Use { number, generation, last: Lsn(0) });
            }
            Ok(None) => headless.push(number),
            Err(what) => {
                chain.fault(path_of(log, number), 0, what);
            }
        }
    }
    chain.last = chain.covered;
    chain.uses.sort_unstable_by_key(|used| used.generation);
    let is_used_twice = |pair: &[Use]| pair[0].generation == pair[1].generation;
    if chain.uses.windows(2).any(is_used_twice) {
        chain.fault(log.to_path_buf(), 0, "two segments have one generation");
    }
    for number in headless {
        chain.read_headless(log, number)?;
    }
    for index in 0..chain.uses.len() {
        let number = chain.uses[index].number;
        let path = path_of(log, number);
        let bytes = fs::read(&path)?;
        chain.read_segment(&path, &bytes, index);
    }
    chain.end();
    Ok(chain)
}

/// The header of a segment, if it is whole; or what is wrong with the file.
fn read_header(path: &Path, bytes: u64) -> io::Result<Result<Option<Header>, &'static str>> {
    use std::os::unix::fs::FileExt;
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(Err("a segment of the log is gone"));
        }
        file => file?,
    };
    if file.metadata()?.len() != bytes {
        return Ok(Err("a segment of the log has another length"));
    }
    let mut page = [0; PAGE_BYTES];
    file.read_exact_at(&mut page, 0)?;
    Ok(Ok(Header::decode(&page)))
}

impl Chain {
    fn fault(&mut self, path: PathBuf, offset: usize, what: &'static str) {
        let offset = offset as u64;
        let tails = Vec::new();
        self.damage.get_or_insert(Damage { path, offset, what, may_be_torn: false, tails });
    }

    /// A header is torn if power was lost while it was written: then nothing in the segment is
    /// needed any more. If anything is, it is damaged.
    fn read_headless(&mut self, log: &Path, number: u32) -> io::Result<()> {
        let path = path_of(log, number);
        let bytes = fs::read(&path)?;
        let heads = (PAGE_BYTES..bytes.len()).step_by(PAGE_BYTES);
        let heads: Vec<Head> =
            heads.filter_map(|at| Head::decode(&bytes[at..], self.salt)).collect();
        self.uses.push(Use { number, generation: 0, last: Lsn(0) });
        self.uses.rotate_right(1);
        self.generation = heads.iter().fold(self.generation, |most, one| most.max(one.generation));
        if heads.iter().any(|head| head.last > self.covered) {
            self.claimed = heads.iter().fold(self.claimed, |most, one| most.max(one.synced));
            self.fault(path, 0, "the header of a segment is damaged");
        }
        Ok(())
    }

    fn read_segment(&mut self, path: &Path, bytes: &[u8], index: usize) {
        let Use { number, generation, .. } = self.uses[index];
        if generation == 0 {
            return;
        }
        let mut at = PAGE_BYTES;
        while self.damage.as_ref().is_none_or(|damage| damage.may_be_torn)
            && let Found::Whole(head, _) = look(bytes, at, generation, self.salt)
        {
            if let Some(damage) = &mut self.damage {
                // A torn tail is that of the last group of all.
                damage.may_be_torn = false;
                break;
            }
            let to = at + head.extent();
            let tail = Tail { number, from: at, to };
            if let Err(what) = self.accept(path, &head, tail) {
                self.fault(path.to_path_buf(), at, what);
                break;
            }
            self.uses[index].last = head.last;
            at = to;
        }
        self.read_behind(path, bytes, at, index);
    }

    /// Takes the next part of a group, or says why it is not.
    fn accept(&mut self, path: &Path, head: &Head, tail: Tail) -> Result<(), &'static str> {
        self.claimed = self.claimed.max(head.synced);
        if head.last <= self.covered && self.open.is_none() {
            return Ok(());
        }
        let is_next = match &self.open {
            Some(open) => {
                let next = open.next;
                let this = (head.first, head.last, head.part, head.parts);
                this == (next.first, next.last, next.part, next.parts)
            }
            None => head.part == 0 && head.first.0 == self.last.0 + 1,
        };
        if !is_next {
            return Err("batches are missing before this one");
        }
        if head.part + 1 < head.parts {
            let next = head.of_part(head.part as usize + 1, head.parts as usize);
            let path = path.to_path_buf();
            let open = self.open.get_or_insert(Parts { next, tails: Vec::new(), path });
            open.next = next;
            open.tails.push(tail);
            return Ok(());
        }
        self.open = None;
        self.first.get_or_insert(head.first);
        self.last = head.last;
        Ok(())
    }

    /// Looks at what lies behind the last whole group of a segment: what an earlier use left is
    /// nothing, but heads of this use are of groups that do not count.
    fn read_behind(&mut self, path: &Path, bytes: &[u8], at: usize, index: usize) {
        let Use { number, generation, .. } = self.uses[index];
        let mut end = at;
        let mut from = at;
        while from + HEAD_BYTES <= bytes.len() {
            if let Some(head) = Head::decode(&bytes[from..], self.salt)
                && head.generation == generation
            {
                self.claimed = self.claimed.max(head.synced);
                end = bytes.len().min(from + head.extent());
            }
            from += PAGE_BYTES;
        }
        if end == at {
            return;
        }
        let tail = Tail { number, from: at, to: end };
        let what = match look(bytes, at, generation, self.salt) {
            Found::Broken => "the checksum of a group does not match its bytes",
            _ => "no group begins where one should",
        };
        let (path, offset) = (path.to_path_buf(), at as u64);
        match &mut self.damage {
            Some(damage) => damage.may_be_torn = false,
            None => {
                let tails = vec![tail];
                self.damage = Some(Damage { path, offset, what, may_be_torn: true, tails });
            }
        }
    }

    /// A group that lacks parts at the end of all is torn.
    fn end(&mut self) {
        let Some(open) = self.open.take() else { return };
        let from = open.tails.first().map_or(0, |tail| tail.from);
        let damage = self.damage.get_or_insert_with(|| Damage {
            path: open.path,
            offset: from as u64,
            what: "a group lacks parts",
            may_be_torn: true,
            tails: Vec::new(),
        });
        damage.tails.splice(0..0, open.tails);
        for used in &mut self.uses {
            used.last = used.last.min(self.last);
        }
    }
}

/// Shows the bodies of all groups behind a batch, each with its last batch, in order.
pub(crate) fn replay<E: From<io::Error>>(
    log: &Path,
    chain: &Chain,
    after: Lsn,
    mut each: impl FnMut(Lsn, &[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut parts = Vec::new();
    for used in chain.uses.iter().filter(|used| used.last > after) {
        let bytes = fs::read(path_of(log, used.number))?;
        let mut at = PAGE_BYTES;
        while let Found::Whole(head, body) = look(&bytes, at, used.generation, chain.salt)
            && head.last <= chain.last
        {
            at += head.extent();
            if head.last <= after {
                continue;
            }
            if head.parts == 1 {
                each(head.last, body)?;
                continue;
            }
            parts.extend_from_slice(body);
            if head.part + 1 == head.parts {
                each(head.last, &std::mem::take(&mut parts))?;
            }
        }
    }
    Ok(())
}
