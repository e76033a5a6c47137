//! What the replies to a get say together.

use crate::dots::context::CausalContext;
use crate::dots::dot::{ALL, Dot, Partition};
use crate::dots::object::{Object, Version};
use alloc::collections::BTreeMap;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;

/// The actors that one of these has closed, if that is why it has a write in its past of which
/// another has a version; but for those that are known to be closed.
///
/// Who has closed an actor has heard all that was left of it then, and what it lacks of that was
/// replaced. But another one may have answered before, and be lost since with what it alone had:
/// that was not replaced, and other dots of the same writes must stay. Asked anew, who is there
/// answers for the time after the actor was closed.
pub(super) fn newly_closed(
    replies: &BTreeMap<Partition, (NodeId, Object)>,
    known: &CausalContext,
) -> Option<CausalContext> {
    let objects = || replies.values().map(|(_, object)| object);
    let is_known = |dot: &Dot| known.upto(dot.actor) == ALL && !mutant!("causal_reads_for_ever");
    let is_closed = |dot: &Dot| {
        let mut others = objects().filter(|other| !other.versions.contains_key(dot));
        others.any(|other| other.context.upto(dot.actor) == ALL)
    };
    let is_in_doubt =
        |(dot, one): (&Dot, &Version)| one.id.is_some() && !is_known(dot) && is_closed(dot);
    if mutant!("causal_reads_of_the_lost")
        || !objects().any(|it| it.versions.iter().any(is_in_doubt))
    {
        return None;
    }
    let all = objects().flat_map(|object| object.context.iter());
    Some(all.filter(|(_, counter)| *counter == ALL).collect())
}

/// What replies say together. None contradicts another: those that do were refused.
pub(super) fn merge_all(mut objects: impl Iterator<Item = Object>) -> Object {
    let mut merged = objects.next().unwrap_or_default();
    objects.for_each(|object| {
        merged.gather(object);
    });
    merged
}
