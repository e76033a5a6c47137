//! Clients come with or without a session, show who they are, and go.

use super::{Connection, Origin, credential};
use crate::coordination::tree::Command;
use crate::coordination::{Context, Coordination};
use alloc::vec::Vec;
use quorate_kernel::ids::Ticket;
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::time::Span;
use quorate_kernel::tree::{Connect, Failure, SessionEvent, SessionId, Told};
use quorate_kernel::watch::Event;

/// The most clients of a host that have sessions.
const SESSIONS_MAX: usize = 65_536;
/// How many credentials one client may show.
const IDS_MAX: usize = 16;

impl Coordination {
    /// A client shows who it is.
    pub(super) fn authenticate(
        &mut self,
        client: Option<Ticket>,
        scheme: &str,
        shown: &[u8],
    ) -> Result<Told, Failure> {
        let connection = client.and_then(|ticket| self.gateway.connections.get_mut(&ticket));
        let Some(connection) = connection else { return Err(Failure::SessionExpired) };
        let id = credential(scheme, shown)?;
        if let Some(id) = id.filter(|id| !connection.ids.contains(id)) {
            if connection.ids.len() >= IDS_MAX {
                return Err(Failure::AuthFailed);
            }
            connection.ids.push(id);
        }
        Ok(Told::Done)
    }

    /// A client wants a session.
    pub(crate) fn connect(&mut self, ticket: Ticket, connect: Connect, cx: &mut Context<'_>) {
        let until = cx.now + self.patience(&connect);
        let connection = Connection { peer: connect.peer, until, ..Connection::default() };
        let command = match connect.session {
            None => {
                let (least, most) = self.settings.timeouts;
                let timeout_ms = connect.timeout_ms.clamp(least, most);
                Command::Open { gateway: cx.me, timeout_ms }
            }
            Some((session, shown)) => {
                let password = super::password(&self.settings.key, cx.lane, session);
                // Whoever compares bytes one after the other tells how many are right by the time
                // that it takes; the sum of differences does not.
                let differ =
                    password.iter().zip(shown).fold(0, |all, (one, other)| all | (one ^ other));
                if differ != 0 && !mutant!("tree_any_password") {
                    return self.expire_client(ticket, cx);
                }
                Command::Attach { gateway: cx.me, session }
            }
        };
        self.gateway.connections.insert(ticket, connection);
        let origin = Some(Origin::Open(ticket, connect));
        let refused = if self.hosts.are_closing() {
            Some(Refusal::Stopping)
        } else if self.gateway.connections.len() > SESSIONS_MAX {
            Some(Refusal::Overloaded)
        } else {
            self.command(command, origin, cx).err()
        };
        if let Some(refusal) = refused {
            self.end_connection(ticket, refusal, cx);
        }
    }

    /// How long a client waits for a session: as long as it may be silent when it has one.
    fn patience(&self, connect: &Connect) -> Span {
        let (least, most) = self.settings.timeouts;
        Span::millis(u64::from(connect.timeout_ms.clamp(least, most)))
    }

    /// Clients that have waited for sessions for too long look elsewhere.
    pub(super) fn end_waiting(&mut self, cx: &mut Context<'_>) {
        let connections = self.gateway.connections.iter();
        let waits = connections.filter(|(_, it)| it.session.is_none() && it.until <= cx.now);
        for ticket in waits.map(|(ticket, _)| *ticket).collect::<Vec<Ticket>>() {
            self.end_connection(ticket, Refusal::NoRoute, cx);
        }
    }

    /// Tells a client that its session has expired; it is told nothing more.
    pub(super) fn expire_client(&mut self, ticket: Ticket, cx: &mut Context<'_>) {
        self.tell_events(ticket, cx);
        let event = Event::Session(SessionEvent::Expired);
        // It rests on what a majority has, or on what the client has shown.
        cx.fx.answer_early(ticket, Outcome::More(Vec::from([event])));
        self.let_go(ticket, &Refusal::NoSession, cx);
        // Nor does this rest on anything that this node stores.
        cx.fx.answer_early(ticket, Outcome::Refused(Refusal::NoSession));
    }

    /// A client that is answered, or is given up, is told behind that if its session has ended, by
    /// what it had asked or otherwise: nothing else is told of it any more.
    pub(super) fn end_if_over(&mut self, client: Option<Ticket>, cx: &mut Context<'_>) {
        let Some(client) = client.filter(|_| !mutant!("tree_ends_are_not_told")) else { return };
        let session = self.gateway.connections.get(&client).and_then(|it| it.session);
        if session.is_some_and(|it| !self.gateway.sessions.contains_key(&it)) {
            self.expire_client(client, cx);
        }
    }

    /// Ends a client's connection: it may go on with its session at another host, or here.
    pub(super) fn end_connection(
        &mut self,
        ticket: Ticket,
        refusal: Refusal,
        cx: &mut Context<'_>,
    ) {
        self.tell_events(ticket, cx);
        // That there is no session any more is true of this connection alone: it is elsewhere.
        let is_moved = refusal == Refusal::NoSession && !mutant!("tree_moved_is_over");
        self.let_go(ticket, if is_moved { &Refusal::NoRoute } else { &refusal }, cx);
        // It rests on nothing that this node stores.
        cx.fx.answer_early(ticket, Outcome::Refused(refusal));
    }

    /// A client is gone: its session goes on without it for a while.
    pub(crate) fn disconnect(&mut self, ticket: Ticket, cx: &mut Context<'_>) {
        self.let_go(ticket, &Refusal::NoRoute, cx);
    }

    /// The same; what has waited of what it asked is refused so. Where its session is there nobody
    /// is told that it has ended.
    fn let_go(&mut self, ticket: Ticket, refusal: &Refusal, cx: &mut Context<'_>) {
        self.gateway.watches.drop_client(ticket);
        let Some(connection) = self.gateway.connections.remove(&ticket) else { return };
        connection.turn.map(|turn| self.gateway.turns.remove(&turn));
        if let Some(session) = connection.session.and_then(|it| self.gateway.sessions.get_mut(&it))
            && session.connection == Some(ticket)
        {
            session.connection = None;
        }
        if connection.session.is_none() && !mutant!("tree_attaches_late") {
            // A session is not to be taken away from where its client may be by then.
            let is_its = |origin: &Origin| matches!(origin, Origin::Open(of, _) if *of == ticket);
            self.gateway.stream.withdraw(is_its, &Command::NOTHING);
        }
        for (waiting, _) in connection.queue {
            // Nothing was done.
            cx.fx.answer_early(waiting.ticket, Outcome::Refused(refusal.clone()));
        }
    }

    /// The connection that a session has.
    pub(super) fn client_of(&self, session: SessionId) -> Option<Ticket> {
        self.gateway.sessions.get(&session)?.connection
    }
}
