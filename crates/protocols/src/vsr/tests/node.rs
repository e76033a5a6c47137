//! A node of the world: a replica with its machine, and a disk that syncs when it comes to it.

use super::machine::{Command, Registers, Request};
use crate::testing::disk::Disk;
use crate::vsr::{Action, Context, Event, Kept, Message, Op, Replica, Settings};
use quorate_kernel::effects::{Recipients, Release};
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start, Ticket};
use quorate_kernel::limits::VSR_IN_FLIGHT_BYTES_MAX;
use quorate_kernel::process::Recovery;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Time;
use std::collections::{BTreeMap, VecDeque};
use std::vec::Vec;

/// The group of the world.
pub const GROUP: GroupId = GroupId(7);

/// How the nodes of a world keep what they have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Sync,
    Periodic,
    Memory,
}

/// What happened at a node.
#[derive(Debug)]
pub enum Happened {
    Sent { to: NodeId, message: Message },
    Told(Event),
    Refused(&'static str),
    Resume,
}

pub struct Node {
    pub me: Incarnation,
    pub founders: Option<Vec<NodeId>>,
    /// None while the node is down.
    pub replica: Option<Replica>,
    pub machine: Registers,
    pub disk: Disk,
    level: Level,
    pub kept: Kept,
    /// How many bytes may be in flight.
    pub in_flight_bytes: usize,
    held: VecDeque<(u64, NodeId, Message)>,
    pub is_syncing: bool,
    /// What this node has proposed, by place.
    pub pending: BTreeMap<Op, Request>,
    /// Which reads it has in hand: of which client, of which register, since when.
    pub reads: BTreeMap<Ticket, (u32, u8, Time)>,
    /// Whether its disk was taken away: it never comes back.
    pub is_wiped: bool,
}

impl Node {
    pub fn new(id: u64, founders: Option<Vec<NodeId>>, level: Level, kept: Kept) -> Node {
        let mut disk = Disk::new(level == Level::Memory, level == Level::Periodic);
        disk.is_holding = true;
        Node {
            me: Incarnation { node: NodeId(id), start: Start(0) },
            founders,
            replica: None,
            machine: Registers::default(),
            disk,
            level,
            kept,
            in_flight_bytes: VSR_IN_FLIGHT_BYTES_MAX,
            held: VecDeque::new(),
            is_syncing: false,
            pending: BTreeMap::new(),
            reads: BTreeMap::new(),
            is_wiped: false,
        }
    }

    pub fn start(&mut self, now: Time) -> Vec<Happened> {
        assert!(self.replica.is_none() && !self.is_wiped, "it is down, and may start");
        let has_started = self.me.start != Start(0);
        self.me.start = self.me.start.next();
        self.machine = Registers::default();
        let durability = match self.level {
            Level::Sync => Durability::Sync,
            Level::Periodic => Durability::Periodic { every_ms: 50 },
            Level::Memory => Durability::Memory,
        };
        let in_flight_bytes = self.in_flight_bytes;
        let (kept, by_membership) = (self.kept, false);
        let settings = Settings { durability, kept, in_flight_bytes, by_membership };
        self.replica = Some(Replica::new(GROUP, self.me.node, settings));
        let founders = self.founders.clone();
        let forgot = has_started && self.level != Level::Sync;
        let recovery = if forgot { Recovery::Forgot } else { Recovery::Intact };
        self.call(now, |replica, cx| replica.start(founders.as_deref(), recovery, cx))
    }

    pub fn crash(&mut self) {
        self.replica = None;
        self.disk.crash();
        self.disk.is_holding = true;
        self.held.clear();
        self.is_syncing = false;
        self.pending.clear();
        self.reads.clear();
    }

    /// An input, and the end of its turn.
    pub fn turn(
        &mut self,
        now: Time,
        handler: impl FnOnce(&mut Replica, &mut Context<'_>),
    ) -> Vec<Happened> {
        let mut happened = self.call(now, handler);
        happened.extend(self.call(now, Replica::turn_end));
        happened
    }

    pub fn call(
        &mut self,
        now: Time,
        handler: impl FnOnce(&mut Replica, &mut Context<'_>),
    ) -> Vec<Happened> {
        let Some(replica) = &mut self.replica else { return Vec::new() };
        let mut out = Vec::new();
        let machine = &mut self.machine;
        let mut cx = Context { me: self.me, now, table: &self.disk, machine, out: &mut out };
        handler(replica, &mut cx);
        replica.check();
        let mut happened = Vec::new();
        for action in out {
            match action {
                Action::Write { class, key, value } => {
                    self.disk.write(class, &key, value.as_ref());
                }
                Action::Send { to, message, release } => {
                    self.send(&to, &message, &release, &mut happened);
                }
                Action::Tell(event) => happened.push(Happened::Told(event)),
                Action::Resume => happened.push(Happened::Resume),
                Action::Refuse(what) => happened.push(Happened::Refused(what)),
            }
        }
        happened
    }

    fn send(
        &mut self,
        to: &Recipients,
        message: &Message,
        release: &Release,
        happened: &mut Vec<Happened>,
    ) {
        let nodes = match to {
            Recipients::One(one) => Vec::from([one.node]),
            Recipients::Group(nodes) => nodes.to_vec(),
        };
        let needs = self.disk.needs(release);
        for to in nodes {
            let message = message.clone();
            if needs <= self.disk.done() {
                happened.push(Happened::Sent { to, message });
            } else {
                self.held.push_back((needs, to, message));
            }
        }
    }

    /// Whether something waits for a sync.
    pub fn has_unsynced(&self) -> bool {
        self.disk.needs(&Release::Lane) > self.disk.done() || !self.held.is_empty()
    }

    pub fn sync(&mut self) -> Vec<Happened> {
        self.disk.sync();
        let done = self.disk.done();
        let mut happened = Vec::new();
        for (needs, to, message) in std::mem::take(&mut self.held) {
            if needs <= done {
                happened.push(Happened::Sent { to, message });
            } else {
                self.held.push_back((needs, to, message));
            }
        }
        happened
    }

    /// A client asks for a write; answers whether it was proposed.
    pub fn propose(&mut self, now: Time, command: Command) -> (bool, Vec<Happened>) {
        let mut proposed = None;
        let happened = self.call(now, |replica, cx| {
            proposed = replica.propose(command.bytes(), cx).ok();
        });
        if let Some(op) = proposed {
            self.pending.insert(op, command.request);
        }
        (proposed.is_some(), happened)
    }
}
