//! Open changes whose zxid is certain: what is seen of a zxid fits no other change.
//!
//! Something that was seen to have changed without a known change was one of the open changes that
//! can have had that zxid and can have done that. Where only one can, it was that one; and then it
//! cannot have been any other.

use super::evidence::{AllEvidence, Evidence};
use super::facts::{Change, Facts, path_of};
use super::marks::{self, Mark};
use super::model::{is_below, parent};
use super::record::Invocation;
use super::replay::Placed;
use alloc::collections::BTreeSet;
use quorate_kernel::operation::Operation;
use quorate_kernel::tree::{Act, Item, What};

/// Finds the open changes whose zxids are certain.
pub(super) fn forced(facts: &Facts<'_>, evidence: &AllEvidence) -> Placed {
    let mut placed = Placed::new();
    let mut taken = BTreeSet::new();
    loop {
        let before = placed.len();
        for (zxid, seen) in &evidence.of {
            if seen.is_empty() || facts.known.contains_key(zxid) || placed.contains_key(zxid) {
                continue;
            }
            let mut all = candidates(facts, *zxid, seen).filter(|open| !taken.contains(open));
            if let (Some(one), None) = (all.next(), all.next()) {
                placed.insert(*zxid, one);
                taken.insert(one);
            }
        }
        if placed.len() == before {
            return placed;
        }
    }
}

/// The open changes that may have this zxid and have done all of this.
pub(super) fn candidates<'a>(
    facts: &'a Facts<'_>,
    zxid: u64,
    seen: &'a [Evidence],
) -> impl Iterator<Item = usize> + 'a {
    let may = move |change: Change, marks: &[Mark]| {
        seen.iter().all(|seen| match change {
            Change::Write(index) => may_write(facts.asked(index), marks, seen),
            Change::Expire(_) => removes(marks, seen),
            Change::Open(_) => false,
        })
    };
    let of = facts.open.iter().enumerate();
    let of = of.filter(move |(_, open)| open.above < zxid && zxid <= open.most);
    of.filter(move |(_, open)| may(open.change, &open.marks)).map(|(number, _)| number)
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
