//! What is asked of the tree, and changes nothing.

use super::acl;
use super::command::{Answer, Question, Who};
use super::machine::Tree;
use super::object::{Meta, Node, Object, Session};
use crate::coordination::keys;
use crate::smr::{Execution, Objects};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use quorate_kernel::limits::{
    PAGE_BYTES_MAX, TRANSACTION_BYTES_MAX, TREE_COUNTED_MAX, TREE_PAGE_MAX,
};
use quorate_kernel::mutant;
use quorate_kernel::path::Path;
use quorate_kernel::tree::{
    self as words, Failure, Item, Refollow, SessionId, Told, TreeReply, What, Zxid, bytes_listed,
};

/// The most bytes of an answer: it must fit a message between hosts, whatever it is.
const ROOM: usize = TRANSACTION_BYTES_MAX;

/// Answers a question about the tree as it is; [`crate::smr::Replicated::look`] shows it.
#[must_use]
pub fn ask(question: &Question, on: &Execution<'_, Tree>) -> Answer {
    let zxid = meta(on).zxid;
    let told = |told| Answer::Told(TreeReply { zxid, told });
    if let Some(who) = question.who()
        && let Err(failure) = admit(on, who)
    {
        return told(Err(failure));
    }
    match question {
        Question::One(who, item) => told(one(item, who, on)),
        Question::Each(who, items) => told(Ok(Told::Many(each(items, who, on)))),
        Question::All(who, items) => told(Ok(all(items, |item| match item {
            Item::Check { .. } => one(item, who, on),
            _ => Err(Failure::BadArguments),
        })
        .1)),
        Question::Refollow(_, refollow) => {
            Answer::Changed { zxid, changed: changed(refollow, on).collect() }
        }
        Question::Sync(_) => told(Ok(Told::Done)),
        Question::List(from, most) => list(from, *most, on),
    }
}

/// Several reads, each by itself. Behind the first for whose answer there is no room in one message
/// all fail that are answered with more than a word: no list is made for nothing.
fn each(items: &[Item], who: &Who, on: &Execution<'_, Tree>) -> Vec<Result<Told, Failure>> {
    let mut room = ROOM;
    let mut read = |item: &Item| {
        let told = one_within(room, item, who, on);
        let bytes = told.as_ref().map_or(0, Told::bytes);
        let is_bound = !mutant!("tree_answers_without_bound");
        let is_full = is_bound && (bytes > room || matches!(told, Err(Failure::Quota)));
        room = if is_full { 0 } else { room.saturating_sub(bytes) };
        if is_full { Err(Failure::Quota) } else { told }
    };
    items.iter().map(&mut read).collect()
}

/// Does several things up to the first one that fails; whether all are done, and what is told.
pub fn all(items: &[Item], mut one: impl FnMut(&Item) -> Result<Told, Failure>) -> (bool, Told) {
    let mut told = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        match one(item) {
            Ok(done) => told.push(Ok(done)),
            Err(failure) => {
                told = (0..at).map(|_| Err(Failure::NotDone)).collect();
                told.push(Err(failure));
                told.resize(items.len(), Err(Failure::NotTried));
                return (false, Told::Many(told));
            }
        }
    }
    (true, Told::Many(told))
}

/// What is known of the whole tree.
pub fn meta(on: &Execution<'_, Tree>) -> Meta {
    match on.get(&keys::META) {
        Some(Object::Meta(meta)) => *meta,
        _ => Meta::default(),
    }
}

/// What is known of the whole tree.
#[must_use]
pub fn whole(objects: &Objects<Tree>) -> Meta {
    match objects.get(&keys::META) {
        Some(Object::Meta(meta)) => *meta,
        _ => Meta::default(),
    }
}

/// How many nodes there are.
#[must_use]
pub fn nodes(objects: &Objects<Tree>) -> u64 {
    whole(objects).nodes
}

/// A node.
pub fn find<'a>(on: &'a Execution<'_, Tree>, path: Path<'_>) -> Option<&'a Node> {
    match on.get(&keys::node(path)) {
        Some(Object::Node(node)) => Some(node),
        _ => None,
    }
}

/// A session.
pub fn session(on: &Execution<'_, Tree>, id: SessionId) -> Option<Session> {
    match on.get(&keys::session(id)) {
        Some(Object::Session(session)) => Some(*session),
        _ => None,
    }
}

/// Whether a client's session, if it has one, is there and at its gateway.
///
/// # Errors
/// It has ended, or is elsewhere.
pub fn admit(on: &Execution<'_, Tree>, who: &Who) -> Result<(), Failure> {
    let Some(id) = who.session else { return Ok(()) };
    let session = session(on, id).filter(|_| !meta(on).outlives(id));
    let session = session.ok_or(Failure::SessionExpired)?;
    let is_here = session.gateway == who.gateway || mutant!("tree_serves_moved_sessions");
    is_here.then_some(()).ok_or(Failure::SessionMoved)
}

/// Whether a version is the one that is asked for.
///
/// # Errors
/// [`Failure::BadVersion`]: it is another.
pub fn is_version(is: i32, must_be: Option<i32>) -> Result<(), Failure> {
    must_be.is_none_or(|version| version == is).then_some(()).ok_or(Failure::BadVersion)
}

/// Whether a node is there, in the version that it must have, and may be read.
///
/// # Errors
/// It is not.
pub fn check(
    on: &Execution<'_, Tree>,
    who: &Who,
    path: &str,
    version: Option<i32>,
) -> Result<Told, Failure> {
    let node = read(on, who, Path::of(path)?, words::READ)?;
    is_version(node.version, version)?;
    Ok(Told::Done)
}

/// A node of which the client has one of these permissions.
fn read<'a>(
    on: &'a Execution<'_, Tree>,
    who: &Who,
    path: Path<'_>,
    permissions: u32,
) -> Result<&'a Node, Failure> {
    let node = find(on, path).ok_or(Failure::NoNode)?;
    acl::require(node, permissions, who)?;
    Ok(node)
}

fn one(item: &Item, who: &Who, on: &Execution<'_, Tree>) -> Result<Told, Failure> {
    one_within(ROOM, item, who, on)
}

/// Answers one thing; if it is a list, with so many bytes at most.
fn one_within(
    room: usize,
    item: &Item,
    who: &Who,
    on: &Execution<'_, Tree>,
) -> Result<Told, Failure> {
    if let Item::Ephemerals { prefix } = item {
        return ephemerals(prefix, who, room, on);
    }
    let path = Path::of(item.path())?;
    match item {
        Item::Check { version, .. } => check(on, who, path.text(), *version),
        Item::Exists { .. } => Ok(Told::Stat(find(on, path).ok_or(Failure::NoNode)?.stat())),
        Item::Get { .. } => {
            let node = read(on, who, path, words::READ)?;
            Ok(Told::Data { data: node.data.clone(), stat: node.stat() })
        }
        Item::Children { .. } => {
            let stat = read(on, who, path, words::READ)?.stat();
            Ok(Told::Children { names: names(path, room, on)?, stat })
        }
        Item::GetAcl { .. } => {
            let node = read(on, who, path, words::READ | words::ADMIN)?;
            Ok(Told::Acl { acl: acl::shown(node, who), stat: node.stat() })
        }
        Item::CountBelow { .. } => {
            let children = read(on, who, path, words::READ)?.children;
            count_below(path, children, on).map(Told::Count)
        }
        Item::Create { .. }
        | Item::Delete { .. }
        | Item::Set { .. }
        | Item::SetAcl { .. }
        | Item::Ephemerals { .. } => Err(Failure::BadArguments),
    }
}

/// How many nodes are below one that has so many children. They are looked at one after the other,
/// and nothing else is done meanwhile, so only so many are counted; all that there are is known.
fn count_below(path: Path<'_>, children: u32, on: &Execution<'_, Tree>) -> Result<u64, Failure> {
    if path == Path::ROOT {
        return Ok(meta(on).nodes.saturating_sub(1));
    }
    let most = TREE_COUNTED_MAX + 1;
    let below = on.below(&keys::below_children(path)).take(most).count();
    let fits = below < most || mutant!("tree_counts_all");
    fits.then_some(u64::from(children) + below as u64).ok_or(Failure::Quota)
}

fn names(path: Path<'_>, room: usize, on: &Execution<'_, Tree>) -> Result<Vec<String>, Failure> {
    let prefix = keys::children(path);
    let name = |key: &'_ [u8]| Some(str::from_utf8(&key[prefix.len()..]).ok()?.to_string());
    within(room, on.below(&prefix).filter_map(|(key, _)| name(key)))
}

/// A list, if it has so many bytes at most.
fn within(room: usize, texts: impl Iterator<Item = String>) -> Result<Vec<String>, Failure> {
    let (mut bytes, mut list) = (0, Vec::new());
    for text in texts {
        bytes += bytes_listed(&text);
        if bytes > room && !mutant!("tree_lists_all") {
            return Err(Failure::Quota);
        }
        list.push(text);
    }
    Ok(list)
}

fn ephemerals(
    prefix: &str,
    who: &Who,
    room: usize,
    on: &Execution<'_, Tree>,
) -> Result<Told, Failure> {
    let session = who.session.ok_or(Failure::BadArguments)?;
    let begin = keys::ephemerals(session);
    let prefix = [&begin[..], prefix.as_bytes()].concat();
    let path = |key: &[u8]| Some(keys::ephemeral_of(key)?.1.to_string());
    within(room, on.below(&prefix).filter_map(|(key, _)| path(key))).map(Told::Paths)
}

/// What has become of followed nodes since, as ZooKeeper tells it: of what is followed until it is
/// told otherwise, nothing.
fn changed<'a>(
    refollow: &'a Refollow,
    on: &'a Execution<'_, Tree>,
) -> impl Iterator<Item = (String, What)> + 'a {
    let find = |path: &str| Path::of(path).ok().and_then(|path| find(on, path));
    let of = move |path: &str, last: fn(&Node) -> Zxid, what| match find(path) {
        None => Some(What::Deleted),
        Some(node) => (last(node) > refollow.seen).then_some(what),
    };
    let told = |path: &String, what: Option<What>| Some((path.clone(), what?));
    let data = refollow.data.iter().map(move |path| (path, of(path, |it| it.mzxid, What::Data)));
    let absent = refollow.absent.iter().map(move |path| (path, find(path).map(|_| What::Created)));
    let children = refollow.children.iter();
    let children = children.map(move |path| (path, of(path, |it| it.pzxid, What::Children)));
    data.chain(absent).chain(children).filter_map(move |(path, what)| told(path, what))
}

/// Paths in the order of keys, from one on, which need not be there.
fn list(from: &str, most: u32, on: &Execution<'_, Tree>) -> Answer {
    let (mut paths, mut bytes) = (Vec::new(), 0);
    let most = (most as usize).clamp(1, TREE_PAGE_MAX);
    let from = keys::from(from);
    for (key, _) in on.from(&from).take_while(|(key, _)| key.starts_with(keys::NODES)) {
        let Some(path) = keys::path(key) else { continue };
        if paths.len() == most || bytes > PAGE_BYTES_MAX {
            return Answer::Paths { paths, next: Some(path) };
        }
        bytes += path.len();
        paths.push(path);
    }
    Answer::Paths { paths, next: None }
}
