//! The nodes, and what happens to them.

use super::clients::Request;
use super::nodes::{Nodes, Plan};
use super::order::Delivered;
use super::reads::Judged;
use super::shape::Shape;
use super::shown::shown;
use super::traffic::Traffic;
use quorate_kernel::ids::{Incarnation, LaneId, Start};
use quorate_kernel::process::Process;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::{Span, Time};
use quorate_protocols::epidemic::Epidemic;
use quorate_protocols::gossip::cyclon::Peer;
use quorate_sim::light::{Counts, Happened, Light, NODES_MAX, Said, node_id};

/// The lane of the keyspace.
pub(super) const LANE: LaneId = LaneId::KEYSPACES;
/// How many nodes a new one is told of, as in the paper (§4).
const HINTS: usize = 20;
/// After so many draws a random node that is ready is looked for no longer.
const DRAWS_MAX: usize = 64;
/// Between two looks at whether all is as it should be, in rounds.
const LOOK_ROUNDS: u64 = 8;
/// How many more rounds than its TTL an event needs at most until all have delivered it, or given
/// it up.
const SETTLING_ROUNDS: u64 = 40;

/// A cluster under load.
pub struct Cluster {
    pub(super) shape: Shape,
    pub(super) light: Light<Epidemic, Nodes>,
    pub(super) rng: Rng,
    /// The nodes that are up, in no order.
    pub(super) up: Vec<usize>,
    pub(super) history: Vec<Request>,
    /// Who asked each of these; nobody if it is not counted.
    pub(super) clients: Vec<Option<usize>>,
    pub(super) is_loaded: bool,
    /// How many nodes were replaced.
    pub replaced: u64,
}

impl Cluster {
    /// All nodes start at once, each with a few others that it is told of.
    #[must_use]
    pub fn new(shape: &Shape) -> Cluster {
        let mut rng = Rng::new(shape.seed);
        let nodes = Nodes::new(shape.loss_ppm, rng.fork(1));
        let light = Light::within(nodes, LANE, shape.network.delay(), rng.fork(2));
        let mut cluster = Cluster {
            shape: shape.clone(),
            light,
            rng,
            up: (0..shape.nodes).collect(),
            history: Vec::new(),
            clients: Vec::new(),
            is_loaded: false,
            replaced: 0,
        };
        (0..shape.nodes).for_each(|_| cluster.start_one());
        cluster
    }

    /// Starts the next node, which may be told of any that is up.
    fn start_one(&mut self) {
        let index = self.light.len();
        let mut process = Epidemic::new(self.shape.settings());
        let mut hints: Vec<Peer> = Vec::with_capacity(HINTS);
        for _ in 0..4 * HINTS {
            let other = *self.rng.pick(&self.up).expect("some are up");
            let who = Incarnation { node: node_id(other), start: Start(1) };
            let is_new = other != index && hints.iter().all(|hint| hint.who != who);
            if is_new && hints.len() < HINTS {
                hints.push(Peer { who, age: 0, address: "".into() });
            }
        }
        process.hint(hints);
        self.light.around.stored.push(Default::default());
        self.light.add(process);
    }

    /// A node more.
    fn add(&mut self) {
        // There are indexes for so many; who needs more has too much churn for too long.
        if self.light.len() < NODES_MAX {
            self.start_one();
            self.up.push(self.light.len() - 1);
        }
    }

    fn replace(&mut self) {
        if !self.is_loaded {
            return;
        }
        let place = self.rng.below(self.up.len() as u64) as usize;
        self.light.crash(self.up.swap_remove(place));
        self.add();
        self.replaced += 1;
        self.plan_replacement();
    }

    fn plan_replacement(&mut self) {
        let in_a_minute = self.up.len() as u64 * u64::from(self.shape.churn_percent) / 100;
        if let Some(gap) = Span::secs(60).0.checked_div(in_a_minute) {
            self.light.plan(self.light.now() + Span(gap), Plan::Replace);
        }
    }

    /// A random node that serves clients.
    pub(super) fn ready_node(&mut self) -> Option<usize> {
        let mut draws = (0..DRAWS_MAX).map(|_| *self.rng.pick(&self.up).expect("some are up"));
        draws.find(|node| shown(self.light.process(*node), &["standing"]) == [1])
    }

    /// Lets time pass.
    pub fn run(&mut self, span: Span) {
        let end = self.light.now() + span;
        while let Some(happened) = self.light.next(end) {
            if let Happened::Planned(plan) = happened {
                self.go_on(plan);
            }
            self.hear();
        }
    }

    /// Lets so many rounds pass.
    pub fn run_rounds(&mut self, rounds: u64) {
        self.run(Span(self.shape.round.0 * rounds));
    }

    fn go_on(&mut self, plan: Plan) {
        match plan {
            Plan::Ask { client } => self.ask(client),
            Plan::GiveUp { ticket } => self.give_up(ticket),
            Plan::Replace => self.replace(),
            Plan::Add => self.add(),
        }
    }

    /// Clients hear what nodes have said.
    pub(super) fn hear(&mut self) {
        if self.light.said.is_empty() {
            return;
        }
        for (_, at, said) in std::mem::take(&mut self.light.said) {
            if let Said::Answer(ticket, outcome) = said {
                self.answered(ticket.0, at, &outcome);
            }
        }
    }

    /// Runs until all nodes are ready and agree on the number of slices, or for so many rounds.
    /// Returns how long that took.
    pub fn settle(&mut self, rounds_max: u64) -> Option<Span> {
        self.until(rounds_max, |cluster| cluster.agreed().is_some())
    }

    /// Runs until something holds, or for so many rounds. Returns how long that took.
    pub fn until(&mut self, rounds_max: u64, holds: impl Fn(&Cluster) -> bool) -> Option<Span> {
        let begun = self.light.now();
        for _ in 0..rounds_max / LOOK_ROUNDS {
            if holds(self) {
                return Some(self.light.now() - begun);
            }
            self.run_rounds(LOOK_ROUNDS);
        }
        holds(self).then_some(self.light.now() - begun)
    }

    /// Clients begin to ask, and nodes to be replaced.
    pub fn load(&mut self) {
        self.is_loaded = true;
        for client in 0..self.shape.clients {
            let at = self.light.now() + Span(self.rng.below(self.shape.round.0));
            self.light.plan(at, Plan::Ask { client });
        }
        self.plan_replacement();
    }

    /// Nodes are added, evenly in this time.
    pub fn grow(&mut self, count: usize, span: Span) {
        for place in 0..count as u64 {
            let at = Time(self.light.now().0 + span.0 * place / count as u64);
            self.light.plan(at, Plan::Add);
        }
    }

    /// No more is asked, nor replaced, and all that is on its way arrives. Three writes that are
    /// not counted follow, so that nodes show whether they have missed what came before.
    pub fn rest(&mut self) {
        self.is_loaded = false;
        let rounds = u64::from(self.ttl()) + SETTLING_ROUNDS;
        self.run_rounds(2 * rounds);
        for _ in 0..3 {
            if let Some(node) = self.ready_node() {
                self.ask_of(node, (self.shape.keys, true), None, None);
            }
        }
        self.run_rounds(rounds);
    }

    /// The TTL of the events of some node.
    #[must_use]
    pub fn ttl(&self) -> u16 {
        let [ttl] = shown(self.light.process(self.up[0]), &["ttl"]);
        u16::try_from(ttl).unwrap_or(u16::MAX)
    }

    /// To how many others some node sends its balls.
    #[must_use]
    pub fn fanout(&self) -> u64 {
        shown(self.light.process(self.up[0]), &["fanout"])[0]
    }

    /// What nodes show under these names, all that are up together.
    #[must_use]
    pub fn sums<const N: usize>(&self, names: &[&'static str; N]) -> [u64; N] {
        let mut sums = [0; N];
        for node in &self.up {
            let of_node = shown(self.light.process(*node), names);
            sums.iter_mut().zip(of_node).for_each(|(sum, one)| *sum += one);
        }
        sums
    }

    /// The time of the world.
    #[must_use]
    pub fn now(&self) -> Time {
        self.light.now()
    }

    /// The time of a round.
    #[must_use]
    pub fn round(&self) -> Span {
        self.shape.round
    }

    /// How many nodes are up.
    #[must_use]
    pub fn size(&self) -> usize {
        self.up.len()
    }

    /// What clients have asked.
    pub fn requests(&self) -> impl Iterator<Item = &Request> {
        let counted = self.history.iter().zip(&self.clients).filter(|(_, client)| client.is_some());
        counted.map(|(request, _)| request)
    }

    /// What was sent.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.light.around.traffic
    }

    /// What was handled.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.light.counts
    }

    /// What was delivered, and missed.
    #[must_use]
    pub fn delivered(&self) -> Delivered {
        self.light.around.order.delivered()
    }

    /// What came of reads.
    #[must_use]
    pub fn judged(&self) -> Judged {
        self.light.around.reads.judge(&self.light.around.order, &self.history)
    }

    /// Asserts what must hold of each node between two inputs.
    pub fn check(&self) {
        self.up.iter().for_each(|node| self.light.process(*node).check());
    }
}
