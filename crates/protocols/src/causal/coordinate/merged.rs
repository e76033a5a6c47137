//! What the replies to a get say together.
//!
//! Who has closed an actor has heard all that was left of it then, and what it lacks of that was
//! replaced. But another replica may have answered before, and be lost since with what it alone
//! had: that was not replaced, and other dots of the same writes must stay. So where one reply has
//! a write that another has in its past by such an actor, all are asked anew: who is there answers
//! for the time after the actor was closed. One that has the write yet lags behind, or is gone by a
//! map that this node has not heard of.

use crate::causal::map::Map;
use crate::dots::context::CausalContext;
use crate::dots::dot::{ALL, Dot, Partition};
use crate::dots::object::{Object, Version};
use alloc::collections::{BTreeMap, BTreeSet};
use quorate_kernel::mutant;

/// What replicas have said.
pub(super) type Replies = BTreeMap<Partition, Object>;

/// The named versions that are in the past of another reply by an actor which that has closed; and
/// at which replica each is.
fn in_doubt(replies: &Replies) -> impl Iterator<Item = (Partition, Dot)> {
    let is_closed = |dot: &Dot| {
        let mut others = replies.values().filter(|other| !other.versions.contains_key(dot));
        others.any(|other| other.context.upto(dot.actor) == ALL)
    };
    let is_named = |(_, version): &(&Dot, &Version)| version.id.is_some();
    replies.iter().flat_map(move |(at, object)| {
        let dots = object.versions.iter().filter(is_named).map(|(dot, _)| *dot);
        dots.filter(is_closed).map(|dot| (*at, dot))
    })
}

/// The actors that somebody has closed, if all must be asked anew for any that is not among those
/// for which they were.
pub(super) fn newly_closed(replies: &Replies, known: &CausalContext) -> Option<CausalContext> {
    let is_known = |dot: Dot| known.upto(dot.actor) == ALL && !mutant!("causal_reads_for_ever");
    let is_enough = !known.is_empty() && mutant!("causal_reads_anew_once");
    let mut new = in_doubt(replies).filter(|(_, dot)| !is_known(*dot));
    if is_enough || mutant!("causal_reads_of_the_lost") || new.next().is_none() {
        return None;
    }
    let all = replies.values().flat_map(|object| object.context.iter());
    Some(all.filter(|(_, counter)| *counter == ALL).collect())
}

/// The replicas whose own actor, by this map, another one has closed: there is a newer map, by
/// which they are gone, and what they alone had is lost.
pub(super) fn outlived(replies: &Replies, map: &Map) -> BTreeSet<Partition> {
    let is_own = |(at, Dot { actor, .. }): &(Partition, Dot)| {
        let place = map.place(*at).map(|place| (place.host, place.since));
        actor.partition == *at && place == Some((actor.node, actor.since))
    };
    let own = in_doubt(replies).filter(is_own).map(|(at, _)| at);
    own.filter(|_| !mutant!("causal_reads_by_an_old_map")).collect()
}

/// What replies say together. None contradicts another: those that do were refused.
pub(super) fn merge_all(mut objects: impl Iterator<Item = Object>) -> Object {
    let mut merged = objects.next().unwrap_or_default();
    objects.for_each(|object| {
        merged.gather(object);
    });
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dots::dot::Actor;
    use bytes::Bytes;
    use quorate_kernel::write::WriteId;

    fn dot(at: u16) -> Dot {
        Dot { actor: Actor { partition: Partition(at), ..Actor::default() }, counter: 3 }
    }

    /// The first has versions of these, the second has closed those.
    fn replies(versions: &[u16], closed: &[u16]) -> Replies {
        let version = |at: &u16| {
            let id = Some(WriteId(u128::from(*at)));
            (dot(*at), Version { id, value: Bytes::new() })
        };
        let versions = versions.iter().map(version).collect();
        let context = closed.iter().map(|at| (dot(*at).actor, ALL)).collect();
        let one = Object { versions, ..Object::default() };
        let other = Object { context, ..Object::default() };
        Replies::from([(Partition(1), one), (Partition(2), other)])
    }

    #[test]
    fn all_are_asked_anew_once_for_each_actor() {
        let mut known = CausalContext::default();
        for (closed, is_new) in [(&[7][..], true), (&[7], false), (&[7, 8], true), (&[8], false)] {
            let newly = newly_closed(&replies(&[7, 8], closed), &known);
            assert_eq!(newly.is_some(), is_new, "{closed:?} beside {known:?}");
            newly.iter().for_each(|newly| known.merge(newly));
        }
        let mut unnamed = replies(&[9], &[9]);
        for object in unnamed.values_mut() {
            object.versions.values_mut().for_each(|version| version.id = None);
        }
        assert_eq!(newly_closed(&unnamed, &known), None, "it has no other dot");
    }
}
