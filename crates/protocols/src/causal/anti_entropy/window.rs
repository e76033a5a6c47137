//! Which updates one question and its answer speak of.
//!
//! A clock with very many isolated counters is told in part, and what a peer lacks may be more than
//! a page holds. So an exchange is a chain of **windows** over all dots in their order, actor by
//! actor. A question tells every isolated counter of its window, and the answer says how far it
//! has come: whatever the asker lacked up to there is in its page, or in those before. The next
//! question goes on from there, so no page is sent twice, and each comes further than the one
//! before. Of the answerer's own dots the asker takes over what the window says ([`super::sync`]):
//! its base rises with every page.

use crate::causal::message::TellClock;
use crate::dots::clock::{Clock, Entry};
use crate::dots::dot::{Actor, Counter, Dot, Partition};
use alloc::collections::BTreeMap;
use quorate_kernel::limits::CLOCK_RANGES_MAX;
use serde::{Deserialize, Serialize};

/// The dots above `after`, up to and with `until`; of all dots if these are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// It begins behind this dot.
    pub after: Option<Dot>,
    /// It ends with this dot.
    pub until: Option<Dot>,
}

impl Window {
    /// Whether the window holds any dot at all, as far as one can see.
    pub(crate) fn is_sound(&self) -> bool {
        self.until.is_none_or(|until| self.after.is_none_or(|after| after < until))
    }

    /// The counter of an actor behind which the window begins; none if it begins later.
    pub(super) fn floor(&self, actor: Actor) -> Option<Counter> {
        match self.after {
            Some(after) if after.actor > actor => None,
            Some(after) if after.actor == actor => Some(after.counter),
            _ => Some(0),
        }
    }

    /// The counter of an actor with which the window ends; none if it ends before.
    fn ceiling(&self, actor: Actor) -> Option<Counter> {
        match self.until {
            Some(until) if until.actor < actor => None,
            Some(until) if until.actor == actor => Some(until.counter),
            _ => Some(Counter::MAX),
        }
    }

    /// Up to which counter an answer with this window and clock has told everything that its
    /// sender itself issued, for an asker with this base; none if that is no news.
    pub(crate) fn told(&self, peer: Actor, clock: &Clock, base: Counter) -> Option<Counter> {
        let floor = self.floor(peer)?;
        let told = self.ceiling(peer)?.min(clock.base(peer));
        // What lies between the base and the window was in no page.
        (floor <= base && base < told).then_some(told)
    }
}

/// Of how many actors one message tells as many ranges of isolated counters as of one.
const ACTORS_IN_FULL: usize = 8;

impl TellClock {
    /// A clock as it is told: of very many isolated counters the lower ones. Less than is known is
    /// safe to tell.
    #[must_use]
    pub fn of(clock: &Clock) -> TellClock {
        TellClock::behind(None, clock, CLOCK_RANGES_MAX).0
    }

    /// Says of an actor nothing above a counter.
    pub(super) fn lower(&mut self, actor: Actor, most: Counter) {
        let entries = self.0.iter_mut().filter(|(told, _)| *told == actor);
        entries.for_each(|(_, entry)| entry.lower(most));
    }

    /// A clock as it is told to ask for what lies behind a dot, with at most so many ranges of an
    /// actor, and the window in which it tells everything. Outside of that it tells bases.
    #[must_use]
    pub fn behind(after: Option<Dot>, clock: &Clock, ranges_max: usize) -> (TellClock, Window) {
        let mut room = ACTORS_IN_FULL * ranges_max;
        let mut window = Window { after, until: None };
        let mut tell = |(actor, entry): (Actor, &Entry)| {
            let mut told = entry.clone();
            match window.floor(actor) {
                Some(floor) if window.until.is_none() => told.forget_upto(floor),
                _ => told.shorten(0),
            }
            let most = room.min(ranges_max);
            if told.above().len() > most {
                // The range that finds no room begins behind the window.
                let next = told.above()[most].0;
                window.until = Some(Dot { actor, counter: next - 1 });
                told.shorten(most);
            }
            room -= told.above().len();
            (actor, told)
        };
        let told = TellClock(clock.iter().map(&mut tell).collect());
        (told, window)
    }
}

/// A chain of windows that is under way with one peer.
#[derive(Clone, Debug)]
struct Chain {
    peer: Actor,
    /// How far it has come.
    reached: Option<Dot>,
    /// Whether the peer had joined when it began, the version of its map, and its clock.
    is_joined: bool,
    map: u64,
    clock: Clock,
}

impl Chain {
    fn goes_on(&self, peer: Actor, after: Option<Dot>) -> bool {
        self.peer == peer && self.reached == after
    }

    /// Whether an answer is older than this chain: it goes on with one that was given up. A peer
    /// that has joined, knows a map or an actor, or that an actor is finished, does so for ever.
    /// One of which nothing of that is missing was sent when all of it was known, so it told what
    /// this chain is to tell.
    fn is_later_than(&self, (is_joined, map, clock): (bool, u64, &Clock)) -> bool {
        let is_known = |(actor, begun): (Actor, &Entry)| {
            clock.get(actor).is_some_and(|entry| {
                (entry.closed || !begun.closed) && (entry.left || entry.closed || !begun.left)
            })
        };
        (self.is_joined && !is_joined) || map < self.map || !self.clock.iter().all(is_known)
    }
}

/// The chains of one replica, by peer.
#[derive(Debug, Default)]
pub(crate) struct Chains(BTreeMap<Partition, Chain>);

impl Chains {
    /// Whether the answers of a peer have not come to an end.
    pub fn is_open(&self, peer: Partition) -> bool {
        self.0.contains_key(&peer)
    }

    /// An answer of a peer was not taken in.
    pub fn forget(&mut self, peer: Partition) {
        self.0.remove(&peer);
    }

    /// Whoever holds a partition anew has told nothing.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// An answer has come. If it is the end of an unbroken chain, and the peer had joined when that
    /// began: the map and the clock that it had then. All it knew then has been told now.
    pub fn take(
        &mut self,
        peer: Actor,
        covers: Window,
        (is_joined, map, clock): (bool, u64, &Clock),
    ) -> Option<(u64, Clock)> {
        let open = self.0.remove(&peer.partition);
        let mut chain = match covers.after {
            None => Chain { peer, reached: None, is_joined, map, clock: clock.clone() },
            after => {
                let told = (is_joined, map, clock);
                open.filter(|open| open.goes_on(peer, after) && !open.is_later_than(told))?
            }
        };
        if covers.until.is_none() {
            return chain.is_joined.then_some((chain.map, chain.clock));
        }
        chain.reached = covers.until;
        self.0.insert(peer.partition, chain);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn actor(partition: u16) -> Actor {
        Actor { partition: Partition(partition), ..Actor::default() }
    }

    fn window(after: Option<(u16, Counter)>, until: Option<(u16, Counter)>) -> Window {
        let dot = |(at, counter)| Dot { actor: actor(at), counter };
        Window { after: after.map(dot), until: until.map(dot) }
    }

    #[test]
    fn windows_follow_each_other_and_each_tells_all_that_was_seen_in_it() {
        let mut clock = Clock::default();
        for (at, gaps) in [(1, 600), (2, 0), (3, 10), (4, 3000)] {
            clock.entry(actor(at)).merge(&Entry::upto(3));
            for gap in 0..gaps {
                clock.entry(actor(at)).insert(5 + 2 * gap);
            }
        }
        let (mut after, mut count) = (None, 0);
        loop {
            let (told, window) = TellClock::behind(after, &clock, CLOCK_RANGES_MAX);
            let ranges: usize = told.0.iter().map(|(_, entry)| entry.above().len()).sum();
            assert!(window.after == after && window.is_sound() && ranges <= 8 * CLOCK_RANGES_MAX);
            let told = told.clock();
            for (actor, counter) in (1..=4).flat_map(|at| (1..6100).map(move |c| (actor(at), c))) {
                let dot = Dot { actor, counter };
                let is_in = after.is_none_or(|after| after < dot)
                    && window.until.is_none_or(|until| dot <= until);
                assert!(clock.contains(dot) || !told.contains(dot), "it is never told too high");
                assert!(!is_in || told.contains(dot) == clock.contains(dot), "{dot:?}");
            }
            count += 1;
            let Some(until) = window.until else { break };
            after = Some(until);
        }
        assert_eq!(count, 1 + 600 / 256 + 3000 / 256);
    }

    #[test]
    fn of_the_own_dots_of_who_answers_only_those_are_told_that_join_the_base() {
        let clock: Clock = [(actor(2), Entry::upto(90))].into_iter().collect();
        for (after, until, base, told) in [
            (None, None, 7, Some(90)),
            (None, None, 90, None),
            (None, Some((2, 40)), 7, Some(40)),
            (None, Some((2, 400)), 7, Some(90)),
            (None, Some((2, 40)), 41, None),
            (None, Some((1, 99)), 7, None),
            (None, Some((3, 1)), 7, Some(90)),
            (Some((1, 99)), None, 7, Some(90)),
            (Some((2, 40)), None, 40, Some(90)),
            // The answer before has not arrived.
            (Some((2, 40)), None, 7, None),
            (Some((3, 1)), None, 7, None),
        ] {
            let window = window(after, until);
            assert_eq!(window.told(actor(2), &clock, base), told, "{window:?}");
        }
    }

    #[test]
    fn all_was_told_only_by_an_unbroken_chain() {
        let (mut chains, clock) = (Chains::default(), Clock::default());
        let mut take = |after, until, map| {
            // It has joined with its sixth map.
            let state = (map >= 6, map, &clock);
            let ended = chains.take(actor(2), window(after, until), state);
            (ended.map(|(map, _)| map), chains.is_open(Partition(2)))
        };
        assert_eq!(take(None, None, 6), (Some(6), false));
        assert_eq!(take(None, Some((1, 5)), 7), (None, true));
        assert_eq!(take(Some((1, 5)), Some((2, 7)), 8), (None, true));
        assert_eq!(take(Some((2, 7)), None, 9), (Some(7), false), "what was known at its begin");
        assert_eq!(take(None, Some((1, 5)), 7), (None, true));
        assert_eq!(take(Some((1, 6)), None, 8), (None, false), "an answer is missing");
        assert_eq!(take(Some((1, 5)), None, 9), (None, false));
        assert_eq!(take(None, Some((1, 5)), 5), (None, true));
        assert_eq!(take(Some((1, 5)), None, 6), (None, false), "it learned more while it told");
        assert_eq!(take(None, None, 5), (None, false));
    }

    /// An answer that was on its way for long goes on with a chain that was given up, and fits one
    /// that began later as far as windows go. What its sender learned in between was never told.
    #[test]
    fn a_late_answer_of_an_older_chain_does_not_end_a_later_one() {
        let over = |left| -> Clock {
            let mut entry = Entry::upto(3);
            entry.left = left;
            [(actor(9), entry)].into_iter().collect()
        };
        let (before, later) = (over(false), over(true));
        let begin = window(None, Some((1, 5)));
        let end = window(Some((1, 5)), None);
        let begun = || {
            let mut chains = Chains::default();
            assert_eq!(chains.take(actor(2), begin, (false, 6, &before)), None);
            assert_eq!(chains.take(actor(2), begin, (true, 7, &later)), None);
            chains
        };
        for late in [(true, 7, &before), (false, 7, &later), (true, 6, &later)] {
            assert_eq!(begun().take(actor(2), end, late), None, "{late:?}");
        }
        let closed = {
            let mut clock = later.clone();
            clock.close(actor(9));
            clock
        };
        let told = begun().take(actor(2), end, (true, 8, &closed));
        assert_eq!(told, Some((7, later)), "a peer learns while it tells");
    }
}
