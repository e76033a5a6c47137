//! Nodes that end by themselves: containers that were used, and nodes whose time has passed.
//!
//! No replica looks at a clock. The primary looks for them, by its own, and proposes the removal of
//! each as it has seen it; at the entry's time it is looked again.

use super::ask;
use super::command::Answer;
use super::machine::Tree;
use super::object::{Life, Node, Object};
use super::step::Step;
use crate::coordination::keys;
use crate::smr::{Execution, Objects};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Bound;
use quorate_kernel::mutant;
use quorate_kernel::path::Path;
use quorate_kernel::tree::{Failure, Told, Zxid};

/// What a look at some nodes has found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Those that may be removed, and the last change of each.
    pub due: Vec<(String, Zxid)>,
    /// Where the next look begins; none behind the last.
    pub next: Option<String>,
}

/// Removes a node if it is as it was seen, and due.
pub fn reap(on: &mut Execution<'_, Tree>, path: &str, seen: Zxid) -> Answer {
    let now_ms = on.now_ms();
    let mut step = Step::begin(on);
    let told = reap_in(&mut step, path, seen, now_ms);
    step.end(told)
}

fn reap_in(step: &mut Step<'_, '_>, path: &str, seen: Zxid, now_ms: u64) -> Result<Told, Failure> {
    let path = Path::of(path)?;
    let node = ask::find(step.on, path).ok_or(Failure::NoNode)?;
    if node.children > 0 {
        return Err(Failure::NotEmpty);
    }
    let is_as_seen = node.seen() == seen || mutant!("tree_reaps_what_has_changed");
    if !is_as_seen || !is_due(node, now_ms) {
        return Err(Failure::BadVersion);
    }
    step.remove(path);
    Ok(Told::Done)
}

/// Looks at nodes that end by themselves from a path on, at so many at most; the empty path is
/// before all.
#[must_use]
pub fn reapable(objects: &Objects<Tree>, from: &str, most: usize, now_ms: u64) -> Found {
    let mut found = Found::default();
    let range = (Bound::Included(keys::reapable(from)), Bound::Unbounded);
    let paths = objects.range(range).map_while(|(key, _)| keys::reapable_of(key));
    for (at, text) in paths.enumerate() {
        if at == most {
            found.next = Some(text.to_string());
            break;
        }
        let node = Path::of(text).ok().and_then(|path| objects.get(&keys::node(path)));
        if let Some(Object::Node(node)) = node
            && is_due(node, now_ms)
        {
            found.due.push((text.to_string(), node.seen()));
        }
    }
    found
}

/// Whether a node has ended by itself.
fn is_due(node: &Node, now_ms: u64) -> bool {
    let elapsed_ms = i128::from(now_ms) - i128::from(node.mtime);
    let is_over = match node.life {
        // One that was just made waits for its first child.
        Life::Container => node.creates != 0,
        Life::Ttl(ttl_ms) => elapsed_ms > i128::from(ttl_ms),
        Life::Persistent | Life::Ephemeral(_) => false,
    };
    is_over && node.children == 0
}
