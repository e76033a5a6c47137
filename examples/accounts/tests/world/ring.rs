//! A ring: a log that is agreed on, and a coordinator that may be lost with what it has proposed.

use super::chance;
use quorate_accounts::Accounts;
use quorate_kernel::rng::Rng;
use quorate_protocols::multicast::{Decision, Pace, Pacer, RingId, Slot};
use quorate_protocols::smr::partitioned::{Batch, Ordered, may_order};
use std::collections::VecDeque;

/// How many proposals a log has in flight.
const IN_FLIGHT_MAX: usize = 6;
/// The paper's Δ.
const PERIOD_MS: u64 = 5;

pub struct Ring {
    ring: RingId,
    pace: Pace,
    partitions: u8,
    /// The positions behind those that are trimmed.
    log: VecDeque<Decision<Batch<Accounts>>>,
    /// How many positions are trimmed, and the slots of them.
    trimmed: u64,
    trimmed_slots: u64,
    proposed: VecDeque<Decision<Batch<Accounts>>>,
    /// What came since the last proposal: it is one batch.
    asked: Batch<Accounts>,
    pacer: Pacer,
}

impl Ring {
    pub fn new(ring: RingId, pace: Pace, partitions: u8) -> Ring {
        let pacer = Pacer::new(ring, pace, Slot(0));
        let (log, proposed, asked) = (VecDeque::new(), VecDeque::new(), Batch::<Accounts>::new());
        let (trimmed, trimmed_slots) = (0, 0);
        Ring { ring, pace, partitions, log, trimmed, trimmed_slots, proposed, asked, pacer }
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
    pub fn behind(&self, op: u64) -> Option<&Decision<Batch<Accounts>>> {
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

    pub fn asks(&mut self, ordered: Ordered<Accounts>) {
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
    fn proposes(&mut self, decision: Decision<Batch<Accounts>>) {
        if self.proposed.len() < IN_FLIGHT_MAX {
            let skip = self.pacer.on_taken(&decision);
            self.proposed.push_back(decision);
            self.skips(skip);
        }
    }

    fn decide(&mut self, count: usize) {
        let count = count.min(self.proposed.len());
        self.log.extend(self.proposed.drain(..count));
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
