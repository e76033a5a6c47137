//! What random schedules share: a small world in which clients ask for one key while messages are
//! reordered, lost and doubled, and the judge of what they were told, which tries every order of
//! the few operations.

use crate::linearizable::Linearizable;
use crate::testing::world::World;
use bytes::Bytes;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use std::collections::BTreeSet;
use std::vec::Vec;

/// What the operation did to the one key. Values are single bytes, and each put has its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Read(Option<u8>),
    Write(Option<u8>),
}

/// One operation of a history; times are numbers of events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub invoked: usize,
    /// None if nobody knows how it ended: it may take effect at any later time, or never.
    pub completed: Option<usize>,
    pub act: Act,
}

/// Whether some order of the operations explains every answer.
pub(super) fn is_linearizable(history: &[Event]) -> bool {
    explain(history, 0, None, &mut BTreeSet::new())
}

fn explain(
    history: &[Event],
    done: u32,
    value: Option<u8>,
    tried: &mut BTreeSet<(u32, Option<u8>)>,
) -> bool {
    let left = || (0..history.len()).filter(|at| done & (1 << at) == 0);
    let first_end = left().filter_map(|at| history[at].completed).min();
    let Some(first_end) = first_end else { return true };
    tried.insert((done, value))
        && left().filter(|at| history[*at].invoked < first_end).any(|at| match history[at].act {
            Act::Read(seen) => seen == value && explain(history, done | 1 << at, value, tried),
            Act::Write(new) => explain(history, done | 1 << at, new, tried),
        })
}

#[test]
fn the_judge_condemns_and_acquits() {
    let event = |invoked, completed, act| Event { invoked, completed, act };
    let put = event(0, Some(1), Act::Write(Some(1)));
    assert!(is_linearizable(&[put, event(2, Some(3), Act::Read(Some(1)))]));
    assert!(!is_linearizable(&[put, event(2, Some(3), Act::Read(None))]), "a lost write");
    let open = event(2, None, Act::Write(Some(2)));
    let read = |at, value| event(at, Some(at + 1), Act::Read(value));
    assert!(is_linearizable(&[put, open, read(4, Some(1)), read(6, Some(2))]));
    let back = [put, open, read(4, Some(1)), read(6, Some(2)), read(8, Some(1))];
    assert!(!is_linearizable(&back), "a value that comes back");
}

/// A world, and what was asked in it.
pub(super) struct Chaos {
    pub world: World<Linearizable>,
    pub rng: Rng,
    nodes: u64,
    events: usize,
    /// When each request was made, and when it was answered.
    times: Vec<(usize, Option<usize>)>,
}

impl Chaos {
    pub fn new(world: World<Linearizable>, rng: Rng, nodes: u64) -> Chaos {
        Chaos { world, rng, nodes, events: 0, times: Vec::new() }
    }

    fn event(&mut self) -> usize {
        self.events += 1;
        self.events
    }

    pub fn some_node(&mut self) -> u64 {
        self.rng.between(1, self.nodes)
    }

    /// The node that is down, if one is.
    pub fn down(&mut self) -> Option<u64> {
        (1..=self.nodes).find(|id| !self.world.is_up(*id))
    }

    /// How many operations were asked for.
    pub fn asked(&self) -> usize {
        self.times.len()
    }

    fn some_flight(&mut self) -> Option<usize> {
        let flights = self.world.flights.len() as u64;
        (flights > 0).then(|| self.rng.below(flights) as usize)
    }

    /// A message arrives, whichever, if any is under way.
    pub fn deliver(&mut self) {
        if let Some(flight) = self.some_flight() {
            self.world.deliver(flight);
        }
    }

    /// A message is lost.
    pub fn lose(&mut self) {
        if let Some(flight) = self.some_flight() {
            self.world.flights.swap_remove(flight);
        }
    }

    /// A message will arrive twice.
    pub fn double(&mut self) {
        if let Some(flight) = self.some_flight() {
            let copy = self.world.flights[flight].clone();
            self.world.flights.push(copy);
        }
    }

    /// A disk is slow from now on.
    pub fn hold_sync(&mut self) {
        let node = self.some_node();
        self.world.hold_sync(node);
    }

    /// A disk catches up.
    pub fn sync(&mut self) {
        let node = self.some_node();
        self.world.sync(node);
    }

    /// At most so many milliseconds pass.
    pub fn tick(&mut self, most: u64) {
        self.world.tick(Span::millis(self.rng.between(1, most)));
    }

    /// A client asks some node: of `kinds` draws four are gets, three puts, the rest deletes.
    pub fn ask(&mut self, kinds: u64, within: Span) {
        let (node, key) = (self.some_node(), Bytes::from_static(b"k"));
        if !self.world.is_up(node) {
            return;
        }
        let value = Bytes::from(Vec::from([self.times.len() as u8]));
        let operation = match self.rng.below(kinds) {
            0..4 => Operation::get(key),
            4..7 => Operation::put(key, value),
            _ => Operation::delete(key),
        };
        self.request(node, operation, within);
    }

    fn request(&mut self, node: u64, operation: Operation, within: Span) {
        let invoked = self.event();
        self.times.push((invoked, None));
        self.world.request(node, operation, within);
    }

    /// Takes down what was answered since.
    pub fn note_answers(&mut self) {
        for at in 0..self.times.len() {
            if self.times[at].1.is_none() && self.world.answers[at].1.is_some() {
                self.times[at].1 = Some(self.event());
            }
        }
    }

    /// Time passes and everything arrives.
    pub fn calm(&mut self, span: Span) {
        let end = self.world.now + span;
        while self.world.now < end {
            while !self.world.flights.is_empty() {
                self.world.deliver(0);
            }
            for node in 1..=self.nodes {
                self.world.sync(node);
            }
            self.note_answers();
            self.world.tick(Span::millis(20));
        }
        self.note_answers();
    }

    /// Reads on every node, one after the other; all must answer once faults are over.
    pub fn read_everywhere(&mut self) {
        for node in 1..=self.nodes {
            let get = Operation::get(Bytes::from_static(b"k"));
            self.request(node, get, Span::secs(1));
            self.calm(Span::millis(100));
        }
    }

    /// Whether the last reads on every node were answered.
    pub fn is_served(&self) -> bool {
        let mut last = self.world.answers.iter().rev().take(self.nodes as usize);
        last.all(|(_, answer)| matches!(answer, Some(Outcome::Values { .. })))
    }

    pub fn history(&self) -> Vec<Event> {
        let asked = self.times.iter().zip(&self.world.answers);
        asked
            .filter_map(|(&(invoked, completed), answer)| event(invoked, completed, answer))
            .collect()
    }
}

fn event(
    invoked: usize,
    completed: Option<usize>,
    (operation, outcome): &(Operation, Option<Outcome>),
) -> Option<Event> {
    let byte = |bytes: &Bytes| bytes[0];
    let act = match (operation, outcome) {
        // What changed nothing explains nothing.
        (
            _,
            Some(Outcome::Refused(
                Refusal::NoQuorum { .. } | Refusal::Minority { .. } | Refusal::NoRoute,
            )),
        ) => return None,
        (Operation::Get { .. }, Some(Outcome::Values { values, .. })) => {
            Act::Read(values.iter().next().map(byte))
        }
        (Operation::Put { value, .. }, _) => Act::Write(Some(byte(value))),
        (Operation::Delete { .. }, _) => Act::Write(None),
        _ => return None,
    };
    let is_known = !matches!(outcome, Some(Outcome::Refused(_)));
    Some(Event { invoked, completed: completed.filter(|_| is_known), act })
}
