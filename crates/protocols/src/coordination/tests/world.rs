//! The world of [`hosts`], with the lane of this engine, and clients with sessions.

pub use crate::coordination::Settings;
use crate::coordination::keys;
use crate::coordination::tree;
use crate::coordination::{Coordination, GROUP, Message};
use crate::groups::{FAILED, founders};
use crate::testing::hosts::{self, Simulated};
use crate::vsr::{Kept, Replica};
use bytes::Bytes;
use quorate_kernel::ids::{GroupId, NodeId, Ticket};
use quorate_kernel::keyspace::Birth;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::path::Path;
use quorate_kernel::process::Process;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::tree::{
    Act, Ask, Changed, Connect, Failure, Item, Password, SessionEvent, SessionId, Told, What, Zxid,
};
use quorate_kernel::view::{Range, View, ViewId};
use quorate_kernel::watch::{Event, Watch};
use std::string::String;
use std::vec::Vec;

pub type World = hosts::World<Coordination>;
pub type Host = hosts::Host<Coordination>;

/// As long as any answer takes where all is well, and a change of primary beside it.
pub const SOON: Span = Span::secs(5);
/// The time-out of most sessions.
pub const TIMEOUT: Span = Span::secs(3);

/// A client's connection, on which it has a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The host.
    pub at: usize,
    /// The connection.
    pub ticket: Ticket,
    pub session: SessionId,
    pub password: Password,
    /// Which opening of the session it is.
    pub opening: u64,
}

impl Simulated for Coordination {
    type Settings = Settings;

    fn born(settings: &Settings) -> Coordination {
        Coordination::new(settings.clone())
    }

    fn durability(settings: &Settings) -> Durability {
        settings.durability
    }

    fn name(message: &Message) -> &'static str {
        message.name()
    }

    fn logs(&self) -> Vec<(GroupId, &Replica)> {
        self.hosted.iter().map(|hosted| (GROUP, &hosted.replica)).collect()
    }
}

/// What a keyspace is set to that so many hosts have founded.
pub fn settings(founders_count: u64, durability: Durability) -> Settings {
    let id = ViewId { group: GroupId(1), version: 0 };
    let view = |host| View::new(id, Range::ALL, Vec::from([NodeId(host)]));
    let birth = Birth::Groups((1..=founders_count).map(view).collect());
    let replicas = founders_count as usize;
    Settings {
        founders: founders(&birth, replicas, 1, 1),
        replicas,
        failed: FAILED,
        durability,
        value_bytes_max: 1000,
        timeouts: (2000, 60_000),
        session_reads: false,
        // Little, so that who was away copies.
        kept: Kept { entries: 20, bytes: 2000 },
        key: [7; 32],
    }
}

/// So many hosts, the first three of which have founded the group, and one leads.
pub fn hosts(count: u64) -> World {
    led(World::new(7, count, settings(3, Durability::Sync)))
}

/// After somebody leads.
pub fn led(mut world: World) -> World {
    assert!(world.run_until(SOON, |world| world.leader().is_some()), "somebody leads");
    world
}

/// Three hosts, the one that leads, and another one.
pub fn three() -> (World, usize, usize) {
    let world = hosts(3);
    let leader = world.leader().expect("somebody leads");
    (world, leader, (leader + 1) % 3)
}

impl World {
    /// The host that leads in the latest view.
    pub fn leader(&self) -> Option<usize> {
        let view = |host: &Host| {
            let hosted = host.process.as_ref()?.hosted.as_ref()?;
            hosted.leads().then(|| hosted.replica.view())
        };
        let leading = (0..self.hosts.len()).filter_map(|at| Some((view(&self.hosts[at])?, at)));
        leading.max().map(|(_, at)| at)
    }

    /// A host hears nobody, and nobody hears it.
    pub fn isolate(&mut self, host: usize) {
        (0..self.hosts.len()).filter(|other| *other != host).for_each(|it| self.part(host, it));
    }

    /// Links work again.
    pub fn mend(&mut self) {
        self.cut.clear();
        self.loss_percent = 0;
        self.double_percent = 0;
    }

    /// A client connects.
    pub fn connect(&mut self, at: usize, connect: Connect) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.turn(at, |process, cx| process.on_watch(ticket, Watch::Session(connect), cx));
        ticket
    }

    /// A client connects, and is given a session.
    pub fn open_with(&mut self, at: usize, timeout: Span) -> Client {
        let timeout_ms = u32::try_from(timeout.0 / 1_000_000).expect("it is short");
        let connect = Connect { session: None, timeout_ms, seen: Zxid(0), peer: None };
        let ticket = self.connect(at, connect);
        self.opened(at, ticket).expect("there is room for it")
    }

    /// The same with the usual time-out.
    pub fn open(&mut self, at: usize) -> Client {
        self.open_with(at, TIMEOUT)
    }

    /// A client goes on with its session; on which connection.
    pub fn go_on(&mut self, client: &Client, at: usize) -> Ticket {
        let session = Some((client.session, client.password));
        self.connect(at, Connect { session, timeout_ms: 0, seen: Zxid(0), peer: None })
    }

    /// A client goes on with its session, which is there.
    pub fn attach(&mut self, client: &Client, at: usize) -> Client {
        let ticket = self.go_on(client, at);
        self.opened(at, ticket).expect("its session is there")
    }

    /// What becomes of a connection; none if there is no session.
    pub fn opened(&mut self, at: usize, ticket: Ticket) -> Option<Client> {
        assert!(self.run_to(SOON, |world| !world.told(ticket).is_empty()), "it is told");
        match self.told(ticket)[0] {
            Outcome::More(events) => match events[..] {
                [Event::Session(SessionEvent::Open { session, password, opening, .. })] => {
                    Some(Client { at, ticket, session, password, opening })
                }
                [Event::Session(SessionEvent::Expired)] => None,
                _ => panic!("{events:?} opens nothing"),
            },
            _ => None,
        }
    }

    /// All that a ticket was told, in its order.
    pub fn told(&self, ticket: Ticket) -> Vec<&Outcome> {
        self.answers.iter().filter(|(_, of, _)| *of == ticket).map(|(_, _, it)| it).collect()
    }

    /// A client's connection is closed.
    pub fn leave(&mut self, client: &Client) {
        self.turn(client.at, |process, cx| process.on_unwatch(client.ticket, cx));
    }

    /// Why a connection has ended, if it has.
    pub fn ended(&self, client: &Client) -> Option<Refusal> {
        let ends: Vec<Refusal> = self
            .told(client.ticket)
            .into_iter()
            .filter_map(|outcome| match outcome {
                Outcome::Refused(refusal) => Some(refusal.clone()),
                _ => None,
            })
            .collect();
        assert!(ends.len() <= 1, "a connection ends once");
        ends.first().cloned()
    }

    /// Whether a client was told that its session has expired.
    pub fn is_expired(&self, client: &Client) -> bool {
        let expired = Outcome::More(Vec::from([Event::Session(SessionEvent::Expired)]));
        self.told(client.ticket).contains(&&expired)
    }

    /// What a client was told of what it follows.
    pub fn changes(&self, client: &Client) -> Vec<(String, What)> {
        self.changed(client).into_iter().map(|it| (it.path, it.what)).collect()
    }

    /// The same with the numbers of changes.
    pub fn changed(&self, client: &Client) -> Vec<Changed> {
        let more = |outcome: &Outcome| match outcome {
            Outcome::More(events) => events.clone(),
            _ => Vec::new(),
        };
        let all = self.told(client.ticket).into_iter().flat_map(more);
        let changed = all.filter_map(|event| match event {
            Event::Session(SessionEvent::Changed(changed)) => Some(changed),
            _ => None,
        });
        changed.collect()
    }

    /// A client asks, and does not wait.
    pub fn send(&mut self, client: &Client, act: Act) -> Ticket {
        let ask = Ask { session: Some(client.session), opening: None, act };
        self.request(client.at, Operation::Tree(ask.into()), SOON)
    }

    /// The same of one item.
    pub fn send_one(&mut self, client: &Client, item: Item) -> Ticket {
        self.send(client, Act::One(item))
    }

    /// The answer to what was asked, which must come.
    pub fn answer(&mut self, ticket: Ticket) -> Outcome {
        let most = Span(SOON.0 + Span::secs(1).0);
        assert!(self.run_to(most, |world| !world.told(ticket).is_empty()), "it is answered");
        let told = self.told(ticket);
        assert_eq!(told.len(), 1, "one answer to one question");
        told[0].clone()
    }

    /// The same of what may take longer.
    pub fn answer_within(&mut self, ticket: Ticket, most: Span) -> Outcome {
        assert!(self.run_to(most, |world| !world.told(ticket).is_empty()), "it is answered");
        self.told(ticket)[0].clone()
    }

    /// What is told of what was asked of the tree.
    pub fn reply(&mut self, ticket: Ticket) -> Result<Told, Failure> {
        match self.answer(ticket) {
            Outcome::Tree(reply) => reply.told,
            other => panic!("{other:?} tells nothing of a tree"),
        }
    }

    /// A client asks, and waits.
    pub fn act(&mut self, client: &Client, act: Act) -> Result<Told, Failure> {
        let ticket = self.send(client, act);
        self.reply(ticket)
    }

    /// The same of one item.
    pub fn one(&mut self, client: &Client, item: Item) -> Result<Told, Failure> {
        self.act(client, Act::One(item))
    }

    /// Somebody without a session does something at a host.
    pub fn anyone(&mut self, at: usize, item: Item) -> Result<Told, Failure> {
        let ask = Ask { session: None, opening: None, act: Act::One(item) };
        let ticket = self.request(at, Operation::Tree(ask.into()), SOON);
        self.reply(ticket)
    }

    /// Whether a node is there, as somebody sees it at a host.
    pub fn is_there(&mut self, at: usize, path: &str) -> bool {
        match self.anyone(at, tree::tests::world::exists(path)) {
            Ok(Told::Stat(_)) => true,
            Err(Failure::NoNode) => false,
            other => panic!("{path} is there or not: {other:?}"),
        }
    }

    /// What a node has, as somebody sees it at a host.
    pub fn data(&mut self, at: usize, path: &str) -> Option<Bytes> {
        data_of(self.anyone(at, tree::tests::world::get(path)))
    }

    /// How many sessions there are, as a host has it.
    pub fn sessions_there(&self, at: usize) -> usize {
        let process = self.hosts[at].process.as_ref();
        let hosted = process.and_then(|it| it.hosted.as_ref()).expect("it has the tree");
        tree::sessions(hosted.machine.objects()).count()
    }

    /// All hosts that are up have the same tree, which is sound.
    pub fn agree(&mut self) {
        let applied = |world: &World, at: usize| {
            let process = world.hosts[at].process.as_ref()?;
            Some(process.hosted.as_ref()?.replica.applied())
        };
        let count = self.hosts.len();
        let are_equal = |world: &mut World| {
            let mut all: Vec<_> = (0..count).filter_map(|at| applied(world, at)).collect();
            all.dedup();
            all.len() == 1
        };
        assert!(self.run_until(SOON, are_equal), "all execute all");
        let hosted = self.hosts.iter().filter_map(|it| it.process.as_ref()?.hosted.as_ref());
        let mut trees = hosted.map(|hosted| hosted.machine.objects());
        let first = trees.next().expect("somebody has it");
        tree::check(first);
        assert!(trees.all(|other| other == first), "all have the same");
    }
}

/// What a node has.
pub fn data_of(told: Result<Told, Failure>) -> Option<Bytes> {
    match told {
        Ok(Told::Data { data, .. }) => Some(data.unwrap_or_default()),
        Err(Failure::NoNode) => None,
        other => panic!("a node has something or is not there: {other:?}"),
    }
}

impl World {
    /// Whether the replica of a host has a node.
    pub fn has_node(&self, at: usize, path: &str) -> bool {
        let path = Path::of(path).expect("it is a path");
        let hosted = self.hosts[at].process.as_ref().and_then(|it| it.hosted.as_ref());
        hosted.is_some_and(|it| it.machine.objects().contains_key(&keys::node(path)))
    }

    /// So much is asked at a host that no command more finds room.
    pub fn fill(&mut self, at: usize) -> usize {
        let mut count = 0;
        loop {
            let path = std::format!("/filler{count}");
            let put = Operation::put(path.into(), Bytes::new());
            let ticket = self.request(at, put, SOON);
            if self.told(ticket) == [&Outcome::Refused(Refusal::Overloaded)] {
                return count;
            }
            count += 1;
        }
    }
}
