//! Random schedules: groups change their views while messages are lost, doubled and reordered and
//! nodes crash. A judge that sees all nodes compares the decisions; a failing seed is run again and
//! prints all that happened.

use super::super::{Message, Proposer};
use super::incarnation;
use super::model::{Body, Event, Flight, Node};
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::rng::Rng;
use quorate_kernel::view::{Change, Range, View, ViewId};
use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

pub const NODES: u64 = 6;
const SEEDS: u64 = 4000;
const ACTIONS: usize = 500;
/// How many attempts, one at a time, may be needed when all is well again.
const ATTEMPTS: usize = 200;

/// What all runs together have done; a test that never met a rare case proves nothing.
#[derive(Debug, Default)]
struct Tally {
    kinds: [usize; 4],
    versions: u64,
    adopted: usize,
    outpaced: usize,
    refused: usize,
    fetched: usize,
    crashes: usize,
}

struct Run<'a> {
    seed: u64,
    rng: Rng,
    nodes: Vec<Node>,
    flights: Vec<Flight>,
    has_faults: bool,
    /// The judge's: what was decided to follow each view.
    decided: BTreeMap<ViewId, Change>,
    /// The judge's: the newest view of a group that each node has stamped a reply with.
    stamps: BTreeMap<(NodeId, GroupId), u64>,
    wrong: Option<String>,
    tally: &'a mut Tally,
    log: Option<Vec<String>>,
}

impl Drop for Run<'_> {
    /// An assertion inside a node leaves no time to say which seed it was.
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::eprintln!(
                "{}\nseed {}: panic",
                self.log.take().unwrap_or_default().join("\n"),
                self.seed
            );
        }
    }
}

impl Run<'_> {
    fn new(seed: u64, is_logged: bool, tally: &mut Tally) -> Run<'_> {
        let mut nodes: Vec<Node> = (1..=NODES).map(|node| Node::new(incarnation(node))).collect();
        let members = (1..=3).map(NodeId).collect();
        let view = Arc::new(View::new(ViewId::default(), Range::ALL, members));
        nodes[..3].iter_mut().for_each(|node| node.found(&view));
        Run {
            seed,
            rng: Rng::new(seed),
            nodes,
            flights: Vec::new(),
            has_faults: true,
            decided: BTreeMap::new(),
            stamps: BTreeMap::new(),
            wrong: None,
            tally,
            log: is_logged.then(Vec::new),
        }
    }

    fn note(&mut self, line: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(line());
        }
    }

    fn some(&mut self, count: usize) -> usize {
        self.rng.below(count as u64) as usize
    }

    fn act(&mut self) {
        let at = self.some(self.nodes.len());
        match self.rng.below(100) {
            0..70 => self.deliver(),
            70..80 => self.settle(at),
            80..88 => self.attempt_again(at),
            88..94 => self.propose(at),
            94..96 => self.give_up(at),
            96 if self.rng.below(2) == 0 => self.crash(at),
            _ => self.restart(at),
        }
    }

    fn deliver(&mut self) {
        if self.flights.is_empty() {
            return;
        }
        let at = self.some(self.flights.len());
        let is_doubled = self.has_faults && self.rng.below(10) == 0;
        let is_lost = self.has_faults && self.rng.below(10) == 0;
        let flight =
            if is_doubled { self.flights[at].clone() } else { self.flights.swap_remove(at) };
        let index = flight.to.0 as usize - 1;
        if is_lost || !self.nodes[index].is_up {
            return self.note(|| format!("lost {flight:?}"));
        }
        self.note(|| format!("{flight:?}"));
        self.nodes[index].on_body(flight.from, &flight.body);
        self.judge(index);
        if !self.has_faults || self.rng.below(2) == 0 {
            self.settle(index);
        }
    }

    /// Syncs a node and sends what waited for that.
    fn settle(&mut self, index: usize) {
        let from = self.nodes[index].me;
        for (to, body) in self.nodes[index].sync() {
            self.judge_stamp(from.node, &body);
            let is_question = matches!(
                body,
                Body::Protocol(Message::P1A { .. } | Message::P2A { .. } | Message::P3A { .. })
            );
            // Now and then a question strays to a node that is no member, or no longer.
            if is_question && self.has_faults && self.rng.below(3) == 0 {
                let to = NodeId(self.rng.between(1, NODES));
                self.flights.push(Flight { from, to, body: body.clone() });
            }
            self.flights.push(Flight { from, to, body });
        }
    }

    fn judge(&mut self, index: usize) {
        self.nodes[index].check();
        for event in std::mem::take(&mut self.nodes[index].events) {
            match event {
                Event::Decided(view, change) => self.judge_decision(view, change),
                Event::Adopted => self.tally.adopted += 1,
                Event::Outpaced => self.tally.outpaced += 1,
                Event::Refused => self.tally.refused += 1,
                Event::Fetched => self.tally.fetched += 1,
            }
        }
    }

    /// I2: at most one change follows a view.
    fn judge_decision(&mut self, view: ViewId, change: Change) {
        match self.decided.get(&view) {
            Some(known) if *known != change => {
                self.wrong = Some(format!("{view:?}: {known:?} and {change:?} were decided"));
            }
            Some(_) => {}
            None => {
                self.note(|| format!("decided after {view:?}: {change:?}"));
                let kind = match change {
                    Change::Replace { .. } => 0,
                    Change::Grow { .. } => 1,
                    Change::Shrink { .. } => 2,
                    Change::Split { .. } => 3,
                };
                self.tally.kinds[kind] += 1;
                self.tally.versions = self.tally.versions.max(view.version + 1);
                self.decided.insert(view, change);
            }
        }
    }

    /// I1: a node never answers for a view older than one it has answered for.
    fn judge_stamp(&mut self, from: NodeId, body: &Body) {
        let stamp = match body {
            Body::Protocol(Message::P1B(reply)) => reply.installed,
            Body::Protocol(Message::P2B(reply)) => reply.installed,
            Body::Protocol(Message::P3B { installed, .. }) => *installed,
            _ => return,
        };
        let last = self.stamps.entry((from, stamp.group)).or_default();
        if stamp.version < *last {
            self.wrong = Some(format!("{from} went back to {stamp:?}"));
        }
        *last = stamp.version;
    }

    /// Begins a proposal at a node, for a group that it knows and with a change that fits.
    fn propose(&mut self, index: usize) {
        let node = &self.nodes[index];
        let is_open = |group: &GroupId| node.record.groups[group].left_part.is_none();
        let groups: Vec<GroupId> = node.record.groups.keys().copied().filter(is_open).collect();
        if !node.is_up || groups.is_empty() {
            return;
        }
        let group = groups[self.some(groups.len())];
        self.propose_in(index, group);
    }

    fn propose_in(&mut self, index: usize, group: GroupId) {
        let view = Arc::clone(&self.nodes[index].record.groups[&group].view);
        let want = self.some_change(&view);
        let node = &mut self.nodes[index];
        if node.proposers.contains_key(&group) {
            return;
        }
        let begun = want.and_then(|w| Proposer::begin(&mut node.rounds, Arc::clone(&view), w));
        let Some((proposer, question)) = begun else { return };
        node.tell(&view, question);
        node.proposers.insert(group, proposer);
        let me = node.me;
        self.note(|| format!("{me} proposes {want:?} after {:?}", view.id));
        self.settle(index);
    }

    fn some_change(&mut self, view: &View) -> Option<Change> {
        let members = view.members();
        let out = members[self.some(members.len())];
        let into = NodeId(self.rng.between(1, NODES));
        let change = match self.rng.below(10) {
            0 if view.id.version < 6 => Change::Split { at: self.rng.next() },
            1..3 if members.len() > 2 => Change::Shrink { out },
            3..5 if members.len() < 5 => Change::Grow { into },
            _ => Change::Replace { out, into },
        };
        view.after(&change).map(|_| change)
    }

    /// A proposer's wait is over.
    fn attempt_again(&mut self, index: usize) {
        let groups: Vec<GroupId> = self.nodes[index].proposers.keys().copied().collect();
        if !groups.is_empty() {
            let group = groups[self.some(groups.len())];
            self.retry_in(index, group);
        }
    }

    fn retry_in(&mut self, index: usize, group: GroupId) {
        let node = &mut self.nodes[index];
        let Some(proposer) = node.proposers.get_mut(&group) else { return };
        let view = Arc::clone(proposer.ground());
        let question = proposer.retry(&mut node.rounds);
        node.tell(&view, question);
        self.settle(index);
    }

    /// A node drops its proposers; what it proposes later must not be taken for the same.
    fn give_up(&mut self, index: usize) {
        self.nodes[index].proposers.clear();
    }

    fn crash(&mut self, index: usize) {
        self.tally.crashes += 1;
        let me = self.nodes[index].me;
        self.note(|| format!("{me} crashes"));
        self.nodes[index].is_up = false;
        self.nodes[index].proposers.clear();
    }

    fn restart(&mut self, index: usize) {
        if !self.nodes[index].is_up {
            self.nodes[index].restart();
            let me = self.nodes[index].me;
            self.note(|| format!("{me} starts"));
        }
    }

    /// The views after which nothing was decided yet.
    fn open_views(&self) -> Vec<ViewId> {
        let members = (1..=3).map(NodeId).collect();
        let mut views = Vec::from([View::new(ViewId::default(), Range::ALL, members)]);
        let mut open = Vec::new();
        while let Some(view) = views.pop() {
            match self.decided.get(&view.id) {
                Some(change) => views.extend(view.after(change).expect("a decided change fits")),
                None => open.push(view.id),
            }
        }
        open
    }

    /// Ends all faults; says whether every group then gets its next view.
    fn ends(&mut self) -> bool {
        self.has_faults = false;
        for index in 0..self.nodes.len() {
            self.restart(index);
            self.settle(index);
        }
        let goals = self.open_views();
        for _ in 0..ATTEMPTS {
            while !self.flights.is_empty() && self.wrong.is_none() {
                self.deliver();
            }
            let is_open = |view: &ViewId| !self.decided.contains_key(view);
            let open: Vec<ViewId> = goals.iter().copied().filter(is_open).collect();
            if open.is_empty() || self.wrong.is_some() {
                return true;
            }
            self.attempt_one(&open);
        }
        false
    }

    /// Lets one node alone propose, or try again, at one of the views, or at an older one if nobody
    /// has installed any of them: who is behind learns by it.
    fn attempt_one(&mut self, open: &[ViewId]) {
        let holders = |is_wanted: &dyn Fn(&ViewId) -> bool| -> Vec<(usize, GroupId)> {
            let nodes = self.nodes.iter().enumerate();
            let groups = nodes.flat_map(|(index, node)| {
                let groups = node.record.groups.iter();
                let groups = groups.filter(|(_, group)| group.left_part.is_none());
                groups.map(move |(name, group)| (index, *name, group.view.id))
            });
            let wanted = groups.filter(|(_, _, view)| is_wanted(view));
            wanted.map(|(index, name, _)| (index, name)).collect()
        };
        let mut candidates = holders(&|view| open.contains(view));
        if candidates.is_empty() || self.rng.below(4) == 0 {
            candidates = holders(&|view| self.decided.contains_key(view) || open.contains(view));
        }
        let (index, group) = candidates[self.some(candidates.len())];
        // A proposer for a view that this node has left since would learn that from any member.
        match self.nodes[index].proposers.contains_key(&group) {
            true => self.retry_in(index, group),
            false => self.propose_in(index, group),
        }
    }
}

fn try_seed(seed: u64, is_logged: bool, tally: &mut Tally) -> Result<(), String> {
    let mut run = Run::new(seed, is_logged, tally);
    for _ in 0..ACTIONS {
        run.act();
    }
    let has_ended = run.ends();
    let wrong = run.wrong.take();
    let wrong = wrong.or((!has_ended).then(|| String::from("some group decides nothing any more")));
    match wrong {
        Some(wrong) => {
            Err(format!("{}\nseed {seed}: {wrong}", run.log.take().unwrap_or_default().join("\n")))
        }
        None => Ok(()),
    }
}

#[test]
fn no_schedule_decides_twice_or_never() {
    let mut tally = Tally::default();
    for seed in 0..SEEDS {
        if try_seed(seed, false, &mut tally).is_err() {
            let why = try_seed(seed, true, &mut tally).expect_err("a seed is a schedule");
            panic!("{why}");
        }
    }
    let seeds = SEEDS as usize;
    assert!(tally.kinds.iter().all(|decided| *decided > seeds / 20), "{tally:?}");
    assert!(tally.kinds.iter().sum::<usize>() > 3 * seeds && tally.versions >= 6, "{tally:?}");
    let rare = [tally.adopted, tally.outpaced, tally.refused, tally.fetched, tally.crashes];
    assert!(rare.iter().all(|count| *count > seeds / 10), "{tally:?}");
}
