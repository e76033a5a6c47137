//! A ring: a log that is agreed on, and a coordinator that may be lost with what it has proposed.

use super::witness::Key;
use super::world::chance;

use crate::multicast::{Decision, Pace, Pacer, RingId, Slot};
use crate::smr::partitioned::{Batch, Machine, Ordered, may_order};
use quorate_kernel::rng::Rng;
use std::collections::VecDeque;
use std::vec::Vec;

/// How many proposals a log has in flight.
const IN_FLIGHT_MAX: usize = 6;
/// The paper's Δ.
const PERIOD_MS: u64 = 5;

pub struct Ring<M: Machine> {
    ring: RingId,
    pace: Pace,
    partitions: u8,
    /// The positions behind those that are trimmed.
    log: VecDeque<Decision<Batch<M>>>,
    /// How many positions are trimmed, and the slots of them.
    trimmed: u64,
    trimmed_slots: u64,
    proposed: VecDeque<Decision<Batch<M>>>,
    /// What came since the last proposal: it is one batch.
    asked: Batch<M>,
    pacer: Pacer,
    /// How many slots are decided, and what was since it was last asked for.
    slots: u64,
    decided: Vec<(Key, Ordered<M>)>,
}

impl<M: Machine> Ring<M> {
    pub fn new(ring: RingId, pace: Pace, partitions: u8) -> Ring<M> {
        let pacer = Pacer::new(ring, pace, Slot(0));
        let (log, proposed, asked) = (VecDeque::new(), VecDeque::new(), Batch::<M>::new());
        let (trimmed, trimmed_slots) = (0, 0);
        let (slots, decided) = (0, Vec::new());
        Ring {
            ring,
            pace,
            partitions,
            log,
            trimmed,
            trimmed_slots,
            proposed,
            asked,
            pacer,
            slots,
            decided,
        }
    }

    /// How many positions are gone.
    pub fn trimmed(&self) -> u64 {
        self.trimmed
    }

    /// Positions up to this one are not needed any more.
    pub fn trims(&mut self, op: u64) {
        while self.trimmed < op {
            let decision = self.log.pop_front().expect("what is stored was decided");
            self.trimmed_slots += decision.slots();
            self.trimmed += 1;
        }
    }

    /// The position behind so many; none if it is not decided.
    pub fn behind(&self, op: u64) -> Option<&Decision<Batch<M>>> {
        let at = op.checked_sub(self.trimmed).expect("it is not trimmed");
        self.log.get(at as usize)
    }

    /// Whether no command is on its way here.
    pub fn is_quiet(&self) -> bool {
        let is_command = |it: &Decision<_>| matches!(it, Decision::Commands(_));
        self.asked.is_empty() && !self.proposed.iter().any(is_command)
    }

    /// Whether it has commands behind so many positions.
    pub fn has_commands_behind(&self, op: u64) -> bool {
        let is_command = |it: &Decision<_>| matches!(it, Decision::Commands(_));
        op < self.trimmed || self.log.iter().skip((op - self.trimmed) as usize).any(is_command)
    }

    /// What was decided since this was last called.
    pub fn take_decided(&mut self) -> Vec<(Key, Ordered<M>)> {
        core::mem::take(&mut self.decided)
    }

    pub fn asks(&mut self, ordered: Ordered<M>) {
        self.asked.push(ordered);
    }

    pub fn is_asked_for(&mut self, until: Slot, now_ms: u64) {
        let skip = self.pacer.on_lacking(until, now_ms);
        self.skips(skip);
    }

    pub fn goes_on(&mut self, now_ms: u64, rng: &mut Rng) {
        if now_ms.is_multiple_of(PERIOD_MS) {
            let skip = self.pacer.on_period(now_ms);
            self.skips(skip);
        }
        if !self.asked.is_empty() && chance(rng, 3) {
            let batch = core::mem::take(&mut self.asked);
            assert!(may_order(self.ring, &batch, self.partitions));
            self.proposes(Decision::Commands(batch));
        }
        if chance(rng, 100) {
            // The log changes its members.
            self.proposes(Decision::Nothing);
        }
        self.decide(rng.below(3) as usize);
    }

    fn skips(&mut self, skip: Option<u64>) {
        if let Some(count) = skip {
            self.proposes(Decision::Skip(count));
        }
    }

    /// Proposes something. A log that has enough in flight takes nothing; commands are sent again,
    /// and skips are asked for again.
    fn proposes(&mut self, decision: Decision<Batch<M>>) {
        if self.proposed.len() < IN_FLIGHT_MAX {
            let skip = self.pacer.on_taken(&decision);
            self.proposed.push_back(decision);
            self.skips(skip);
        }
    }

    fn decide(&mut self, count: usize) {
        let count = count.min(self.proposed.len());
        for decision in self.proposed.drain(..count) {
            if let Decision::Commands(batch) = &decision {
                let (slot, ring) = (self.slots, self.ring);
                let key = move |index| Key { slot, is_all: ring == RingId::ALL, ring, index };
                self.decided.extend((0..).map(key).zip(batch.iter().cloned()));
            }
            self.slots += decision.slots();
            self.log.push_back(decision);
        }
        assert!(self.log.iter().all(Decision::is_sound));
    }

    /// What is proposed is decided up to some point; the rest is lost, and asked for again by
    /// those who wait for it.
    pub fn loses_coordinator(&mut self, rng: &mut Rng) {
        self.decide(rng.below(4) as usize);
        self.proposed.clear();
        self.asked.clear();
        let slots: u64 = self.log.iter().map(Decision::slots).sum();
        self.pacer = Pacer::new(self.ring, self.pace, Slot(self.trimmed_slots + slots));
    }
}
