//! Nothing is stuck: with skips all is delivered, whichever rings are idle, whoever coordinates
//! them and whatever questions are lost.

use super::judge::assert_one_order;
use crate::multicast::{Decision, Lacking, Merge, Pace, Pacer, RingId, Slot};
use crate::vsr::Op;
use quorate_kernel::rng::Rng;
use std::collections::BTreeMap;
use std::vec::Vec;

/// How many proposals a log has in flight; it refuses others.
const ROOM: usize = 3;

/// A ring: what is decided, what is proposed, and two that coordinate it in turn.
struct Ring {
    log: Vec<Decision<u64>>,
    proposed: Vec<Decision<u64>>,
    pacers: [Pacer; 2],
    leads: usize,
}

impl Ring {
    fn new(ring: RingId, pace: Pace) -> Ring {
        let pacers = [0, 1].map(|_| Pacer::new(ring, pace, Slot(0)));
        Ring { log: Vec::new(), proposed: Vec::new(), pacers, leads: 0 }
    }

    fn pacer(&mut self) -> &mut Pacer {
        &mut self.pacers[self.leads]
    }

    /// Proposes something, if the log has room; nothing is lost if not, as nothing was counted.
    fn propose(&mut self, decision: Decision<u64>) -> bool {
        if self.proposed.len() >= ROOM && !matches!(decision, Decision::Commands(_)) {
            return false;
        }
        let skip = self.pacer().on_taken(&decision);
        self.proposed.push(decision);
        if let Some(skip) = skip {
            self.propose(Decision::Skip(skip));
        }
        true
    }

    fn skips(&mut self, skip: Option<u64>) {
        if let Some(count) = skip {
            self.propose(Decision::Skip(count));
        }
    }

    fn decide(&mut self, count: u64) {
        let count = self.proposed.len().min(count as usize);
        self.log.extend(self.proposed.drain(..count));
    }

    /// What was proposed and is not decided is lost; its clients would propose it again.
    fn is_led_by_the_other(&mut self) -> Vec<Decision<u64>> {
        self.leads = 1 - self.leads;
        let next = Slot(self.log.iter().map(Decision::slots).sum());
        self.pacer().takes_over(next);
        core::mem::take(&mut self.proposed)
    }
}

struct Rings {
    rings: BTreeMap<RingId, Ring>,
    learners: Vec<(Merge<u64>, Vec<u64>)>,
    pace: Pace,
    now_ms: u64,
    /// How far the clock of the first ring's coordinator is ahead.
    ahead_ms: u64,
    rng: Rng,
}

impl Rings {
    fn new(seed: u64, partitions: u32, pace: Pace) -> Rings {
        let all = || (0..partitions).map(RingId);
        let rings = all().chain([RingId::ALL]).map(|ring| (ring, Ring::new(ring, pace)));
        let learner = |ring| (Merge::new([ring, RingId::ALL]), Vec::new());
        let learners = all().chain(all()).map(learner).collect();
        let (rings, rng) = (rings.collect(), Rng::new(seed));
        Rings { rings, learners, pace, now_ms: 0, ahead_ms: 0, rng }
    }

    fn step(&mut self, loses: bool) {
        self.now_ms += self.rng.below(5);
        for (id, ring) in &mut self.rings {
            let ahead_ms = if *id == RingId(0) { self.ahead_ms } else { 0 };
            let skip = ring.pacer().on_period(self.now_ms + ahead_ms);
            ring.skips(skip);
            if self.rng.below(50) == 0 {
                ring.propose(Decision::Nothing);
            }
            ring.decide(self.rng.below(4));
        }
        for (merge, delivered) in &mut self.learners {
            for reached in merge.cursor() {
                let log = &self.rings[&reached.ring].log;
                let has = merge.reached(reached.ring).expect("it learns it").op;
                for (at, decision) in log.iter().enumerate().skip(has.0 as usize).take(3) {
                    assert!(merge.learn(reached.ring, Op(at as u64 + 1), decision.clone()));
                }
            }
            delivered.extend(core::iter::from_fn(|| merge.deliver()).map(|it| it.commands));
            for Lacking { ring, until } in merge.questions() {
                if loses && self.rng.below(3) == 0 {
                    continue;
                }
                let ring = self.rings.get_mut(&ring).expect("it is there");
                let skip = ring.pacer().on_lacking(until, self.now_ms);
                ring.skips(skip);
            }
        }
    }

    fn changes_a_coordinator(&mut self) {
        let rings: Vec<RingId> = self.rings.keys().copied().collect();
        let ring = self
            .rings
            .get_mut(self.rng.pick(&rings).expect("there are rings"))
            .expect("it is there");
        for lost in ring.is_led_by_the_other() {
            if let Decision::Commands(_) = lost {
                ring.propose(lost);
            }
        }
    }

    /// How many commands a learner has to deliver.
    fn due(&self, learner: usize) -> usize {
        let rings = self.learners[learner].0.cursor().into_iter();
        let commands = |ring: RingId| {
            let ring = &self.rings[&ring];
            let all = ring.log.iter().chain(&ring.proposed);
            all.filter(|it| matches!(it, Decision::Commands(_))).count()
        };
        rings.map(|it| commands(it.ring)).sum()
    }

    fn is_done(&self) -> bool {
        (0..self.learners.len()).all(|at| self.learners[at].1.len() == self.due(at))
    }
}

/// Runs commands in some of the rings only, and asserts that all of them are delivered.
fn all_is_delivered(seed: u64, pace: Pace) {
    let mut rng = Rng::new(seed);
    let partitions = rng.below(4) as u32 + 1;
    let mut rings = Rings::new(rng.next(), partitions, pace);
    let busy: Vec<RingId> =
        rings.rings.keys().copied().filter(|_| rng.below(2) == 0).chain([RingId(0)]).collect();
    for command in 0..rng.below(60) + 1 {
        rings
            .rings
            .get_mut(rng.pick(&busy).expect("one is"))
            .expect("it is there")
            .propose(Decision::Commands(command));
        (0..rng.below(4)).for_each(|_| rings.step(true));
        if rng.below(10) == 0 {
            rings.changes_a_coordinator();
        }
    }
    // Far more steps than any schedule needs.
    let is_done = (0..20_000).any(|_| {
        rings.step(true);
        rings.is_done()
    });
    assert!(is_done, "seed {seed}, {:?}: something is stuck", rings.pace);
    let orders: Vec<_> = rings.learners.iter().map(|(_, delivered)| delivered.clone()).collect();
    assert_one_order(&orders);
}

#[test]
fn by_demand_nothing_is_stuck() {
    (0..200).for_each(|seed| all_is_delivered(seed, Pace::Demand));
}

#[test]
fn by_time_nothing_is_stuck() {
    let pace = Pace::Time { origin_ms: 0, slots_per_s: 800 };
    (0..200).for_each(|seed| all_is_delivered(seed, pace));
}

#[test]
fn by_time_a_clock_that_was_ahead_stalls_nobody_for_as_long() {
    for seed in 0..20 {
        let mut rings = Rings::new(seed, 2, Pace::Time { origin_ms: 0, slots_per_s: 800 });
        rings.ahead_ms = 3_600_000;
        let orders = |rings: &mut Rings, command| {
            for ring in [RingId(0), RingId(1), RingId::ALL] {
                let ring = rings.rings.get_mut(&ring).expect("it is there");
                ring.propose(Decision::Commands(command));
                (0..100).for_each(|_| rings.step(true));
            }
        };
        (0..20).for_each(|command| orders(&mut rings, command));
        rings.ahead_ms = 0;
        // One ring alone decides something, so the others must skip: less than a second's slots.
        for command in 20..420 {
            let ring = rings.rings.get_mut(&RingId(0)).expect("it is there");
            ring.propose(Decision::Commands(command));
            rings.step(true);
        }
        let until_ms = rings.now_ms + 10_000;
        while rings.now_ms < until_ms && !rings.is_done() {
            rings.step(true);
        }
        assert!(rings.is_done(), "seed {seed}: what waits is not due by any clock");
    }
}

#[test]
fn by_demand_local_commands_wait_for_no_question() {
    let mut rings = Rings::new(1, 2, Pace::Demand);
    (0..20).for_each(|_| rings.step(false));
    for command in 0..200 {
        let local = rings.rings.get_mut(&RingId(0)).expect("it is there");
        local.propose(Decision::Commands(command));
        local.decide(u64::MAX);
        let op = Op(local.log.len() as u64);
        let (merge, _) = &mut rings.learners[0];
        assert!(merge.learn(RingId(0), op, Decision::Commands(command)));
        assert_eq!(merge.deliver().map(|it| it.commands), Some(command));
    }
}
