//! A world in which nothing happens by itself: tests say what clients ask, what is lost, and whose
//! disk does not sync.

use super::machine::{KEYS, Request};
use super::node::{GROUP, Level};
use super::world::{Setup, World, ids};
use crate::vsr::{Epoch, Kept, Message, ViewNumber};
use quorate_kernel::time::Span;
use std::boxed::Box;
use std::vec::Vec;

/// What stays in a log: hardly anything, whoever lags.
pub const FEW: Kept = Kept { entries: 4, bytes: 0 };

impl World {
    /// So many members, and spares that know nothing of the group; messages and syncs take 1 ms.
    pub fn calm(members: u64, spares: u64, level: Level) -> World {
        let (jitter, clients) = (Span(0), 0);
        let setup = Setup { seed: 1, members, spares, level, kept: FEW, clients, jitter };
        let mut world = World::new(setup);
        // Shown when the test fails.
        world.trace = Some(Vec::new());
        world
    }

    /// The founders' nodes in the order in which they lead the views of the first epoch.
    pub fn order(&self) -> Vec<usize> {
        let configuration = self.replica(0).configuration().clone();
        let at = |view| configuration.primary(GROUP, ViewNumber { epoch: Epoch(1), view });
        let leads = |view| at(view).expect("it has members").0 as usize - 1;
        (0..configuration.members.len() as u64).map(leads).collect()
    }

    /// Time passes.
    pub fn run_ms(&mut self, ms: u64) {
        self.run(Span::millis(ms));
    }

    /// Time passes until something holds; at most ten seconds.
    pub fn run_until(&mut self, what: &str, holds: impl Fn(&World) -> bool) {
        for _ in 0..10_000 {
            if holds(self) {
                return;
            }
            self.run_ms(1);
        }
        panic!("it never comes that {what}");
    }

    /// A client asks a node for a write; the node takes it.
    pub fn put(&mut self, node: usize, key: u8) -> Request {
        let command = self.client_comes(key);
        assert!(self.write(node, command), "{} takes it", node + 1);
        command.request
    }

    /// Clients ask a node for so many writes, one after the other, and are told that they are done.
    pub fn put_many(&mut self, node: usize, count: u8) {
        for key in 0..count {
            let request = self.put(node, key % KEYS);
            self.run_ms(10);
            assert!(self.is_told(request), "{} has done it", node + 1);
        }
    }

    /// Loses these messages from now on, instead of those before.
    pub fn lose(&mut self, loses: impl Fn(usize, usize, &Message) -> bool + 'static) {
        self.loses = Some(Box::new(loses));
    }

    /// Loses all messages from and to these nodes.
    pub fn cut(&mut self, nodes: &[usize]) {
        let nodes = nodes.to_vec();
        self.lose(move |from, to, _| nodes.contains(&from) || nodes.contains(&to));
    }

    /// Loses no message any more.
    pub fn mend(&mut self) {
        self.loses = None;
        self.release();
    }

    /// All of the first so many nodes stop at once, and start again.
    pub fn restart_all(&mut self, nodes: usize) {
        (0..nodes).for_each(|node| self.crash(node));
        (0..nodes).for_each(|node| self.start(node));
    }

    /// Three members have lost everything, and all have what ends their epoch, and nobody hears
    /// that the others have.
    pub fn end_unheard(&mut self) {
        self.judge.may_lose();
        self.restart_all(3);
        self.lose(|_, _, message| matches!(message, Message::PrepareOk { .. }));
        let ends = |world: &World| (0..3).all(|node| world.replica(node).closing().is_some());
        self.run_until("all have the end", ends);
    }

    /// These are wished for, and become the members.
    pub fn wish(&mut self, members: &[u64]) {
        let members = ids(members);
        let serving = self.serving().expect("somebody serves");
        self.turn(serving, |replica, _| replica.wish(&members).expect("it leads"));
        self.run_ms(1000);
        assert_eq!(self.members, members, "the wish has come true");
    }

    /// Whether a client was told that its write is done.
    pub fn is_told(&self, request: Request) -> bool {
        self.judge.acknowledged.contains_key(&request)
    }

    /// All is well: nodes that are down start, somebody serves, and all members have the same,
    /// which is what was acknowledged.
    pub fn settle(&mut self) {
        self.mend();
        (0..self.nodes.len()).for_each(|node| {
            if !self.is_up(node) && !self.nodes[node].is_wiped {
                self.start(node);
            }
        });
        self.run_ms(3000);
        let serving = self.serving().expect("somebody serves");
        let request = self.put(serving, 0);
        self.run_ms(1000);
        assert!(self.is_told(request), "a write is done");
        self.compare();
    }

    /// What all members that are up have is what was acknowledged.
    pub fn compare(&mut self) {
        for node in 0..self.nodes.len() {
            let id = node as u64 + 1;
            if self.is_up(node) && self.members.iter().any(|member| member.0 == id) {
                let applied = self.replica(node).applied();
                let machine = std::mem::take(&mut self.nodes[node].machine);
                self.judge.at_rest(id, applied, &machine);
                self.nodes[node].machine = machine;
            }
        }
        assert_eq!(self.judge.verdict(), None);
    }
}
