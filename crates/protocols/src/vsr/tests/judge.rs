//! The judge of a replicated log: it sees all nodes, and what clients are told.
//!
//! The log is the witness: what is executed first at a place is what stands there for good.

use super::machine::{Executed, Register, Registers, Request};
use crate::vsr::Op;
use quorate_kernel::time::Time;
use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec::Vec;

/// What the judge knows.
#[derive(Default)]
pub struct Judge {
    /// What stands at each place.
    log: BTreeMap<Op, Executed>,
    /// Where each request was done.
    done: BTreeMap<Request, Op>,
    /// What each register held, from which place on.
    registers: BTreeMap<u8, Vec<Register>>,
    /// The newest place that a client was told of, and when: later ones must not be told less.
    told: Vec<(Time, Op)>,
    /// What was acknowledged.
    pub acknowledged: BTreeMap<Request, Op>,
    pub reads: usize,
    /// All members have lost data: what is executed next may take the place of what was.
    may_lose: bool,
    /// Whether they ever have: nodes outside may still follow what was lost.
    pub has_lost: bool,
    wrong: Option<String>,
}

impl Judge {
    fn condemn(&mut self, why: String) {
        self.wrong.get_or_insert(why);
    }

    /// What is wrong, if anything is.
    pub fn verdict(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    /// A node has executed something.
    pub fn executed(&mut self, node: u64, what: Executed) {
        let Executed { op, command, is_done } = what;
        let is_next = self.log.last_key_value().is_none_or(|(last, _)| *last < op);
        if self.may_lose && !is_next && self.log.get(&op) != Some(&what) {
            self.lose(op);
        }
        if let Some(stands) = self.log.get(&op) {
            if *stands != what {
                self.condemn(format!("{node} executes {what:?} where {stands:?} stands"));
            }
            return;
        }
        if self.log.last_key_value().is_some_and(|(last, _)| *last > op) {
            return self.condemn(format!("{node} executes {what:?} behind what all have executed"));
        }
        self.log.insert(op, what);
        if !is_done {
            return;
        }
        if let Some(before) = self.done.insert(command.request, op) {
            self.condemn(format!("{:?} is done at {before:?} and at {op:?}", command.request));
        }
        let history = self.registers.entry(command.key).or_default();
        let count = history.len() as u64 + 1;
        history.push(Register { last: command.request, count, op });
    }

    /// A node has begun an epoch behind this place: no command stands there.
    pub fn changed(&mut self, node: u64, since: Op) {
        let Some(stands) = self.log.get(&since).copied() else { return };
        if self.may_lose {
            self.lose(since);
        } else {
            self.condemn(format!("{node} changes members at {since:?} where {stands:?} stands"));
        }
    }

    /// All members lose data at one moment, and may go on with what is left of it.
    pub fn may_lose(&mut self) {
        self.may_lose = true;
        self.has_lost = true;
        self.told.clear();
    }

    /// What stood from `op` on is lost, for good and once.
    fn lose(&mut self, op: Op) {
        self.may_lose = false;
        let kept: Vec<Executed> = self.log.range(..op).map(|(_, what)| *what).collect();
        let wrong = self.wrong.take();
        *self = Judge { wrong, reads: self.reads, has_lost: true, ..Judge::default() };
        kept.into_iter().for_each(|what| self.executed(0, what));
    }

    /// A client is told that its write is done.
    pub fn acknowledge(&mut self, request: Request, began: Time, now: Time) {
        let Some(op) = self.done.get(&request).copied() else {
            return self.condemn(format!("{request:?} is acknowledged and was not done"));
        };
        self.acknowledged.insert(request, op);
        self.tell(began, now, op, true);
    }

    /// A client is shown a register, as it is after `op`.
    pub fn shown(&mut self, key: u8, value: Register, op: Op, began: Time, now: Time) {
        self.reads += 1;
        if self.may_lose && self.stands(key, op) != value {
            self.lose(value.op.next());
        }
        let stands = self.stands(key, op);
        if stands != value {
            self.condemn(format!("register {key} after {op:?} is {stands:?}, shown was {value:?}"));
        }
        self.tell(began, now, op, false);
    }

    /// A primary says that it serves: it has executed all that its log had when its view began.
    pub fn serves(&mut self, node: u64, applied: Op, began: Op) {
        if applied < began {
            self.condemn(format!("{node} serves with {applied:?} of {began:?} executed"));
        }
    }

    /// A node says that its state is right: it has nothing of what was not executed.
    pub fn settled(&mut self, node: u64, applied: Op, machine: &Registers) {
        if let Some(later) = machine.items.values().find(|item| item.op > applied) {
            self.condemn(format!("{node} has executed {applied:?}, and holds {later:?}"));
        }
    }

    /// What a register holds after `op`.
    fn stands(&self, key: u8, op: Op) -> Register {
        let history = self.registers.get(&key).map_or(&[][..], Vec::as_slice);
        let before = history.partition_point(|register| register.op <= op);
        before.checked_sub(1).map_or(Register::default(), |at| history[at])
    }

    /// What was told before an operation began comes before it.
    fn tell(&mut self, began: Time, now: Time, op: Op, is_write: bool) {
        let known = self.told.iter().rev().find(|(at, _)| *at < began).map(|(_, op)| *op);
        if known.is_some_and(|known| known > op || (is_write && known == op)) {
            self.condemn(format!("{op:?} was told at {now:?}, {known:?} before {began:?}"));
        }
        let newest = self.told.last().map_or(op, |(_, last)| op.max(*last));
        self.told.push((now, newest));
    }

    /// At the end a node has everything that was acknowledged.
    pub fn at_rest(&mut self, node: u64, applied: Op, machine: &Registers) {
        for (request, op) in &self.acknowledged {
            if *op > applied || self.done.get(request) != Some(op) {
                let why = format!("{node} has executed {applied:?}, {request:?} is lost at {op:?}");
                return self.condemn(why);
            }
        }
        for (key, history) in &self.registers {
            let stands = history.last().copied().unwrap_or_default();
            let has = machine.items.get(key).copied().unwrap_or_default();
            if stands != has {
                let why = format!("{node} has {has:?} in register {key}, where {stands:?} stands");
                return self.condemn(why);
            }
        }
    }

    /// The last place that was executed anywhere.
    pub fn last(&self) -> Op {
        self.log.last_key_value().map(|(op, _)| *op).unwrap_or_default()
    }
}
