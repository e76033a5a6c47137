//! Each command once, at one partition.
//!
//! A client has several commands in hand, of different partitions, so they come to a partition in
//! any order of their numbers. What is remembered is which of them were executed here since those
//! whose answers the client has.
//!
//! A client may have an answer of one partition before another one has executed the command. When
//! it says so to that one, the command is not taken for one that came again: some replica has come
//! to it there (execution atomicity), so whatever is asked after the answer is ordered behind it.

use super::command::{Answered, CommandId};
use super::machine::Machine;
use alloc::collections::BTreeMap;
use quorate_kernel::ids::{NodeId, Start};
use quorate_kernel::{invariant, mutant};
use serde::{Deserialize, Serialize};

/// How far the numbers of a client's commands may be apart: none goes into a log that is further
/// above those whose answers it has. So one that stays open holds up those far behind it. What it
/// has is said in each command, also in one that is sent again.
pub const OUTSTANDING_MAX: u64 = 1024;

/// What is remembered of the clients of a partition: of each node its latest start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Clients<M: Machine>(BTreeMap<NodeId, Known<M>>);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
struct Known<M: Machine> {
    start: Start,
    /// It has the answers up to here.
    acked: u64,
    answers: BTreeMap<u64, Answered<M>>,
}

impl<M: Machine> Known<M> {
    fn acknowledge(&mut self, acked: u64) {
        if acked > self.acked {
            self.acked = acked;
            self.answers = self.answers.split_off(&acked.saturating_add(1));
        }
    }
}

impl<M: Machine> Default for Clients<M> {
    fn default() -> Clients<M> {
        Clients(BTreeMap::new())
    }
}

impl<M: Machine> Clients<M> {
    /// Whether a command is to be executed, as far as this partition knows. One that comes again is
    /// not, nor one of an earlier start.
    pub(super) fn is_new(&self, id: CommandId) -> bool {
        let known = self.0.get(&id.client.node);
        let is_of_earlier = known.is_some_and(|it| id.client.start < it.start);
        let known = known.filter(|it| it.start == id.client.start);
        let is_done = known.is_some_and(|it| id.number <= it.acked);
        let is_done = is_done || known.is_some_and(|it| it.answers.contains_key(&id.number));
        !is_of_earlier && (!is_done || mutant!("smr_partition_executes_twice"))
    }

    /// A client says what it has in a command that is not executed here.
    pub(super) fn acknowledge(&mut self, id: CommandId, acked: u64) {
        let known = self.0.get_mut(&id.client.node);
        if let Some(known) = known.filter(|it| it.start == id.client.start) {
            known.acknowledge(acked);
        }
    }

    /// A command was executed.
    pub(super) fn note(&mut self, id: CommandId, acked: u64, answer: Answered<M>) {
        let start = id.client.start;
        let new = || Known { start, acked: 0, answers: BTreeMap::new() };
        let known = self.0.entry(id.client.node).or_insert_with(new);
        invariant!(start >= known.start, "nothing of an earlier start is executed");
        if start > known.start {
            // What its earlier starts wait for nobody waits for any more.
            *known = new();
        }
        known.answers.insert(id.number, answer);
        known.acknowledge(acked);
        invariant!(known.answers.len() as u64 <= OUTSTANDING_MAX, "a client has so many in hand");
    }

    /// The answer of a command that was executed here, if it is remembered.
    pub(super) fn answer(&self, id: CommandId) -> Option<&Answered<M>> {
        let known = self.0.get(&id.client.node).filter(|it| it.start == id.client.start)?;
        known.answers.get(&id.number)
    }
}
