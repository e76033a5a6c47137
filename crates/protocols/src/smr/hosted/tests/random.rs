//! Worlds with all faults: is what clients see as if there were one machine in one place?

use super::letters::{Clients, Judge};
use super::world::{SOON, World, five};
use crate::coordination::partitioned::Volery;
use crate::coordination::partitioned::tests::{judge, load};
use crate::smr::partitioned::Machine;
use crate::smr::partitioned::tests::letters::Letters;
use crate::testing::partitions::{Load, Seen};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use std::collections::BTreeMap;
use std::ops::Range;
use std::string::String;
use std::vec::Vec;

/// How many commands a host has in hand at most.
const OPEN_MAX: usize = 4;

/// How often something has happened, in all worlds together.
#[derive(Debug, Default)]
struct Met {
    of: BTreeMap<&'static str, usize>,
}

impl Met {
    fn count(&mut self, what: &'static str, times: usize) {
        *self.of.entry(what).or_default() += times;
    }

    fn assert_all(&self, names: &[&'static str]) {
        for name in names {
            assert!(self.of.get(name).is_some_and(|times| *times > 0), "{name}: {self:?}");
        }
    }
}

struct Run<M: Machine, L> {
    world: World<M>,
    load: L,
    rng: Rng,
}

impl<M: Machine, L: Load<M>> Run<M, L> {
    fn now_ms(&self) -> u64 {
        self.world.now.0 / 1_000_000
    }

    fn hears(&mut self) {
        let heard = core::mem::take(&mut self.world.settings.recorder.borrow_mut().heard);
        for (client, command, output) in heard {
            self.load.hears(client, &command, &output);
        }
    }

    /// Something goes wrong, or goes on again, or nothing.
    fn goes_wrong(&mut self, met: &mut Met) {
        let hosts = self.world.hosts.len() as u64;
        let (at, other) = (self.rng.below(hosts) as usize, self.rng.below(hosts) as usize);
        let down = (0..self.world.hosts.len()).filter(|at| !self.world.is_up(*at)).count();
        match self.rng.below(60) {
            0 if self.world.is_up(at) && down < 2 => {
                met.count("crash", 1);
                self.world.crash(at);
                if self.rng.below(2) == 0 {
                    self.world.unlink(at);
                }
            }
            1..4 if !self.world.is_up(at) => self.world.restart(at),
            4 if at != other => {
                met.count("cut", 1);
                self.world.part(at, other);
            }
            5 => {
                met.count("isolated", 1);
                (0..self.world.hosts.len()).filter(|it| *it != at).for_each(|it| {
                    self.world.part(at, it);
                });
            }
            6..9 => self.world.cut.clear(),
            _ => {}
        }
    }

    fn asks(&mut self) {
        let hosts = self.world.hosts.len() as u64;
        let at = self.rng.below(hosts) as usize;
        let client = self.world.hosts[at].me;
        let open = self.world.settings.recorder.borrow().open(client);
        if self.world.is_up(at) && open < OPEN_MAX && self.rng.below(3) > 0 {
            let now_ms = self.now_ms();
            let command = self.load.asks(at, now_ms, &mut self.rng);
            assert!(self.world.asks(at, command).is_some(), "there is room");
        }
    }

    /// All goes on, until everything is answered, and replicas are alike.
    fn settles(&mut self) {
        self.world.cut.clear();
        (self.world.loss_percent, self.world.double_percent) = (0, 0);
        for at in 0..self.world.hosts.len() {
            if !self.world.is_up(at) {
                self.world.restart(at);
            }
        }
        let is_idle = |world: &mut World<M>| {
            world.hosts.iter().all(|it| it.process.as_ref().is_some_and(|it| it.hosted.is_idle()))
        };
        assert!(self.world.run_until(Span::secs(60), is_idle), "all commands are answered");
        self.hears();
        let last = self.load.last(self.now_ms());
        self.world.done(0, last);
        assert!(self.world.run_until(SOON, |world| world.are_alike()), "replicas are alike");
    }
}

/// One world: what was executed, in an order that one place could have executed.
fn run<M: Machine>(seed: u64, load: impl Load<M>, met: &mut Met) -> Vec<(Seen<M>, M::Output)> {
    let mut run = Run { world: five(seed), load, rng: Rng::new(seed ^ 0x5eed) };
    (run.world.loss_percent, run.world.double_percent) = (4, 4);
    for _ in 0..400 {
        run.goes_wrong(met);
        run.asks();
        run.world.run(Span::millis(10));
        run.hears();
    }
    run.settles();
    for name in ["Follow", "Decided", "Lacks", "Peers", "Trimmed", "Copy", "Holds"] {
        met.count(name, run.world.sent.get(name).copied().unwrap_or_default());
    }
    let answered = run.world.settings.recorder.borrow().history.len();
    met.count("asked", answered);
    run.world.order().unwrap_or_else(|| panic!("seed {seed}: no order of all is each partition's"))
}

fn judge<M: Machine, L: Load<M>>(
    seeds: Range<u64>,
    load: impl Fn(u64) -> L,
    mut judged: impl FnMut(Vec<(Seen<M>, M::Output)>) -> Result<(), String>,
) {
    let mut met = Met::default();
    for seed in seeds.clone() {
        let order = run(seed, load(seed), &mut met);
        judged(order).unwrap_or_else(|wrong| panic!("seed {seed}: {wrong}"));
    }
    met.assert_all(&["crash", "cut", "isolated", "Follow", "Decided", "Lacks", "Peers"]);
    met.assert_all(&["Trimmed", "Copy", "Holds"]);
    assert!(met.of["asked"] > 100 * seeds.count(), "{met:?}");
}

#[test]
fn letters_on_real_logs_are_linearizable() {
    judge::<Letters, Clients>(
        0..6,
        |_| Clients::default(),
        |order| {
            let mut judge = Judge::new();
            order.iter().try_for_each(|(seen, answer)| judge.execute(seen, answer))
        },
    );
}

#[test]
fn a_tree_over_partitions_on_real_logs_is_as_one_tree() {
    judge::<Volery, load::Clients>(100..106, load::Clients::new, |order| {
        let mut judge = judge::Judge::new();
        order.iter().try_for_each(|(seen, answer)| judge.execute(seen, answer))
    });
}
