//! What the transactions of this host's clients are called: as those of one client of the groups,
//! with counters that rise.

use crate::serializable::rules::{COUNTER_AHEAD_MS, COUNTERS_PER_MS, counter_of};
use crate::serializable::{Client, TxId, WallMs};
use alloc::collections::BTreeSet;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::rng::mix;

/// By how much a counter that is told may be above those that are known: groups take no higher one.
/// One group alone may ask for more, if its clock was ahead once: others would take no name then.
const COUNTER_AHEAD_MAX: u64 = COUNTER_AHEAD_MS * COUNTERS_PER_MS;
/// By how much clocks of hosts may differ without a word of it to be said.
const CLOCKS_DIFFER_MS: WallMs = 60 * 60 * 1000;

/// The names.
#[derive(Debug, Default)]
pub struct Names {
    /// The name of this start as a client of the groups.
    me: Client,
    /// The highest counter that was given out or seen.
    counter: u64,
    /// Groups have said that they take none that is not above this one.
    floor: u64,
    /// Counters of others are believed below this one: by the clock, when a name was given last.
    ceiling: u64,
    /// The transactions whose end is not known.
    pub open: BTreeSet<(Client, u64)>,
}

impl Names {
    /// A start begins: as a client of the groups it is none that there was before.
    pub fn begin(&mut self, me: Incarnation, drawn: u64, now: WallMs) {
        self.me = Client(mix(me.node.0 ^ mix(u64::from(me.start.0))) ^ drawn);
        self.counter = TxId::first(self.me, now).counter;
        self.ceiling = highest(now);
        if mutant!("lane_names_used_twice") {
            (self.me, self.counter) = (Client(mix(me.node.0)), 0);
        }
    }

    /// A name for a transaction, no lower than the first at this time: what is under way must not
    /// look as old as the start of this host.
    ///
    /// Groups take no counter that is far ahead of time, and counters of one client only rise. So
    /// where the clock was ahead once, others go on as those of another client. What a group has
    /// asked for is kept to: it may be ahead itself.
    pub fn name(&mut self, now: WallMs) -> TxId {
        self.ceiling = highest(now);
        let is_asked_for = self.counter <= self.floor.saturating_add(counter_of(CLOCKS_DIFFER_MS))
            && !mutant!("lane_counts_below_again");
        let is_ahead = self.counter >= self.ceiling && !is_asked_for;
        if is_ahead && !mutant!("lane_counts_ahead_for_ever") {
            self.me = Client(mix(self.me.0));
            self.counter = TxId::first(self.me, now).counter.max(self.floor);
        }
        self.counter += 1;
        if !mutant!("lane_counts_without_time") && !mutant!("lane_names_used_twice") {
            self.counter = self.counter.max(TxId::first(self.me, now).counter);
        }
        let is_new = self.open.insert((self.me, self.counter));
        invariant!(is_new, "a counter is given out once");
        TxId { counter: self.counter, client: self.me }
    }

    /// Whether a name was given out by this start.
    pub fn is_own(&self, tx: TxId) -> bool {
        let is_open = self.open.contains(&(tx.client, tx.counter));
        is_open || (tx.client == self.me && tx.counter <= self.counter)
    }

    /// Below this, the ends of all transactions are known.
    pub fn mark(&self) -> u64 {
        let mut open = self.open.range((self.me, 0)..=(self.me, u64::MAX));
        let open = open.next().filter(|_| !mutant!("lane_marks_what_is_open"));
        open.map_or(self.counter + 1, |(_, counter)| *counter)
    }

    /// It is known how a transaction ended, or it was never asked for.
    pub fn close(&mut self, tx: TxId) {
        self.open.remove(&(tx.client, tx.counter));
    }

    /// A counter of another client: new ones are above it, so that nobody goes before those that
    /// wait.
    pub fn saw(&mut self, tx: TxId) {
        if tx.counter < self.ceiling {
            self.counter = self.counter.max(tx.counter);
        }
    }

    /// A group takes no counters of this client below this one any more. Nobody is believed that
    /// they are further ahead than groups take any.
    pub fn count_from(&mut self, client: Client, lowest: u64) {
        let below = lowest.saturating_sub(1);
        let is_far = below.saturating_sub(self.counter) > COUNTER_AHEAD_MAX;
        if client == self.me && !is_far && !mutant!("lane_counts_below") {
            (self.counter, self.floor) = (self.counter.max(below), self.floor.max(below));
        }
    }
}

/// The counter from which on one is so far ahead of a clock that some groups may not take it.
fn highest(now: WallMs) -> u64 {
    counter_of(now.saturating_add(COUNTER_AHEAD_MS - CLOCKS_DIFFER_MS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serializable::rules::check_counter;
    use quorate_kernel::ids::{NodeId, Start};

    const NOW: WallMs = 1_700_000_000_000;

    fn names() -> Names {
        let mut names = Names::default();
        names.begin(Incarnation { node: NodeId(1), start: Start(1) }, 7, NOW);
        names
    }

    #[test]
    fn a_clock_that_was_ahead_once_ends_no_names() {
        let mut names = names();
        let first = names.name(NOW);
        let ahead = names.name(NOW + 3 * COUNTER_AHEAD_MS);
        assert!(check_counter(ahead, NOW).is_err(), "groups take none that is so far ahead");
        let after = names.name(NOW + 1);
        assert_eq!(check_counter(after, NOW + 1), Ok(()));
        assert!(after.client != ahead.client && after.counter > first.counter);
        assert!([first, ahead, after].into_iter().all(|tx| names.is_own(tx)));
        assert_eq!(names.mark(), after.counter, "it says nothing of the names of another client");
        names.count_from(ahead.client, ahead.counter + 1);
        names.close(ahead);
        assert!(!names.is_own(ahead) && names.name(NOW + 1).counter == after.counter + 1);
    }

    #[test]
    fn what_a_group_asks_for_is_kept_to_though_it_is_far_ahead() {
        let mut names = names();
        let first = names.name(NOW);
        let lowest = counter_of(NOW + COUNTER_AHEAD_MS - CLOCKS_DIFFER_MS / 2);
        names.count_from(first.client, lowest);
        let next = [names.name(NOW), names.name(NOW + 1)];
        assert_eq!(next.map(|tx| tx.counter), [lowest, lowest + 1]);
        assert_eq!(next.map(|tx| tx.client), [first.client; 2], "nor is it another client's");
        // Also where the clock was further ahead meanwhile.
        assert_ne!(names.name(NOW + 3 * COUNTER_AHEAD_MS).client, Client::default());
        assert_eq!(names.name(NOW + 2).counter, lowest);
        // A group whose clock was days ahead once takes none of what others take.
        let mut late = self::names();
        let first = late.name(NOW);
        late.count_from(first.client, counter_of(NOW + 3 * COUNTER_AHEAD_MS));
        assert_eq!(late.name(NOW).counter, first.counter + 1);
        // Of others that are so far ahead none is believed.
        names.saw(TxId { counter: lowest + 99, client: Client(7) });
        assert_eq!(names.name(NOW + 2).counter, lowest + 1);
    }

    #[test]
    fn clocks_that_differ_a_little_change_no_name() {
        let mut names = names();
        let first = names.name(NOW);
        let ahead = names.name(NOW + COUNTER_AHEAD_MS / 2);
        let back = names.name(NOW - COUNTER_AHEAD_MS / 4);
        assert_eq!((back.client, back.counter), (first.client, ahead.counter + 1));
        assert_eq!(names.mark(), first.counter);
    }
}
