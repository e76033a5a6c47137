//! Pacing of background work that others ask for: questions wait in line, and are answered in small
//! pieces that leave room for clients.
//!
//! In one turn no more is done than clients can wait for; the rest follows in later turns, between
//! which the host reads its clients, and after a pause if operations have become slow
//! ([`throttle`]).

pub mod piece;
pub mod throttle;

use alloc::collections::VecDeque;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::limits::{SERVING_MAX, TURN_BYTES_MAX};
use quorate_kernel::time::{Span, Time};
use throttle::Throttle;

/// A question that can wait.
pub trait Pending {
    /// Whether this is the other one, asked again, or what is asked in its place.
    fn replaces(&self, other: &Self) -> bool;
}

/// The questions that wait, at most [`SERVING_MAX`] of them, and when the next one may be answered.
#[derive(Debug)]
pub struct Pacing<Q> {
    waiting: VecDeque<(Incarnation, Q)>,
    /// About how many bytes were handled since the last pause.
    spent: usize,
    /// Nothing is answered before.
    next_at: Time,
    throttle: Throttle,
}

impl<Q> Default for Pacing<Q> {
    fn default() -> Pacing<Q> {
        let (waiting, throttle) = (VecDeque::new(), Throttle::default());
        Pacing { waiting, spent: 0, next_at: Time(0), throttle }
    }
}

impl<Q: Pending> Pacing<Q> {
    /// Puts a question in line, or in the place of the asker's that it replaces: an asker asks for
    /// the next piece when it has the last one, or again when it has waited too long.
    pub fn push(&mut self, asker: Incarnation, question: Q) {
        let is_same = |(other, waiting): &&mut (Incarnation, Q)| {
            other.node == asker.node && question.replaces(waiting)
        };
        if let Some(place) = self.waiting.iter_mut().find(is_same) {
            *place = (asker, question);
        } else if self.waiting.len() < SERVING_MAX {
            self.waiting.push_back((asker, question));
        }
    }

    /// Takes the next question that may be answered now.
    pub fn next(&mut self, now: Time) -> Option<(Incarnation, Q)> {
        if now >= self.next_at { self.waiting.pop_front() } else { None }
    }

    /// About so many bytes were handled for a question.
    pub fn spend(&mut self, bytes: usize, now: Time) {
        self.spent += bytes;
        if self.spent >= TURN_BYTES_MAX {
            self.spent = 0;
            // The next turn is the soonest.
            self.next_at = now + self.throttle.pause(now).max(Span(1));
        }
    }

    /// How many questions wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// When the next question may be answered, if one waits.
    #[must_use]
    pub fn due_at(&self) -> Option<Time> {
        (!self.waiting.is_empty()).then_some(self.next_at)
    }

    /// An operation that this node coordinated for a client has ended, after so long.
    pub fn observe(&mut self, took: Span, now: Time) {
        self.throttle.observe(took, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::{NodeId, Start};

    /// A piece of a topic.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Piece(u8, u8);

    impl Pending for Piece {
        fn replaces(&self, other: &Piece) -> bool {
            self.0 == other.0
        }
    }

    fn who(node: u64) -> Incarnation {
        Incarnation { node: NodeId(node), start: Start(1) }
    }

    #[test]
    fn an_asker_has_one_question_of_a_kind_in_line() {
        let mut pacing = Pacing::default();
        let asked = [(1, Piece(1, 1)), (2, Piece(1, 1)), (1, Piece(1, 2)), (1, Piece(2, 1))];
        asked.iter().for_each(|(node, piece)| pacing.push(who(*node), *piece));
        let mut next = || pacing.next(Time(1)).map(|(asker, piece)| (asker.node.0, piece));
        assert_eq!(next(), Some((1, Piece(1, 2))), "in the place of the first");
        assert_eq!([next(), next()], [Some((2, Piece(1, 1))), Some((1, Piece(2, 1)))]);
        assert_eq!((next(), pacing.due_at()), (None, None));
    }

    #[test]
    fn the_line_is_bounded_and_waits_for_the_next_turn_when_enough_was_done() {
        let mut pacing = Pacing::default();
        let askers = 0..2 * SERVING_MAX as u64;
        askers.for_each(|node| pacing.push(who(node), Piece(0, 0)));
        assert_eq!(pacing.waiting.len(), SERVING_MAX);
        let now = Time(7);
        pacing.spend(TURN_BYTES_MAX - 1, now);
        assert!(pacing.next(now).is_some());
        pacing.spend(1, now);
        assert_eq!((pacing.next(now), pacing.due_at()), (None, Some(now + Span(1))));
        assert!(pacing.next(now + Span(1)).is_some());
    }
}
