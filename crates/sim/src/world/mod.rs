//! The world of one seed: hosts, network, keyspaces with their clients, operators and faults around
//! one event queue.
//!
//! A host runs what the server runs: the overlay, the catalog, the lane of events, and the lanes
//! that the catalog opens. Which keyspaces there are, and what their clients do, is the scenario's
//! business; a world knows no engine and no workload by name.
//!
//! | module | what it holds |
//! |---|---|
//! | `events` | the event loop |
//! | `turns` | how hosts work: inputs, turns, answers, disks, starts and ends |
//! | `tenants` | the keyspaces and their clients |
//! | `followers` | clients that follow what hosts tell of the cluster |
//! | `founders`, `launch` | who takes part, and what runs on a host |
//! | `plan`, `faults` | how faults happen, and which are borne |
//! | `operators` | what operators do: to hosts, to keyspaces, to the cluster |
//! | [`grid`] | what seeds draw of durability, replicas, changes and faults, and what was met |
//! | `watch` | what must hold of all hosts together at any time |
//! | `quiescence` | how it is told that all is quiet, and what must hold then |
//! | `balance` | how even the load must be |
//! | `ledger` | what was asked of whom, when, and how it ended |

mod balance;
mod events;
mod faults;
mod followers;
mod founders;
pub mod grid;
mod launch;
mod ledger;
mod operators;
mod plan;
mod quiescence;
mod roll;
mod tenants;
mod turns;
mod watch;

pub use balance::BalanceSection;
pub use founders::Founders;
pub use launch::Lanes;
pub use ledger::{End, Ledger, LedgerEntry};
pub use roll::RollSection;
pub use tenants::Tenant;

use crate::fault::Fault;
use crate::forger::Forger;
use crate::host::Wrap;
use crate::hosts::machines::Machines;
use crate::prepared::Prepared;
use crate::queue::{Event, HostIndex};
use crate::seed::Report;
use crate::trace::Trace;
use crate::workload::fleet::Counts;
use plan::Plan;
use quorate_check::Judges;
use quorate_kernel::ids::{LaneId, Ticket};
use quorate_kernel::rng::Rng;
use std::collections::BTreeMap;

/// The world's own streams of randomness.
const JOINS: u64 = 6;
const HEALING: u64 = 7;
/// How often hosts are looked at while clients work.
const WATCH_NS: u64 = 500_000_000;
/// The ticket of what the simulator itself asks; nobody waits for the answer.
pub const NOBODY: Ticket = Ticket(u64::MAX);

/// The world.
pub struct World<'a> {
    prepared: &'a Prepared,
    pub(crate) machines: Machines,
    /// The keyspaces, in the order of the scenario.
    pub tenants: Vec<Tenant<'a>>,
    /// Who follows what each host tells; nobody if the scenario has none.
    followers: Vec<followers::Follower>,
    founders: Founders,
    lanes: Lanes,
    plan: Plan,
    rng: Rng,
    /// The highest version of any group seen.
    views: u64,
    /// How many tokens were moved, added or given up to even out the load.
    token_moves: u64,
    /// What hosts have known of the roll.
    rolls: roll::Rolls,
    /// Since when nobody wishes for a move.
    content_since: Option<u64>,
    /// What was seen of the change of a cell.
    seen: Vec<grid::Seen>,
    /// The host that is being drained to be ended.
    retiring: Option<operators::retire::Retiring>,
    /// How many questions operators have asked about it.
    surveys: u64,
    /// What keeps the run from its end.
    restless: Option<String>,
    /// Whether the faults ended for every host.
    is_whole: bool,
    is_over: bool,
}

impl<'a> World<'a> {
    /// The world of a seed, before its first event. Around the lanes of keyspaces come these, in
    /// their order, where a test plants a bug.
    #[must_use]
    pub fn new(
        prepared: &'a Prepared,
        seed: u64,
        plan: Vec<Fault>,
        wraps: &[Option<Wrap>],
        trace: Trace,
    ) -> World<'a> {
        let scenario = &prepared.scenario;
        let mut machines = Machines::of(prepared, seed, trace);
        for (index, host) in machines.hosts.iter_mut().enumerate() {
            host.has_joined = index < scenario.members() || scenario.keeps_view;
        }
        World {
            tenants: Tenant::all(prepared, seed),
            followers: vec![Default::default(); if scenario.follow { scenario.hosts } else { 0 }],
            founders: Founders::new(scenario, machines.hosts.iter().map(|host| host.node_id)),
            lanes: Lanes::new(prepared, wraps),
            prepared,
            machines,
            plan: Plan::new(plan),
            rng: Rng::new(seed).fork(HEALING),
            views: 0,
            token_moves: 0,
            rolls: roll::Rolls::default(),
            content_since: None,
            seen: Vec::new(),
            retiring: None,
            surveys: 0,
            restless: None,
            is_whole: true,
            is_over: false,
        }
    }

    /// Has frames added that no correct peer sends, see [`Machines::forge`].
    pub fn forge(&mut self, forger: Forger, events_max: u64) {
        self.machines.forge(forger, events_max);
    }

    /// How many frames were added so, of each lane.
    #[must_use]
    pub fn forged(&self) -> BTreeMap<LaneId, u64> {
        let forger = self.machines.forger.as_ref();
        forger.map(|(forger, _)| forger.forged.clone()).unwrap_or_default()
    }

    /// Runs until all is quiet and was looked at, or something is wrong.
    pub fn run(&mut self) {
        let joined = |host: &HostIndex| self.machines.hosts[*host].has_joined;
        let (present, spares): (Vec<_>, Vec<_>) = (0..self.machines.hosts.len()).partition(joined);
        present.into_iter().for_each(|host| self.start_host(host));
        self.enqueue_joins(spares);
        for tenant in &mut self.tenants {
            tenant.clients.start(&mut self.machines.scene());
        }
        self.machines.queue.push(WATCH_NS, Event::Watch);
        self.plan.enqueue(&mut self.machines.queue);
        self.machines.enqueue_phases(&self.prepared.scenario.liveness);
        while self.machines.violation.is_none() && !self.is_over {
            let Some(event) = self.machines.advance() else { break };
            self.dispatch(event);
            let fleets = self.tenants.iter_mut().map(|tenant| &mut tenant.clients.fleet);
            let failure = fleets.filter_map(|fleet| fleet.failure.take()).next();
            if let Some(message) = failure {
                self.machines.condemn("liveness", message);
            }
        }
        self.show_chain(true);
        if self.machines.violation.is_some() {
            self.machines.show();
        }
    }

    /// Spare hosts join while clients work, some of them together.
    fn enqueue_joins(&mut self, spares: Vec<HostIndex>) {
        let mut joins = self.rng.fork(JOINS);
        let within = self.prepared.scenario.liveness.heal_ms * 500_000;
        let mut at = None;
        for host in spares {
            at = match at {
                Some(at) if joins.chance_ppm(300_000) => Some(at + joins.below(2_000_000)),
                _ => Some(joins.below(within)),
            };
            self.machines.queue.push(at.unwrap_or(0), Event::Join(host));
        }
    }

    /// Notes that a node panicked.
    pub(crate) fn on_panic(&mut self, message: String) {
        self.machines.on_panic(message);
    }

    /// What the run has done, and what the judges say of it. What is wrong with a chain of decrees
    /// explains why its end was not reached, so it comes before what was found on the way.
    pub fn report(&mut self, seed: u64, judges: &mut Judges) -> Report {
        let all = self.tenants.iter().map(|tenant| tenant.clients.fleet.counts);
        let counts = all.fold(Counts::default(), |sum, counts| sum.and(&counts));
        let told = self.machines.hosts.iter().filter_map(|host| host.told.as_ref());
        let mut report = Report {
            seed,
            hash: self.machines.trace.hash(),
            events: self.machines.trace.events(),
            counts,
            faults: self.plan.applied(),
            views: self.views,
            decrees: told.map(|told| told.version).max().unwrap_or(0),
            token_moves: self.token_moves,
            met: self.met(),
            time: self.machines.now,
            idle: None,
            violation: self.machines.violation.clone(),
            undecided: None,
        };
        let is_forged = self.machines.forger.is_some();
        for tenant in self.tenants.iter_mut().filter(|_| !is_forged) {
            tenant.judge(judges, &mut report);
        }
        report
    }

    fn phase(&mut self, name: &str) {
        self.machines.event(90, name.len() as u64);
        self.machines.line(format_args!("** {name}"));
    }
}
