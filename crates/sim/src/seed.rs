//! Runs one seed of a scenario and judges it.

use crate::fault::Fault;
use crate::forger::Forger;
use crate::host::Wrap;
use crate::mixed::{self, Wraps};
use crate::nemesis;
use crate::prepared::Prepared;
use crate::trace::Trace;
use crate::workload::Counts;
use crate::world::{Violation, World};
use quorate_check::Judges;
use quorate_check::history::{History, Recorder};
use quorate_check::report::Verdict;
use quorate_kernel::rng::{Rng, mix};
use quorate_kernel::time::Time;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// How many steps a judge may take for one key of one seed.
const STEPS_MAX: u64 = 20_000_000;

/// What one run shall do.
#[derive(Default)]
pub struct Setup {
    /// The seed.
    pub seed: u64,
    /// The faults; drawn from the seed if not given.
    pub plan: Option<Vec<Fault>>,
    /// Where the trace's lines go, if they are wanted.
    pub out: Option<Box<dyn Write>>,
    /// A planted bug.
    pub wrap: Option<Wrap>,
}

/// What a run has done, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// The hash of its trace; 0 if a node panicked.
    pub hash: u64,
    /// How many events it had.
    pub events: u64,
    /// How its operations ended.
    pub counts: Counts,
    /// How many faults were applied.
    pub faults: u64,
    /// How many views were decided.
    pub views: u64,
    /// How many tokens were moved, added or given up to even out the load.
    pub token_moves: u64,
    /// How much time of the world has passed, in nanoseconds.
    pub time: u64,
    /// Why it does not count, if it does not.
    pub idle: Option<String>,
    /// What is wrong.
    pub violation: Option<Violation>,
    /// A judge that could not tell.
    pub undecided: Option<String>,
}

/// Runs seeds one after the other and keeps its room between them.
#[derive(Default)]
pub struct Runner {
    judges: Judges,
    recorder: Recorder,
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static IS_SIMULATING: Cell<bool> = const { Cell::new(false) };
}

/// Keeps what a panic says instead of printing it, on threads that run seeds. Other threads panic
/// as before.
fn catch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !IS_SIMULATING.get() {
                return before(info);
            }
            let payload = info.payload();
            let text = payload.downcast_ref::<&str>().copied();
            let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            let text = text.unwrap_or("a panic without a message");
            let place = info.location();
            let place = place.map(|at| format!(" at {}:{}", file(at.file()), at.line()));
            let text = format!("{text}{}", place.unwrap_or_default());
            PANIC.with_borrow_mut(|panic| *panic = Some(text));
        }));
    });
}

/// Runs a world; returns what a panic said.
fn simulate(run: impl FnOnce()) -> Option<String> {
    IS_SIMULATING.set(true);
    let outcome = catch_unwind(AssertUnwindSafe(run));
    IS_SIMULATING.set(false);
    let silent = || "a panic without a message".to_owned();
    outcome.is_err().then(|| PANIC.take().unwrap_or_else(silent))
}

/// The path of a source file from the folder of crates on, whatever machine compiled it.
fn file(path: &str) -> &str {
    path.find("crates/").map_or(path, |at| &path[at..])
}

/// The plan of a seed.
#[must_use]
pub fn plan(prepared: &Prepared, seed: u64) -> Vec<Fault> {
    nemesis::draw(&prepared.scenario, &mut Rng::new(mix(seed ^ 0xfa17)))
}

impl Runner {
    /// Runs a seed of a scenario.
    pub fn run(&mut self, prepared: &Prepared, setup: Setup) -> Report {
        catch_panics();
        let seed = setup.seed;
        let plan = setup.plan.unwrap_or_else(|| plan(prepared, seed));
        if prepared.scenario.causal.is_some() {
            let mut world = crate::causal::World::new(prepared, seed, plan, Trace::new(setup.out));
            let panicked = simulate(|| world.run());
            let mut report = world.report(seed, panicked);
            report.idle = idle(prepared, &report);
            return report;
        }
        if prepared.scenario.catalog.is_some() {
            let mut world = crate::catalog::World::new(prepared, seed, plan, Trace::new(setup.out));
            let panicked = simulate(|| world.run());
            let mut report = world.report(seed, panicked);
            report.idle = idle(prepared, &report);
            return report;
        }
        if prepared.scenario.mixed.is_some() {
            let wraps = Wraps { registers: setup.wrap, siblings: None };
            return self.run_mixed(prepared, seed, plan, wraps, Trace::new(setup.out));
        }
        let mut recorder = std::mem::take(&mut self.recorder);
        recorder.clear();
        let trace = Trace::new(setup.out);
        let mut world = World::new(prepared, seed, plan, setup.wrap, trace, recorder);
        if let Some(message) = simulate(|| world.run()) {
            world.machines.on_panic(message);
        }
        let mut report = report(seed, &world);
        if report.violation.is_none() {
            for history in &world.workload.past {
                self.judge(history, &mut report);
            }
            self.judge(world.workload.recorder.finish(), &mut report);
        }
        report.idle = idle(prepared, &report);
        self.recorder = std::mem::take(&mut world.workload.recorder);
        report
    }

    /// Runs a seed of a cluster with both engines. It counts if both have done enough.
    fn run_mixed(
        &mut self,
        prepared: &Prepared,
        seed: u64,
        plan: Vec<Fault>,
        wraps: Wraps,
        trace: Trace,
    ) -> Report {
        let mut recorder = std::mem::take(&mut self.recorder);
        recorder.clear();
        let mut world = mixed::World::new(prepared, seed, plan, wraps, trace, recorder);
        let panicked = simulate(|| world.run());
        let mut report = world.report(seed, panicked);
        if report.violation.is_none() {
            self.judge(world.registers.recorder.finish(), &mut report);
        }
        let of_one = |counts| Report { counts, ..report.clone() };
        report.idle = world.counts().into_iter().find_map(|one| idle(prepared, &of_one(one)));
        self.recorder = std::mem::take(&mut world.registers.recorder);
        report
    }

    /// Runs a seed of a cluster with both engines, where every so manieth frame is followed by one
    /// that no correct peer sends. Nothing is judged but whether a host ends by it. Answers how
    /// many were sent, too.
    pub fn forge(
        &mut self,
        prepared: &Prepared,
        seed: u64,
        one_in: u64,
        events: u64,
    ) -> (Report, u64) {
        catch_panics();
        let (plan, trace) = (plan(prepared, seed), Trace::new(None));
        let recorder = Recorder::default();
        let mut world = mixed::World::new(prepared, seed, plan, Wraps::default(), trace, recorder);
        world.forge(Forger::new(seed, one_in), events);
        let panicked = simulate(|| world.run());
        // The world's own clients are astonished at what hosts answer; that is none of a host's.
        let panicked = panicked.filter(|message| !message.contains(" at crates/sim/"));
        (world.report(seed, panicked), world.forged())
    }

    /// Adds what the judges say of a history; the first violation counts.
    fn judge(&mut self, history: &History, report: &mut Report) {
        for (judge, verdict) in self.judges.judge(history, STEPS_MAX).verdicts() {
            match verdict {
                Verdict::Holds => {}
                Verdict::Violated(explanation) => {
                    let message = explanation.to_string();
                    report.violation.get_or_insert(Violation { judge, message });
                }
                Verdict::Unknown { why } => {
                    report.undecided.get_or_insert(format!("{judge}: {why}"));
                }
            }
        }
    }
}

fn report(seed: u64, world: &World<'_>) -> Report {
    Report {
        seed,
        hash: world.machines.trace.hash(),
        events: world.machines.trace.events(),
        counts: world.workload.counts,
        faults: world.plan.applied(),
        views: world.views,
        token_moves: world.token_moves,
        time: Time(world.machines.now).0,
        idle: None,
        violation: world.machines.violation.clone(),
        undecided: None,
    }
}

/// Why a seed does not count: it did too little.
fn idle(prepared: &Prepared, report: &Report) -> Option<String> {
    let least = &prepared.scenario.least;
    let counts = &report.counts;
    let time_ms = report.time / 1_000_000;
    let unknown_percent = counts.unknown * 100 / counts.begun.max(1);
    if let Some(why) = &report.undecided {
        return Some(format!("undecided: {why}"));
    }
    let too_few = |what: &str, found: u64, needed: u64| {
        (found < needed).then(|| format!("{found} {what} of {needed} needed"))
    };
    too_few("operations answered", counts.answered_freely, least.operations)
        .or_else(|| too_few("faults applied", report.faults, least.faults))
        .or_else(|| too_few("views decided", report.views, least.views))
        .or_else(|| {
            let needed = prepared.scenario.balance.as_ref()?.moves_min;
            too_few("tokens moved", report.token_moves, needed)
        })
        .or_else(|| too_few("milliseconds", time_ms, least.time_ms))
        .or_else(|| {
            let is_over = unknown_percent > least.unknown_percent;
            is_over.then(|| format!("{unknown_percent} % of the outcomes are unknown"))
        })
}
