//! Gateways: each host is one, for the clients that are connected to it.
//!
//! A client's session is at one gateway. What it asks is done in the order in which it is asked:
//! commands go into one stream, a question is answered with what the commands before it have left,
//! and goes ahead of those behind it ([`ahead`]).

mod ahead;
mod begin;
mod connect;
mod credential;
mod events;
mod follow;
mod hear;
pub mod here;
mod life;
mod room;
mod session;
pub mod stream;
mod tick;
pub mod watches;

pub use credential::credential;
pub use session::password;

use crate::coordination::message::GatewayAsks;
use crate::coordination::tree::{Command, Who};
use ahead::Expected;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::net::IpAddr;
use events::Events;
use here::Here;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::tree::{Act, Connect, Followed, Id, Refollow, SessionId, Zxid};
use stream::{Stream, Waiting};
use watches::{How, Watches};

/// What clients of a host have in hand.
#[derive(Debug)]
pub struct Gateway {
    stream: Stream<Origin>,
    watches: Watches,
    /// What of it clients are still to be told of the message that is heard.
    events: Events,
    /// How large answers are.
    expected: Expected,
    /// Questions on their way whose answers begin a watch.
    begun: usize,
    /// The number of the last change that was told, and the newest change of a node.
    seen: u64,
    zxid: Zxid,
    /// What this host has answered by itself, and how much of it in this turn.
    here: Here,
    connections: BTreeMap<Ticket, Connection>,
    /// The clients whose writes wait for room, by their turns, and the last turn that was given.
    turns: BTreeMap<u64, Ticket>,
    last_turn: u64,
    sessions: BTreeMap<SessionId, Session>,
    /// Sessions that have come here in this turn while they had another connection here: what is
    /// asked for them in it was sent on that one.
    replaced: BTreeSet<SessionId>,
    /// All that clients had sent by then was heard: it is then that one is found to be silent.
    judged: Time,
    /// The primary could not be reached for a while.
    was_unsure: bool,
}

/// A client that is connected, with a session or on its way to one. Its ticket names it.
#[derive(Debug, Default)]
struct Connection {
    session: Option<SessionId>,
    /// Who it has shown that it is.
    ids: Vec<Id>,
    peer: Option<IpAddr>,
    /// Until when it waits for a session.
    until: Time,
    /// Commands that wait for room, or for answers of questions before them, as those cannot go
    /// ahead; and what comes behind.
    queue: VecDeque<(Waiting, Act)>,
    /// Its turn, if it waits for room.
    turn: Option<u64>,
    /// The questions that are not answered, without those that went ahead of commands.
    questions: BTreeSet<u64>,
    /// Its last command, or question that went ahead of one.
    last: u64,
    /// The newest change that this host may have shown it by itself.
    shown: Zxid,
}

/// A session that is at this gateway.
#[derive(Debug)]
struct Session {
    connection: Option<Ticket>,
    /// How often it was attached.
    attached: u64,
    timeout: Span,
    /// When its client was last heard.
    heard: Time,
    is_expiring: bool,
}

/// Who waits for an answer.
#[derive(Debug)]
enum Origin {
    /// An operation.
    Operation(Asking),
    /// A client that wants a session.
    Open(Ticket, Connect),
    /// A session that seems to be over, and how often it was attached then.
    Expire(SessionId, u64),
}

/// An operation in hand.
#[derive(Debug)]
struct Asking {
    waiting: Waiting,
    /// The connection of the session that it is for.
    client: Option<Ticket>,
    form: Form,
    then: Then,
}

/// What the answer is told as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As it is.
    Tree,
    /// What a node has, as a value.
    Value,
    /// A value was put.
    Written,
    /// A value was deleted.
    Deleted,
    /// Some keys.
    Page,
}

/// What an answer begins.
#[derive(Debug)]
enum Then {
    Nothing,
    /// The client follows a node if it is there, or, if that is said, in any case.
    Watch(String, How, bool),
    /// The client follows this of a node no more, or, if that is said, is told whether it does.
    Unfollow(String, Followed, bool),
    /// The client follows these again.
    Refollow(Refollow),
}

impl Gateway {
    /// A host starts.
    pub fn new(now: Time) -> Gateway {
        Gateway {
            stream: Stream::new(now),
            watches: Watches::default(),
            events: Events::default(),
            expected: Expected::default(),
            begun: 0,
            seen: 0,
            zxid: Zxid(0),
            here: Here::default(),
            connections: BTreeMap::new(),
            turns: BTreeMap::new(),
            last_turn: 0,
            sessions: BTreeMap::new(),
            replaced: BTreeSet::new(),
            judged: now,
            was_unsure: false,
        }
    }

    /// The turn ends: clients are told which of their connections have ended, and ask no more
    /// there.
    pub fn turn_end(&mut self) {
        self.replaced.clear();
        self.here.turn_end();
    }

    /// How many sessions are here.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// How much is followed.
    pub fn followed(&self) -> usize {
        self.watches.len()
    }

    /// How many clients follow something, and how many nodes are followed.
    pub fn followers(&self) -> (usize, usize) {
        self.watches.followers()
    }

    /// The clients of this host follow no more than this.
    #[cfg(test)]
    pub fn allow_watches(&mut self, most: usize) {
        self.watches.allow(most);
    }

    /// How many operations wait for the primary.
    pub fn waiting(&self) -> (usize, usize) {
        (self.stream.commands(), self.stream.questions())
    }

    /// The link to a host was reset.
    pub fn unlinked(&mut self, node: NodeId) {
        self.stream.unlinked(node);
    }

    /// Whoever leads says so: all is asked of it, also if it was asked before it led.
    pub fn renew(&mut self) {
        self.stream.renew();
    }

    /// What is asked of whoever leads.
    pub fn asks(&mut self, primary: NodeId, now: Time) -> Vec<GatewayAsks> {
        let (seen, follows) = (self.seen, self.follows());
        self.stream.asks(primary, seen, follows, now)
    }

    /// Whether all changes are to be told.
    fn follows(&self) -> bool {
        !self.watches.is_empty() || self.begun > 0
    }

    /// The connection that a session has.
    fn connection(&mut self, session: SessionId) -> Option<(Ticket, &mut Connection)> {
        let ticket = self.sessions.get(&session)?.connection?;
        Some((ticket, self.connections.get_mut(&ticket)?))
    }

    /// The newest change that a client here can know of.
    fn known_to(&self, client: Option<Ticket>) -> Zxid {
        let connection = client.and_then(|ticket| self.connections.get(&ticket));
        connection.map_or(self.zxid, |it| it.shown.max(self.zxid))
    }

    /// A question of a client is not open any more: what waits behind it may go on.
    fn end_question(&mut self, client: Ticket, number: u64) {
        if let Some(connection) = self.connections.get_mut(&client) {
            connection.questions.remove(&number);
        }
    }

    /// Whether a client waits for the answer that its session ends.
    fn is_closing(&self, client: Ticket) -> bool {
        self.stream.has_open(|command, origin| {
            let is_its =
                matches!(origin, Origin::Operation(asking) if asking.client == Some(client));
            is_its && matches!(command, Command::Close(_))
        })
    }

    /// Who asks.
    fn who(&self, gateway: Incarnation, client: Option<Ticket>) -> Who {
        let connection = client.and_then(|ticket| self.connections.get(&ticket));
        Who {
            gateway,
            session: connection.and_then(|it| it.session),
            ids: connection.map(|it| it.ids.clone()).unwrap_or_default(),
            peer: connection.and_then(|it| it.peer),
        }
    }

    /// Asserts what must hold.
    pub fn check(&self) {
        self.watches.check();
        invariant!(self.events.is_empty(), "clients are told all of a message when it was heard");
        for (ticket, connection) in &self.connections {
            let of = connection.session.and_then(|it| self.sessions.get(&it));
            let is_known = of.is_none_or(|it| it.connection == Some(*ticket));
            invariant!(is_known, "a session has one connection, which knows it");
        }
        for (id, session) in &self.sessions {
            let of = session.connection.and_then(|it| self.connections.get(&it));
            let knows =
                session.connection.is_none() || of.is_some_and(|it| it.session == Some(*id));
            invariant!(knows, "a session's connection is there, and knows it");
        }
        let waits = self.connections.iter().filter_map(|(ticket, it)| Some((it.turn?, *ticket)));
        let waits: BTreeMap<u64, Ticket> = waits.collect();
        invariant!(waits == self.turns, "who waits for room has a turn, and nobody else");
        let here = self.watches.clients();
        let is_here = |ticket: &Ticket| self.connections.contains_key(ticket);
        invariant!(here.iter().all(is_here), "who is gone follows nothing");
    }
}

impl Origin {
    /// Whether an answer begins a watch.
    fn begins(&self) -> bool {
        matches!(self, Origin::Operation(Asking { then: Then::Watch(..) | Then::Refollow(_), .. }))
    }
}
