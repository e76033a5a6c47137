//! What a node measures of its network, and what K follows from.
//!
//! Each period a node sends its view to a neighbour, which answers. The share of questions that are
//! answered is that of pairs of messages which both arrive, so its root is the share of single
//! ones; neighbours that are gone count as lost, as balls to them are. K is divided by it (EpTO,
//! §4), so only K grows: TTL stands in each event, and follows from the number of nodes alone. Nor
//! does a node change its round, which must be the same everywhere; how long messages take is shown
//! to the operator, who can alter it.
//!
//! A node that stands still finds answers late that came in time. So answers count when the round
//! is over in which they came, if the node's own timer was not late by then.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::time::{Span, Time};

/// Of how many questions the share is taken.
const QUESTIONS_MAX: usize = 256;
/// With fewer nothing is known.
const QUESTIONS_MIN: usize = 64;
/// After how many rounds a question is not answered any more.
const ANSWER_ROUNDS: u64 = 8;
const MILLION: u64 = 1_000_000;

/// The questions of the last periods.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    open: BTreeMap<NodeId, (u64, Time)>,
    /// How long the answers of this round took: they count if it ends in time.
    fresh: Vec<Span>,
    /// How long each answer took; none if none came.
    ended: VecDeque<Option<Span>>,
}

impl Measured {
    /// A round begins, in which this neighbour is asked.
    pub fn ask(&mut self, to: NodeId, round: u64, now: Time) {
        if self.open.insert(to, (round, now)).is_some() {
            self.end(None);
        }
    }

    /// A round has passed. If this node's timer was late nothing is known of the network: neither
    /// from what was found here since, nor from what is still to be answered.
    pub fn on_round(&mut self, round: u64, is_late: bool) {
        let fresh = core::mem::take(&mut self.fresh);
        if is_late && !mutant!("epidemic_pause_is_latency") {
            self.open.clear();
            // What was measured before says less with each such round, but more than nothing.
            if self.ended.len() > QUESTIONS_MIN {
                self.ended.pop_front();
            }
            return;
        }
        fresh.into_iter().for_each(|took| self.end(Some(took)));
        let before = self.open.len();
        self.open.retain(|_, (asked, _)| round < *asked + ANSWER_ROUNDS);
        (self.open.len()..before).for_each(|_| self.end(None));
    }

    /// A neighbour has answered.
    pub fn answer(&mut self, from: NodeId, now: Time) {
        if let Some((_, asked)) = self.open.remove(&from) {
            self.fresh.push(now - asked);
        }
    }

    fn end(&mut self, took: Option<Span>) {
        if self.ended.len() == QUESTIONS_MAX {
            self.ended.pop_front();
        }
        self.ended.push_back(took);
    }

    /// How many of a million messages arrive; none if too little is known.
    #[must_use]
    pub fn surviving_ppm(&self) -> Option<u32> {
        let all = u64::try_from(self.ended.len()).expect("few are kept");
        let answered = self.ended.iter().filter(|took| took.is_some()).count() as u64;
        let both = (answered * MILLION * MILLION).checked_div(all)?;
        let is_known = self.ended.len() >= QUESTIONS_MIN && !mutant!("epidemic_loss_unmeasured");
        is_known.then(|| u32::try_from(both.isqrt()).expect("a share of a million"))
    }

    /// The longest time that messages take one way, but for one in a hundred; 0 if none was seen.
    #[must_use]
    pub fn latency(&self) -> Span {
        let mut took: Vec<u64> = self.ended.iter().flatten().map(|took| took.0 / 2).collect();
        took.sort_unstable();
        let place = (took.len() * 99).div_ceil(100).saturating_sub(1);
        Span(took.get(place).copied().unwrap_or(0))
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        assert!(self.ended.len() <= QUESTIONS_MAX, "few questions are remembered");
        assert!(self.open.len() <= QUESTIONS_MAX, "few are open");
        assert!(self.fresh.len() <= QUESTIONS_MAX, "few are answered in a round");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_messages_is_the_root_of_that_of_answers() {
        let mut measured = Measured::default();
        for round in 0..300_u64 {
            let now = Time(1000 * round);
            measured.ask(NodeId(round % 50), round, now);
            assert!(round >= QUESTIONS_MIN as u64 || measured.surviving_ppm().is_none());
            // A quarter is answered, some later than others.
            if round % 4 == 0 {
                measured.answer(NodeId(round % 50), now + Span(20 + round % 8));
            }
            measured.answer(NodeId(99), now);
            measured.on_round(round, false);
            measured.check();
        }
        let share = measured.surviving_ppm().expect("enough were asked");
        assert!((490_000..=520_000).contains(&share), "{share} of a million");
        assert_eq!(measured.latency(), Span(12));
        assert_eq!(Measured::default().latency(), Span(0));
    }

    /// Whichever comes first when a node goes on: the answer, or its timer.
    #[test]
    fn what_was_late_because_of_this_node_is_not_counted() {
        for is_timer_first in [false, true] {
            let (mut measured, other) = (Measured::default(), NodeId(1));
            let mut now = Time(0);
            for round in 0..100_u64 {
                measured.ask(other, round, now);
                let is_late = round % 10 == 3;
                let took = Span(if is_late { 9_000 } else { 20 });
                if is_timer_first && is_late {
                    measured.on_round(round, true);
                }
                measured.answer(other, now + took);
                if !(is_timer_first && is_late) {
                    measured.on_round(round, is_late);
                }
                now = now + took + Span(100);
            }
            assert_eq!(measured.latency(), Span(10));
            assert_eq!(measured.surviving_ppm(), Some(1_000_000), "nothing was lost");
            measured.check();
        }
    }
}
