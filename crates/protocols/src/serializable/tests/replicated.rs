//! Clients of groups on replicated logs, whose replicas crash and start again, and lag until they
//! must copy.

use super::judge::{Done, judge, seen};
use super::lanes::{Lanes, NODES};
use super::world::{World, key, put, tx};
use crate::serializable::rules::VALUE_BYTES_MAX;
use crate::serializable::{Commit, Input, Outcome, Raw, Reply, Request, Version};
use quorate_kernel::ids::{GroupId, Ticket};
use quorate_kernel::time::{Span, Time};
use std::collections::BTreeMap;
use std::vec::Vec;

/// What a client waits for.
enum Waits {
    Nothing,
    Read { tickets: BTreeMap<Ticket, Vec<Raw>>, got: BTreeMap<Raw, Version> },
    Commit { shares: Vec<(GroupId, Commit)>, next: Time },
}

/// A client that reads two keys, and puts them.
struct Customer {
    id: u64,
    counter: u64,
    waits: Waits,
    patience: Time,
}

struct Shop {
    lanes: Lanes,
    customers: Vec<Customer>,
    history: Vec<Done>,
    clock: u64,
    tickets: u64,
    heard: usize,
    committed: usize,
}

impl Shop {
    fn new(seed: u64, groups: u64) -> Shop {
        let customer = |id| {
            let (waits, patience) = (Waits::Nothing, Time(0));
            Customer { id, counter: 0, waits, patience }
        };
        let (lanes, customers) = (Lanes::new(seed, groups), (1..=4).map(customer).collect());
        let history = Vec::new();
        Shop { lanes, customers, history, clock: 0, tickets: 0, heard: 0, committed: 0 }
    }

    fn ask(&mut self, group: GroupId, request: Request) -> Ticket {
        self.tickets += 1;
        let (ticket, at) = (Ticket(self.tickets), group.0 as usize - 1);
        let node = self.lanes.leader(at);
        self.lanes.input((at, node), Input::Request { ticket, request });
        ticket
    }

    /// The history of a client's present transaction.
    fn done(&mut self, index: usize) -> &mut Done {
        let its = &self.customers[index];
        let id = tx(its.counter, its.id);
        self.history.iter_mut().rfind(|done| done.tx == Some(id)).expect("it has begun")
    }

    fn go_on(&mut self, index: usize, may_begin: bool) {
        self.clock += 1;
        let (now, groups) = (self.lanes.now, self.lanes.groups.len() as u64);
        let its = &mut self.customers[index];
        match &mut its.waits {
            Waits::Nothing if may_begin => {
                its.counter += 1;
                its.patience = now + Span::millis(600);
                let id = tx(its.counter, its.id);
                let (began, ended, outcome) = (self.clock, None, None);
                let (reads, acts, of) = (Vec::new(), Vec::new(), Vec::new());
                let tx = Some(id);
                self.history.push(Done { tx, began, ended, reads, acts, groups: of, outcome });
                let rng = &mut self.lanes.rng;
                let mut name = || {
                    let (group, number) = (rng.between(1, groups), rng.below(3));
                    key(&std::format!("{group}k{number}"))
                };
                let mut names = Vec::from([name(), name()]);
                names.sort();
                names.dedup();
                let mut by_group: BTreeMap<GroupId, Vec<Raw>> = BTreeMap::new();
                for name in names {
                    by_group.entry(World::group_of(&name)).or_default().push(name);
                }
                let mut tickets = BTreeMap::new();
                for (group, keys) in by_group {
                    tickets.insert(self.ask(group, Request::Read { keys: keys.clone() }), keys);
                }
                self.customers[index].waits = Waits::Read { tickets, got: BTreeMap::new() };
            }
            Waits::Read { .. } if its.patience <= now => its.waits = Waits::Nothing,
            Waits::Commit { shares, next } if *next <= now => {
                *next = now + Span::millis(500);
                for (group, share) in shares.clone() {
                    self.ask(group, Request::Commit(share));
                }
            }
            _ => {}
        }
    }

    fn hear(&mut self) {
        while let Some((ticket, reply)) = self.lanes.replies.get(self.heard).cloned() {
            self.heard += 1;
            self.clock += 1;
            for index in 0..self.customers.len() {
                self.hear_one(index, ticket, &reply);
            }
        }
    }

    fn hear_one(&mut self, index: usize, ticket: Ticket, reply: &Reply) {
        let (clock, now) = (self.clock, self.lanes.now);
        let its = &mut self.customers[index];
        let id = tx(its.counter, its.id);
        match (&mut its.waits, reply) {
            (Waits::Read { tickets, got }, Reply::Items(items)) => {
                let Some(names) = tickets.remove(&ticket) else { return };
                got.extend(names.iter().cloned().zip(items.iter().map(|item| item.version)));
                let is_whole = tickets.is_empty();
                let reads = core::mem::take(got);
                let names_seen = seen(&names, items);
                self.done(index).reads.extend(names_seen);
                if !is_whole {
                    let Waits::Read { got, .. } = &mut self.customers[index].waits else { return };
                    *got = reads;
                    return;
                }
                let value = put(&std::format!("{id:?}"));
                let acts = reads.keys().map(|name| (name.clone(), value.clone())).collect();
                let rank = crate::serializable::Rank { priority: id.counter, tx: id };
                let transaction = crate::serializable::Transaction {
                    rank,
                    mark: id.counter,
                    reads,
                    acts,
                    goes_on: false,
                    value_max: VALUE_BYTES_MAX as u64,
                };
                let shares = transaction.split(World::group_of).expect("it is small");
                let done = self.done(index);
                done.acts = transaction.acts;
                done.groups = shares.iter().map(|(group, _)| *group).collect();
                self.customers[index].waits = Waits::Commit { shares, next: now };
            }
            (Waits::Commit { .. }, Reply::Outcome { tx, outcome }) if *tx == id => {
                let is_forgotten = matches!(outcome, Outcome::Forgotten { .. });
                assert!(!is_forgotten, "{id:?}: its client does not know yet");
                self.committed += usize::from(matches!(outcome, Outcome::Committed(_)));
                its.waits = Waits::Nothing;
                let done = self.done(index);
                (done.ended, done.outcome) = (Some(clock), Some(outcome.clone()));
            }
            _ => {}
        }
    }

    fn step(&mut self, may_begin: bool) {
        for index in 0..self.customers.len() {
            self.go_on(index, may_begin);
        }
        self.hear();
        self.lanes.step();
        self.hear();
    }
}

fn run(seed: u64) -> [usize; 3] {
    let groups = 1 + seed % 3;
    let mut shop = Shop::new(seed, groups);
    let mut down: Vec<(Time, (usize, usize))> = Vec::new();
    for _ in 0..400 {
        shop.lanes.loss_percent = shop.lanes.rng.below(8);
        let at =
            (shop.lanes.rng.below(groups) as usize, shop.lanes.rng.below(NODES as u64) as usize);
        let has_crashed = down.iter().any(|(_, other)| other.0 == at.0);
        if !has_crashed && shop.lanes.rng.below(100) < 4 {
            shop.lanes.crash(at);
            let span = Span::millis(shop.lanes.rng.between(50, 3000));
            down.push((shop.lanes.now + span, at));
        }
        let now = shop.lanes.now;
        let (up, still): (Vec<_>, Vec<_>) = down.into_iter().partition(|(time, _)| *time <= now);
        up.into_iter().for_each(|(_, at)| shop.lanes.start(at));
        down = still;
        shop.step(true);
    }
    shop.lanes.loss_percent = 0;
    down.into_iter().for_each(|(_, at)| shop.lanes.start(at));
    for _ in 0..400 {
        shop.step(false);
    }
    let is_over = |its: &Customer| matches!(its.waits, Waits::Nothing);
    assert!(shop.customers.iter().all(is_over), "seed {seed}: all clients hear how it ended");
    for hosted in shop.lanes.groups.iter().flatten() {
        let head = &hosted.machine.state.head;
        assert!(head.pending.is_empty(), "seed {seed}: {:?} stay", head.pending);
        let first = &shop.lanes.groups[hosted.group.0 as usize - 1][0].machine.state.head;
        assert_eq!(head, first, "seed {seed}: all replicas are equal");
    }
    let mut world = World::new(groups);
    for (at, log) in shop.lanes.logs.iter().enumerate() {
        let places: Vec<u64> = log.keys().map(|op| op.0).collect();
        // The first entry of a log says who the members are.
        let all: Vec<u64> = (2..=log.len() as u64 + 1).collect();
        assert_eq!(places, all, "seed {seed}: the log has no holes");
        world.groups[at].log = log.values().cloned().collect();
    }
    if let Err(why) = judge(&world, &shop.history) {
        panic!("seed {seed}: {why}");
    }
    [shop.committed, shop.lanes.copies, shop.lanes.refused]
}

#[test]
fn groups_on_replicated_logs_are_strictly_serializable() {
    let mut sums = [0; 3];
    let number = |name: &str, or: u64| {
        std::env::var(name).ok().map_or(or, |text| text.parse().expect("it is a number"))
    };
    let (from, count) = (number("SEED", 0), number("LANES", 6));
    for seed in from..from + count {
        for (sum, more) in sums.iter_mut().zip(run(seed)) {
            *sum += more;
        }
    }
    let [committed, copies, refused] = sums;
    std::println!("{committed} committed, {copies} pages of copies, {refused} not taken");
    assert!(refused > 0, "some log was full");
    assert!(committed as u64 > 40 * count, "transactions commit: {committed}");
    assert!(copies > 0, "somebody has copied");
}
