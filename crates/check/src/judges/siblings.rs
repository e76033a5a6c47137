//! The judge of keyspaces that keep siblings.
//!
//! What is promised of each key: an acknowledged value is there until somebody replaces it who has
//! seen it; a value that was replaced, by a write that was acknowledged or whose own value is
//! there, never comes back; no answer holds a value twice, one that nobody wrote, or an older one
//! beside one whose writer had seen it; and in the end, when all is quiet, all replicas say the
//! same and keep nothing that is not needed.
//!
//! Nothing here knows how contexts are made. A write names the answer whose context it carried;
//! from that the judge derives what its writer had seen: the values of that answer, and all that
//! their writers had seen. Each put has a value of its own; one that was sent again, to any host,
//! is one write. Unknown outcomes stay open: such a
//! write explains that older values are gone if its own value is there, or was replaced in turn,
//! or if it was a delete.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

/// Names a write of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteNumber(usize);

/// Names a get of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadNumber(usize);

/// Which answer's context a write carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// None: it replaces nothing.
    Blind,
    /// That of a get.
    Read(ReadNumber),
    /// That of a write.
    Write(WriteNumber),
}

/// How a write ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It was acknowledged.
    Stored,
    /// It was refused with the promise that nothing was changed.
    Refused,
    /// Nobody knows.
    Unknown,
}

#[derive(Clone, Debug)]
struct Write {
    key: Bytes,
    /// None deletes.
    value: Option<Bytes>,
    basis: Basis,
    ending: Ending,
    /// Whether it was sent more than once, under one name.
    is_repeated: bool,
    begun: usize,
}

#[derive(Clone, Debug)]
struct Read {
    key: Bytes,
    values: Vec<Bytes>,
    ended: usize,
    /// Whether it was asked of one replica when all was quiet.
    at_quiescence: bool,
}

/// What is left at one host when all is quiet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remains {
    /// Replicas that still copy or hand over.
    pub moving: u64,
    /// Updates that somebody may not have seen.
    pub dots: u64,
    /// Objects that carry more than the dots of their values.
    pub contexts: u64,
    /// Objects without a value.
    pub empty: u64,
}

/// What clients did and were told.
#[derive(Clone, Debug, Default)]
pub struct History {
    writes: Vec<Write>,
    reads: Vec<Read>,
    clock: usize,
    remains: Vec<Remains>,
}

impl History {
    fn tick(&mut self) -> usize {
        self.clock += 1;
        self.clock
    }

    /// A client begins a put, or a delete if there is no value. Its end is unknown until told.
    pub fn write(&mut self, key: &Bytes, value: Option<Bytes>, basis: Basis) -> WriteNumber {
        let (key, begun) = (key.clone(), self.tick());
        let (ending, is_repeated) = (Ending::Unknown, false);
        self.writes.push(Write { key, value, basis, ending, is_repeated, begun });
        WriteNumber(self.writes.len() - 1)
    }

    /// A client has heard nothing of a write, and sends it again under the same name, to any host:
    /// it is one write all the same.
    pub fn repeat(&mut self, write: WriteNumber) {
        self.writes[write.0].is_repeated = true;
    }

    /// A client was told how a write ended. Where one host says that it did nothing, an earlier one
    /// may have done it.
    pub fn end(&mut self, write: WriteNumber, ending: Ending) {
        let write = &mut self.writes[write.0];
        let is_open = write.is_repeated && ending == Ending::Refused;
        write.ending = if is_open { Ending::Unknown } else { ending };
    }

    /// A client was told the values of a key.
    pub fn read(&mut self, key: &Bytes, values: Vec<Bytes>) -> ReadNumber {
        let (key, ended) = (key.clone(), self.tick());
        self.reads.push(Read { key, values, ended, at_quiescence: false });
        ReadNumber(self.reads.len() - 1)
    }

    /// The same of one replica, when all is quiet and every replica has told every other all.
    pub fn read_at_quiescence(&mut self, key: &Bytes, values: Vec<Bytes>) {
        let read = self.read(key, values);
        self.reads[read.0].at_quiescence = true;
    }

    /// What is left at a host when all is quiet.
    pub fn remains(&mut self, remains: Remains) {
        self.remains.push(remains);
    }

    /// How many writes were acknowledged.
    #[must_use]
    pub fn stored(&self) -> usize {
        self.writes.iter().filter(|write| write.ending == Ending::Stored).count()
    }
}

/// Judges a history.
///
/// # Errors
/// What is wrong with it, in a sentence; the first finding.
pub fn judge(history: &History) -> Result<(), String> {
    let judge = Judge::new(history)?;
    for read in &history.reads {
        judge.look_at(read)?;
    }
    for (key, last) in judge.last()? {
        judge.compare(key, &last)?;
    }
    for (host, remains) in history.remains.iter().enumerate() {
        if *remains != Remains::default() {
            return Err(format!("host {} is not at rest: {remains:?}", host + 1));
        }
    }
    Ok(())
}

struct Judge<'a> {
    history: &'a History,
    /// The write of each value of each key.
    of: BTreeMap<(&'a Bytes, &'a Bytes), usize>,
    /// All writes that the writer of each write had seen, directly or through what it saw.
    seen: Vec<BTreeSet<usize>>,
}

impl<'a> Judge<'a> {
    fn new(history: &'a History) -> Result<Judge<'a>, String> {
        let mut of = BTreeMap::new();
        for (number, write) in history.writes.iter().enumerate() {
            let value = write.value.as_ref();
            if value.is_some_and(|value| of.insert((&write.key, value), number).is_some()) {
                return Err(format!("a workload must not write a value twice: {value:?}"));
            }
        }
        let mut judge = Judge { history, of, seen: Vec::new() };
        for number in 0..history.writes.len() {
            let seen = judge.seen_by(number);
            judge.seen.push(seen);
        }
        Ok(judge)
    }

    /// What the writer of a write had seen; that of all earlier writes is known.
    fn seen_by(&self, number: usize) -> BTreeSet<usize> {
        let write = &self.history.writes[number];
        let direct: Vec<usize> = match write.basis {
            Basis::Blind => Vec::new(),
            Basis::Write(basis) => Vec::from([basis.0]),
            Basis::Read(basis) => {
                let values = self.history.reads[basis.0].values.iter();
                values.filter_map(|value| self.of.get(&(&write.key, value)).copied()).collect()
            }
        };
        let mut seen = BTreeSet::new();
        for write in direct.into_iter().filter(|write| *write < number) {
            seen.insert(write);
            seen.extend(&self.seen[write]);
        }
        seen
    }

    /// Whether an answer can be one at all.
    fn look_at(&self, read: &Read) -> Result<(), String> {
        let mut found: BTreeSet<usize> = BTreeSet::new();
        for value in &read.values {
            let write = self.of.get(&(&read.key, value)).copied();
            let is_possible = |write: &usize| {
                let write = &self.history.writes[*write];
                write.ending != Ending::Refused && write.begun < read.ended
            };
            let Some(write) = write.filter(is_possible) else {
                return Err(format!("{:?}: nobody wrote {value:?}", read.key));
            };
            if !found.insert(write) {
                return Err(format!("{:?}: {value:?} is there twice", read.key));
            }
        }
        for newer in &found {
            if let Some(older) = found.iter().find(|older| self.seen[*newer].contains(*older)) {
                let (older, newer) = (self.shown(*older), self.shown(*newer));
                let key = &read.key;
                return Err(format!("{key:?}: {older} stands beside {newer}, which replaced it"));
            }
        }
        Ok(())
    }

    /// The writes whose values each key has in the end.
    fn last(&self) -> Result<BTreeMap<&'a Bytes, BTreeSet<usize>>, String> {
        let mut last: BTreeMap<&Bytes, BTreeSet<usize>> = BTreeMap::new();
        for read in self.history.reads.iter().filter(|read| read.at_quiescence) {
            let values = read.values.iter().filter_map(|value| self.of.get(&(&read.key, value)));
            let values: BTreeSet<usize> = values.copied().collect();
            let known = last.entry(&read.key).or_insert_with(|| values.clone());
            if *known != values {
                let list = |of: &BTreeSet<usize>| -> Vec<String> {
                    of.iter().map(|write| self.shown(*write)).collect()
                };
                let (one, other) = (list(known), list(&values));
                return Err(format!("{:?}: replicas differ: {one:?} and {other:?}", read.key));
            }
        }
        Ok(last)
    }

    /// Whether nothing is lost and nothing has come back.
    fn compare(&self, key: &Bytes, last: &BTreeSet<usize>) -> Result<(), String> {
        let of_key = |number: &usize| self.history.writes[*number].key == *key;
        let all: Vec<usize> = (0..self.history.writes.len()).filter(of_key).collect();
        // Later writes first, because only they explain that an earlier one is gone.
        let mut effective: BTreeSet<usize> = BTreeSet::new();
        for number in all.iter().rev() {
            let write = &self.history.writes[*number];
            let is_replaced = effective.iter().any(|later| self.seen[*later].contains(number));
            let is_there = last.contains(number);
            let is_acknowledged = write.ending == Ending::Stored;
            if write.value.is_some() && is_acknowledged && !is_there && !is_replaced {
                let value = self.shown(*number);
                return Err(format!("{key:?}: {value} was acknowledged and is lost"));
            }
            let may_count = write.ending != Ending::Refused;
            if may_count && (write.value.is_none() || is_there || is_replaced) {
                effective.insert(*number);
            }
        }
        for number in
            all.iter().filter(|number| self.history.writes[**number].ending == Ending::Stored)
        {
            if let Some(back) = last.iter().find(|back| self.seen[*number].contains(*back)) {
                let (back, by) = (self.shown(*back), self.shown(*number));
                return Err(format!("{key:?}: {back} is there, but {by} had replaced it"));
            }
        }
        Ok(())
    }

    fn shown(&self, number: usize) -> String {
        match &self.history.writes[number].value {
            Some(value) => format!("{value:?}"),
            None => format!("delete {number}"),
        }
    }
}

#[cfg(test)]
mod tests;
