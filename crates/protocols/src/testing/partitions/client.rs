//! A client: some commands in hand, each sent again until it is answered.

use super::{Ended, Seen};

use crate::smr::partitioned::{Addressed, Answered, CommandId, Machine, Placement};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use std::collections::BTreeMap;
use std::vec::Vec;

/// How many commands it has in hand at most.
const OPEN_MAX: usize = 2;
/// When it sends one again.
const AGAIN_MS: u64 = 80;

struct Open<M: Machine> {
    addressed: Addressed<M>,
    sent_ms: u64,
    /// Where in its history.
    at: usize,
}

pub struct Client<M: Machine> {
    id: Incarnation,
    /// By which it addresses its commands.
    placement: Placement,
    /// Commands that were addressed by another one, and where in its history they are.
    again: Vec<(M::Command, usize)>,
    pub retries: u64,
    /// The number of its last command.
    last: u64,
    open: BTreeMap<u64, Open<M>>,
    history: Vec<Seen<M>>,
}

impl<M: Machine> Client<M> {
    pub fn new(at: u64, placement: Placement) -> Client<M> {
        let id = Incarnation { node: NodeId(1000 + at), start: Start(1) };
        let (open, history, again) = (BTreeMap::new(), Vec::new(), Vec::new());
        Client { id, placement, again, retries: 0, last: 0, open, history }
    }

    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.again.is_empty()
    }

    pub fn may_ask(&self) -> bool {
        self.open.len() + self.again.len() < OPEN_MAX
    }

    pub fn take_history(&mut self) -> Vec<Seen<M>> {
        core::mem::take(&mut self.history)
    }

    pub fn asks(&mut self, command: M::Command, now_ms: u64, clock: u64) -> Addressed<M> {
        let (id, ended) = (CommandId { client: self.id, number: self.last + 1 }, Ended::Unknown);
        self.history.push(Seen { id, command: command.clone(), asked: clock, ended });
        self.addresses(command, self.history.len() - 1, now_ms)
    }

    fn addresses(&mut self, command: M::Command, at: usize, now_ms: u64) -> Addressed<M> {
        let acked = self.acked();
        self.last += 1;
        let destinations = M::destinations(&command, &self.placement);
        let (id, version) =
            (CommandId { client: self.id, number: self.last }, self.placement.version());
        self.history[at].id = id;
        let addressed = Addressed { id, acked, version, destinations, command };
        let open = Open { addressed: addressed.clone(), sent_ms: now_ms, at };
        self.open.insert(self.last, open);
        addressed
    }

    /// Addresses anew what did nothing, by a later placement if that is one.
    pub fn asks_again(&mut self, placement: &Placement, now_ms: u64) -> Vec<Addressed<M>> {
        if placement.version() > self.placement.version() {
            self.placement = placement.clone();
        }
        let again = core::mem::take(&mut self.again);
        again.into_iter().map(|(command, at)| self.addresses(command, at, now_ms)).collect()
    }

    /// All commands before the first that is open are answered.
    fn acked(&self) -> u64 {
        self.open.keys().next().map_or(self.last, |first| first - 1)
    }

    /// It is answered; what, if it is the first time.
    pub fn hears(
        &mut self,
        id: CommandId,
        answer: &Answered<M>,
        clock: u64,
    ) -> Option<(M::Command, M::Output)> {
        if id.client != self.id {
            return None;
        }
        let open = self.open.remove(&id.number)?;
        let command = open.addressed.command;
        match answer.clone() {
            Answered::Done(output) => {
                let answered = output.clone();
                self.history[open.at].ended = Ended::Answered { at: clock, output };
                return Some((command, answered));
            }
            Answered::Retry(_) => {
                self.retries += 1;
                self.again.push((command, open.at));
            }
            Answered::Outside(_) => panic!("the oracle left out a partition of {command:?}"),
        }
        None
    }

    /// What it sends again.
    pub fn due(&mut self, now_ms: u64) -> Vec<Addressed<M>> {
        let acked = self.acked();
        let due = self.open.values_mut().filter(|it| now_ms - it.sent_ms >= AGAIN_MS);
        due.map(|open| {
            open.sent_ms = now_ms;
            open.addressed.acked = acked;
            open.addressed.clone()
        })
        .collect()
    }

    /// It begins anew, and never learns what came of its commands; whether it had any.
    pub fn restarts(&mut self) -> bool {
        if self.id.start.0 > 2 || self.is_idle() {
            return false;
        }
        self.id.start.0 += 1;
        self.last = 0;
        self.open.clear();
        self.again.clear();
        true
    }
}
