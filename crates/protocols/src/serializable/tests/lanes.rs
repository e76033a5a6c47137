//! Groups on real replicated logs, wired as a lane will do it: what replicas tell is handed on, and
//! what groups ask for is done. Messages are late and lost; a disk syncs at once.

use super::world::Disk;
use crate::serializable::{Action, Context, Input, Member, Message, Reply, State};
use crate::vsr::{self, Event, Kept, Machine, Op, Page, Replica, Settings, Store, Stored, TICK};
use bytes::Bytes;
use quorate_kernel::effects::Recipients;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start, Ticket};
use quorate_kernel::limits::VSR_IN_FLIGHT_BYTES_MAX;
use quorate_kernel::process::{Recovery, Table};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::{Span, Time};
use std::collections::{BTreeMap, VecDeque};
use std::vec::Vec;

/// How many nodes there are.
pub const NODES: usize = 3;

/// A state that notes what it executes.
pub struct Noted {
    pub state: State,
    executed: Vec<(Op, Bytes)>,
}

impl Machine for Noted {
    fn is_command(&mut self, command: &Bytes) -> bool {
        self.state.is_command(command)
    }
    fn apply(&mut self, op: Op, command: &Bytes, store: &mut Store<'_>) {
        self.executed.push((op, command.clone()));
        self.state.apply(op, command, store);
        self.state.check();
    }
    fn load(&mut self, store: &mut Store<'_>) -> Stored {
        self.state.load(store)
    }
    fn store(&mut self, applied: Op, bytes_max: usize, store: &mut Store<'_>) {
        self.state.store(applied, bytes_max, store);
    }
    fn stored(&self) -> Op {
        self.state.stored()
    }
    fn unstored(&self) -> usize {
        self.state.unstored()
    }
    fn head(&mut self, at: Op) -> Bytes {
        self.state.head(at)
    }
    fn page(&self, at: Op, cursor: &Bytes, _bytes_max: usize, table: &dyn Table) -> Option<Page> {
        self.state.page(at, cursor, 60, table)
    }
    fn begin_install(&mut self, op: Op, head: &Bytes, store: &mut Store<'_>) -> bool {
        self.state.begin_install(op, head, store)
    }
    fn install(&mut self, items: &Bytes, store: &mut Store<'_>) -> bool {
        self.state.install(items, store)
    }
    fn end_install(&mut self, op: Op, store: &mut Store<'_>) {
        self.state.end_install(op, store);
    }
}

/// A replica of a group at a node. Its disk syncs at once.
pub struct Hosted {
    pub group: GroupId,
    me: Incarnation,
    replica: Option<Replica>,
    pub machine: Noted,
    member: Member,
    disk: Disk,
}

/// What is under way.
enum Flying {
    Log { at: (usize, usize), from: Incarnation, message: vsr::Message },
    Group { to: usize, message: Message },
    Resume { at: (usize, usize) },
}

/// All groups, each at all nodes.
pub struct Lanes {
    pub groups: Vec<Vec<Hosted>>,
    pub now: Time,
    flying: BTreeMap<(Time, u64), Flying>,
    sent: u64,
    pub rng: Rng,
    pub loss_percent: u64,
    pub replies: Vec<(Ticket, Reply)>,
    /// What was executed at each place of each group's log.
    pub logs: Vec<BTreeMap<Op, Bytes>>,
    /// How many pages of copies were sent.
    pub copies: usize,
    /// How often an entry was not put into a log.
    pub refused: usize,
    /// How many bytes may be in flight.
    in_flight_bytes: usize,
}

impl Lanes {
    pub fn new(seed: u64, groups: u64) -> Lanes {
        let hosted = |group, node| Hosted {
            group: GroupId(group),
            me: Incarnation { node: NodeId(node as u64 + 1), start: Start(0) },
            replica: None,
            machine: Noted { state: State::new(GroupId(group)), executed: Vec::new() },
            member: Member::default(),
            disk: Disk::default(),
        };
        let all = (1..=groups).map(|id| (0..NODES).map(|node| hosted(id, node)).collect());
        let mut lanes = Lanes {
            groups: all.collect(),
            now: Time(1_000_000_000),
            flying: BTreeMap::new(),
            sent: 0,
            rng: Rng::new(seed),
            loss_percent: 0,
            replies: Vec::new(),
            logs: (0..groups).map(|_| BTreeMap::new()).collect(),
            copies: 0,
            refused: 0,
            // In every other world the log soon has no room.
            in_flight_bytes: if seed.is_multiple_of(2) { 60 } else { VSR_IN_FLIGHT_BYTES_MAX },
        };
        for group in 0..groups as usize {
            (0..NODES).for_each(|node| lanes.start((group, node)));
        }
        lanes
    }

    pub fn start(&mut self, at: (usize, usize)) {
        let its = &mut self.groups[at.0][at.1];
        its.me.start = its.me.start.next();
        its.machine = Noted { state: State::new(its.group), executed: Vec::new() };
        its.member = Member::default();
        let settings = Settings {
            durability: Durability::Sync,
            kept: Kept { entries: 12, bytes: 0 },
            in_flight_bytes: self.in_flight_bytes,
            by_membership: false,
        };
        its.replica = Some(Replica::new(its.group, its.me.node, settings));
        let founders: Vec<NodeId> = (1..=NODES as u64).map(NodeId).collect();
        self.turn(at, |replica, cx| replica.start(Some(&founders), Recovery::Intact, cx));
    }

    pub fn crash(&mut self, at: (usize, usize)) {
        self.groups[at.0][at.1].replica = None;
    }

    fn fly(&mut self, what: Flying, is_local: bool) {
        if !is_local && self.rng.below(100) < self.loss_percent {
            return;
        }
        let wait = if is_local { 10 } else { self.rng.between(100, 3000) };
        self.sent += 1;
        self.flying.insert((self.now + Span::micros(wait), self.sent), what);
    }

    /// A call of a replica, as one turn; then what it has told.
    fn turn(&mut self, at: (usize, usize), call: impl FnOnce(&mut Replica, &mut vsr::Context<'_>)) {
        let told = self.call(at, call);
        self.took(at, told);
        let told = self.call(at, Replica::turn_end);
        self.took(at, told);
    }

    fn call(
        &mut self,
        at: (usize, usize),
        call: impl FnOnce(&mut Replica, &mut vsr::Context<'_>),
    ) -> Vec<Event> {
        let its = &mut self.groups[at.0][at.1];
        let Some(replica) = &mut its.replica else { return Vec::new() };
        let mut out = Vec::new();
        let me = its.me;
        let (table, machine) = (&its.disk, &mut its.machine);
        let mut cx = vsr::Context { me, now: self.now, table, machine, out: &mut out };
        call(replica, &mut cx);
        let mut told = Vec::new();
        for action in out {
            match action {
                vsr::Action::Write { key, value, .. } => {
                    let disk = &mut self.groups[at.0][at.1].disk.0;
                    match value {
                        Some(value) => _ = disk.insert(key, value),
                        None => _ = disk.remove(&key),
                    }
                }
                vsr::Action::Send { to, message, .. } => {
                    let nodes = match to {
                        Recipients::One(one) => Vec::from([one.node]),
                        Recipients::Group(nodes) => nodes.to_vec(),
                    };
                    self.copies += usize::from(matches!(message, vsr::Message::Checkpoint { .. }));
                    for node in nodes {
                        let to = (at.0, node.0 as usize - 1);
                        let message = message.clone();
                        self.fly(Flying::Log { at: to, from: me, message }, node == me.node);
                    }
                }
                vsr::Action::Tell(event) => told.push(event),
                vsr::Action::Resume => self.fly(Flying::Resume { at }, true),
                vsr::Action::Refuse(what) => panic!("{what}"),
            }
        }
        told
    }

    /// Hands on what a replica has told.
    fn took(&mut self, at: (usize, usize), told: Vec<Event>) {
        let its = &mut self.groups[at.0][at.1];
        for (op, bytes) in its.machine.executed.drain(..) {
            let has = self.logs[at.0].entry(op).or_insert_with(|| bytes.clone());
            assert_eq!(*has, bytes, "all replicas execute the same");
        }
        let executed = its.machine.state.take_executed();
        if told.contains(&Event::Deposed) {
            // What was executed in this call may be of the next primary.
            self.handle(at, Input::Deposed);
        } else if !told.contains(&Event::Serving) && !executed.is_empty() {
            self.handle(at, Input::Executed(executed));
        }
        for event in told {
            match event {
                Event::Serving => self.handle(at, Input::Serving),
                Event::Readable(ticket) => self.handle(at, Input::Readable(ticket)),
                _ => {}
            }
        }
    }

    fn handle(&mut self, at: (usize, usize), input: Input) {
        let its = &mut self.groups[at.0][at.1];
        if its.replica.is_none() {
            return;
        }
        let mut out = Vec::new();
        let (state, table) = (&its.machine.state, &its.disk);
        let (now, wall) = (self.now, self.now.0 / 1_000_000);
        let is_settled = its.replica.as_ref().is_some_and(Replica::is_settled);
        let life = 0;
        let mut cx = Context { state, is_settled, life, table, now, wall, out: &mut out };
        its.member.handle(input, &mut cx);
        let mut actions: VecDeque<Action> = out.into();
        while let Some(action) = actions.pop_front() {
            match action {
                Action::Propose(entry) => {
                    let mut is_taken = false;
                    let told =
                        self.call(at, |replica, cx| is_taken = replica.propose(entry, cx).is_ok());
                    assert!(told.is_empty(), "a proposal tells nothing");
                    if !is_taken {
                        // Nothing behind it may be taken, or the order would be another.
                        let before = actions.len();
                        actions.retain(|it| !matches!(it, Action::Propose(_)));
                        let count = 1 + before - actions.len();
                        self.refused += count;
                        self.handle(at, Input::NotTaken(count));
                    }
                }
                Action::Confirm(ticket) => {
                    let mut is_taken = false;
                    let told = self.call(at, |replica, _| is_taken = replica.read(ticket).is_ok());
                    assert!(told.is_empty(), "a read tells nothing");
                    if !is_taken {
                        self.handle(at, Input::NotConfirmed(ticket));
                    }
                }
                Action::Send { to, message } => {
                    self.fly(Flying::Group { to: to.0 as usize - 1, message }, false);
                }
                Action::Reply { ticket, reply } => self.replies.push((ticket, reply)),
                Action::Placed | Action::Swept { .. } => {}
            }
        }
    }

    /// An input of a group, as one turn.
    pub fn input(&mut self, at: (usize, usize), input: Input) {
        self.handle(at, input);
        let told = self.call(at, Replica::turn_end);
        self.took(at, told);
    }

    /// Somebody of a group that believes it leads; anybody if nobody does.
    pub fn leader(&mut self, group: usize) -> usize {
        let any = self.rng.below(NODES as u64) as usize;
        let leads = |node: &usize| self.groups[group][*node].member.leads();
        (0..NODES).map(|step| (any + step) % NODES).find(leads).unwrap_or(any)
    }

    /// Time passes to the next tick.
    pub fn step(&mut self) {
        let end = self.now + TICK;
        while let Some(entry) = self.flying.first_entry()
            && entry.key().0 <= end
        {
            let ((time, _), what) = entry.remove_entry();
            self.now = time;
            match what {
                Flying::Log { at, from, message } => {
                    let has = self.groups[at.0][from.node.0 as usize - 1].me;
                    if from == has {
                        self.turn(at, |replica, cx| replica.on_message(from, message, cx));
                    }
                }
                Flying::Group { to, message } => {
                    let node = self.leader(to);
                    self.input((to, node), Input::Message(message));
                }
                Flying::Resume { at } => self.turn(at, Replica::resume),
            }
        }
        self.now = end;
        for group in 0..self.groups.len() {
            for node in 0..NODES {
                self.turn((group, node), Replica::tick);
                self.input((group, node), Input::Tick);
            }
        }
    }
}
