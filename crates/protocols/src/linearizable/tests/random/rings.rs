//! Random schedules in which nobody tells the views: each node believes something of the ring, and
//! the nodes change their groups by themselves, while hosts join, are suspected and crash.
//!
//! Besides the answers it is judged that everything comes to rest: once all believe in the same
//! ring, each group has the members that it asks for, all of them with all data.

use super::chaos::{Chaos, is_linearizable};
use crate::placement;
use crate::testing::world::{Setup, World};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::ring::{Closing, Ring, RingHost, Standing};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use std::collections::{BTreeMap, BTreeSet};
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, println, thread};

const MEMBERS: u64 = 3;
const NODES: u64 = 5;
const OPERATIONS: usize = 8;
const ACTIONS: usize = 500;
/// How long a healed world may take to come to rest.
const REST_MAX: Span = Span::secs(30);

/// Hosts that are up, each with one token.
pub(crate) fn up(hosts: &[(u64, u64)]) -> Vec<RingHost> {
    let host = |(token, node): &(u64, u64)| RingHost {
        who: Incarnation { node: NodeId(*node), start: Start(1) },
        address: String::new(),
        zone: String::new(),
        tokens: Vec::from([*token]),
        standing: Standing::Up,
        is_suspected: false,
        doors: Vec::new(),
    };
    hosts.iter().map(host).collect()
}

/// One run of a seed.
struct Run {
    seed: u64,
    chaos: Chaos,
    /// Whether tokens lie inside the first group's range, so that it is split.
    has_splits: bool,
    /// How many hosts have joined the ring.
    joined: u64,
    /// What each node believes.
    beliefs: BTreeMap<u64, Vec<RingHost>>,
}

impl Run {
    fn new(seed: u64, has_splits: bool) -> Run {
        let rng = Rng::new(seed);
        let options = Vec::from(["brisk".to_string(), "comparing".to_string()]);
        let first = (!has_splits).then_some(0x100);
        let (members, spares) = (MEMBERS, NODES - MEMBERS);
        let world = World::new(&Setup { members, spares, first, options, ..Setup::default() });
        let (joined, beliefs) = (MEMBERS, BTreeMap::new());
        Run { seed, chaos: Chaos::new(world, rng, NODES), has_splits, joined, beliefs }
    }

    fn hosts(&self, joined: u64) -> Vec<RingHost> {
        let token = |node: u64| if self.has_splits { node * (u64::MAX / NODES) } else { node };
        let hosts: Vec<(u64, u64)> = (1..=joined).map(|node| (token(node), node)).collect();
        up(&hosts)
    }

    fn act(&mut self) {
        let chaos = &mut self.chaos;
        let flights = chaos.world.flights.len() as u64;
        match chaos.rng.below(100) {
            0..50 if flights > 0 => {
                // Several at a time, or beats would leave no room for anything else.
                for _ in 0..chaos.rng.between(1, 8).min(flights) {
                    chaos.deliver();
                }
            }
            50..55 if flights > 0 => chaos.lose(),
            55..57 if flights > 0 => chaos.double(),
            57..63 if chaos.asked() < OPERATIONS => chaos.ask(9, Span::secs(2)),
            63..84 => chaos.tick(60),
            84..86 => chaos.hold_sync(),
            86..90 => chaos.sync(),
            90..93 => self.crash_or_restart(),
            93..98 => self.believe(),
            _ => {}
        }
        self.chaos.note_answers();
    }

    /// Some nodes believe something new.
    fn believe(&mut self) {
        if self.joined < NODES && self.chaos.rng.below(3) == 0 {
            self.joined += 1;
        }
        let mut hosts = self.hosts(self.joined);
        for _ in 0..self.chaos.rng.below(3) {
            let place = self.chaos.rng.below(hosts.len() as u64) as usize;
            hosts[place].is_suspected = true;
        }
        if self.chaos.rng.below(6) == 0 {
            let place = self.chaos.rng.below(hosts.len() as u64) as usize;
            hosts[place].standing = Standing::Leaving;
        }
        for node in 1..=NODES {
            if self.chaos.rng.below(3) > 0 {
                self.tell(node, hosts.clone());
            }
        }
    }

    fn tell(&mut self, node: u64, mut hosts: Vec<RingHost>) {
        // Nobody suspects itself.
        for host in hosts.iter_mut().filter(|host| host.who.node.0 == node) {
            host.is_suspected = false;
        }
        if self.chaos.world.is_up(node) {
            self.chaos.world.announce(node, &hosts, Closing::No);
        }
        self.beliefs.insert(node, hosts);
    }

    /// One node at a time is down.
    fn crash_or_restart(&mut self) {
        match self.chaos.down() {
            Some(down) => self.restart(down),
            None => {
                let node = self.chaos.some_node();
                self.chaos.world.crash(node);
            }
        }
    }

    fn restart(&mut self, node: u64) {
        self.chaos.world.restart(node, false);
        if let Some(hosts) = self.beliefs.get(&node).cloned() {
            self.chaos.world.announce(node, &hosts, Closing::No);
        }
    }

    /// All faults end, and all believe the same.
    fn heal(&mut self) -> Result<(), String> {
        for node in 1..=NODES {
            if !self.chaos.world.is_up(node) {
                self.restart(node);
            }
            self.chaos.world.sync(node);
        }
        let hosts = self.hosts(NODES);
        for node in 1..=NODES {
            self.tell(node, hosts.clone());
        }
        let end = self.chaos.world.now + REST_MAX;
        let mut restless = self.restless(&hosts);
        while restless.is_some() && self.chaos.world.now < end {
            self.chaos.calm(Span::millis(200));
            restless = self.restless(&hosts);
        }
        if let Some(why) = restless {
            return Err(why);
        }
        self.chaos.read_everywhere();
        Ok(())
    }

    /// What is not as the ring asks for, if anything.
    fn restless(&mut self, hosts: &[RingHost]) -> Option<String> {
        let ring = Ring::new(1, hosts.to_vec());
        let mut groups: BTreeMap<String, (u64, BTreeSet<u64>)> = BTreeMap::new();
        for node in 1..=NODES {
            let parents = self.chaos.world.field(node, "groups_split");
            if parents != "0" {
                return Some(format!("node {node} keeps {parents} groups that were split"));
            }
            for row in self.chaos.world.rows(node, "groups") {
                let standing = row["status"].as_str();
                if standing == "split" || standing == "learned" {
                    // The record of a group that was split stays for nodes that lag behind, and
                    // what was copied ahead for a while.
                    continue;
                }
                if standing != "ready" || row["role"] == "proposer" {
                    return Some(format!("node {node}: {row:?}"));
                }
                let high = u64::from_str_radix(&row["high"], 16).expect("a token");
                let desired = placement::desired(&ring, high, MEMBERS as usize);
                let mut desired: Vec<String> = desired.iter().map(NodeId::to_string).collect();
                desired.sort();
                let mut members: Vec<&str> = row["members"].split(',').collect();
                members.sort_unstable();
                if desired != members {
                    return Some(format!("node {node}: {row:?} should be {desired:?}"));
                }
                let what = format!("{} {} {}", row["group"], row["version"], row["members"]);
                groups.entry(what).or_insert((high, BTreeSet::new())).1.insert(node);
            }
        }
        let highs: Vec<u64> = groups.values().map(|(high, _)| *high).collect();
        let expected = if self.has_splits { NODES as usize } else { 1 };
        let has_each = groups.values().all(|(_, nodes)| nodes.len() == MEMBERS as usize);
        let is_whole = highs.len() >= expected && has_each;
        (!is_whole).then(|| format!("{groups:?}"))
    }
}

/// A broken invariant stops a run: what led to it is shown.
impl Drop for Run {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = self.chaos.world.log.join("\n");
            println!("{log}\nseed {}, splits {}", self.seed, self.has_splits);
        }
    }
}

/// Runs a seed; says what is wrong, if anything is.
fn try_seed(seed: u64, has_splits: bool) -> Result<(), String> {
    let mut run = Run::new(seed, has_splits);
    for _ in 0..ACTIONS {
        run.act();
    }
    let healed = run.heal();
    let history = run.chaos.history();
    let verdict = match (is_linearizable(&history), healed, run.chaos.is_served()) {
        (true, Ok(()), true) => return Ok(()),
        (false, ..) => "no order explains the answers".to_string(),
        (_, Err(why), _) => format!("it does not come to rest: {why}"),
        (.., false) => "a get after the faults was not answered".to_string(),
    };
    let log = run.chaos.world.log.join("\n");
    Err(format!("{log}\nseed {seed}, splits {has_splits}: {verdict}\n{history:?}"))
}

fn try_seeds(has_splits: bool) {
    for seed in 0..60 {
        if let Err(why) = try_seed(seed, has_splits) {
            panic!("{why}");
        }
    }
}

#[test]
fn rings_of_one_group_break_nothing() {
    try_seeds(false);
}

#[test]
fn rings_that_split_groups_break_nothing() {
    try_seeds(true);
}
