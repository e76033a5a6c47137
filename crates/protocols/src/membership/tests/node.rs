//! A node of the world: a roll, and a disk that syncs when it comes to it.

use crate::membership::{Action, Configuration, Context, Event, Member, Message, Roll};
use crate::testing::disk::Disk;
use quorate_kernel::effects::{Recipients, Release};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::storage::Class;
use quorate_kernel::time::Time;
use std::collections::VecDeque;
use std::format;
use std::vec::Vec;

/// What happened at a node.
#[derive(Debug)]
pub enum Happened {
    Sent { to: NodeId, message: Message },
    Told(Event),
    Refused(&'static str),
}

pub struct Node {
    pub me: Incarnation,
    pub founding: Option<Configuration>,
    /// None while the node is down.
    pub roll: Option<Roll>,
    pub disk: Disk,
    held: VecDeque<(u64, NodeId, Message)>,
    pub is_syncing: bool,
    /// Whom it asks to be let in, if it is no founder.
    pub seeds: Vec<NodeId>,
}

pub fn member(id: u64) -> Member {
    let address = format!("host{id}:7400");
    Member { id: NodeId(id), address, metadata: Vec::from([id as u8]) }
}

impl Node {
    pub fn new(id: u64, founding: Option<Configuration>, seeds: Vec<NodeId>) -> Node {
        let mut disk = Disk::new(false, false);
        disk.is_holding = true;
        Node {
            me: Incarnation { node: NodeId(id), start: Start(0) },
            founding,
            roll: None,
            disk,
            held: VecDeque::new(),
            is_syncing: false,
            seeds,
        }
    }

    pub fn start(&mut self, now: Time) -> Vec<Happened> {
        assert!(self.roll.is_none(), "it is down");
        self.me.start = self.me.start.next();
        self.roll = Some(Roll::new(member(self.me.node.0)));
        let (founding, seeds) = (self.founding.clone(), self.seeds.clone());
        self.turn(now, |roll, cx| {
            roll.start(founding, cx);
            if !seeds.is_empty() {
                // Who is a member, or was one, does not join.
                _ = roll.join(&seeds, cx);
            }
        })
    }

    pub fn crash(&mut self) {
        self.roll = None;
        self.disk.crash();
        self.disk.is_holding = true;
        self.held.clear();
        self.is_syncing = false;
    }

    pub fn turn(
        &mut self,
        now: Time,
        handler: impl FnOnce(&mut Roll, &mut Context<'_>),
    ) -> Vec<Happened> {
        let Some(roll) = &mut self.roll else { return Vec::new() };
        let mut out = Vec::new();
        let mut cx = Context { me: self.me, now, table: &self.disk, out: &mut out };
        handler(roll, &mut cx);
        roll.check();
        let mut happened = Vec::new();
        for action in out {
            match action {
                Action::Write { key, value } => self.disk.write(Class::State, &key, Some(&value)),
                Action::Send { to, message, release } => {
                    self.send(&to, &message, &release, &mut happened);
                }
                Action::Tell(event) => happened.push(Happened::Told(event)),
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
}
