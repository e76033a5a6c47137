//! Random schedules in which views are told, nodes crash and forget.
//!
//! The simulator does the same with the whole node and many seeds; this is its quick little
//! brother, next to the code. A failing seed prints all that happened.

use super::chaos::{Chaos, is_linearizable};
use crate::testing::world::{Setup, World, view};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use quorate_kernel::view::View;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// What may go wrong in a run, besides messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Faults {
    /// Nodes crash and lose what they have not synced.
    Crashes,
    /// Data is kept in memory: nodes crash and forget, one after the other.
    Forgetting,
    /// The members change, and nodes crash.
    Views,
    /// The members change, and nodes forget.
    ViewsAndForgetting,
}

/// The views after the first, and who is new in each.
const VIEWS: [(u64, [u64; 3], u64); 3] = [(2, [1, 2, 4], 4), (3, [2, 3, 4], 3), (4, [1, 3, 4], 1)];
const MEMBERS: u64 = 3;
const NODES: u64 = 4;
const OPERATIONS: usize = 6;
const ACTIONS: usize = 260;

struct Run {
    chaos: Chaos,
    faults: Faults,
    /// The views decided so far, and how many of them each node was told.
    views: Vec<View>,
    told: [usize; NODES as usize],
}

impl Run {
    fn new(seed: u64, faults: Faults) -> Run {
        let mut rng = Rng::new(seed);
        let is_memory = matches!(faults, Faults::Forgetting | Faults::ViewsAndForgetting);
        let has_digests = rng.below(2) == 0;
        let digests = has_digests.then_some("digests");
        let options = digests.into_iter().map(ToString::to_string).collect();
        let setup = Setup {
            members: MEMBERS,
            spares: NODES - MEMBERS,
            is_memory,
            options,
            ..Setup::default()
        };
        let views = match faults {
            Faults::Crashes | Faults::Forgetting => Vec::new(),
            _ => VIEWS.map(|(version, members, _)| view(version, &members)).into(),
        };
        let mut world = World::new(&setup);
        views.iter().for_each(|view| world.know(view));
        Run { chaos: Chaos::new(world, rng, NODES), faults, views, told: [0; NODES as usize] }
    }

    fn act(&mut self) {
        let chaos = &mut self.chaos;
        let is_busy = !chaos.world.flights.is_empty();
        match chaos.rng.below(100) {
            0..66 if is_busy => chaos.deliver(),
            66..70 if is_busy => chaos.lose(),
            70..74 if is_busy => chaos.double(),
            74..80 if chaos.asked() < OPERATIONS => chaos.ask(8, Span::secs(1)),
            80..88 => chaos.tick(30),
            88..91 => chaos.hold_sync(),
            91..95 => chaos.sync(),
            95..98 => self.crash_or_restart(),
            98..100 => self.tell_view(),
            _ => {}
        }
        self.chaos.note_answers();
    }

    fn is_forgetting(&self) -> bool {
        matches!(self.faults, Faults::Forgetting | Faults::ViewsAndForgetting)
    }

    /// One node at a time is down. Where nodes forget, the others must have their data: what fewer
    /// than a majority remembers is lost, as promised.
    fn crash_or_restart(&mut self) {
        match self.chaos.down() {
            Some(down) => self.restart(down),
            None => {
                let node = self.chaos.some_node();
                let is_whole = |world: &mut World<_>, id| world.field(id, "ready") == "true";
                if !self.is_forgetting()
                    || (1..=NODES).all(|id| is_whole(&mut self.chaos.world, id))
                {
                    self.chaos.world.crash(node);
                }
            }
        }
    }

    /// A view that the node had not synced must be told again.
    fn restart(&mut self, node: u64) {
        self.chaos.world.restart(node, self.is_forgetting());
        let version: usize = self.chaos.world.field(node, "view").parse().expect("a version");
        self.told[node as usize - 1] = version.saturating_sub(1);
    }

    /// A node is told of the next view. None is decided before the one who is new in the view
    /// before has the data: otherwise two changes could leave nobody who has all of it.
    fn tell_view(&mut self) {
        let node = self.chaos.some_node();
        let told = self.told[node as usize - 1];
        if self.chaos.world.is_up(node) && told < self.views.len() && self.may_decide(told) {
            self.told[node as usize - 1] += 1;
            self.chaos.world.decide(node, &self.views[told]);
        }
    }

    fn may_decide(&mut self, place: usize) -> bool {
        let Some(before) = place.checked_sub(1) else { return true };
        let (version, _, newcomer) = VIEWS[before];
        self.told.iter().any(|told| *told > place)
            || (self.chaos.world.is_up(newcomer)
                && self.chaos.world.field(newcomer, "view") >= version.to_string()
                && self.chaos.world.field(newcomer, "ready") == "true")
    }

    /// All faults end; whatever waits for them must go on.
    fn heal(&mut self) {
        for node in 1..=NODES {
            if !self.chaos.world.is_up(node) {
                self.restart(node);
            }
            self.chaos.world.sync(node);
        }
        for place in 0..self.views.len() {
            for node in (1..=NODES).filter(|node| self.told[*node as usize - 1] <= place) {
                self.chaos.world.decide(node, &self.views[place]);
            }
            self.chaos.calm(Span::secs(1));
        }
        self.chaos.calm(Span::secs(2));
        self.chaos.read_everywhere();
    }
}

/// Runs a seed; says what is wrong, if anything is.
fn try_seed(seed: u64, faults: Faults) -> Result<(), String> {
    let mut run = Run::new(seed, faults);
    for _ in 0..ACTIONS {
        run.act();
    }
    run.heal();
    let history = run.chaos.history();
    let verdict = match (is_linearizable(&history), run.chaos.is_served()) {
        (true, true) => return Ok(()),
        (false, _) => "no order explains the answers",
        (true, false) => "a get after the faults was not answered",
    };
    let log = run.chaos.world.log.join("\n");
    Err(format!("{faults:?} seed {seed}: {verdict}\n{log}\n{history:?}"))
}

fn try_seeds(faults: Faults) {
    for seed in 0..150 {
        if let Err(why) = try_seed(seed, faults) {
            panic!("{why}");
        }
    }
}

#[test]
fn crashes_break_nothing() {
    try_seeds(Faults::Crashes);
}

#[test]
fn forgetting_breaks_nothing() {
    try_seeds(Faults::Forgetting);
}

#[test]
fn view_changes_break_nothing() {
    try_seeds(Faults::Views);
}

#[test]
fn view_changes_and_forgetting_break_nothing() {
    try_seeds(Faults::ViewsAndForgetting);
}
