//! Clients of a world, with sessions that go from host to host: what they ask, some of it at once,
//! and where in all that is told they were when they asked it.

use crate::coordination::tests::world::World;
use crate::coordination::tree::tests::world::{children, create, delete, ephemeral, exists, get};
use crate::coordination::tree::tests::world::{sequential, set};
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::Process;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::tree::{
    Act, Ask, Connect, Followed, Item, Password, SessionEvent, SessionId, Zxid,
};
use quorate_kernel::watch::Event;
use std::collections::BTreeMap;
use std::format;
use std::string::String;
use std::vec::Vec;

/// One thing that somebody has asked.
pub struct Asked {
    pub ticket: Ticket,
    /// Where it was asked.
    pub gateway: Incarnation,
    /// On which connection; none without a session.
    pub connection: Option<usize>,
    pub session: Option<SessionId>,
    pub act: Act,
    /// How much had been told to all when it was asked, and when that was.
    pub place: usize,
    pub at: Time,
    /// The host has stopped since: it is answered no more.
    pub is_lost: bool,
}

/// A client's connection.
pub struct Connection {
    pub ticket: Ticket,
    pub at: usize,
    pub session: Option<SessionId>,
    /// How long the client may be silent, in milliseconds, and since when it has the session.
    pub timeout_ms: u32,
    pub opened: Time,
    /// How much had been told to all when it was over, and when that was seen.
    pub over: Option<usize>,
    pub ended: Option<Time>,
}

/// A client.
#[derive(Default)]
struct Customer {
    connection: Option<usize>,
    session: Option<(SessionId, Password)>,
}

/// All clients.
pub struct Customers {
    all: Vec<Customer>,
    pub connections: Vec<Connection>,
    pub asked: Vec<Asked>,
    by_ticket: BTreeMap<Ticket, usize>,
    heard: usize,
    values: u64,
    rng: Rng,
}

/// The nodes that come and go.
const PATHS: [&str; 5] = ["/a", "/b", "/a/x", "/a/y", "/b/x"];

impl Customers {
    pub fn new(count: u64, seed: u64) -> Customers {
        Customers {
            all: (0..count).map(|_| Customer::default()).collect(),
            connections: Vec::new(),
            asked: Vec::new(),
            by_ticket: BTreeMap::new(),
            heard: 0,
            values: 0,
            rng: Rng::new(seed),
        }
    }

    /// What connections were told since this was called last.
    pub fn hear(&mut self, world: &World) {
        let now = world.now;
        for place in self.heard..world.answers.len() {
            let (_, ticket, outcome) = &world.answers[place];
            let Some(index) = self.by_ticket.get(ticket).copied() else { continue };
            let connection = &mut self.connections[index];
            let mut customers = self.all.iter_mut();
            let mut customer = customers.find(|customer| customer.connection == Some(index));
            match outcome {
                Outcome::More(events) => {
                    for event in events {
                        let known = match event {
                            Event::Session(SessionEvent::Open {
                                session,
                                password,
                                timeout_ms,
                                ..
                            }) => {
                                connection.session = Some(*session);
                                (connection.timeout_ms, connection.opened) = (*timeout_ms, now);
                                Some((*session, *password))
                            }
                            Event::Session(SessionEvent::Expired) => None,
                            _ => continue,
                        };
                        if let Some(customer) = &mut customer {
                            customer.session = known;
                        }
                    }
                }
                _ => {
                    connection.over.get_or_insert(place);
                    connection.ended.get_or_insert(now);
                    if let Some(customer) = customer {
                        customer.connection = None;
                    }
                }
            }
        }
        self.heard = world.answers.len();
    }

    /// A host has stopped: whoever waits for it hears no more.
    pub fn lose(&mut self, world: &World, host: usize) {
        self.hear(world);
        let place = world.answers.len();
        let is_at = |connection: &Connection| connection.at == host && connection.over.is_none();
        for (index, connection) in self.connections.iter_mut().enumerate() {
            if is_at(connection) {
                (connection.over, connection.ended) = (Some(place), Some(world.now));
                let mut customers = self.all.iter_mut();
                if let Some(it) = customers.find(|it| it.connection == Some(index)) {
                    it.connection = None;
                }
            }
        }
        let node = world.hosts[host].me.node;
        self.asked.iter_mut().filter(|it| it.gateway.node == node).for_each(|it| it.is_lost = true);
    }

    /// Somebody does something.
    pub fn step(&mut self, world: &mut World) {
        let index = self.rng.below(self.all.len() as u64) as usize;
        let host = self.rng.below(world.hosts.len() as u64) as usize;
        if self.rng.below(8) == 0 && world.is_up(host) {
            let item = self.item(index);
            return self.ask(world, (host, None), Act::One(item));
        }
        let Some(at) = self.all[index].connection else {
            if world.is_up(host) {
                self.connect(world, index, host);
            }
            return;
        };
        let connection = &self.connections[at];
        if connection.session.is_none() {
            return;
        }
        let (host, ticket) = (connection.at, connection.ticket);
        if self.rng.below(60) == 0 {
            // The connection is closed.
            let connection = &mut self.connections[at];
            connection.over = Some(world.answers.len());
            connection.ended = Some(world.now);
            self.all[index].connection = None;
            return world.turn(host, |process, cx| process.on_unwatch(ticket, cx));
        }
        let elsewhere = self.rng.below(world.hosts.len() as u64) as usize;
        if self.rng.below(40) == 0 && world.is_up(elsewhere) {
            // It goes on elsewhere, though its connection is there, and is asked yet.
            self.all[index].connection = None;
            self.connect(world, index, elsewhere);
        }
        for _ in 0..self.rng.between(1, 4) {
            let act = self.act(index);
            let is_last = act == Act::Close;
            self.ask(world, (host, Some(at)), act);
            if is_last {
                // It has nothing more to ask, and comes again as another one.
                self.all[index] = Customer::default();
                break;
            }
        }
        self.hear(world);
    }

    fn connect(&mut self, world: &mut World, index: usize, host: usize) {
        let session = self.all[index].session;
        let timeout_ms = [2000, 3000, 30_000][self.rng.below(3) as usize];
        let (at, place) = (self.connections.len(), world.answers.len());
        let connect = Connect { session, timeout_ms, seen: Zxid(0), peer: None };
        let ticket = world.connect(host, connect);
        self.connections.push(Connection {
            ticket,
            at: host,
            session: None,
            timeout_ms: 0,
            opened: world.now,
            over: None,
            ended: None,
        });
        self.by_ticket.insert(ticket, at);
        self.all[index].connection = Some(at);
        // It may have been told something in the same turn.
        self.heard = self.heard.min(place);
        self.hear(world);
    }

    fn ask(&mut self, world: &mut World, (host, connection): (usize, Option<usize>), act: Act) {
        let session = connection.and_then(|at| self.connections[at].session);
        let within = Span::millis(self.rng.between(300, 4000));
        let (place, at, gateway) = (world.answers.len(), world.now, world.hosts[host].me);
        let operation = Operation::Tree(Ask { session, opening: None, act: act.clone() }.into());
        let ticket = world.request(host, operation, within);
        let is_lost = false;
        self.asked.push(Asked { ticket, gateway, connection, session, act, place, at, is_lost });
    }

    fn path(&mut self) -> String {
        PATHS[self.rng.below(PATHS.len() as u64) as usize].into()
    }

    fn value(&mut self) -> String {
        self.values += 1;
        format!("v{}", self.values)
    }

    /// One thing, which anybody may ask.
    fn item(&mut self, index: usize) -> Item {
        let (path, value) = (self.path(), self.value());
        match self.rng.below(10) {
            0 | 1 => create(&path, &value),
            2 => sequential(create("/b/n", &value)),
            3 => delete(&path, None),
            4..7 => set(&path, &value, None),
            7 => set(&path, &value, Some(self.rng.below(4) as i32)),
            8 => get(&path),
            _ => exists(&format!("/e{index}")),
        }
    }

    fn act(&mut self, index: usize) -> Act {
        let path = self.path();
        let watch = self.rng.below(2) == 0;
        match self.rng.below(24) {
            0..7 => Act::One(self.item(index)),
            7 => Act::One(ephemeral(&format!("/e{index}"))),
            8 => Act::One(delete(&format!("/e{}", self.rng.below(4)), None)),
            9 => {
                let value = self.value();
                Act::All([set(&path, &value, None), create("/a/z", &value)].into())
            }
            10 => Act::All([delete("/a/z", None)].into()),
            11 => Act::Each([get(&path), children("/"), get("/a/z")].into()),
            12 => Act::Follow { path, recursive: watch },
            13 => {
                use Followed::{Any, Children, Data, Persistent, Recursive};
                let kinds = [Any, Data, Children, Persistent, Recursive];
                let kind = kinds[self.rng.below(5) as usize];
                Act::Unfollow { path, kind, only_check: watch }
            }
            14 if self.rng.below(6) == 0 => Act::Close,
            14 => Act::Ping,
            15 => Act::Sync { path },
            16..18 => Act::One(Item::Children { path, watch }),
            18..21 => Act::One(Item::Exists { path, watch }),
            _ => Act::One(Item::Get { path, watch }),
        }
    }
}
