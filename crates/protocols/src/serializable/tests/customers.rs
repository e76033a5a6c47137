//! Clients of a random world: they read, commit what rests on that, ask again, and die.

use super::judge::Done;
use super::judge::seen;
use super::random::Random;
use super::world::{World, key, tx};
use crate::serializable::rules::VALUE_BYTES_MAX;
use crate::serializable::{
    Act, Commit, Condition, Expiry, Item, Outcome, Raw, Refused, Reply, Request, TxId, Version,
    number::Client,
};
use quorate_kernel::ids::{GroupId, Ticket};
use quorate_kernel::time::{Span, Time};
use std::collections::BTreeMap;
use std::format;
use std::vec::Vec;

/// What a client is doing.
pub enum Doing {
    Nothing,
    /// It reads keys, each of its group.
    Reading {
        waits: BTreeMap<Ticket, Vec<Raw>>,
        got: Vec<(Raw, Item)>,
        is_strict: bool,
    },
    /// It has asked to commit, so often.
    Committing {
        shares: Vec<(GroupId, Commit)>,
        asked: u32,
        next: Time,
    },
    /// It has asked whether what it has read is current.
    Checking {
        waits: BTreeMap<Ticket, ()>,
    },
}

/// A client.
pub struct Customer {
    pub id: u64,
    pub counter: u64,
    pub doing: Doing,
    /// Which of the history it is at.
    pub at: usize,
    pub is_dead: bool,
    pub tickets: Vec<Ticket>,
}

impl Random {
    /// A client does the next thing.
    pub fn step_customer(&mut self, index: usize) {
        if self.customers[index].is_dead {
            return;
        }
        self.clock += 1;
        let gives_up = self.is_healing || self.chance(4);
        match &self.customers[index].doing {
            Doing::Nothing if !self.is_healing => self.begin(index),
            Doing::Committing { next, .. } if *next <= self.world.now => self.ask_again(index),
            // What nobody has answered, or has refused, is given up.
            Doing::Reading { .. } | Doing::Checking { .. } if gives_up => {
                self.customers[index].doing = Doing::Nothing;
            }
            _ => {}
        }
    }

    fn begin(&mut self, index: usize) {
        let keys = self.some_keys(4);
        let is_strict = self.chance(70);
        let highest = self.customers.iter().map(|it| it.counter).max().unwrap_or_default();
        let takes_highest = self.chance(50);
        let its = &mut self.customers[index];
        its.counter = if takes_highest { its.counter.max(highest) } else { its.counter } + 1;
        its.at = self.history.len();
        let id = tx(its.counter, its.id);
        self.history.push(Done {
            tx: Some(id),
            began: self.clock,
            ended: None,
            reads: Vec::new(),
            acts: Vec::new(),
            groups: Vec::new(),
            outcome: None,
        });
        let mut by_group: BTreeMap<GroupId, Vec<Raw>> = BTreeMap::new();
        for name in keys {
            by_group.entry(World::group_of(&name)).or_default().push(name);
        }
        let mut waits = BTreeMap::new();
        for (group, names) in by_group {
            let keys = names.clone();
            let request =
                if is_strict { Request::Read { keys } } else { Request::ReadAny { keys } };
            waits.insert(self.ask(group, request), names);
        }
        self.customers[index].doing = Doing::Reading { waits, got: Vec::new(), is_strict };
    }

    fn some_act(&mut self, id: TxId, number: u64) -> Act {
        let value = key(&format!("{}.{}.{number}", id.client.0, id.counter));
        let soon = self.world.now.0 / 1_000_000 + self.rng.below(400);
        match self.rng.below(10) {
            0 => Act::Delete,
            1 => Act::Add(1),
            2 => Act::Append(key("+")),
            3 => Act::PutIf { condition: Condition::Absent, value, expiry: Expiry::Never },
            4 => Act::Put { value, expiry: Expiry::At(soon) },
            _ => Act::Put { value, expiry: Expiry::Never },
        }
    }

    /// All was read: the commit.
    fn commit(&mut self, index: usize, got: Vec<(Raw, Item)>, is_strict: bool) {
        let (id, at) = (self.id(index), self.customers[index].at);
        let names: Vec<Raw> = got.iter().map(|(name, _)| name.clone()).collect();
        let items: Vec<Item> = got.iter().map(|(_, item)| item.clone()).collect();
        self.history[at].reads = seen(&names, &items);
        if is_strict && got.len() == 1 && self.chance(30) {
            // It was a read alone.
            self.history[at].tx = None;
            self.history[at].ended = Some(self.clock);
            self.customers[index].doing = Doing::Nothing;
            return;
        }
        let reads: BTreeMap<Raw, Version> =
            got.iter().map(|(name, item)| (name.clone(), item.version)).collect();
        if self.chance(15) {
            let mut by_group: BTreeMap<GroupId, BTreeMap<Raw, Version>> = BTreeMap::new();
            for (name, version) in reads {
                by_group.entry(World::group_of(&name)).or_default().insert(name, version);
            }
            let asked = by_group.into_iter();
            let waits = asked.map(|(at, reads)| (self.ask(at, Request::Check { reads }), ()));
            let waits = waits.collect();
            self.customers[index].doing = Doing::Checking { waits };
            return;
        }
        let mut acts = Vec::new();
        let blind = self.some_keys(2);
        for (number, name) in names.iter().chain(&blind).enumerate() {
            if self.chance(60) {
                acts.push((name.clone(), self.some_act(id, number as u64)));
            }
        }
        let priority = if self.chance(20) { id.counter / 2 } else { id.counter };
        let transaction = crate::serializable::Transaction {
            rank: crate::serializable::Rank { priority, tx: id },
            mark: id.counter,
            reads,
            acts: acts.clone(),
            goes_on: self.chance(30),
            value_max: VALUE_BYTES_MAX as u64,
        };
        let shares = transaction.split(World::group_of).expect("it is within the limits");
        self.history[at].acts = acts;
        self.history[at].groups = shares.iter().map(|(group, _)| *group).collect();
        self.customers[index].doing = Doing::Committing { shares, asked: 0, next: Time(0) };
        self.ask_again(index);
    }

    fn id(&self, index: usize) -> TxId {
        let its = &self.customers[index];
        TxId { counter: its.counter, client: Client(its.id) }
    }

    /// Asks all primaries again, or how it ended; a client may die with some of them not asked.
    fn ask_again(&mut self, index: usize) {
        let now = self.world.now;
        let wait = Span::millis(self.rng.between(300, 1500));
        let Doing::Committing { shares, asked, next } = &mut self.customers[index].doing else {
            return;
        };
        *asked += 1;
        *next = now + wait;
        let (shares, asked) = (shares.clone(), *asked);
        if asked > 4 {
            let token = shares[0].1.token();
            let ticket = self.ask(token.coordinator, Request::Outcome { token });
            self.customers[index].tickets.push(ticket);
            return;
        }
        for (group, share) in shares {
            if !self.is_healing && self.chance(1) {
                self.customers[index].is_dead = true;
                return;
            }
            if self.is_healing || !self.chance(10) {
                let ticket = self.ask(group, Request::Commit(share));
                self.customers[index].tickets.push(ticket);
            }
        }
    }

    /// What was answered since the last time.
    pub fn hear(&mut self) {
        while self.heard < self.world.replies.len() {
            let (ticket, reply) = self.world.replies[self.heard].clone();
            self.heard += 1;
            self.clock += 1;
            for index in 0..self.customers.len() {
                self.hear_one(index, ticket, &reply);
            }
        }
    }

    fn hear_one(&mut self, index: usize, ticket: Ticket, reply: &Reply) {
        let its = &mut self.customers[index];
        if its.is_dead {
            return;
        }
        match (&mut its.doing, reply) {
            (Doing::Reading { waits, got, is_strict }, Reply::Items(items)) => {
                let Some(names) = waits.remove(&ticket) else { return };
                got.extend(names.into_iter().zip(items.iter().cloned()));
                if waits.is_empty() {
                    let (got, is_strict) = (core::mem::take(got), *is_strict);
                    self.commit(index, got, is_strict);
                }
            }
            (Doing::Checking { waits }, Reply::Current) if waits.contains_key(&ticket) => {
                waits.remove(&ticket);
                if waits.is_empty() {
                    let at = its.at;
                    its.doing = Doing::Nothing;
                    self.history[at].ended = Some(self.clock);
                }
            }
            (Doing::Checking { waits }, Reply::Changed { .. } | Reply::Refused(_))
                if waits.contains_key(&ticket) =>
            {
                its.doing = Doing::Nothing;
            }
            (Doing::Committing { next, .. }, Reply::Outcome { tx, outcome }) => {
                let id = TxId { counter: its.counter, client: Client(its.id) };
                if *tx != id {
                    return;
                }
                match outcome {
                    Outcome::Running => *next = self.world.now + Span::millis(200),
                    Outcome::Forgotten { .. } => {
                        panic!("{id:?} is forgotten before its client knows")
                    }
                    _ => {
                        let is_ok = matches!(outcome, Outcome::Committed(_));
                        self.committed += usize::from(is_ok);
                        self.aborted += usize::from(!is_ok);
                        let at = its.at;
                        its.doing = Doing::Nothing;
                        its.tickets.clear();
                        self.history[at].ended = Some(self.clock);
                        self.history[at].outcome = Some(outcome.clone());
                    }
                }
            }
            (Doing::Committing { .. }, Reply::Refused(refused))
                if its.tickets.contains(&ticket) =>
            {
                let is_usual = matches!(refused, Refused::NotPrimary | Refused::Busy);
                assert!(is_usual, "{refused:?} is no reason");
            }
            _ => {}
        }
    }
}
