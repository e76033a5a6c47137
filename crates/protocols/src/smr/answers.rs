//! Whole answers of which the state keeps less ([`Machine::kept`]).
//!
//! Each replica executes each command, so each finds the answer, and has it in memory until the
//! client has it: whoever leads next can tell it. The state, its copies and what is stored have the
//! kept form alone, and nothing rests on the rest. It goes with the memory, where a replica has
//! copied the state instead of executing the command, where a client has asked for too much, and
//! where nothing is heard of one for long: its host may be gone for good. How long is counted by
//! the time of entries, of which each counts so much at most: a clock that jumps, or a group that
//! has executed nothing for long, says nothing of clients.

use super::machine::Machine;
use alloc::collections::{BTreeMap, VecDeque};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::mutant;

/// The most bytes of whole answers of one client; one answer more always fits.
pub const ANSWERS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long they are kept for a client of which no command comes, by the time of entries.
pub const KEPT_MS: u64 = 60_000;
/// How often it is looked for such clients.
const LOOKED_MS: u64 = 1000;
/// The most that one entry counts.
const STEP_MS_MAX: u64 = KEPT_MS / 10;

/// The newest of them, for each client.
#[derive(Debug)]
pub struct Answers<M: Machine> {
    known: BTreeMap<NodeId, Known<M>>,
    /// The time of the newest entry.
    at_ms: u64,
    /// How much has passed since the first one as it counts, and had when it was last looked for
    /// clients that are gone.
    now_ms: u64,
    looked_ms: u64,
}

/// Those of one client: each its number, the answer, and about how many bytes it has.
#[derive(Debug)]
struct Known<M: Machine> {
    start: Start,
    answers: VecDeque<(u64, M::Output, usize)>,
    bytes: usize,
    /// When its last command came.
    heard_ms: u64,
}

impl<M: Machine> Default for Answers<M> {
    fn default() -> Answers<M> {
        Answers { known: BTreeMap::new(), at_ms: 0, now_ms: 0, looked_ms: 0 }
    }
}

impl<M: Machine> Answers<M> {
    /// The time of the next entry.
    pub fn pass(&mut self, at_ms: u64) {
        let most = if mutant!("smr_clocks_end_answers") { u64::MAX } else { STEP_MS_MAX };
        self.now_ms = self.now_ms.saturating_add(at_ms.saturating_sub(self.at_ms).min(most));
        self.at_ms = self.at_ms.max(at_ms);
        if mutant!("smr_ends_answers_of_who_asks") {
            self.forget_gone();
        }
    }

    /// Clients of which nothing has come for long are forgotten: behind an entry, as some may say
    /// in it that they are there.
    pub fn forget_gone(&mut self) {
        let now_ms = self.now_ms;
        if now_ms - self.looked_ms < LOOKED_MS {
            return;
        }
        self.looked_ms = now_ms;
        let is_kept = |known: &Known<M>| now_ms.saturating_sub(known.heard_ms) < KEPT_MS;
        self.known.retain(|_, known| is_kept(known) || mutant!("smr_has_answers_for_ever"));
    }

    /// One more, of the client's newest command.
    pub fn put(&mut self, client: Incarnation, number: u64, answer: M::Output, bytes: usize) {
        let (start, heard_ms) = (client.start, self.now_ms);
        let new = || Known { start, answers: VecDeque::new(), bytes: 0, heard_ms };
        let known = self.known.entry(client.node).or_insert_with(new);
        if known.start != start {
            *known = new();
        }
        known.heard_ms = heard_ms;
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
        let Some(known) = self.known.get_mut(&client.node) else { return };
        if known.start > client.start {
            return;
        }
        known.heard_ms = self.now_ms;
        let is_earlier = known.start < client.start;
        while known.answers.front().is_some_and(|(number, ..)| *number <= acked) {
            known.pop();
        }
        if is_earlier || known.answers.is_empty() {
            self.known.remove(&client.node);
        }
    }

    /// The answer of a command, if it is here.
    pub fn get(&self, client: Incarnation, number: u64) -> Option<&M::Output> {
        let known = self.known.get(&client.node).filter(|known| known.start == client.start)?;
        let at = known.answers.binary_search_by_key(&number, |(number, ..)| *number).ok()?;
        known.answers.get(at).map(|(_, answer, _)| answer)
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.known.values().map(|known| known.answers.len()).sum()
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
