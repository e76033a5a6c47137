//! Where open changes can be.
//!
//! Something that was seen to have changed without a known change was one of the open changes that
//! can have had that zxid and can have done that; no other has that zxid. Where only one can, it
//! was that one; and what has happened and has one zxid left has that.

use super::evidence::{AllEvidence, Evidence};
use super::facts::{Change, Facts, Open, path_of};
use super::marks::{self, Mark};
use super::model::{is_below, parent};
use super::quiet::quiet;
use super::record::Invocation;
use super::replay::Placed;
use super::stream::Stream;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::operation::Operation;
use quorate_kernel::tree::{Act, Item, What};

/// Where open changes can be.
pub(super) struct Places {
    /// Each open change is above one zxid, and at most another.
    pub bounds: Vec<(u64, u64)>,
    /// Of zxids at which something was seen to have changed: which open changes can have done that.
    pub seen: BTreeMap<u64, BTreeSet<usize>>,
    /// The zxids that have changed no node.
    quiet: BTreeSet<u64>,
}

impl Places {
    /// What a record says of them; and the open changes whose zxids are certain.
    pub fn of(
        facts: &Facts<'_>,
        evidence: &AllEvidence,
        streams: &[Stream<'_>],
    ) -> (Places, Placed) {
        let unknown = |zxid: &u64| !facts.known.contains_key(zxid);
        let seen = evidence.of.iter().filter(|(zxid, seen)| !seen.is_empty() && unknown(zxid));
        let may = |seen| (0..facts.open.len()).filter(move |open| can_do(facts, *open, seen));
        let seen = seen.map(|(zxid, seen)| (*zxid, may((*zxid, seen, &evidence.values)).collect()));
        let seen = seen.collect();
        let bounds = facts.open.iter().map(|open| (open.above, open.most)).collect();
        let mut places = Places { bounds, seen, quiet: quiet(facts.record, streams) };
        let placed = places.certain(facts);
        (places, placed)
    }

    /// Whether an open change can have a zxid.
    pub fn allows(&self, facts: &Facts<'_>, open: usize, zxid: u64) -> bool {
        let (above, most) = self.bounds[open];
        let is_quiet = facts.open[open].changes_a_node && self.quiet.contains(&zxid);
        let fits = self.seen.get(&zxid).is_none_or(|may| may.contains(&open));
        let is_within = above < zxid && zxid <= most;
        is_within && fits && !is_quiet && !facts.known.contains_key(&zxid)
    }

    /// Finds the open changes whose zxids are certain.
    fn certain(&mut self, facts: &Facts<'_>) -> Placed {
        let mut placed = Placed::new();
        let mut taken = BTreeSet::new();
        loop {
            let before = placed.len();
            self.bound(facts);
            for (zxid, may) in &self.seen {
                let can =
                    |open: &&usize| !taken.contains(*open) && self.allows(facts, **open, *zxid);
                let mut all = may.iter().filter(can);
                if let (Some(one), None) = (all.next(), all.next())
                    && !placed.contains_key(zxid)
                {
                    placed.insert(*zxid, *one);
                    taken.insert(*one);
                    self.bounds[*one] = (zxid - 1, *zxid);
                }
            }
            for (number, open) in facts.open.iter().enumerate() {
                if !open.must || taken.contains(&number) {
                    continue;
                }
                let (above, most) = self.bounds[number];
                let all = facts.lives.zxids(above + 1, most);
                let free =
                    |zxid: &u64| !placed.contains_key(zxid) && self.allows(facts, number, *zxid);
                let mut all = all.filter(free);
                if let (Some(one), None) = (all.next(), all.next()) {
                    placed.insert(one, number);
                    taken.insert(number);
                    self.bounds[number] = (one - 1, one);
                }
            }
            if placed.len() == before {
                return placed;
            }
        }
    }

    /// Of two open writes that have happened the one that had ended before the other began is the
    /// earlier one.
    fn bound(&mut self, facts: &Facts<'_>) {
        let write = |(number, open): (usize, &Open)| match open.change {
            Change::Write(index) if open.must => Some((number, facts.asked(index))),
            _ => None,
        };
        let mut writes: Vec<_> = facts.open.iter().enumerate().filter_map(write).collect();
        writes.sort_by_key(|(_, asked)| asked.began);
        for (at, (number, asked)) in writes.iter().enumerate() {
            let before = writes[..at].iter().filter(|(_, other)| other.ended < asked.began);
            let above = before.map(|(other, _)| self.bounds[*other].0 + 1).max().unwrap_or(0);
            self.bounds[*number].0 = self.bounds[*number].0.max(above);
        }
        for (at, (number, asked)) in writes.iter().enumerate().rev() {
            let behind = writes[at + 1..].iter().filter(|(_, other)| other.began > asked.ended);
            let most = behind.map(|(other, _)| self.bounds[*other].1.saturating_sub(1)).min();
            self.bounds[*number].1 = self.bounds[*number].1.min(most.unwrap_or(u64::MAX));
        }
    }
}

/// What was seen of a zxid, and which values nodes had since which zxid.
type Seen<'a> = (u64, &'a [Evidence], &'a BTreeMap<(u64, String), Bytes>);

/// Whether an open change may have done all of this.
fn can_do(facts: &Facts<'_>, open: usize, (zxid, seen, values): Seen<'_>) -> bool {
    let Open { change, above, most, marks, .. } = &facts.open[open];
    let did = |seen: &Evidence| match *change {
        Change::Write(index) => {
            let asked = facts.asked(index);
            let value = values.get(&(zxid, seen.path.clone()));
            may_write(asked, marks, seen)
                && value.is_none_or(|value| writes(asked, &seen.path, value))
        }
        Change::Expire(_) => removes(marks, seen),
        Change::Open(_) => false,
    };
    *above < zxid && zxid <= *most && seen.iter().all(did)
}

/// Whether a write may have left this value in a node.
fn writes(asked: &Invocation, path: &str, value: &Bytes) -> bool {
    let item = |item: &Item| match item {
        Item::Create { path: of, data, sequential, .. } => {
            marks::is_made(path, of, *sequential) && data.as_ref() == Some(value)
        }
        Item::Set { path: of, data, .. } => of == path && data.as_ref() == Some(value),
        _ => false,
    };
    match &asked.operation {
        Operation::Put { key, value: put, .. } => {
            let of = path_of(key);
            if of == path { put == value } else { is_below(&of, path) && value.is_empty() }
        }
        Operation::Tree(ask) => marks::items(&ask.act).iter().any(item),
        _ => false,
    }
}

/// Whether a write may have done this.
fn may_write(asked: &Invocation, marks: &[Mark], seen: &Evidence) -> bool {
    let path = &seen.path;
    match &asked.operation {
        Operation::Put { key, .. } => {
            let of = path_of(key);
            match seen.what {
                What::Data => *path == of,
                What::Created => *path == of || is_below(&of, path),
                What::Children => is_below(&of, path),
                What::Deleted => false,
            }
        }
        Operation::Delete { key, .. } => is_gone(&path_of(key), seen),
        Operation::Tree(ask) => match &ask.act {
            Act::Close => removes(marks, seen),
            act => marks::items(act).iter().any(|item| may_do(item, seen)),
        },
        _ => false,
    }
}

fn may_do(item: &Item, seen: &Evidence) -> bool {
    match (item, seen.what) {
        (Item::Create { path, sequential, .. }, What::Created) => {
            marks::is_made(&seen.path, path, *sequential)
        }
        (Item::Create { path, .. }, What::Children) => parent(path) == Some(&seen.path),
        (Item::Set { path, .. }, What::Data) => seen.path == *path,
        (Item::Delete { path, .. }, _) => is_gone(path, seen),
        _ => false,
    }
}

/// Whether that a node is removed may be what was seen.
fn is_gone(path: &str, seen: &Evidence) -> bool {
    match seen.what {
        What::Deleted => seen.path == path,
        What::Children => parent(path) == Some(&seen.path),
        What::Created | What::Data => false,
    }
}

/// Whether the end of a session whose nodes these are may be what was seen.
fn removes(marks: &[Mark], seen: &Evidence) -> bool {
    match seen.what {
        What::Deleted => marks.contains(&marks::node(&seen.path)),
        What::Children => marks.contains(&Mark::Below(seen.path.clone())),
        What::Created | What::Data => false,
    }
}
