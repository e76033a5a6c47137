//! What changes nodes, one thing at a time. The order in which something is found wrong is that of
//! ZooKeeper: the arguments, the list of who may do what, the parent, the permission, the node.

use super::command::Who;
use super::object::{Life, Node};
use super::step::Step;
use super::{acl, ask, quota};
use bytes::Bytes;
use quorate_kernel::limits::{TREE_DATA_BYTES_MAX, TREE_PARENTS_MAX};
use quorate_kernel::mutant;
use quorate_kernel::path::{Path, Place};
use quorate_kernel::tree::{self as words, Failure, Item, Kind, Told, What};

/// The longest time to live in milliseconds: that of ZooKeeper, of 40 bits.
const TTL_MS_MAX: u64 = (1 << 40) - 1;
/// The nodes that are there before the first command, and that nobody removes.
pub const SPECIAL: [&str; 4] = ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"];

/// Does one thing.
///
/// # Errors
/// It is not done, and the step has to be abandoned.
pub fn item(step: &mut Step<'_, '_>, who: &Who, item: &Item) -> Result<Told, Failure> {
    match item {
        Item::Create { .. } => create(step, who, item),
        Item::Delete { path, version } => delete(step, who, path, *version),
        Item::Set { path, data, version } => set(step, who, path, data.as_ref(), *version),
        Item::SetAcl { path, acl: list, version } => {
            let path = Path::of(path)?;
            let list = acl::given(list, who)?;
            let node = ask::find(step.on, path).ok_or(Failure::NoNode)?;
            acl::require(node, words::ADMIN, who)?;
            ask::is_version(node.aversion, *version)?;
            change(step, path, |node| {
                node.acl = list;
                node.aversion = node.aversion.wrapping_add(1);
            })
        }
        Item::Check { path, version } => ask::check(step.on, who, path, *version),
        Item::Exists { .. }
        | Item::Get { .. }
        | Item::Children { .. }
        | Item::GetAcl { .. }
        | Item::Ephemerals { .. }
        | Item::CountBelow { .. } => Err(Failure::BadArguments),
    }
}

/// Sets what a node has; makes it, and its parents, if it is not there. Each is made as
/// [`Item::Create`] makes it: the node above must let its client. What is made is open to all.
///
/// # Errors
/// It is not done, and the step has to be abandoned.
pub fn put(step: &mut Step<'_, '_>, who: &Who, path: &str, data: &Bytes) -> Result<Told, Failure> {
    let of = Path::of(path)?;
    if ask::find(step.on, of).is_some() {
        return set(step, who, path, Some(data), None);
    }
    let missing = of.whole().filter(|path| ask::find(step.on, *path).is_none()).count();
    if missing > TREE_PARENTS_MAX || data.len() > TREE_DATA_BYTES_MAX {
        return Err(Failure::Quota);
    }
    for path in of.whole().skip(of.whole().count() - missing) {
        let parent = path.parent().ok_or(Failure::Exists)?;
        let parent = ask::find(step.on, parent).ok_or(Failure::NoNode)?;
        if !mutant!("tree_makes_parents_unchecked") {
            acl::require(parent, words::CREATE, who)?;
        }
        if parent.owner().is_some() {
            return Err(Failure::NoChildrenForEphemerals);
        }
        let empty = Bytes::new();
        let data = quota::given(step.on, path, Some(if path == of { data } else { &empty }))?;
        step.make(path, Node { data, ..Node::made(step.zxid(), step.now_ms()) })?;
    }
    let node = ask::find(step.on, of).ok_or(Failure::NoNode)?;
    Ok(Told::Stat(node.stat()))
}

fn create(step: &mut Step<'_, '_>, who: &Who, item: &Item) -> Result<Told, Failure> {
    let Item::Create { path, data, acl: list, kind, sequential } = item else {
        return Err(Failure::BadArguments);
    };
    let life = match *kind {
        Kind::Persistent => Life::Persistent,
        Kind::Ephemeral => Life::Ephemeral(who.session.ok_or(Failure::BadArguments)?),
        Kind::Container => Life::Container,
        Kind::Ttl(ttl_ms @ 1..=TTL_MS_MAX) => Life::Ttl(ttl_ms),
        Kind::Ttl(_) => return Err(Failure::BadArguments),
    };
    let place = Place::of(path, *sequential)?;
    let list = acl::given(list, who)?;
    let parent = ask::find(step.on, place.parent).ok_or(Failure::NoNode)?;
    acl::require(parent, words::CREATE, who)?;
    let is_counted = mutant!("sequential_from_children");
    let number = if is_counted { parent.children.cast_signed() } else { parent.creates };
    let is_ephemeral = parent.owner().is_some();
    let text = place.path(sequential.then_some(number));
    let path = Path::of(&text)?;
    if ask::find(step.on, path).is_some() {
        return Err(Failure::Exists);
    }
    if is_ephemeral {
        return Err(Failure::NoChildrenForEphemerals);
    }
    let data = fitting(quota::given(step.on, path, data.as_ref())?)?;
    let made = Node::made(step.zxid(), step.now_ms());
    let node = Node { data, acl: list, life, ..made };
    let stat = node.stat();
    step.make(path, node)?;
    Ok(Told::Created { path: text, stat })
}

fn delete(
    step: &mut Step<'_, '_>,
    who: &Who,
    path: &str,
    version: Option<i32>,
) -> Result<Told, Failure> {
    let path = Path::of(path)?;
    let parent = path.parent().filter(|_| !SPECIAL.contains(&path.text()));
    let parent = ask::find(step.on, parent.ok_or(Failure::BadArguments)?);
    acl::require(parent.ok_or(Failure::NoNode)?, words::DELETE, who)?;
    let node = ask::find(step.on, path).ok_or(Failure::NoNode)?;
    ask::is_version(node.version, version)?;
    if node.children > 0 {
        return Err(Failure::NotEmpty);
    }
    step.remove(path);
    Ok(Told::Done)
}

fn set(
    step: &mut Step<'_, '_>,
    who: &Who,
    path: &str,
    data: Option<&Bytes>,
    version: Option<i32>,
) -> Result<Told, Failure> {
    let path = Path::of(path)?;
    let node = ask::find(step.on, path).ok_or(Failure::NoNode)?;
    acl::require(node, words::WRITE, who)?;
    let guard = acl::guard(node);
    let (before, mut node) = (node.bytes(path), node.clone());
    let data = quota::given(step.on, path, data)?;
    quota::set(step, path, node.data.as_ref(), data.as_ref())?;
    ask::is_version(node.version, version)?;
    node.data = fitting(data)?;
    node.version = node.version.wrapping_add(1);
    (node.mzxid, node.mtime) = (step.zxid(), step.now_ms());
    let stat = node.stat();
    step.replace(path, before, node);
    step.has_room()?;
    step.tell(path, What::Data, guard);
    Ok(Told::Stat(stat))
}

/// Changes a node that is there, and tells how it is then.
fn change(
    step: &mut Step<'_, '_>,
    path: Path<'_>,
    change: impl FnOnce(&mut Node),
) -> Result<Told, Failure> {
    let mut stat = None;
    step.change(path, |node| {
        change(node);
        stat = Some(node.stat());
    });
    step.has_room()?;
    stat.map(Told::Stat).ok_or(Failure::NoNode)
}

fn fitting(data: Option<Bytes>) -> Result<Option<Bytes>, Failure> {
    let fits = data.as_ref().is_none_or(|data| data.len() <= TREE_DATA_BYTES_MAX);
    fits.then_some(data).ok_or(Failure::Quota)
}
