//! Any schedule: what replicas deliver is one order, and all of it.

use super::judge::{assert_one_order, assert_prefix};
use crate::multicast::{Cursor, Decision, Merge, RingId};
use crate::vsr::Op;
use quorate_kernel::rng::Rng;
use std::collections::BTreeMap;
use std::vec::Vec;

type Log = Vec<Decision<u64>>;

/// A log of each ring, all with as many slots, so that nothing has to wait in the end.
fn logs(rng: &mut Rng, partitions: u32) -> BTreeMap<RingId, Log> {
    let (mut logs, mut next) = (BTreeMap::new(), 0);
    for ring in (0..partitions).map(RingId).chain([RingId::ALL]) {
        // Some rings are idle.
        let busy = rng.below(4);
        let log: Log = (0..rng.below(30))
            .map(|_| {
                next += 1;
                if rng.below(4) < busy {
                    Decision::Commands(next)
                } else if rng.below(4) == 0 {
                    Decision::Nothing
                } else {
                    Decision::Skip(rng.below(5) + 1)
                }
            })
            .collect();
        logs.insert(ring, log);
    }
    let slots = |log: &Log| log.iter().map(Decision::slots).sum::<u64>();
    let most = logs.values().map(slots).max().unwrap_or_default() + 1;
    logs.values_mut().for_each(|log| log.push(Decision::Skip(most - slots(log))));
    logs
}

/// A replica that learns in any way, and restarts at times.
struct Learner {
    merge: Merge<u64>,
    delivered: Vec<u64>,
    stored: (Cursor, usize),
}

impl Learner {
    fn new(partition: u32) -> Learner {
        let merge = Merge::new([RingId(partition), RingId::ALL]);
        let stored = (merge.cursor(), 0);
        Learner { merge, delivered: Vec::new(), stored }
    }

    fn step(&mut self, rng: &mut Rng, logs: &BTreeMap<RingId, Log>) {
        let rings = self.merge.cursor();
        let ring = rng.pick(&rings).expect("it learns two").ring;
        let log = &logs[&ring];
        let has = self.merge.reached(ring).expect("it learns it").op.0;
        // Mostly the next, at times one that it has, or one too far.
        let op = if rng.below(4) == 0 { rng.below(log.len() as u64) + 1 } else { has + 1 };
        if let Some(decision) = log.get(op as usize - 1) {
            assert_eq!(self.merge.learn(ring, Op(op), decision.clone()), op == has + 1);
        }
        if rng.below(3) == 0 {
            self.deliver(rng.below(4));
        }
        match rng.below(40) {
            0..5 => self.stored = (self.merge.cursor(), self.delivered.len()),
            5 => {
                self.merge = Merge::resume(self.stored.0.clone());
                self.delivered.truncate(self.stored.1);
            }
            _ => {}
        }
    }

    fn deliver(&mut self, count: u64) {
        let delivered = (0..count).map_while(|_| self.merge.deliver()).map(|it| it.commands);
        self.delivered.extend(delivered);
    }

    fn end(&mut self, logs: &BTreeMap<RingId, Log>) {
        for ring in self.merge.cursor().into_iter().map(|it| it.ring) {
            let has = self.merge.reached(ring).expect("it learns it").op.0;
            for (at, decision) in logs[&ring].iter().enumerate().skip(has as usize) {
                assert!(self.merge.learn(ring, Op(at as u64 + 1), decision.clone()));
            }
        }
        self.deliver(u64::MAX);
    }
}

#[test]
fn all_deliver_in_one_order_and_nothing_is_lost_or_doubled() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let partitions = rng.below(4) as u32 + 1;
        let logs = logs(&mut rng, partitions);
        let mut learners: Vec<(u32, Learner)> = (0..partitions * 3)
            .map(|at| (at % partitions, Learner::new(at % partitions)))
            .collect();
        for _ in 0..rng.below(600) {
            let at = rng.below(learners.len() as u64) as usize;
            learners[at].1.step(&mut rng, &logs);
        }
        let orders = |learners: &[(u32, Learner)]| -> Vec<Vec<u64>> {
            learners.iter().map(|(_, it)| it.delivered.clone()).collect()
        };
        assert_one_order(&orders(&learners));
        learners.iter_mut().for_each(|(_, learner)| learner.end(&logs));
        assert_one_order(&orders(&learners));
        for (partition, learner) in &learners {
            assert_prefix(&learner.delivered, &learners[*partition as usize].1.delivered);
            let of = |ring| logs[&ring].iter();
            let decided = of(RingId(*partition)).chain(of(RingId::ALL)).filter_map(|it| match it {
                Decision::Commands(number) => Some(*number),
                Decision::Skip(_) | Decision::Nothing => None,
            });
            let (mut decided, mut delivered) =
                (decided.collect::<Vec<_>>(), learner.delivered.clone());
            decided.sort_unstable();
            delivered.sort_unstable();
            assert_eq!(delivered, decided, "seed {seed}: all of its rings, once");
        }
    }
}
