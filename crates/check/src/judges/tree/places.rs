//! Where open changes can be.
//!
//! Something that was seen to have changed without a known change was one of the open changes that
//! can have had that zxid and can have done that; no other has that zxid. Where only one can, it
//! was that one; and what has happened and has one zxid left has that.

use super::evidence::{AllEvidence, Evidence};
use super::facts::{Change, Facts, path_of};
use super::marks::{self, Mark};
use super::model::{is_below, parent};
use super::quiet::quiet;
use super::record::Invocation;
use super::replay::Placed;
use super::stream::Stream;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use bytes::Bytes;
use quorate_kernel::operation::Operation;
use quorate_kernel::tree::{Act, Item, What};

/// Where open changes can be.
pub(super) struct Places {
    /// Of zxids at which something was seen to have changed: which open changes can have done that.
    pub seen: BTreeMap<u64, BTreeSet<usize>>,
    /// The zxids that have changed no node.
    quiet: BTreeSet<u64>,
}

impl Places {
    /// What a record says of them.
    pub fn of(facts: &Facts<'_>, evidence: &AllEvidence, streams: &[Stream<'_>]) -> Places {
        let unknown = |zxid: &u64| !facts.known.contains_key(zxid);
        let seen = evidence.of.iter().filter(|(zxid, seen)| !seen.is_empty() && unknown(zxid));
        let seen = seen.map(|(zxid, seen)| {
            (*zxid, candidates(facts, *zxid, (seen, &evidence.values)).collect())
        });
        Places { seen: seen.collect(), quiet: quiet(facts.record, streams) }
    }

    /// Whether an open change can have a zxid within its bounds.
    pub fn allows(&self, facts: &Facts<'_>, open: usize, zxid: u64) -> bool {
        let is_quiet = facts.open[open].changes_a_node && self.quiet.contains(&zxid);
        let fits = self.seen.get(&zxid).is_none_or(|may| may.contains(&open));
        fits && !is_quiet && !facts.known.contains_key(&zxid)
    }

    /// The open changes whose zxids are certain.
    pub fn certain(&self, facts: &Facts<'_>) -> Placed {
        let mut placed = Placed::new();
        let mut taken = BTreeSet::new();
        loop {
            let before = placed.len();
            for (zxid, may) in &self.seen {
                let mut all = may.iter().filter(|open| !taken.contains(*open));
                if let (Some(one), None) = (all.next(), all.next())
                    && !placed.contains_key(zxid)
                {
                    placed.insert(*zxid, *one);
                    taken.insert(*one);
                }
            }
            for (number, open) in facts.open.iter().enumerate() {
                if !open.must || taken.contains(&number) {
                    continue;
                }
                let all = facts.lives.zxids(open.above + 1, open.most);
                let free =
                    |zxid: &u64| !placed.contains_key(zxid) && self.allows(facts, number, *zxid);
                let mut all = all.filter(free);
                if let (Some(one), None) = (all.next(), all.next()) {
                    placed.insert(one, number);
                    taken.insert(number);
                }
            }
            if placed.len() == before {
                return placed;
            }
        }
    }
}

/// The open changes that may have this zxid and have done all of this.
fn candidates<'a>(
    facts: &'a Facts<'_>,
    zxid: u64,
    (seen, values): (&'a [Evidence], &'a BTreeMap<(u64, String), Bytes>),
) -> impl Iterator<Item = usize> + 'a {
    let may = move |change: Change, marks: &[Mark]| {
        seen.iter().all(|seen| match change {
            Change::Write(index) => {
                let asked = facts.asked(index);
                let value = values.get(&(zxid, seen.path.clone()));
                may_write(asked, marks, seen)
                    && value.is_none_or(|value| writes(asked, &seen.path, value))
            }
            Change::Expire(_) => removes(marks, seen),
            Change::Open(_) => false,
        })
    };
    let of = facts.open.iter().enumerate();
    let of = of.filter(move |(_, open)| open.above < zxid && zxid <= open.most);
    of.filter(move |(_, open)| may(open.change, &open.marks)).map(|(number, _)| number)
}

/// Whether a write may have left this value in a node.
fn writes(asked: &Invocation, path: &str, value: &Bytes) -> bool {
    let item = |item: &Item| match item {
        Item::Create { path: of, data, sequential, .. } => {
            let is_it =
                if *sequential { marks::node(path) == Mark::Node(of.clone()) } else { of == path };
            is_it && data.as_ref() == Some(value)
        }
        Item::Set { path: of, data, .. } => of == path && data.as_ref() == Some(value),
        _ => false,
    };
    match &asked.operation {
        Operation::Put { key, value: put, .. } => {
            let of = path_of(key);
            if of == path { put == value } else { is_below(&of, path) && value.is_empty() }
        }
        Operation::Tree(ask) => match &ask.act {
            Act::One(one) => item(one),
            Act::All(items) | Act::Each(items) => items.iter().any(item),
            _ => false,
        },
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
            Act::One(item) => may_do(item, seen),
            Act::All(items) | Act::Each(items) => items.iter().any(|item| may_do(item, seen)),
            Act::Close => removes(marks, seen),
            _ => false,
        },
        _ => false,
    }
}

fn may_do(item: &Item, seen: &Evidence) -> bool {
    match (item, seen.what) {
        (Item::Create { path, sequential, .. }, What::Created) => match sequential {
            true => marks::node(&seen.path) == Mark::Node(path.clone()),
            false => seen.path == *path,
        },
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
