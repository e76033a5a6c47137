//! What the replies to a get say together.
//!
//! Who has closed an actor has heard all that was left of it then, and what it lacks of that was
//! replaced. But another replica may have answered before, and be lost since with what it alone
//! had: that was not replaced, and other dots of the same writes must stay. So where one reply has
//! a write that another has in its past by such an actor, all are asked anew: who is there answers
//! for the time after the actor was closed. One that has the write yet lags behind, or is gone by a
//! map that this node has not heard of.

use crate::dots::context::CausalContext;
use crate::dots::dot::{ALL, Actor, Counter, Dot, Partition};
use crate::dots::object::{Object, Version};
use alloc::collections::{BTreeMap, BTreeSet};
use quorate_kernel::mutant;

/// What a replica has said.
#[derive(Clone, Debug)]
pub(crate) struct ReadReply {
    /// Since which map its host held the partition, by the one that was known when it came.
    pub since: u64,
    /// What it has of the key.
    pub object: Object,
}

/// What replicas have said.
pub(crate) type ReadReplies = BTreeMap<Partition, ReadReply>;

/// The named versions that are in the past of another reply by an actor which that has closed; and
/// at which replica each is.
fn in_doubt(replies: &ReadReplies) -> impl Iterator<Item = (Partition, Dot)> {
    let objects = || replies.values().map(|reply| &reply.object);
    let is_closed = move |dot: &Dot| {
        let mut others = objects().filter(|other| !other.versions.contains_key(dot));
        others.any(|other| other.context.upto(dot.actor) == ALL)
    };
    let is_named = |(_, version): &(&Dot, &Version)| {
        version.id.is_some() && !mutant!("causal_reads_of_the_lost")
    };
    replies.iter().flat_map(move |(at, ReadReply { object, .. })| {
        let dots = object.versions.iter().filter(is_named).map(|(dot, _)| *dot);
        dots.filter(is_closed).map(|dot| (*at, dot))
    })
}

/// The actors that these have closed.
fn closed(replies: &ReadReplies) -> impl Iterator<Item = (Actor, Counter)> {
    let all = replies.values().flat_map(|reply| reply.object.context.iter());
    all.filter(|(_, counter)| *counter == ALL)
}

/// The actors that somebody has closed, if all must be asked anew for any that is not among those
/// for which they were.
pub(super) fn newly_closed(replies: &ReadReplies, known: &CausalContext) -> Option<CausalContext> {
    let is_known = |dot: Dot| known.upto(dot.actor) == ALL && !mutant!("causal_reads_for_ever");
    let is_enough = !known.is_empty() && mutant!("causal_reads_anew_once");
    let mut new = in_doubt(replies).filter(|(_, dot)| !is_known(*dot));
    if is_enough || new.next().is_none() {
        return None;
    }
    Some(closed(replies).collect())
}

/// The replicas that have such a write, where somebody has closed who held their partition when
/// they answered, or later: by a newer map they are gone, and what they alone had is lost. Or they
/// have lost data since, and lag behind: then they count again when they have heard of it.
pub(super) fn outlived(replies: &ReadReplies) -> BTreeSet<Partition> {
    let is_over = |at: &Partition| {
        let mut of_partition = closed(replies).filter(|(actor, _)| actor.partition == *at);
        of_partition.any(|(actor, _)| actor.since >= replies[at].since)
    };
    let over = in_doubt(replies).map(|(at, _)| at).filter(is_over);
    over.filter(|_| !mutant!("causal_reads_by_an_old_map")).collect()
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
    use bytes::Bytes;
    use quorate_kernel::write::WriteId;

    fn dot(at: u16) -> Dot {
        Dot { actor: Actor { partition: Partition(at), ..Actor::default() }, counter: 3 }
    }

    /// The first has versions of these, the second has closed those.
    fn replies(versions: &[u16], closed: &[u16]) -> ReadReplies {
        let version = |at: &u16| {
            let id = Some(WriteId(u128::from(*at)));
            (dot(*at), Version { id, value: Bytes::new() })
        };
        let versions = versions.iter().map(version).collect();
        let context = closed.iter().map(|at| (dot(*at).actor, ALL)).collect();
        let one = Object { versions, ..Object::default() };
        let other = Object { context, ..Object::default() };
        let reply = |object| ReadReply { since: 0, object };
        ReadReplies::from([(Partition(1), reply(one)), (Partition(2), reply(other))])
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
        for reply in unnamed.values_mut() {
            reply.object.versions.values_mut().for_each(|version| version.id = None);
        }
        assert_eq!(newly_closed(&unnamed, &known), None, "it has no other dot");
    }

    /// Whose it is that somebody has closed counts by its partition and when it began, not by whose
    /// the write is.
    #[test]
    fn who_is_closed_itself_is_over_and_who_lags_is_not() {
        let of = |since, closed: Actor| {
            let mut replies = replies(&[7], &[7]);
            replies.get_mut(&Partition(1)).expect("it is there").since = since;
            let other = &mut replies.get_mut(&Partition(2)).expect("it is there").object;
            other.context.raise(closed, ALL);
            outlived(&replies)
        };
        let at =
            |partition, since| Actor { partition: Partition(partition), since, ..Actor::default() };
        assert_eq!(of(4, at(1, 4)), BTreeSet::from([Partition(1)]));
        assert_eq!(of(4, at(1, 5)), BTreeSet::from([Partition(1)]));
        assert_eq!(of(4, at(1, 3)), BTreeSet::new(), "an earlier holder is closed");
        assert_eq!(of(4, at(3, 5)), BTreeSet::new());
    }
}
