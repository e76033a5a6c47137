//! A small world of nodes that change the views of groups, as the random schedules need it: the
//! part that an engine has in the real system.

use super::super::{Acceptor, InstallQueue, Message, Proposer, Rounds, Step};
use quorate_kernel::ids::{GroupId, Incarnation, NodeId};
use quorate_kernel::view::{Change, View, ViewId};
use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::vec::Vec;

/// What travels.
#[derive(Clone, Debug)]
pub enum Body {
    /// The component's own.
    Protocol(Message),
    /// What follows this view?
    Fetch(ViewId),
    /// I do not know this group; am I in it?
    Ask(GroupId),
    /// You are in this view of a group that you do not know (P4A).
    Welcome(Arc<View>),
}

/// A message under way.
#[derive(Clone, Debug)]
pub struct Flight {
    pub from: Incarnation,
    pub to: NodeId,
    pub body: Body,
}

/// A node's record of one group.
#[derive(Clone, Debug)]
pub struct Group {
    pub view: Arc<View>,
    pub acceptor: Acceptor,
    /// Once the group was split: the left part.
    pub left_part: Option<GroupId>,
}

/// What survives a crash, once it is synced.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub groups: BTreeMap<GroupId, Group>,
    /// Which decision followed which view.
    log: BTreeMap<ViewId, Change>,
}

/// What a step has shown to the judge.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// A proposer's decision, or an installation.
    Decided(ViewId, Change),
    /// A proposer ended with another change than it wanted.
    Adopted,
    Outpaced,
    Refused,
    Fetched,
}

/// One node.
pub struct Node {
    pub me: Incarnation,
    pub is_up: bool,
    pub record: Record,
    pub proposers: BTreeMap<GroupId, Proposer>,
    pub rounds: Rounds,
    pub events: Vec<Event>,
    disk: Record,
    is_dirty: bool,
    /// What waits for the next sync.
    held: Vec<(NodeId, Body)>,
    queues: BTreeMap<GroupId, InstallQueue>,
}

impl Node {
    pub fn new(me: Incarnation) -> Node {
        Node {
            me,
            is_up: true,
            record: Record::default(),
            disk: Record::default(),
            is_dirty: false,
            held: Vec::new(),
            queues: BTreeMap::new(),
            proposers: BTreeMap::new(),
            rounds: Rounds::new(me),
            events: Vec::new(),
        }
    }

    /// Starts a group here, durably.
    pub fn found(&mut self, view: &Arc<View>) {
        self.add_group(Arc::clone(view));
        self.sync();
    }

    /// Makes the record durable and lets go what waited for that.
    pub fn sync(&mut self) -> Vec<(NodeId, Body)> {
        if mem::take(&mut self.is_dirty) {
            self.disk = self.record.clone();
        }
        mem::take(&mut self.held)
    }

    /// Starts again with what the disk holds.
    pub fn restart(&mut self) {
        let me = Incarnation { start: self.me.start.next(), ..self.me };
        let disk = mem::take(&mut self.disk);
        *self = Node { record: disk.clone(), disk, ..Node::new(me) };
    }

    /// The view that this node has installed in place of the group's, whatever was split since.
    fn installed(&self, group: GroupId) -> Option<&Arc<View>> {
        let mut group = self.record.groups.get(&group)?;
        while let Some(part) = group.left_part {
            group = self.record.groups.get(&part)?;
        }
        Some(&group.view)
    }

    /// Takes one message.
    pub fn on_body(&mut self, from: Incarnation, body: &Body) {
        match body {
            Body::Protocol(message) => {
                assert!(message.is_well_formed(), "{message:?}");
                self.on_message(from, *message);
            }
            Body::Fetch(view) => {
                if let Some(change) = self.record.log.get(view) {
                    let decision = Message::P3A { view: *view, change: *change };
                    self.held.push((from.node, Body::Protocol(decision)));
                }
            }
            Body::Ask(group) => {
                let Some(group) = self.record.groups.get(group) else { return };
                if group.left_part.is_none() && group.view.index_of(from.node).is_some() {
                    self.held.push((from.node, Body::Welcome(Arc::clone(&group.view))));
                }
            }
            Body::Welcome(view) => self.add_group(Arc::clone(view)),
        }
    }

    fn on_message(&mut self, from: Incarnation, message: Message) {
        let asked = message.view();
        match message {
            Message::P1A { .. } | Message::P2A { .. } | Message::P3A { .. } => {
                let Some(installed) = self.installed(asked.group).cloned() else {
                    return self.held.push((from.node, Body::Ask(asked.group)));
                };
                if asked.version > installed.id.version {
                    self.fetch(installed.id);
                }
                let reply = self.answer(message, &installed);
                self.held.extend(reply.map(|reply| (from.node, Body::Protocol(reply))));
            }
            Message::P1B(_) | Message::P2B(_) | Message::P3B { .. } => self.on_reply(from, message),
        }
    }

    fn answer(&mut self, message: Message, installed: &Arc<View>) -> Option<Message> {
        let asked = message.view();
        let group = self.record.groups.get_mut(&asked.group)?;
        let (reply, changed) = match message {
            Message::P1A { ballot, .. } => {
                let (reply, changed) = group.acceptor.on_prepare(installed, asked, ballot);
                (Message::P1B(reply), changed)
            }
            Message::P2A { ballot, change, .. } => {
                let (reply, changed) = group.acceptor.on_accept(installed, asked, ballot, change);
                (Message::P2B(reply), changed)
            }
            Message::P3A { change, .. } => return self.on_decided(asked, change),
            _ => return None,
        };
        self.is_dirty |= changed;
        Some(reply)
    }

    fn on_decided(&mut self, follows: ViewId, change: Change) -> Option<Message> {
        let version = self.installed(follows.group)?.id.version;
        let queue = self.queues.entry(follows.group).or_default();
        assert!(queue.push(version, follows.version, change), "one decision follows a view");
        let mut installed = self.installed(follows.group)?.id;
        while let Some(change) = self.queues.get_mut(&follows.group)?.next(installed.version) {
            self.install(follows.group, change);
            installed = self.installed(follows.group)?.id;
        }
        if self.queues.get(&follows.group)?.is_missing(installed.version) {
            self.fetch(installed);
        }
        let has_left = installed.version > follows.version;
        has_left.then_some(Message::P3B { view: follows, installed })
    }

    fn install(&mut self, group: GroupId, change: Change) {
        let Some(group) = self.record.groups.get_mut(&group) else { return };
        let old = group.view.id;
        let next = group.view.after(&change).expect("a decided change fits");
        self.events.push(Event::Decided(old, change));
        self.record.log.insert(old, change);
        self.is_dirty = true;
        group.acceptor = Acceptor::default();
        if next.len() == 1 {
            group.view = Arc::new(next[0].clone());
            return;
        }
        group.left_part = Some(next[0].id.group);
        for part in next {
            self.add_group(Arc::new(part));
        }
    }

    fn add_group(&mut self, view: Arc<View>) {
        let group = Group { acceptor: Acceptor::default(), left_part: None, view };
        self.record.groups.entry(group.view.id.group).or_insert(group);
        self.is_dirty = true;
    }

    /// Asks everybody what follows a view; who was welcomed later than others lacks the beginning.
    fn fetch(&mut self, view: ViewId) {
        self.events.push(Event::Fetched);
        self.held.extend((1..=super::random::NODES).map(|node| (NodeId(node), Body::Fetch(view))));
    }

    fn on_reply(&mut self, from: Incarnation, message: Message) {
        let Some(proposer) = self.proposers.get_mut(&message.view().group) else { return };
        let step = match message {
            Message::P1B(reply) => proposer.on_promise(from, &reply),
            Message::P2B(reply) => proposer.on_accepted(from, &reply),
            Message::P3B { view, installed } => proposer.on_installed(from, view, installed),
            _ => Step::Nothing,
        };
        self.follow(message.view().group, step);
    }

    fn follow(&mut self, group: GroupId, step: Step) {
        let Some(proposer) = self.proposers.get(&group) else { return };
        let view = Arc::clone(proposer.ground());
        match step {
            Step::Nothing => {}
            Step::Send(message) => self.tell(&view, message),
            Step::Decided(change) => {
                if change != *proposer.want() {
                    self.events.push(Event::Adopted);
                }
                self.events.push(Event::Decided(view.id, change));
                self.tell(&view, Message::P3A { view: view.id, change });
            }
            Step::Installed => {
                let change = proposer.decided().expect("phase 3 follows a decision");
                let next = view.after(change).expect("a decided change fits");
                let welcome = Body::Welcome(Arc::new(next[0].clone()));
                self.held.extend(change.newcomer().map(|node| (node, welcome)));
                self.proposers.remove(&group);
            }
            Step::Outpaced { installed } => {
                assert!(installed.version > view.id.version);
                self.events.push(Event::Outpaced);
                self.proposers.remove(&group);
                self.fetch(view.id);
            }
            Step::Refused { .. } => self.events.push(Event::Refused),
        }
    }

    /// Sends to all members of a view.
    pub fn tell(&mut self, view: &View, message: Message) {
        self.held.extend(view.members().iter().map(|node| (*node, Body::Protocol(message))));
    }

    /// Asserts what must hold at a node at any time.
    pub fn check(&self) {
        for group in self.record.groups.values() {
            group.acceptor.check();
            let (promised, accepted) = (group.acceptor.promised(), group.acceptor.accepted());
            assert!(accepted.is_none_or(|(ballot, _)| *ballot <= promised), "I5");
        }
    }
}
