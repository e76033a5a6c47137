//! Random worlds: one to five groups, clients that ask again and die, messages that are lost, late
//! and doubled, primaries that change, that believe they still lead, and that start again.

use super::customers::{Customer, Doing};
use super::judge::{Done, judge};
use super::world::{REPLICAS, World, key};
use crate::serializable::{Input, Member, Optimizations, Raw, Request, number::Client};
use bytes::Bytes;
use quorate_kernel::ids::{GroupId, Ticket};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use std::vec::Vec;
use std::{env, format};

pub struct Random {
    pub world: World,
    pub rng: Rng,
    pub customers: Vec<Customer>,
    pub history: Vec<Done>,
    pub clock: u64,
    pub keys: Vec<Raw>,
    pub heard: usize,
    pub is_healing: bool,
    pub committed: usize,
    pub aborted: usize,
}

impl Random {
    pub fn new(seed: u64) -> Random {
        let mut rng = Rng::new(seed);
        let groups = rng.between(1, 5);
        let each = rng.between(1, 3);
        let mut keys = Vec::new();
        for group in 1..=groups {
            keys.extend((0..each).map(|number| key(&format!("{group}k{number}"))));
        }
        let count = rng.between(2, 8);
        let customer = |id| Customer {
            id,
            counter: 0,
            doing: Doing::Nothing,
            at: 0,
            is_dead: false,
            tickets: Vec::new(),
        };
        Random {
            world: World::new(groups),
            rng,
            customers: (1..=count).map(customer).collect(),
            history: Vec::new(),
            clock: 0,
            keys,
            heard: 0,
            is_healing: false,
            committed: 0,
            aborted: 0,
        }
    }

    /// Each member leaves out something else, until it is started again.
    fn optimize(&mut self, optimizations: impl Fn(u64) -> Optimizations) {
        let groups = &mut self.world.groups;
        for (number, its) in (0..).zip(groups.iter_mut().flat_map(|group| &mut group.replicas)) {
            its.member = Member::new(optimizations(number));
        }
        (0..groups.len()).for_each(|at| self.world.handle_primary(at, Input::Serving));
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }

    pub fn some_keys(&mut self, count_max: u64) -> Vec<Raw> {
        let count = self.rng.between(1, count_max);
        let mut keys: Vec<Raw> = (0..count)
            .map(|_| self.keys[self.rng.below(self.keys.len() as u64) as usize].clone())
            .collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// Asks a group: its primary, or now and then whoever else.
    pub fn ask(&mut self, group: GroupId, request: Request) -> Ticket {
        let at = self.world.at(group);
        let ticket = self.world.ticket();
        let primary = self.world.groups[at].primary;
        let any = self.rng.below(REPLICAS as u64) as usize;
        let replica = if !self.is_healing && self.chance(10) { any } else { primary };
        self.world.handle(at, replica, Input::Request { ticket, request });
        ticket
    }

    fn some_group(&mut self) -> usize {
        self.rng.below(self.world.groups.len() as u64) as usize
    }

    fn step(&mut self) {
        let at = self.some_group();
        match self.rng.below(100) {
            0..30 => {
                let index = self.rng.below(self.customers.len() as u64) as usize;
                self.step_customer(index);
            }
            30..50 => {
                let count = self.rng.between(1, 4) as usize;
                self.world.commit(at, count);
            }
            50..58 => self.world.confirm(at),
            58..80 => self.step_net(),
            80..88 => {
                self.world.now = self.world.now + Span::millis(self.rng.below(60));
                self.world.handle_primary(at, Input::Tick);
            }
            88..92 => {
                let replica = self.rng.below(REPLICAS as u64) as usize;
                let count = self.rng.between(1, 5) as usize;
                let is_free = replica == self.world.groups[at].primary || self.chance(50);
                if is_free {
                    self.world.follow(at, replica, count);
                }
            }
            92..94 => self.fail_over(at),
            94..96 => self.step_store(at),
            _ => self.step_rare(at),
        }
        self.hear();
    }

    fn step_net(&mut self) {
        if self.world.net.is_empty() {
            return;
        }
        let place = self.rng.below(self.world.net.len() as u64) as usize;
        let envelope = self.world.net[place].clone();
        // Half of what is delivered may come again; some is lost.
        if !self.chance(15) || self.world.net.len() > 200 {
            self.world.net.swap_remove(place);
        }
        if self.chance(10) {
            return;
        }
        let at = self.world.at(envelope.to);
        let any = self.rng.below(REPLICAS as u64) as usize;
        let primary = self.world.groups[at].primary;
        let replica = if self.chance(10) { any } else { primary };
        self.world.handle(at, replica, Input::Message(envelope.message));
    }

    fn fail_over(&mut self, at: usize) {
        let next = self.rng.below(REPLICAS as u64) as usize;
        let kept = self.rng.below(self.world.groups[at].tail.len() as u64 + 1) as usize;
        let is_told = self.chance(50);
        self.world.fail_over(at, next, kept, is_told);
    }

    fn step_store(&mut self, at: usize) {
        let replica = self.rng.below(REPLICAS as u64) as usize;
        let bytes = self.rng.below(80) as usize;
        let its = &mut self.world.groups[at].replicas[replica];
        let (state, applied) = (&mut its.state, its.applied as u64);
        its.disk.call(|store| {
            crate::vsr::Machine::store(state, crate::vsr::Op(applied), bytes, store);
        });
    }

    fn step_rare(&mut self, at: usize) {
        let primary = self.world.groups[at].primary;
        let other = (primary + 1 + self.rng.below(REPLICAS as u64 - 1) as usize) % REPLICAS;
        match self.rng.below(6) {
            0 => {
                let skew = self.rng.below(600) as i64 - 300;
                self.world.groups[at].replicas[primary].skew_ms = skew;
            }
            1 => {
                let purge = crate::vsr::Op(self.world.groups[at].log.len() as u64);
                self.world.handle_primary(at, Input::Sweep { from: Bytes::new(), purge });
            }
            2 => self.world.restart(at, other),
            3 => {
                let seed = self.rng.next();
                let mut rng = Rng::new(seed);
                self.world.copy(at, primary, other, &mut |world| {
                    let count = rng.below(3) as usize;
                    world.commit(at, count);
                });
            }
            4 => {
                // A replica that believes it leads does what it can.
                self.world.handle(at, other, Input::Tick);
            }
            _ => {
                let client = self.rng.below(self.customers.len() as u64) as usize;
                if self.customers[client].is_dead {
                    let gone = Client(self.customers[client].id);
                    self.world.handle_primary(at, Input::ClientGone(gone));
                }
            }
        }
    }

    /// So many random steps, then everything works, until all is over.
    pub fn run(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step();
        }
        self.is_healing = true;
        for at in 0..self.world.groups.len() {
            for replica in 0..REPLICAS {
                self.world.follow(at, replica, usize::MAX);
            }
        }
        for _ in 0..300 {
            self.world.run_ms(100);
            self.hear();
            for index in 0..self.customers.len() {
                self.step_customer(index);
            }
            self.hear();
        }
        for its in self.customers.iter().filter(|its| !its.is_dead) {
            let is_over = matches!(its.doing, Doing::Nothing);
            assert!(is_over, "client {} hears how {} ends", its.id, its.counter);
        }
        self.world.run_ms(5000);
        self.world.check_quiet();
        self.world.check_equal();
    }
}

fn run_seeds(
    seeds: core::ops::Range<u64>,
    optimizations: impl Fn(u64) -> Optimizations,
) -> (usize, usize) {
    let (mut committed, mut aborted) = (0, 0);
    for seed in seeds {
        let mut random = Random::new(seed);
        random.optimize(|number| optimizations(seed + number));
        random.run(4000);
        if let Err(why) = judge(&random.world, &random.history) {
            panic!("seed {seed}: {why}");
        }
        committed += random.committed;
        aborted += random.aborted;
    }
    (committed, aborted)
}

#[test]
fn random_worlds_are_strictly_serializable() {
    let number = |name: &str, or: u64| {
        env::var(name).ok().map_or(or, |text| text.parse().expect("it is a number"))
    };
    let (from, count) = (number("SEED", 0), number("SEEDS", 60));
    let (committed, aborted) = run_seeds(from..from + count, |_| Optimizations::default());
    std::println!("{committed} committed, {aborted} aborted");
    assert!(committed as u64 > 8 * count, "transactions commit: {committed}");
    assert!(aborted as u64 > count, "transactions conflict: {aborted}");
}

/// What the paper has beside its algorithms may be left out, by some members and not by others.
#[test]
fn random_worlds_with_fewer_optimizations_are_strictly_serializable() {
    let some = |number: u64| Optimizations {
        fast_aborts: number.is_multiple_of(3),
        shared_locks: number.is_multiple_of(2),
    };
    let (committed, aborted) = run_seeds(1000..1016, some);
    assert!(committed > 8 * 16, "transactions commit: {committed}");
    assert!(aborted > 16, "transactions conflict: {aborted}");
}
