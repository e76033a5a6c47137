//! Random schedules of a small world, judged by trying every order of its few operations.
//!
//! The simulator does the same with the whole node and many seeds; this is its quick little
//! brother, next to the code. A failing seed prints all that happened.

use super::super::Linearizable;
use crate::testing::world::{Setup, World, view};
use bytes::Bytes;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use quorate_kernel::view::View;
use std::collections::BTreeSet;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// What the operation did to the one key. Values are single bytes, and each put has its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    Read(Option<u8>),
    Write(Option<u8>),
}

/// One operation of a history; times are numbers of events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub invoked: usize,
    /// None if nobody knows how it ended: it may take effect at any later time, or never.
    pub completed: Option<usize>,
    pub act: Act,
}

/// Whether some order of the operations explains every answer.
pub(super) fn is_linearizable(history: &[Event]) -> bool {
    explain(history, 0, None, &mut BTreeSet::new())
}

fn explain(
    history: &[Event],
    done: u32,
    value: Option<u8>,
    tried: &mut BTreeSet<(u32, Option<u8>)>,
) -> bool {
    let left = || (0..history.len()).filter(|at| done & (1 << at) == 0);
    let first_end = left().filter_map(|at| history[at].completed).min();
    let Some(first_end) = first_end else { return true };
    tried.insert((done, value))
        && left().filter(|at| history[*at].invoked < first_end).any(|at| match history[at].act {
            Act::Read(seen) => seen == value && explain(history, done | 1 << at, value, tried),
            Act::Write(new) => explain(history, done | 1 << at, new, tried),
        })
}

#[test]
fn the_judge_condemns_and_acquits() {
    let event = |invoked, completed, act| Event { invoked, completed, act };
    let put = event(0, Some(1), Act::Write(Some(1)));
    assert!(is_linearizable(&[put, event(2, Some(3), Act::Read(Some(1)))]));
    assert!(!is_linearizable(&[put, event(2, Some(3), Act::Read(None))]), "a lost write");
    let open = event(2, None, Act::Write(Some(2)));
    let read = |at, value| event(at, Some(at + 1), Act::Read(value));
    assert!(is_linearizable(&[put, open, read(4, Some(1)), read(6, Some(2))]));
    let back = [put, open, read(4, Some(1)), read(6, Some(2)), read(8, Some(1))];
    assert!(!is_linearizable(&back), "a value that comes back");
}

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
    world: World<Linearizable>,
    rng: Rng,
    faults: Faults,
    events: usize,
    /// When each request was made, and when it was answered.
    times: Vec<(usize, Option<usize>)>,
    /// The views decided so far, and how many of them each node was told.
    views: Vec<View>,
    told: [usize; NODES as usize],
}

impl Run {
    fn new(seed: u64, faults: Faults, option: Option<&str>) -> Run {
        let mut rng = Rng::new(seed);
        let is_memory = matches!(faults, Faults::Forgetting | Faults::ViewsAndForgetting);
        let has_digests = rng.below(2) == 0;
        let digests = has_digests.then_some("digests");
        let options = digests.into_iter().chain(option).map(ToString::to_string).collect();
        let setup =
            Setup { members: MEMBERS, spares: NODES - MEMBERS, is_memory, first: None, options };
        let views = match faults {
            Faults::Crashes | Faults::Forgetting => Vec::new(),
            _ => VIEWS.map(|(version, members, _)| view(version, &members)).into(),
        };
        let mut world = World::new(&setup);
        views.iter().for_each(|view| world.know(view));
        Run { world, rng, faults, events: 0, times: Vec::new(), views, told: [0; NODES as usize] }
    }

    fn event(&mut self) -> usize {
        self.events += 1;
        self.events
    }

    fn some_node(&mut self) -> u64 {
        self.rng.between(1, NODES)
    }

    fn act(&mut self) {
        let flights = self.world.flights.len() as u64;
        match self.rng.below(100) {
            0..66 if flights > 0 => self.world.deliver(self.rng.below(flights) as usize),
            66..70 if flights > 0 => {
                self.world.flights.swap_remove(self.rng.below(flights) as usize);
            }
            70..74 if flights > 0 => {
                let copy = self.world.flights[self.rng.below(flights) as usize].clone();
                self.world.flights.push(copy);
            }
            74..80 if self.times.len() < OPERATIONS => self.ask(),
            80..88 => self.world.tick(Span::millis(self.rng.between(1, 30))),
            88..91 => {
                let node = self.some_node();
                self.world.hold_sync(node);
            }
            91..95 => {
                let node = self.some_node();
                self.world.sync(node);
            }
            95..98 => self.crash_or_restart(),
            98..100 => self.tell_view(),
            _ => {}
        }
        self.note_answers();
    }

    fn ask(&mut self) {
        let (node, key) = (self.some_node(), Bytes::from_static(b"k"));
        if !self.world.is_up(node) {
            return;
        }
        let value = Bytes::from(Vec::from([self.times.len() as u8]));
        let operation = match self.rng.below(8) {
            0..4 => Operation::Get { key },
            4..7 => Operation::Put { key, value },
            _ => Operation::Delete { key },
        };
        let invoked = self.event();
        self.times.push((invoked, None));
        self.world.request(node, operation, Span::secs(1));
    }

    fn note_answers(&mut self) {
        for at in 0..self.times.len() {
            if self.times[at].1.is_none() && self.world.answers[at].1.is_some() {
                self.times[at].1 = Some(self.event());
            }
        }
    }

    fn is_forgetting(&self) -> bool {
        matches!(self.faults, Faults::Forgetting | Faults::ViewsAndForgetting)
    }

    /// One node at a time is down. Where nodes forget, the others must have their data: what fewer
    /// than a majority remembers is lost, as promised.
    fn crash_or_restart(&mut self) {
        match (1..=NODES).find(|id| !self.world.is_up(*id)) {
            Some(down) => self.restart(down),
            None => {
                let node = self.some_node();
                let is_whole = |world: &mut World<_>, id| world.field(id, "ready") == "true";
                if !self.is_forgetting() || (1..=NODES).all(|id| is_whole(&mut self.world, id)) {
                    self.world.crash(node);
                }
            }
        }
    }

    /// A view that the node had not synced must be told again.
    fn restart(&mut self, node: u64) {
        self.world.restart(node, self.is_forgetting());
        let version: usize = self.world.field(node, "view").parse().expect("a version");
        self.told[node as usize - 1] = version.saturating_sub(1);
    }

    /// A node is told of the next view. None is decided before the one who is new in the view
    /// before has the data: otherwise two changes could leave nobody who has all of it.
    fn tell_view(&mut self) {
        let node = self.some_node();
        let told = self.told[node as usize - 1];
        if self.world.is_up(node) && told < self.views.len() && self.may_decide(told) {
            self.told[node as usize - 1] += 1;
            self.world.decide(node, &self.views[told]);
        }
    }

    fn may_decide(&mut self, place: usize) -> bool {
        let Some(before) = place.checked_sub(1) else { return true };
        let (version, _, newcomer) = VIEWS[before];
        self.told.iter().any(|told| *told > place)
            || (self.world.is_up(newcomer)
                && self.world.field(newcomer, "view") >= version.to_string()
                && self.world.field(newcomer, "ready") == "true")
    }

    /// All faults end; whatever waits for them must go on.
    fn heal(&mut self) {
        for node in 1..=NODES {
            if !self.world.is_up(node) {
                self.restart(node);
            }
            self.world.sync(node);
        }
        for place in 0..self.views.len() {
            for node in (1..=NODES).filter(|node| self.told[*node as usize - 1] <= place) {
                self.world.decide(node, &self.views[place]);
            }
            self.calm(Span::secs(1));
        }
        self.calm(Span::secs(2));
        for node in 1..=NODES {
            let invoked = self.event();
            self.times.push((invoked, None));
            let get = Operation::Get { key: Bytes::from_static(b"k") };
            self.world.request(node, get, Span::secs(1));
            self.calm(Span::millis(100));
        }
    }

    /// Time passes and everything arrives.
    fn calm(&mut self, span: Span) {
        let end = self.world.now + span;
        while self.world.now < end {
            while !self.world.flights.is_empty() {
                self.world.deliver(0);
            }
            for node in 1..=NODES {
                self.world.sync(node);
            }
            self.note_answers();
            self.world.tick(Span::millis(20));
        }
        self.note_answers();
    }

    fn history(&self) -> Vec<Event> {
        let asked = self.times.iter().zip(&self.world.answers);
        asked
            .filter_map(|(&(invoked, completed), answer)| event(invoked, completed, answer))
            .collect()
    }
}

pub(super) fn event(
    invoked: usize,
    completed: Option<usize>,
    (operation, outcome): &(Operation, Option<Outcome>),
) -> Option<Event> {
    let byte = |bytes: &Bytes| bytes[0];
    let act = match (operation, outcome) {
        // What changed nothing explains nothing.
        (
            _,
            Some(Outcome::Refused(
                Refusal::NoQuorum { .. } | Refusal::Minority { .. } | Refusal::NoRoute,
            )),
        ) => return None,
        (Operation::Get { .. }, Some(Outcome::Value(value))) => Act::Read(value.as_ref().map(byte)),
        (Operation::Put { value, .. }, _) => Act::Write(Some(byte(value))),
        (Operation::Delete { .. }, _) => Act::Write(None),
        _ => return None,
    };
    let is_known = !matches!(outcome, Some(Outcome::Refused(_)));
    Some(Event { invoked, completed: completed.filter(|_| is_known), act })
}

/// Runs a seed; says what is wrong, if anything is.
fn try_seed(seed: u64, faults: Faults, option: Option<&str>) -> Result<(), String> {
    let mut run = Run::new(seed, faults, option);
    for _ in 0..ACTIONS {
        run.act();
    }
    run.heal();
    let history = run.history();
    let finals = &run.world.answers[run.times.len() - NODES as usize..];
    let is_served = finals.iter().all(|(_, answer)| matches!(answer, Some(Outcome::Value(_))));
    let verdict = match (is_linearizable(&history), is_served) {
        (true, true) => return Ok(()),
        (false, _) => "no order explains the answers",
        (true, false) => "a get after the faults was not answered",
    };
    let log = run.world.log.join("\n");
    Err(format!("{faults:?} seed {seed}: {verdict}\n{log}\n{history:?}"))
}

fn try_seeds(faults: Faults) {
    for seed in 0..300 {
        if let Err(why) = try_seed(seed, faults, None) {
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

/// While the views stay, plain majorities are enough; `bare` shows what happens when they change.
#[test]
fn crashes_break_nothing_without_consistent_quorums() {
    for seed in 0..100 {
        if let Err(why) = try_seed(seed, Faults::Crashes, Some("static")) {
            panic!("{why}");
        }
    }
}
