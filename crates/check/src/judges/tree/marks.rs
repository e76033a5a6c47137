//! What operations have to do with: by it the search knows which changes may explain an answer.

use super::facts::path_of;
use super::model::parent;
use super::record::Invocation;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use quorate_kernel::operation::Operation;
use quorate_kernel::tree::{Act, Item, Kind, SessionId};

/// Something that a change may touch, and an answer may show.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// A node: whether it is there, and what it has. Of a sequential one its name has no number.
    Node(String),
    /// Which children a node has.
    Below(String),
    /// How many nodes there are below one, at any depth.
    Under(String),
    /// Whether a session is there.
    Session(SessionId),
}

/// The digits behind a sequential name.
const DIGITS: usize = 10;

/// A node as a mark: sequential ones of one name are one.
pub(super) fn node(path: &str) -> Mark {
    let name = path.len().checked_sub(DIGITS).and_then(|at| path.split_at_checked(at));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    match name.filter(|(_, digits)| is_number(digits)) {
        Some((name, _)) => Mark::Node(name.to_string()),
        None => Mark::Node(path.to_string()),
    }
}

/// Whether this is the node that such a create makes.
pub(super) fn is_made(path: &str, asked: &str, sequential: bool) -> bool {
    if sequential { node(path) == Mark::Node(asked.to_string()) } else { path == asked }
}

/// All that a node is below, the nearest first.
fn above(path: &str) -> impl Iterator<Item = &str> {
    core::iter::successors(parent(path), |above| parent(above))
}

/// A node that is made or removed.
pub(super) fn whole(path: &str) -> Vec<Mark> {
    let below = parent(path).map(|above| Mark::Below(above.to_string()));
    let under = above(path).map(|above| Mark::Under(above.to_string()));
    [node(path)].into_iter().chain(below).chain(under).collect()
}

/// All that what is told of a node rests on: the node, those above it, and its children.
pub(super) fn shown(path: &str) -> Vec<Mark> {
    let above = parent(path).map(node);
    [node(path), Mark::Below(path.to_string())].into_iter().chain(above).collect()
}

/// All that the answer of an item rests on.
fn answer(item: &Item) -> Vec<Mark> {
    let mut marks = shown(item.path());
    match item {
        // The number is that of children that were ever made.
        Item::Create { path, sequential: true, .. } => {
            marks.extend(parent(path).map(|above| Mark::Below(above.to_string())));
        }
        Item::CountBelow { path } => marks.push(Mark::Under(path.clone())),
        Item::Ephemerals { .. } => marks.push(Mark::Under("/".to_string())),
        _ => {}
    }
    marks
}

/// What an act does to nodes, one thing after the other.
pub(super) fn items(act: &Act) -> &[Item] {
    match act {
        Act::One(item) => core::slice::from_ref(item),
        Act::All(items) | Act::Each(items) => items,
        _ => &[],
    }
}

/// What a write may touch.
pub(super) fn of_write(asked: &Invocation) -> Vec<Mark> {
    match &asked.operation {
        Operation::Put { key, .. } => {
            let path = path_of(key);
            let mut marks = whole(&path);
            let mut at = path.as_str();
            while let Some(above) = parent(at) {
                marks.extend(whole(above));
                at = above;
            }
            marks
        }
        Operation::Delete { key, .. } => whole(&path_of(key)),
        Operation::Tree(ask) => items(&ask.act)
            .iter()
            .flat_map(|item| match item {
                Item::Create { path, .. } | Item::Delete { path, .. } => whole(path),
                Item::Set { path, .. } => [node(path)].into(),
                _ => Vec::new(),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// What the end of the session touches because of this operation.
pub(super) fn of_ephemerals(asked: &Invocation) -> Vec<Mark> {
    let made = |item: &Item| match item {
        Item::Create { path, kind: Kind::Ephemeral, .. } => whole(path),
        _ => Vec::new(),
    };
    asked.act().map_or(Vec::new(), |act| items(act).iter().flat_map(made).collect())
}

/// What the answer of an operation rests on.
pub(super) fn of_answer(asked: &Invocation) -> Vec<Mark> {
    let mut marks: Vec<Mark> = match &asked.operation {
        Operation::Tree(ask) => items(&ask.act).iter().flat_map(answer).collect(),
        Operation::Put { key, .. } => {
            let path = path_of(key);
            shown(&path).into_iter().chain(above(&path).map(node)).collect()
        }
        Operation::Get { key, .. } | Operation::Delete { key, .. } => shown(&path_of(key)),
        _ => Vec::new(),
    };
    marks.extend(asked.session().map(Mark::Session));
    marks
}
