//! Causal contexts: what an object, or a client, knows to be in the past (DottedDB §IV-C).
//!
//! A context says for each actor one counter: every update *of this key* by that actor up to there
//! is in the past, or is one of the versions beside the context. Counters of other keys lie in
//! between and do no harm. Of an actor that is closed it says [`ALL`]: everything of it, and of
//! every earlier actor of its partition. So it names one closed actor of a partition at most.

use super::clock::Clock;
use super::dot::{ALL, Actor, Counter, Dot};
use super::sorted::SortedMap;

/// Up to which counter of each actor every update of a key is in the past.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CausalContext {
    counters: SortedMap<Actor, Counter>,
}

impl CausalContext {
    /// Whether an update is in it.
    #[must_use]
    pub fn covers(&self, dot: Dot) -> bool {
        dot.counter <= self.upto(dot.actor)
    }

    /// Up to which counter it covers an actor.
    #[must_use]
    pub fn upto(&self, actor: Actor) -> Counter {
        let from = self.counters.range_from(actor);
        let own = from.first().filter(|(at, _)| *at == actor);
        if is_under(actor, from) { ALL } else { own.map_or(0, |(_, counter)| *counter) }
    }

    /// Adds every update of an actor up to a counter; 0 adds nothing.
    pub fn raise(&mut self, actor: Actor, counter: Counter) {
        if counter == 0 || is_under(actor, self.counters.range_from(actor)) {
            return;
        }
        if counter == ALL {
            self.counters.retain(|at, _| at.partition != actor.partition || at >= actor);
        }
        let known = self.counters.entry(actor);
        *known = counter.max(*known);
    }

    /// Adds all that another context covers.
    pub fn merge(&mut self, other: &CausalContext) {
        other.iter().for_each(|(actor, counter)| self.raise(actor, counter));
    }

    /// Takes out what a clock says anyway.
    pub fn strip(&mut self, clock: &Clock) {
        self.retain(|actor, counter| !clock.get(actor).is_some_and(|entry| entry.implies(counter)));
    }

    /// Keeps the entries for which this holds.
    pub fn retain(&mut self, mut keep: impl FnMut(Actor, Counter) -> bool) {
        self.counters.retain(|actor, counter| keep(actor, *counter));
    }

    /// The entries in the order of actors.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Actor, Counter)> + '_ {
        self.counters.iter().map(|(actor, counter)| (*actor, *counter))
    }

    /// How many actors it names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.counters.len()
    }

    /// Whether it covers nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counters.is_empty()
    }
}

/// Whether one of these entries, from an actor on, closes it.
fn is_under(actor: Actor, later: &[(Actor, Counter)]) -> bool {
    let mut its = later.iter().take_while(|(at, _)| at.partition == actor.partition);
    its.any(|(_, counter)| *counter == ALL)
}

impl FromIterator<(Actor, Counter)> for CausalContext {
    fn from_iter<I: IntoIterator<Item = (Actor, Counter)>>(entries: I) -> CausalContext {
        let mut context = CausalContext::default();
        entries.into_iter().for_each(|(actor, counter)| context.raise(actor, counter));
        context
    }
}
