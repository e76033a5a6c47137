//! What a client has seen of a key: a context, and the names of the writes in it that have any.
//!
//! A context tells by dots what is in the past. But a write that was sent again has two of them,
//! and a client may have read the one at a host that was lost before anybody else heard of it. Of
//! the other dot nobody could say then that it is the same write
//! ([`crate::causal::replicate::twins`]), and what the client replaces would stay, or be done once
//! more. So a context carries names with their dots, and who writes with it tells them: its replica
//! takes such a dot for seen, as what it stores covers it, and passes the name on as that of any
//! other dot.

use crate::causal::message::NAMES_BYTES_MAX;
use crate::dots::context::CausalContext;
use crate::dots::dot::Dot;
use crate::dots::object::Object;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::mutant;
use quorate_kernel::write::WriteId;

/// How many names one context carries at most.
const NAMES_MAX: usize = 64;

/// How many bytes one name and its dot have at most in the head of a message.
const NAME_BYTES_MAX: usize = 64;

const _: () = assert!(NAMES_MAX * NAME_BYTES_MAX <= NAMES_BYTES_MAX);

/// What a client has seen of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// What is in the past.
    pub context: CausalContext,
    /// The names of writes in it, by dots that it covers.
    pub names: BTreeMap<Dot, WriteId>,
}

impl Seen {
    /// What who reads this object sees.
    pub(crate) fn of(object: &Object) -> Seen {
        let versions = object.versions.iter();
        let there = versions.filter_map(|(dot, version)| Some((*dot, version.id?)));
        Seen::new(object.context.clone(), there.chain(newest_first(&object.replaced)))
    }

    /// A context with these names, but for those that it does not cover.
    pub(crate) fn new(
        context: CausalContext,
        names: impl IntoIterator<Item = (Dot, WriteId)>,
    ) -> Seen {
        let covered = names.into_iter().filter(|(dot, _)| context.covers(*dot));
        let names = covered.take(if mutant!("nameless_contexts") { 0 } else { NAMES_MAX });
        Seen { names: names.collect(), context }
    }

    /// The names as they are told.
    pub(super) fn tell_names(&self) -> Vec<(Dot, WriteId)> {
        self.names.iter().map(|(dot, name)| (*dot, *name)).collect()
    }
}

/// The newest of each actor first: who sends a write again does so soon.
fn newest_first(names: &BTreeMap<Dot, WriteId>) -> impl Iterator<Item = (Dot, WriteId)> {
    let (mut ranked, mut rank, mut of) = (Vec::with_capacity(names.len()), 0, None);
    for (dot, name) in names.iter().rev() {
        rank = if of == Some(dot.actor) { rank + 1 } else { 0 };
        of = Some(dot.actor);
        ranked.push((rank, *dot, *name));
    }
    ranked.sort_unstable();
    ranked.into_iter().map(|(_, dot, name)| (dot, name))
}

impl From<CausalContext> for Seen {
    fn from(context: CausalContext) -> Seen {
        Seen { context, ..Seen::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dots::dot::{Actor, Partition};
    use crate::dots::object::Version;
    use bytes::Bytes;

    /// Who sends a write again does so soon: the older a name is, the less it is of use.
    #[test]
    fn of_very_many_names_those_of_values_and_the_newest_of_each_actor_are_told() {
        let dot = |at, counter| Dot {
            actor: Actor { partition: Partition(at), ..Actor::default() },
            counter,
        };
        let mut object = Object::default();
        let version = Version { id: Some(WriteId(7)), value: Bytes::new() };
        object.versions.insert(dot(2, 1), version);
        for (at, last) in [(1, 1000), (2, 20), (3, 500)] {
            object.context.raise(dot(at, 1).actor, last);
            object.replaced.extend((2..=last).map(|n| (dot(at, n), WriteId(n.into()))));
        }
        let names = Seen::of(&object).names;
        let of = |at: u16| -> Vec<u64> {
            let its = names.keys().filter(|dot| dot.actor.partition.0 == at);
            its.map(|dot| dot.counter).collect()
        };
        assert_eq!(names.len(), NAMES_MAX);
        assert_eq!(of(2), Vec::from_iter(1..=20));
        assert_eq!((of(1), of(3)), (Vec::from_iter(979..=1000), Vec::from_iter(479..=500)));
    }
}
