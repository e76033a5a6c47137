//! Nodes, the messages in flight between them, and one clock. Nothing happens by itself: a message
//! stays in flight until it is delivered or dropped, a timer fires when time is moved past it.

use super::Scripted;
use super::disk::Disk;
pub use super::flight::Flight;
use super::flight::flights;
pub use super::setup::Setup;
pub use super::shown::incarnation;
use super::shown::{show_note, show_operation, show_outcome};
pub use super::views::view;
use super::views::{change, view_of};
use quorate_kernel::effects::{Effect, Effects, Note, Release};
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start, Ticket};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Control, Operation, Outcome};
use quorate_kernel::process::{Context, Recovery, Request};
use quorate_kernel::ring::{Closing, Ring, RingHost};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Class;
use quorate_kernel::time::{Span, Time, WallTime};
use quorate_kernel::view::{Change, Range, View, ViewId};
use std::borrow::ToOwned;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;

/// What a node may not let out before a sync.
enum Held {
    Send(Vec<Flight>, String),
    Answer(Ticket, Outcome),
}

pub(super) struct Node<P: Scripted> {
    me: Incarnation,
    /// None while the node is down.
    pub(super) process: Option<P>,
    pub(super) disk: Disk,
    held: VecDeque<(u64, Held)>,
    timers: Vec<(Time, u64, P::Timer)>,
    /// The highest start seen of each peer; frames of a lower one are dropped.
    peers: BTreeMap<NodeId, Start>,
    rng: Rng,
}

/// The world.
pub struct World<P: Scripted> {
    nodes: Vec<Node<P>>,
    /// What is in flight, in the order it was sent.
    pub flights: Vec<Flight>,
    /// Messages that a script has put aside.
    pub delayed: Vec<Flight>,
    /// Nodes of which every message is lost, in both directions.
    pub cut: BTreeSet<u64>,
    /// Nodes that may refuse a message: it was forged.
    pub deceived: BTreeSet<u64>,
    /// Messages of a node to itself that the gate let through.
    locals: VecDeque<Flight>,
    /// Nodes that were called and are not yet told that the turn ends.
    touched: BTreeSet<u64>,
    pub(crate) now: Time,
    timer_count: u64,
    /// What happened since it was last taken.
    pub log: Vec<String>,
    /// Every request with its answer, by its number.
    pub answers: Vec<(Operation, Option<Outcome>)>,
    pub(super) first_view: View,
    /// The views that are decided one after the other, by version.
    views: BTreeMap<u64, View>,
    pub(super) options: Vec<String>,
}

impl<P: Scripted> World<P> {
    /// Starts every node for the first time.
    pub fn new(setup: &Setup) -> World<P> {
        let range =
            setup.first.map_or(Range::ALL, |first| Range { low: first - 1, high: u64::MAX });
        let first_view = view_of(range, 1, &(1..=setup.members).collect::<Vec<_>>());
        let node = |id| Node {
            me: Incarnation { node: NodeId(id), start: Start(0) },
            process: None,
            disk: Disk::new(setup.is_memory, setup.is_periodic),
            held: VecDeque::new(),
            timers: Vec::new(),
            peers: BTreeMap::new(),
            rng: Rng::new(id),
        };
        let mut world = World {
            nodes: (1..=setup.members + setup.spares).map(node).collect(),
            flights: Vec::new(),
            delayed: Vec::new(),
            cut: BTreeSet::new(),
            deceived: BTreeSet::new(),
            locals: VecDeque::new(),
            touched: BTreeSet::new(),
            now: Time(0),
            timer_count: 0,
            log: Vec::new(),
            answers: Vec::new(),
            views: BTreeMap::from([(1, first_view.clone())]),
            first_view,
            options: setup.options.clone(),
        };
        for id in 1..=world.nodes.len() as u64 {
            world.boot(id, Recovery::Intact);
        }
        world.log.clear();
        world
    }

    pub(super) fn node(&mut self, id: u64) -> &mut Node<P> {
        let place = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
        place.and_then(|at| self.nodes.get_mut(at)).unwrap_or_else(|| panic!("no node {id}"))
    }

    /// How many nodes there are.
    pub fn count(&self) -> u64 {
        self.nodes.len() as u64
    }

    pub(crate) fn is_up(&mut self, id: u64) -> bool {
        self.node(id).process.is_some()
    }

    pub(super) fn boot(&mut self, id: u64, recovery: Recovery) {
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        let process = P::born(&self.first_view, &options);
        let node = self.node(id);
        assert!(node.process.is_none(), "node {id} is up");
        node.me.start = node.me.start.next();
        node.process = Some(process);
        self.step(id, |process, cx| process.start(recovery, cx));
        self.settle();
    }

    /// Starts a node that crashed.
    pub fn restart(&mut self, id: u64, forgot: bool) {
        let node = self.node(id);
        assert!(forgot || !node.disk.is_memory, "data in memory is forgotten by a restart");
        if forgot {
            node.disk.forget();
        }
        self.boot(id, if forgot { Recovery::Forgot } else { Recovery::Intact });
    }

    /// A node stops; what it has not synced is gone.
    pub fn crash(&mut self, id: u64) {
        let node = self.node(id);
        assert!(node.process.take().is_some(), "node {id} is down already");
        node.held.clear();
        node.timers.clear();
        node.peers.clear();
        node.disk.crash();
        self.touched.remove(&id);
    }

    /// A node's disk syncs everything written so far.
    pub fn sync(&mut self, id: u64) {
        self.node(id).disk.sync();
        let done = self.node(id).disk.done();
        let held = std::mem::take(&mut self.node(id).held);
        for (needs, item) in held {
            if needs <= done {
                self.let_out(id, item);
            } else {
                self.node(id).held.push_back((needs, item));
            }
        }
        self.settle();
    }

    /// A client asks a node; returns the number of the request.
    pub fn request(&mut self, id: u64, operation: Operation, within: Span) -> usize {
        let ticket = self.answers.len();
        self.answers.push((operation.clone(), None));
        let request = Request { operation, deadline: self.now + within };
        self.step(id, |process, cx| process.on_request(Ticket(ticket as u64), request, cx));
        self.settle();
        ticket
    }

    /// Says which views follow each other in this world.
    pub fn know(&mut self, view: &View) {
        self.views.insert(view.id.version, view.clone());
    }

    /// A view of the one group that this world was born with.
    pub fn view(&self, version: u64, members: &[u64]) -> View {
        view_of(self.first_view.range, version, members)
    }

    /// A member is told that the group was split after a version.
    pub fn split(&mut self, id: u64, version: u64, at: u64) {
        let follows = ViewId { version, ..self.first_view.id };
        let (me, message) = (self.node(id).me, P::decided(follows, Change::Split { at }));
        self.step(id, |process, cx| process.on_message(me, message, cx));
        self.settle();
    }

    /// A node's belief of the ring changes.
    pub fn announce(&mut self, id: u64, hosts: &[RingHost], closing: Closing) {
        let mut ring = Ring::new(self.now.0, hosts.to_vec());
        ring.closing = closing;
        self.step(id, |process, cx| process.on_news(News::Ring(&Arc::new(ring)), cx));
        self.settle();
    }

    /// An operator asks a node something; its log shows it like an operation.
    pub fn control(&mut self, id: u64, control: Control, like: Operation, within: Span) {
        let ticket = Ticket(self.answers.len() as u64);
        self.answers.push((like, None));
        let deadline = self.now + within;
        self.step(id, |process, cx| process.on_control(ticket, control, deadline, cx));
        self.settle();
    }

    /// A member of the view before is told that a view was decided.
    pub fn decide(&mut self, id: u64, view: &View) {
        let old = self.views.get(&(view.id.version - 1)).expect("the view before is known").clone();
        let (me, message) = (self.node(id).me, P::decided(old.id, change(&old, view)));
        self.step(id, |process, cx| process.on_message(me, message, cx));
        self.settle();
    }

    /// Delivers a message in flight.
    pub fn deliver(&mut self, place: usize) {
        let flight = self.flights.remove(place);
        let (to, from) = (flight.to.0, flight.from);
        if self.cut.contains(&to) || self.cut.contains(&from.node.0) {
            return;
        }
        let source = if from.start.0 > 1 { incarnation(from) } else { from.node.0.to_string() };
        let node = self.node(to);
        if node.process.is_none() {
            self.log.push(format!("{to} is down, {} of {source} is lost", flight.name));
            return;
        }
        let highest = node.peers.entry(from.node).or_default();
        let is_stale = from.start < *highest;
        *highest = from.start.max(*highest);
        if is_stale || (flight.start != Start(0) && flight.start != node.me.start) {
            self.log.push(format!("{to} drops {} of {source}: stale", flight.name));
            return;
        }
        self.take_in(&flight);
        self.settle();
    }

    /// Moves time on, and fires every timer that comes due.
    pub fn tick(&mut self, span: Span) {
        let end = self.now + span;
        while let Some((at, id, place)) = self.next_timer()
            && at <= end
        {
            self.now = self.now.max(at);
            let (_, _, timer) = self.node(id).timers.remove(place);
            self.log.push(format!("{id}: timer {timer:?}"));
            self.step(id, |process, cx| process.on_timer(timer, cx));
            self.settle();
        }
        self.now = end;
    }

    fn next_timer(&self) -> Option<(Time, u64, usize)> {
        let timers = self.nodes.iter().flat_map(|node| {
            let due = node.timers.iter().enumerate();
            due.map(|(place, (at, number, _))| (*at, *number, node.me.node.0, place))
        });
        timers.min().map(|(at, _, id, place)| (at, id, place))
    }

    /// Ends the turn: delivers what nodes sent to themselves, and tells those that want to know,
    /// until nothing is left.
    pub(super) fn settle(&mut self) {
        loop {
            if let Some(flight) = self.locals.pop_front() {
                if self.is_up(flight.to.0) {
                    self.take_in(&flight);
                }
            } else if let Some(id) = self.touched.first().copied() {
                self.step(id, |process, cx| process.on_news(News::TurnEnd, cx));
                self.touched.remove(&id);
            } else {
                return;
            }
        }
    }

    fn take_in(&mut self, flight: &Flight) {
        let message = flight.body.decode::<P::Message>().expect("what was encoded is decoded");
        self.log.push(format!("{} gets {} of {}", flight.to.0, flight.name, flight.from.node.0));
        let from = flight.from;
        self.step(flight.to.0, |process, cx| process.on_message(from, message, cx));
    }

    /// A handler runs at a node, and what it causes is taken in.
    pub fn step(&mut self, id: u64, handler: impl FnOnce(&mut P, &mut Context<'_, P>)) {
        let now = self.now;
        let Node { me, process, disk, rng, .. } = self.node(id);
        let process = process.as_mut().unwrap_or_else(|| panic!("node {id} is down"));
        let mut fx = Effects::default();
        let (me, lane, wall) = (*me, LaneId(1), WallTime(i64::try_from(now.0).unwrap_or(i64::MAX)));
        handler(process, &mut Context { me, lane, now, wall, rng, table: disk, fx: &mut fx });
        process.check();
        if P::HEARS.contains(&Topic::TurnEnd) {
            self.touched.insert(id);
        }
        for effect in fx.as_slice() {
            self.take_effect(id, effect);
        }
    }

    fn take_effect(&mut self, id: u64, effect: &Effect<P::Message, P::Timer>) {
        match effect {
            Effect::Write { class, key, value } => {
                let shown = P::show_write(*class, key, value.as_ref());
                self.log.push(format!("{id}: writes {shown}"));
                self.node(id).disk.write(*class, key, value.as_ref());
            }
            Effect::Send { to, message, release } => {
                let flights = flights::<P>(self.node(id).me, to, message);
                let to: Vec<String> = flights.iter().map(|one| one.to.0.to_string()).collect();
                let (name, shown) = (P::name(message), P::show(message));
                let line = format!("{name} to {}: {shown}", to.join(" "));
                self.admit(id, release, Held::Send(flights, line));
            }
            Effect::Answer { ticket, outcome, release } => {
                self.admit(id, release, Held::Answer(*ticket, outcome.clone()));
            }
            Effect::Arm { timer, at } => {
                self.timer_count += 1;
                let number = self.timer_count;
                let timers = &mut self.node(id).timers;
                timers.retain(|(_, _, armed)| armed != timer);
                timers.push((*at, number, *timer));
            }
            Effect::Disarm { timer } => {
                self.node(id).timers.retain(|(_, _, armed)| armed != timer);
            }
            Effect::Announce(note) => {
                let may_refuse = self.deceived.contains(&id) || !matches!(note, Note::Refused(_));
                assert!(may_refuse, "a correct peer was refused: {note:?}");
                self.log.push(format!("{id}: {}", show_note(note)));
            }
        }
    }

    fn admit(&mut self, id: u64, release: &Release, held: Held) {
        let node = self.node(id);
        let needs = node.disk.needs(release);
        if needs <= node.disk.done() {
            return self.let_out(id, held);
        }
        let shown = match &held {
            Held::Send(_, line) => line.clone(),
            Held::Answer(..) => "an answer".to_owned(),
        };
        self.log.push(format!("{id}: holds until synced {shown}"));
        self.node(id).held.push_back((needs, held));
    }

    fn let_out(&mut self, id: u64, held: Held) {
        match held {
            Held::Send(flights, line) => {
                self.log.push(format!("{id}: {line}"));
                let (locals, others): (Vec<_>, Vec<_>) =
                    flights.into_iter().partition(|flight| flight.to.0 == id);
                self.locals.extend(locals);
                self.flights.extend(others);
            }
            Held::Answer(ticket, outcome) => {
                let (operation, answer) = &mut self.answers[ticket.0 as usize];
                let shown = (show_operation(operation), show_outcome(operation, &outcome));
                assert!(answer.is_none(), "{} is answered once", shown.0);
                *answer = Some(outcome);
                self.log.push(format!("{id}: answers {}: {}", shown.0, shown.1));
            }
        }
    }
}

// A class of bytes is named in `Scripted::show_write`; data comes after state in a table's order.
const _: () = assert!((Class::State as u8) < (Class::Data as u8));
