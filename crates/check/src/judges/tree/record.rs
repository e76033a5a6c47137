//! What clients of a tree asked and were told: operations, connections, and events of watches.
//!
//! A client with a session has it at one host at a time, through a connection. What comes to the
//! client on a connection is recorded in the order in which it comes: answers and events are judged
//! by it.

use crate::history::{ClientId, Completion};
use alloc::vec::Vec;
use quorate_kernel::operation::Operation;
use quorate_kernel::time::Time;
use quorate_kernel::tree::{Act, Changed, Item, SessionId};

/// Names a connection of a client that has a session, or wants one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

/// Names an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskedId(pub u32);

/// The place of what never came.
pub(super) const NEVER: usize = usize::MAX;

/// One operation.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// Who asked.
    pub client: ClientId,
    /// For which session, through which connection.
    pub by: Option<(ConnectionId, SessionId)>,
    /// What was asked.
    pub operation: Operation,
    /// When.
    pub invoked: Time,
    /// What was told, and when; nothing of what was still open in the end.
    pub completed: Option<(Time, Completion)>,
    pub(super) began: usize,
    pub(super) ended: usize,
}

/// One connection.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Whose.
    pub client: ClientId,
    /// The session that the client wants to go on with.
    pub wanted: Option<SessionId>,
    pub(super) began: usize,
    pub(super) began_at: Time,
    /// The session that it has, and how long it may be silent, in milliseconds.
    pub opened: Option<(SessionId, u32)>,
    /// When the client was told that its session had ended.
    pub(super) expired: Option<usize>,
}

/// Something that happened, at its place among all.
#[derive(Clone, Debug)]
pub(super) enum Event {
    /// An operation begins.
    Asked(usize),
    /// An operation has ended.
    Answered(usize),
    /// A client wants a session.
    Connects(usize),
    /// It has one.
    Opened(usize),
    /// A session has ended, or a connection: nothing more comes of it.
    Ended,
    /// A node has changed that the session follows.
    Changed(usize, Changed),
}

/// All that clients of a tree asked and were told.
#[derive(Clone, Debug, Default)]
pub struct Record {
    pub(super) asked: Vec<Invocation>,
    pub(super) connections: Vec<Connection>,
    pub(super) events: Vec<(Time, Event)>,
    /// Whether nobody knows how the tree was at the beginning.
    pub(super) is_of_rest: bool,
    /// Whether hosts answer what sessions read, in the order of each session alone.
    pub(super) has_session_reads: bool,
}

impl Record {
    /// A record that begins after something was lost that had been acknowledged: nobody knows what
    /// of the tree is left, nor how many changes there were. What it shows is not judged then, but
    /// that it is one order, in time and for each session.
    #[must_use]
    pub fn of_rest() -> Record {
        Record { is_of_rest: true, ..Record::default() }
    }

    /// A record that begins when all of this one's tree is lost while its clients and some hosts
    /// go on: sessions are over, and the tree is empty. What was asked without a session since a
    /// time, and was not answered, may be done in the new tree; and a session may begin in it whose
    /// client has given up.
    #[must_use]
    pub fn anew(&self, since: Time, now: Time) -> Record {
        let mut next = Record::default();
        let gave_up =
            |it: &&Connection| it.wanted.is_none() && it.opened.is_none() && it.began_at >= since;
        for connection in self.connections.iter().filter(gave_up) {
            next.connect(connection.client, None, now);
        }
        let is_open = |it: &&Invocation| {
            it.by.is_none() && it.invoked >= since && *it.completion() == Completion::Unknown
        };
        for asked in self.asked.iter().filter(is_open) {
            next.ask(asked.client, None, asked.operation.clone(), now);
        }
        next
    }

    /// The same of a tree whose hosts answer what sessions read: that may be older than what others
    /// were told, and never than what its own session was.
    #[must_use]
    pub fn with_session_reads(self, has_session_reads: bool) -> Record {
        Record { has_session_reads, ..self }
    }

    /// Whether an operation may show less than what was known when it was asked.
    pub(super) fn may_be_old(&self, asked: &Invocation) -> bool {
        let is_read = |item: &Item| !item.is_write() && !matches!(item, Item::Check { .. });
        let are_reads = match asked.act() {
            Some(Act::One(item)) => is_read(item),
            Some(Act::Each(items)) => items.iter().all(is_read),
            _ => false,
        };
        self.has_session_reads && are_reads && asked.by.is_some()
    }

    fn event(&mut self, time: Time, event: Event) -> usize {
        let is_later = self.events.last().is_none_or(|(last, _)| *last <= time);
        assert!(is_later, "what happens is recorded as it happens");
        self.events.push((time, event));
        self.events.len() - 1
    }

    /// Whether nothing was asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// A client connects for a session: for this one, or for a new one.
    pub fn connect(
        &mut self,
        client: ClientId,
        wanted: Option<SessionId>,
        time: Time,
    ) -> ConnectionId {
        let index = self.connections.len();
        let began = self.event(time, Event::Connects(index));
        let (opened, expired) = (None, None);
        let connection = Connection { client, wanted, began, began_at: time, opened, expired };
        self.connections.push(connection);
        ConnectionId(u32::try_from(index).expect("connections are fewer than events"))
    }

    /// The client is told that it has its session.
    ///
    /// # Panics
    /// It was told before.
    pub fn opened(&mut self, of: ConnectionId, session: SessionId, timeout_ms: u32, time: Time) {
        let connection = &mut self.connections[of.0 as usize];
        assert!(connection.opened.is_none(), "a connection has one session");
        connection.opened = Some((session, timeout_ms));
        self.event(time, Event::Opened(of.0 as usize));
    }

    /// The client is told that its session has ended.
    pub fn expired(&mut self, of: ConnectionId, time: Time) {
        let place = self.event(time, Event::Ended);
        self.connections[of.0 as usize].expired = Some(place);
    }

    /// The client is told that a node has changed.
    pub fn changed(&mut self, of: ConnectionId, changed: Changed, time: Time) {
        self.event(time, Event::Changed(of.0 as usize, changed));
    }

    /// A client asks. What it asks for a session goes through the connection that has it.
    ///
    /// # Panics
    /// The connection has no session.
    pub fn ask(
        &mut self,
        client: ClientId,
        connection: Option<ConnectionId>,
        operation: Operation,
        time: Time,
    ) -> AskedId {
        let index = self.asked.len();
        let began = self.event(time, Event::Asked(index));
        let by = connection.map(|of| {
            let opened = self.connections[of.0 as usize].opened;
            (of, opened.expect("who asks for a session has one").0)
        });
        let (invoked, completed, ended) = (time, None, NEVER);
        self.asked.push(Invocation { client, by, operation, invoked, completed, began, ended });
        AskedId(u32::try_from(index).expect("operations are fewer than events"))
    }

    /// A client is told what became of what it asked, or gives up ([`Completion::Unknown`]).
    ///
    /// # Panics
    /// It was told before, or cannot be told this.
    pub fn answer(&mut self, of: AskedId, completion: impl Into<Completion>, time: Time) {
        let ended = self.event(time, Event::Answered(of.0 as usize));
        let asked = &mut self.asked[of.0 as usize];
        let completion = completion.into();
        assert!(asked.completed.is_none(), "an operation completes once");
        assert!(completion.fits(&asked.operation), "the completion fits the operation");
        asked.ended = if completion == Completion::Unknown { NEVER } else { ended };
        asked.completed = Some((time, completion));
    }
}

impl Invocation {
    /// What was told; what was still open in the end is unknown.
    #[must_use]
    pub fn completion(&self) -> &Completion {
        self.completed.as_ref().map_or(&Completion::Unknown, |(_, completion)| completion)
    }

    /// For which session.
    pub(super) fn session(&self) -> Option<SessionId> {
        self.by.map(|(_, session)| session)
    }

    /// What is done with the tree, if it is asked in its words.
    pub(super) fn act(&self) -> Option<&Act> {
        match &self.operation {
            Operation::Tree(ask) => Some(&ask.act),
            _ => None,
        }
    }
}
