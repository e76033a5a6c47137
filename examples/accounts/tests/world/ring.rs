//! A ring: a log that is agreed on, and a coordinator that may be lost with what it has proposed.

use super::chance;
use quorate_accounts::Accounts;
use quorate_kernel::rng::Rng;
use quorate_protocols::multicast::{Decision, Pace, Pacer, RingId, Slot};
use quorate_protocols::smr::partitioned::{Addressed, Batch, may_order};
use std::collections::VecDeque;

/// The paper's Δ.
const PERIOD_MS: u64 = 5;

pub struct Ring {
    ring: RingId,
    pace: Pace,
    partitions: u8,
    pub log: Vec<Decision<Batch<Accounts>>>,
    proposed: VecDeque<Decision<Batch<Accounts>>>,
    /// What came since the last proposal: it is one batch.
    asked: Batch<Accounts>,
    pacer: Pacer,
}

impl Ring {
    pub fn new(ring: RingId, pace: Pace, partitions: u8) -> Ring {
        let pacer = Pacer::new(ring, pace, Slot(0));
        let (log, proposed, asked) = (Vec::new(), VecDeque::new(), Batch::<Accounts>::new());
        Ring { ring, pace, partitions, log, proposed, asked, pacer }
    }

    pub fn asks(&mut self, addressed: Addressed<Accounts>) {
        self.asked.push(addressed);
    }

    pub fn is_asked_for(&mut self, until: Slot) {
        let skip = self.pacer.on_lacking(until);
        self.proposed.extend(skip.map(Decision::Skip));
    }

    pub fn goes_on(&mut self, now_ms: u64, rng: &mut Rng) {
        if now_ms.is_multiple_of(PERIOD_MS) {
            let skip = self.pacer.on_period(now_ms);
            self.proposed.extend(skip.map(Decision::Skip));
        }
        if !self.asked.is_empty() && chance(rng, 3) {
            let batch = core::mem::take(&mut self.asked);
            assert!(may_order(self.ring, &batch, self.partitions));
            self.proposed.push_back(Decision::Commands(batch));
            let skip = self.pacer.on_commands();
            self.proposed.extend(skip.map(Decision::Skip));
        }
        self.decide(rng.below(3) as usize);
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
        let slots = self.log.iter().map(Decision::slots).sum();
        self.pacer = Pacer::new(self.ring, self.pace, Slot(slots));
    }
}
