//! The cluster: nodes of one engine in the simulator's light world, and what is done to them.

use super::clients::Waiting;
use super::machines::{Machines, Plan};
use super::run::{Findings, Run, Traffic, costs};
use super::subject::Subject;
use bytes::Bytes;
use quorate_kernel::ids::{LaneId, NodeId, Ticket};
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::news::News;
use quorate_kernel::process::{Context, Request};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::{Span, Time};
use quorate_protocols::causal::map::Map;
use quorate_sim::delay::{Delay, Distribution};
use quorate_sim::light::{Happened, Light, Said, node_id};
use std::collections::HashMap;

/// How long clients wait.
const DEADLINE: Span = Span::secs(10);

pub(super) struct Cluster<S: Subject> {
    pub run: Run,
    pub light: Light<S, Machines>,
    /// The node at each partition.
    pub at: Vec<usize>,
    /// The catalog's record of who holds what.
    pub record: Keyspace,
    pub rng: Rng,
    network: Delay,
    pub gap: Delay,
    pub tickets: u64,
    pub waiting: HashMap<u64, Waiting>,
    pub live: Vec<bool>,
    pub live_count: u64,
    pub latency: Vec<u64>,
    /// The context that the last answer to nobody carried.
    pub seen: Option<Bytes>,
    pub is_measuring: bool,
    pub findings: Findings,
}

impl<S: Subject> Cluster<S> {
    pub(super) fn new(run: &Run) -> Cluster<S> {
        let ids: Vec<NodeId> = (0..usize::from(run.nodes)).map(node_id).collect();
        let exponential = |mean_us: u64| Delay::new(&Distribution::Exponential { mean_us });
        let mut rng = Rng::new(run.seed);
        let machines = Machines::new(run, rng.fork(1));
        let network = exponential(costs::NETWORK_US);
        let mut cluster = Cluster {
            run: run.clone(),
            light: Light::within(machines, LaneId(1), network.clone(), rng.fork(2)),
            at: Vec::new(),
            record: run.record(&ids),
            rng,
            network,
            gap: exponential(1_000_000 / run.rate.max(1)),
            tickets: 0,
            waiting: HashMap::new(),
            live: vec![true; run.keys as usize],
            live_count: u64::from(run.keys),
            latency: Vec::new(),
            seen: None,
            is_measuring: false,
            findings: Findings::default(),
        };
        // One after the other, so that their timers do not fire together for ever.
        let gap = run.strip_us * 1000 / u64::from(run.nodes);
        for partition in 0..run.nodes {
            let node = cluster.add(partition);
            cluster.at.push(node);
            cluster.run_until(cluster.now() + gap);
        }
        cluster
    }

    /// A new node for a partition; it holds what the present record gives it.
    pub(super) fn add(&mut self, partition: u16) -> usize {
        self.light.around.add(partition);
        self.light.add(S::born(&self.run, &Map::of(&self.record)))
    }

    /// The time, in nanoseconds.
    pub(super) fn now(&self) -> u64 {
        self.light.now().0
    }

    pub(super) fn traffic(&self) -> Traffic {
        self.light.around.traffic
    }

    pub(super) fn plan(&mut self, at: u64, plan: Plan) {
        self.light.plan(Time(at), plan);
    }

    /// The nodes that are up, by their numbers.
    pub(super) fn up(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.light.around.nodes.len()).filter(|node| self.light.is_up(*node))
    }

    /// Runs until a time.
    pub(super) fn run_until(&mut self, end: u64) {
        while let Some(happened) = self.light.next(Time(end)) {
            self.findings.events += 1;
            match happened {
                Happened::Message(_) => {}
                Happened::Timer(node) => self.look(node),
                Happened::Planned(plan) => self.go_on(plan),
            }
            self.hear();
        }
    }

    /// What a node does by its timers may strip contexts beside objects, without a write.
    fn look(&mut self, node: usize) {
        let now = self.now();
        let (engine, machines) = self.light.look(node);
        let partition = machines.nodes[node].partition;
        let is_left = |key: &[u8]| S::IS_WHOLE || engine.beside(partition, key).is_some();
        machines.watch.keep(partition, is_left, now);
    }

    fn go_on(&mut self, plan: Plan) {
        match plan {
            Plan::Update => self.begin_update(),
            Plan::Request { node, ticket, ask } => {
                self.step(node, |engine, cx| {
                    let request = Request { operation: ask, deadline: cx.now + DEADLINE };
                    engine.on_request(Ticket(ticket), request, cx);
                });
            }
            Plan::Churn => self.replace_one(),
            Plan::News { node, record } => {
                self.step(node, |engine, cx| engine.on_news(News::Keyspace(&record), cx));
            }
        }
    }

    /// One step of a node, and what clients make of what it says.
    pub(super) fn step(&mut self, node: usize, handler: impl FnOnce(&mut S, &mut Context<'_, S>)) {
        self.light.step(node, handler);
        self.hear();
    }

    /// Clients hear what nodes have said.
    fn hear(&mut self) {
        for (_, at, said) in std::mem::take(&mut self.light.said) {
            if let Said::Answer(ticket, outcome) = said {
                self.answered(ticket.0, outcome, at.0);
            }
        }
    }

    pub(super) fn way(&mut self) -> u64 {
        self.network.sample(&mut self.rng)
    }
}
