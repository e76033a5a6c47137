//! A lane that has its peers observed knows of a silent one in less than half a second, of a slow
//! one nothing, and one that asks for nothing sees what it saw without.

use quorate_check::Judges;
use quorate_kernel::effects::Note;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::lane::{Env, Lane, Raised};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::observe::{Every, Observation};
use quorate_kernel::operation::Control;
use quorate_kernel::part::Part;
use quorate_kernel::process::{Inspect, Recovery, Request};
use quorate_kernel::time::{Time, WallTime};
use quorate_kernel::watch::Watch;
use quorate_kernel::wire::Decoder;
use quorate_sim::fault::{Fault, What};
use quorate_sim::host::Wrap;
use quorate_sim::prepared::Prepared;
use quorate_sim::scenario::Scenario;
use quorate_sim::shipped;
use quorate_sim::trace::Trace;
use quorate_sim::world::World;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// What the wall clocks of the simulated world count from.
const EPOCH_MS: i64 = 1_700_000_000_000;

/// What a lane heard of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Silent,
    Back,
    /// The ring's own suspicion.
    Suspected,
}

/// When which node heard what of which peer; in milliseconds of the world.
type Heard = Vec<(u64, NodeId, NodeId, Sign)>;

thread_local! {
    static HEARD: RefCell<Heard> = const { RefCell::new(Vec::new()) };
}

/// A lane that notes what it hears, and may have all hosts of the ring observed.
struct Observing {
    inner: Box<dyn Lane>,
    every: Option<Every>,
    known: BTreeSet<NodeId>,
    suspected: BTreeSet<NodeId>,
}

impl Observing {
    fn note(env: &Env<'_>, peer: NodeId, what: Sign) {
        let WallTime(wall) = env.wall;
        let ms = u64::try_from(wall - EPOCH_MS).expect("the world's clocks are right");
        HEARD.with_borrow_mut(|heard| heard.push((ms, env.me.node, peer, what)));
    }
}

impl Lane for Observing {
    fn on_news(&mut self, news: News<'_>, env: &mut Env<'_>) {
        if self.inner.hears(news.topic()) {
            self.inner.on_news(news, env);
        }
        match news {
            News::Silence { peer, is_over } => {
                Self::note(env, peer, if is_over { Sign::Back } else { Sign::Silent });
            }
            News::Ring(ring) => {
                let is_suspected = |node: &NodeId| ring.is_suspected(*node);
                let known: BTreeSet<NodeId> = ring.hosts().iter().map(|it| it.who.node).collect();
                let suspected = known.iter().copied().filter(is_suspected).collect();
                let before = std::mem::replace(&mut self.suspected, suspected);
                for peer in self.suspected.difference(&before) {
                    Self::note(env, *peer, Sign::Suspected);
                }
                if let Some(every) = self.every.filter(|_| self.known != known) {
                    let peers = known.iter().copied().collect();
                    let note = Note::Observe(Observation { peers, every });
                    env.out.take(Raised::Note(note));
                }
                self.known = known;
            }
            _ => {}
        }
    }

    fn hears(&self, topic: Topic) -> bool {
        matches!(topic, Topic::Ring | Topic::Silence) || self.inner.hears(topic)
    }

    fn start(&mut self, recovery: Recovery, env: &mut Env<'_>) {
        self.inner.start(recovery, env);
    }

    fn on_frame(
        &mut self,
        from: Incarnation,
        message: &Decoder,
        env: &mut Env<'_>,
    ) -> Result<(), WireError> {
        self.inner.on_frame(from, message, env)
    }

    fn on_local(&mut self, slot: u32, env: &mut Env<'_>) {
        self.inner.on_local(slot, env);
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, env: &mut Env<'_>) {
        self.inner.on_request(ticket, request, env);
    }

    fn on_control(&mut self, ticket: Ticket, control: Control, by: Time, env: &mut Env<'_>) {
        self.inner.on_control(ticket, control, by, env);
    }

    fn on_watch(&mut self, ticket: Ticket, watch: Watch, env: &mut Env<'_>) {
        self.inner.on_watch(ticket, watch, env);
    }

    fn on_unwatch(&mut self, ticket: Ticket, env: &mut Env<'_>) {
        self.inner.on_unwatch(ticket, env);
    }

    fn on_timer(&mut self, code: u32, env: &mut Env<'_>) {
        self.inner.on_timer(code, env);
    }

    fn parts(&self) -> Vec<Part> {
        self.inner.parts()
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        self.inner.inspect(into);
    }

    fn check(&self) {
        self.inner.check();
    }
}

fn around(inner: Box<dyn Lane>, every: Option<Every>) -> Box<dyn Lane> {
    let (known, suspected) = (BTreeSet::new(), BTreeSet::new());
    Box::new(Observing { inner, every, known, suspected })
}

fn at_50(inner: Box<dyn Lane>) -> Box<dyn Lane> {
    around(inner, Some(Every::Ms50))
}

fn at_200(inner: Box<dyn Lane>) -> Box<dyn Lane> {
    around(inner, Some(Every::Ms200))
}

fn listening(inner: Box<dyn Lane>) -> Box<dyn Lane> {
    around(inner, None)
}

/// Four hosts with two keyspaces and their clients.
fn scenario() -> Scenario {
    let mut scenario = shipped::find("both-calm").expect("it ships");
    (scenario.clock.skew_ms, scenario.clock.drift_ppm) = (0, 0);
    scenario
}

fn fault(at_ms: u64, for_ms: u64, what: What) -> Fault {
    Fault { at_us: at_ms * 1000, for_us: for_ms * 1000, what }
}

/// What lanes heard, and the hash of the trace.
fn run(seed: u64, plan: &[Fault], wraps: [Option<Wrap>; 2]) -> (Heard, u64) {
    HEARD.take();
    let prepared = Prepared::new(scenario()).expect("it is valid");
    let mut world = World::new(&prepared, seed, plan.to_vec(), &wraps, Trace::default());
    world.run();
    let report = world.report(seed, &mut Judges::new());
    let violation = report.violation.map(|found| format!("{}: {}", found.judge, found.message));
    assert_eq!(violation, None, "seed {seed}");
    assert_eq!(report.faults, plan.len() as u64, "seed {seed}");
    (HEARD.take(), report.hash)
}

/// Who heard this, of whom, and when, in this time.
fn during(heard: &Heard, what: Sign, from: u64, to: u64) -> Vec<(u64, NodeId, NodeId)> {
    let meant = heard.iter().filter(|(ms, _, _, it)| *it == what && (from..to).contains(ms));
    meant.map(|(ms, me, peer, _)| (*ms, *me, *peer)).collect()
}

/// Asserts that three others, and nobody else, heard this of one peer; returns it.
fn of_one(all: &[(u64, NodeId, NodeId)], seed: u64) -> NodeId {
    let peers: BTreeSet<NodeId> = all.iter().map(|(_, _, peer)| *peer).collect();
    let told: BTreeSet<NodeId> = all.iter().map(|(_, me, _)| *me).collect();
    assert!(all.len() == 3 && told.len() == 3 && peers.len() == 1, "seed {seed}: {all:?}");
    *peers.first().expect("there is one")
}

#[test]
fn a_host_that_crashes_or_stands_still_is_silent_within_its_bound_until_it_is_back() {
    let ends = [What::Kill { host: 2 }, What::Pause { host: 2 }];
    for (seed, what) in (0..4).flat_map(|seed| ends.clone().map(|what| (seed, what))) {
        // Another lane that is less in a hurry changes nothing.
        let plan = [fault(3000, 4000, what)];
        let (heard, _) = run(seed, &plan, [Some(at_50), Some(at_200)]);
        let early = during(&heard, Sign::Silent, 0, 3450);
        assert_eq!(early.len(), 6, "seed {seed}: each lane of three hosts: {early:?}");
        let of_lane: Vec<_> = early.iter().step_by(2).copied().collect();
        let peer = of_one(&of_lane, seed);
        assert!(early.iter().all(|told| told.0 >= 3200 && told.2 == peer), "{seed}: {early:?}");
        assert_eq!(during(&heard, Sign::Silent, 3450, u64::MAX), [], "seed {seed}");
        let back = during(&heard, Sign::Back, 0, u64::MAX);
        assert!(back.len() == 6 && back.iter().all(|told| told.2 == peer), "{seed}: {back:?}");
        assert!(back.iter().all(|told| (7000..8000).contains(&told.0)), "{seed}: {back:?}");
        let suspected = during(&heard, Sign::Suspected, 0, 7000);
        assert!(suspected.iter().all(|told| told.0 >= 4000), "{seed}: the ring's is its own");
        assert!(!suspected.is_empty(), "seed {seed}");
    }
}

#[test]
fn both_sides_of_a_cut_are_silent_to_each_other() {
    for seed in 0..4 {
        let plan = [fault(3000, 3000, What::Partition { side: vec![0] })];
        let (heard, _) = run(seed, &plan, [Some(at_50), None]);
        let silent = during(&heard, Sign::Silent, 0, u64::MAX);
        assert_eq!(silent.len(), 6, "seed {seed}: {silent:?}");
        assert!(silent.iter().all(|told| (3200..3450).contains(&told.0)), "{seed}: {silent:?}");
        let back = during(&heard, Sign::Back, 6000, 6450);
        assert_eq!(back.len(), 6, "seed {seed}: {back:?}");
    }
}

#[test]
fn lost_frames_slow_disks_and_slow_networks_make_nobody_silent() {
    for seed in 0..4 {
        let plan = [
            fault(2000, 3000, What::Loss { ppm: 200_000 }),
            fault(2000, 4000, What::SlowDisk { host: 1, factor: 1000 }),
            fault(2500, 180, What::Delay { from: 2, to: 0 }),
            fault(5500, 150, What::Pause { host: 2 }),
        ];
        let (heard, _) = run(seed, &plan, [Some(at_50), None]);
        assert_eq!(during(&heard, Sign::Silent, 0, u64::MAX), [], "seed {seed}");
    }
}

#[test]
fn who_asks_for_nothing_sees_what_it_saw_without() {
    for seed in 0..3 {
        let plan = [fault(3000, 4000, What::Kill { host: 2 })];
        let (heard, hash) = run(seed, &plan, [Some(listening), None]);
        let is_told = |what| !during(&heard, what, 0, u64::MAX).is_empty();
        assert!(is_told(Sign::Suspected) && !is_told(Sign::Silent), "seed {seed}");
        assert_eq!(run(seed, &plan, [None, None]).1, hash, "seed {seed}: no event is another");
        // Beside a lane that asks, it hears of nothing but the ring's suspicion.
        let (heard, _) = run(seed, &plan, [Some(listening), Some(at_50)]);
        let silent = during(&heard, Sign::Silent, 0, u64::MAX);
        of_one(&silent, seed);
    }
}
