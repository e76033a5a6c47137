//! Runs one seed of a scenario and judges it.

use crate::fault::Fault;
use crate::forger::Forger;
use crate::host::Wrap;
use crate::nemesis;
use crate::prepared::Prepared;
use crate::trace::Trace;
use crate::workload::fleet::Counts;
use crate::world::World;
use crate::world::grid::Met;
use quorate_check::Judges;
use quorate_kernel::ids::LaneId;
use quorate_kernel::rng::{Rng, mix};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// What a judge or the world itself found wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Who found it.
    pub judge: &'static str,
    /// What it is.
    pub message: String,
}

/// What one run shall do.
#[derive(Default)]
pub struct Setup {
    /// The seed.
    pub seed: u64,
    /// The faults; drawn from the seed if not given.
    pub plan: Option<Vec<Fault>>,
    /// Where the trace's lines go, if they are wanted.
    pub out: Option<Box<dyn Write>>,
    /// A planted bug, in the first keyspace.
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
    /// The highest version of any group.
    pub views: u64,
    /// How many decrees the catalog rests on.
    pub decrees: u64,
    /// How many tokens were moved, added or given up to even out the load.
    pub token_moves: u64,
    /// The cells of a grid that it has met, if it counts.
    pub met: Vec<Met>,
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

/// The plan of a seed; of a grid, that of its cell.
#[must_use]
pub fn plan(prepared: &Prepared, seed: u64) -> Vec<Fault> {
    nemesis::draw(&prepared.scenario, &mut Rng::new(mix(seed ^ 0xfa17)))
}

impl Runner {
    /// Runs a seed of a scenario. It counts if the clients of each keyspace have done enough.
    pub fn run(&mut self, prepared: &Prepared, setup: Setup) -> Report {
        catch_panics();
        let seed = setup.seed;
        let prepared = &*prepared.of_seed(seed);
        let plan = setup.plan.unwrap_or_else(|| plan(prepared, seed));
        let mut world = World::new(prepared, seed, plan, &[setup.wrap], Trace::new(setup.out));
        if let Some(message) = simulate(|| world.run()) {
            world.on_panic(message);
        }
        let mut report = world.report(seed, &mut self.judges);
        let fleets = world.tenants.iter().map(|tenant| tenant.clients.fleet.counts);
        let of_one = |counts| Report { counts, ..report.clone() };
        let idle = fleets.map(of_one).find_map(|report| idle(prepared, &report));
        if idle.is_some() || report.violation.is_some() {
            report.met.clear();
        }
        report.idle = idle;
        report
    }

    /// Runs a seed of a scenario where every so manieth frame is followed by one that no correct
    /// peer sends. Nothing is judged but whether a host ends by it. Answers how many were sent, of
    /// each lane.
    pub fn forge(
        &mut self,
        prepared: &Prepared,
        seed: u64,
        one_in: u64,
        events: u64,
    ) -> (Report, BTreeMap<LaneId, u64>) {
        catch_panics();
        let prepared = &*prepared.of_seed(seed);
        let (plan, trace) = (plan(prepared, seed), Trace::new(None));
        let mut world = World::new(prepared, seed, plan, &[], trace);
        world.forge(Forger::new(seed, one_in), events);
        let panicked = simulate(|| world.run());
        // The world's own clients are astonished at what hosts answer; that is none of a host's.
        if let Some(message) = panicked.filter(|message| !message.contains(" at crates/sim/")) {
            world.on_panic(message);
        }
        (world.report(seed, &mut self.judges), world.forged())
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
        .or_else(|| too_few("versions of a group", report.views, least.views))
        .or_else(|| too_few("decrees", report.decrees, least.decrees))
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
