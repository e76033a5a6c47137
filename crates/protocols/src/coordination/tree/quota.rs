//! Quotas: limits of parts of the tree, as ZooKeeper's tools set them.
//!
//! The node `/zookeeper/quota/<path>/zookeeper_limits` limits the node at that path and all below
//! it, as long as it is there. What it has is text, as `count=5,bytes=-1=;countHardLimit=8`: soft
//! and hard limits of nodes and of bytes of data. [`Quota`] counts what is limited: whatever makes,
//! sets or removes a node counts it. The counts are shown in `zookeeper_stats` beside the limits.
//!
//! - A hard limit refuses what makes its count larger, when it would be above the limit then. What
//!   makes it smaller, or leaves it, is done, so a limit may be below what is there.
//! - A soft limit refuses nothing. How many quotas are above a limit is [known](exceeded).
//! - Each of several things that are done together finds the counts as those before it left them.
//! - What is in `/zookeeper` counts for nothing. So limits can be set, lifted and shown always.
//! - No quota is above or below another, and none is of the root.
//!
//! # Work
//! When limits are made, what is there is counted: so many nodes by all commands of one entry of
//! the log together, else it is refused. What was counted in vain counts too. From then on each
//! change costs a look-up for each node above it that may be limited, as long as there is something
//! in `/zookeeper/quota`: those whose paths have few names, so that deep paths cost no more.
//!
//! # Departures from ZooKeeper
//! - Hard limits always hold. There they do where `enforceQuota` is set, and it is not by default.
//! - There each thing of several is held against the counts before all of them, and what makes a
//!   count smaller is refused while it is above the limit.
//! - There a quota below another is kept from its client by the tool that makes it; the outer one
//!   would not count what the inner one does.
//! - Limits that cannot be read are refused. There a later command fails on them.
//! - What is limited has few names in its path. There it may have any number.
//! - What somebody sets in `zookeeper_stats` is not kept: it has what is counted.

use super::ask;
use super::machine::Tree;
use super::object::Object;
use super::step::Step;
use crate::coordination::keys;
use crate::coordination::values::is_key;
use crate::smr::{Execution, Objects};
use alloc::format;
use alloc::string::String;
use bytes::Bytes;
use quorate_kernel::limits::{TREE_COUNTED_MAX, TREE_QUOTA_NAMES_MAX};
use quorate_kernel::path::Path;
use quorate_kernel::tree::Failure;
use quorate_kernel::{invariant, mutant};
use serde::{Deserialize, Serialize};

/// The node below which the nodes of quotas are.
pub(super) const ROOT: &str = "/zookeeper/quota";
const LIMITS: &str = "zookeeper_limits";
const STATS: &str = "zookeeper_stats";

/// The limits of a part of the tree, and what is there of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quota {
    /// What may be passed, and is told then.
    pub soft: Most,
    /// What may not be passed.
    pub hard: Most,
    /// How many nodes there are: the one that is limited, and those below it.
    pub nodes: u64,
    /// How many bytes they have, without their paths and lists.
    pub bytes: u64,
}

/// The most that there may be; none where there is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Most {
    /// Of nodes.
    pub nodes: Option<u64>,
    /// Of bytes.
    pub bytes: Option<u64>,
}

impl Most {
    fn has_room(&self, nodes: u64, bytes: u64) -> bool {
        let fits = |is: u64, most: Option<u64>| most.is_none_or(|most| is <= most);
        fits(nodes, self.nodes) && fits(bytes, self.bytes)
    }
}

impl Quota {
    /// Reads limits. An empty text has none, nor has one that says less than 0.
    ///
    /// # Errors
    /// [`Failure::BadArguments`]: they cannot be read.
    pub fn of(data: Option<&Bytes>) -> Result<Quota, Failure> {
        let text = core::str::from_utf8(data.map_or(&[], |data| &data[..]));
        let mut quota = Quota::default();
        let pairs = text.map_err(|_| Failure::BadArguments)?.split([',', ';']);
        for pair in pairs.filter(|pair| !pair.is_empty()) {
            // What is behind a second `=` keeps old readers from reading on.
            let mut parts = pair.split('=');
            let name = parts.next().unwrap_or_default();
            let number: i64 = match parts.next() {
                Some("") => -1,
                number => number.and_then(|it| it.parse().ok()).ok_or(Failure::BadArguments)?,
            };
            let most = u64::try_from(number).ok();
            match name {
                "count" => quota.soft.nodes = most,
                "bytes" => quota.soft.bytes = most,
                "countHardLimit" => quota.hard.nodes = most,
                "byteHardLimit" => quota.hard.bytes = most,
                _ => {}
            }
        }
        Ok(quota)
    }

    /// What is there, as it is shown.
    #[must_use]
    pub fn text(&self) -> Bytes {
        format!("count={},bytes={}", self.nodes, self.bytes).into()
    }

    /// Whether a limit is passed, soft or hard.
    #[must_use]
    pub fn is_exceeded(&self) -> bool {
        !self.soft.has_room(self.nodes, self.bytes) || !self.hard.has_room(self.nodes, self.bytes)
    }

    /// Counts what comes or goes.
    ///
    /// # Errors
    /// [`Failure::Quota`]: there may not be as much.
    fn count(&mut self, nodes: i64, bytes: i64) -> Result<(), Failure> {
        self.nodes = self.nodes.saturating_add_signed(nodes);
        self.bytes = self.bytes.saturating_add_signed(bytes);
        let grown = |is: u64, by: i64| if by > 0 { is } else { 0 };
        let has_room = self.hard.has_room(grown(self.nodes, nodes), grown(self.bytes, bytes));
        let has_room = has_room || mutant!("tree_hard_limits_are_soft");
        has_room.then_some(()).ok_or(Failure::Quota)
    }
}

/// The path of what a node of `/zookeeper/quota` limits, if it has this name.
fn of_name<'a>(path: &'a str, name: &str) -> Option<&'a str> {
    let limited = path.strip_prefix(ROOT)?.strip_suffix(name)?.strip_suffix('/')?;
    (limited.is_empty() || limited.starts_with('/')).then_some(limited)
}

/// The path of what a node limits, if it is one that does.
pub(super) fn limited(path: &str) -> Option<&str> {
    of_name(path, LIMITS)
}

/// The node that shows what is counted of a path.
pub(super) fn stats(limited: &str) -> String {
    [ROOT, limited, "/", STATS].concat()
}

/// The quota of a path, of this very one.
fn at(on: &Execution<'_, Tree>, path: &str) -> Option<Quota> {
    match on.get(&keys::quota(path)) {
        Some(Object::Quota(quota)) => Some(*quota),
        _ => None,
    }
}

/// The quota for which a node counts, and what it is of.
fn above<'a>(on: &Execution<'_, Tree>, path: Path<'a>) -> Option<(Path<'a>, Quota)> {
    let has_some = ask::find(on, Path::of(ROOT).ok()?).is_some_and(|node| node.children > 0);
    if !has_some || !is_key(path.text()) {
        return None;
    }
    if mutant!("tree_quotas_step_over_what_is_gone") {
        on.below(&keys::quota("/")).next()?;
    }
    let key = keys::quota(path.text());
    let before = key.len() - path.text().len();
    // By their keys: the way to the first quota of what begins like this would lead over all that
    // the command has removed.
    path.whole().skip(1).take(TREE_QUOTA_NAMES_MAX).find_map(|of| {
        match on.get(&key[..before + of.text().len()]) {
            Some(Object::Quota(quota)) => Some((of, *quota)),
            _ => None,
        }
    })
}

/// What a node gets of the data that it is given: one that shows counts shows them.
///
/// # Errors
/// [`Failure::BadArguments`]: these are no limits.
pub fn given(
    on: &Execution<'_, Tree>,
    path: Path<'_>,
    data: Option<&Bytes>,
) -> Result<Option<Bytes>, Failure> {
    if limited(path.text()).is_some() {
        Quota::of(data)?;
    }
    let quota = of_name(path.text(), STATS).and_then(|limited| at(on, limited));
    Ok(quota.map(|quota| quota.text()).or_else(|| data.cloned()))
}

/// A node was made with this data.
///
/// # Errors
/// It may not be; the step has to be abandoned.
pub fn made(step: &mut Step<'_, '_>, path: Path<'_>, data: Option<&Bytes>) -> Result<(), Failure> {
    match limited(path.text()) {
        Some(limited) => begin(step, limited, Quota::of(data)?),
        None => count(step, path, 1, bytes_of(data)),
    }
}

/// What a node has is set.
///
/// # Errors
/// It may not be; the step has to be abandoned.
pub fn set(
    step: &mut Step<'_, '_>,
    path: Path<'_>,
    before: Option<&Bytes>,
    data: Option<&Bytes>,
) -> Result<(), Failure> {
    let Some(limited) = limited(path.text()) else {
        return count(step, path, 0, bytes_of(data) - bytes_of(before));
    };
    let was = at(step.on, limited);
    let Quota { soft, hard, .. } = Quota::of(data)?;
    put(step, limited, was, was.map(|was| Quota { soft, hard, ..was }));
    Ok(())
}

/// A node was removed.
pub fn removed(step: &mut Step<'_, '_>, path: Path<'_>, data: Option<&Bytes>) {
    match limited(path.text()) {
        Some(limited) => put(step, limited, at(step.on, limited), None),
        None if mutant!("tree_quotas_count_no_removals") => {}
        None => {
            let counted = count(step, path, -1, -bytes_of(data));
            invariant!(counted.is_ok(), "what makes less of it is never refused");
        }
    }
}

fn bytes_of(data: Option<&Bytes>) -> i64 {
    data.map_or(0, |data| data.len() as i64)
}

/// A part of the tree is limited from now on.
fn begin(step: &mut Step<'_, '_>, limited: &str, mut quota: Quota) -> Result<(), Failure> {
    let path = Path::of(limited)?;
    let is_alone = above(step.on, path).is_none()
        && step.on.below(&keys::quota(&[limited, "/"].concat())).next().is_none();
    let is_deep = path.whole().skip(1).count() > TREE_QUOTA_NAMES_MAX;
    if !is_key(limited) || is_deep || !is_alone {
        return Err(Failure::BadArguments);
    }
    let room = TREE_COUNTED_MAX.saturating_sub(step.on.counted());
    let mut counted = 0;
    let (children, below) = (keys::children(path), keys::below_children(path));
    let under = step.on.below(&children).chain(step.on.below(&below));
    let under = under.filter_map(|(_, object)| match object {
        Object::Node(node) => Some(node),
        _ => None,
    });
    for node in ask::find(step.on, path).into_iter().chain(under).take(room + 1) {
        counted += 1;
        quota.nodes += 1;
        quota.bytes += node.data_bytes() as u64;
    }
    step.on.count(counted);
    if counted > room && !mutant!("tree_quotas_count_all") {
        return Err(Failure::Quota);
    }
    put(step, limited, None, Some(quota));
    Ok(())
}

/// Something comes or goes at a path.
fn count(step: &mut Step<'_, '_>, path: Path<'_>, nodes: i64, bytes: i64) -> Result<(), Failure> {
    let Some((of, was)) = above(step.on, path) else { return Ok(()) };
    let mut quota = was;
    quota.count(nodes, bytes)?;
    put(step, of.text(), Some(was), Some(quota));
    Ok(())
}

/// Puts a quota in its place, or none, and shows what is counted.
fn put(step: &mut Step<'_, '_>, limited: &str, was: Option<Quota>, quota: Option<Quota>) {
    let is_over = |quota: Option<Quota>| u64::from(quota.is_some_and(|it| it.is_exceeded()));
    let known = match step.on.get(&keys::EXCEEDED) {
        Some(Object::Exceeded(known)) => *known,
        _ => 0,
    };
    let exceeded = known + is_over(quota) - is_over(was);
    if exceeded != known {
        step.on.put(keys::EXCEEDED, Object::Exceeded(exceeded));
    }
    let Some(quota) = quota else { return step.on.remove(keys::quota(limited)) };
    step.on.put(keys::quota(limited), Object::Quota(quota));
    if let Ok(path) = Path::of(&stats(limited)) {
        step.change(path, |node| node.data = Some(quota.text()));
    }
}

/// How many quotas are above one of their limits.
#[must_use]
pub fn exceeded(objects: &Objects<Tree>) -> u64 {
    match objects.get(&keys::EXCEEDED) {
        Some(Object::Exceeded(exceeded)) => *exceeded,
        _ => 0,
    }
}
