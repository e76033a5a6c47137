//! Zxids whose changes changed no node: somebody followed every node then, and was told of none.

use super::facts::{Place, place};
use super::marks::items;
use super::record::Record;
use super::stream::{Received, Stream};
use crate::history::Completion;
use alloc::collections::BTreeSet;
use quorate_kernel::operation::Operation;
use quorate_kernel::tree::{Act, Followed, Item, TreeReply};

/// Finds the zxids that somebody who follows every node was told nothing of.
pub(super) fn quiet(record: &Record, streams: &[Stream<'_>]) -> BTreeSet<u64> {
    let mut quiet = BTreeSet::new();
    for stream in streams {
        let (mut follows, mut upto) = (false, 0);
        let mut told = BTreeSet::new();
        for (is_again, received) in &stream.received {
            match received {
                Received::Changed(changed) if !is_again => _ = told.insert(changed.zxid.0),
                Received::Changed(_) | Received::Refollows => {}
                Received::Answer(index) => {
                    let asked = &record.asked[*index];
                    let Some(place) = place(asked) else { continue };
                    let (Place::Change(zxid) | Place::Shows(zxid) | Place::Local(zxid)) = place;
                    if follows {
                        quiet.extend((upto + 1..=zxid).filter(|zxid| !told.contains(zxid)));
                    }
                    upto = upto.max(zxid);
                    let done = matches!(
                        asked.completion(),
                        Completion::Tree(TreeReply { told: Ok(_), .. })
                    );
                    let begins = asked.act().filter(|_| done).and_then(begins);
                    follows = begins.unwrap_or(follows);
                }
            }
        }
    }
    quiet
}

/// Whether what was asked begins to follow every node, or ends that.
fn begins(act: &Act) -> Option<bool> {
    match act {
        Act::Follow { path, recursive: true } if path == "/" => Some(true),
        Act::Refollow(refollow) if refollow.recursive.iter().any(|path| path == "/") => Some(true),
        Act::Unfollow { path, kind, only_check: false } if path == "/" => {
            matches!(kind, Followed::Any | Followed::Recursive).then_some(false)
        }
        _ => None,
    }
}

/// Whether a write changes a node whenever it is done.
pub(super) fn changes_a_node(operation: &Operation) -> bool {
    let changes =
        |item: &Item| matches!(item, Item::Create { .. } | Item::Delete { .. } | Item::Set { .. });
    match operation {
        Operation::Put { .. } | Operation::Delete { .. } => true,
        Operation::Tree(ask) => items(&ask.act).iter().any(changes),
        _ => false,
    }
}
