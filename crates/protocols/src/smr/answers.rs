//! Whole answers of which the state keeps less ([`Machine::kept`]).
//!
//! Each replica executes each command, so each finds the answer, and has it in memory until the
//! client has it: whoever leads next can tell it. The state, its copies and what is stored have the
//! kept form alone, and nothing rests on the rest. It goes with the memory, where a replica has
//! copied the state instead of executing the command, and where a client has asked for too much.

use super::machine::Machine;
use alloc::collections::{BTreeMap, VecDeque};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::mutant;

/// The most bytes of whole answers of one client; one answer more always fits.
pub const ANSWERS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The newest of them, for each client.
#[derive(Debug)]
pub struct Answers<M: Machine>(BTreeMap<NodeId, Known<M>>);

/// Those of one client: each its number, the answer, and about how many bytes it has.
#[derive(Debug)]
struct Known<M: Machine> {
    start: Start,
    answers: VecDeque<(u64, M::Output, usize)>,
    bytes: usize,
}

impl<M: Machine> Default for Answers<M> {
    fn default() -> Answers<M> {
        Answers(BTreeMap::new())
    }
}

impl<M: Machine> Answers<M> {
    /// One more, of the client's newest command.
    pub fn put(&mut self, client: Incarnation, number: u64, answer: M::Output, bytes: usize) {
        let start = client.start;
        let new = || Known { start, answers: VecDeque::new(), bytes: 0 };
        let known = self.0.entry(client.node).or_insert_with(new);
        if known.start != start {
            *known = new();
        }
        known.answers.push_back((number, answer, bytes));
        known.bytes += bytes;
        let is_bound = !mutant!("smr_has_all_answers");
        while is_bound && known.bytes > ANSWERS_BYTES_MAX && known.answers.len() > 1 {
            known.pop();
        }
        debug_assert!(known.is_counted(), "each answer is counted");
    }

    /// A client has the answers up to here, and waits for none of its earlier starts.
    pub fn acknowledge(&mut self, client: Incarnation, acked: u64) {
        let Some(known) = self.0.get_mut(&client.node) else { return };
        if known.start > client.start {
            return;
        }
        let is_earlier = known.start < client.start;
        while known.answers.front().is_some_and(|(number, ..)| *number <= acked) {
            known.pop();
        }
        if is_earlier || known.answers.is_empty() {
            self.0.remove(&client.node);
        }
    }

    /// The answer of a command, if it is here.
    pub fn get(&self, client: Incarnation, number: u64) -> Option<&M::Output> {
        let known = self.0.get(&client.node).filter(|known| known.start == client.start)?;
        let at = known.answers.binary_search_by_key(&number, |(number, ..)| *number).ok()?;
        known.answers.get(at).map(|(_, answer, _)| answer)
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.0.values().map(|known| known.answers.len()).sum()
    }
}

impl<M: Machine> Known<M> {
    fn is_counted(&self) -> bool {
        self.bytes == self.answers.iter().map(|(_, _, bytes)| bytes).sum::<usize>()
    }

    fn pop(&mut self) {
        if let Some((_, _, bytes)) = self.answers.pop_front() {
            self.bytes -= bytes;
        }
    }
}
