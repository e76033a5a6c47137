//! What clients ask begins.

use super::stream::{QUESTIONS_MAX, Waiting};
use super::watches::How;
use super::{Asking, Connection, Form, Origin, Then};
use crate::coordination::lane::gateway::credential;
use crate::coordination::lane::keys::{path_of, paths_from};
use crate::coordination::lane::{Context, Coordination, GROUP};
use crate::coordination::tree::{Command, Question, Tree};
use crate::smr::Machine;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::ids::Ticket;
use quorate_kernel::limits::{CLIENT_OPERATIONS_MAX, SCAN_KEYS_MAX};
use quorate_kernel::mutant;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::process::Request;
use quorate_kernel::tree::{
    Act, Ask, Connect, Failure, Id, Item, Reply, SessionEvent, SessionId, Told,
};
use quorate_kernel::watch::Event;

impl Coordination {
    /// A client asks.
    pub(crate) fn begin(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        let waiting = Waiting { ticket, deadline: request.deadline };
        let refusal = match self.begin_operation(waiting, request.operation, cx) {
            Ok(()) => return,
            Err(refusal) => refusal,
        };
        // Nothing was done.
        cx.fx.answer_early(ticket, Outcome::Refused(refusal));
    }

    fn begin_operation(
        &mut self,
        waiting: Waiting,
        operation: Operation,
        cx: &mut Context<'_>,
    ) -> Result<(), Refusal> {
        if self.hosts.are_closing() {
            return Err(Refusal::Stopping);
        }
        if self.routes.primary(GROUP).is_none() {
            return Err(Refusal::NoRoute);
        }
        let who = || self.gateway.who(cx.me, None);
        match operation {
            Operation::Tree(ask) => return self.begin_ask(waiting, *ask, cx),
            Operation::Get { key, .. } => {
                let item = Item::Get { path: path_of(&key)?, watch: false };
                let question = Question::One(who(), item);
                self.ask_plain(waiting, question, Form::Value)
            }
            Operation::Put { key, value, .. } => {
                let (length, limit) = (value.len(), self.settings.value_bytes_max);
                if length > limit {
                    return Err(Refusal::TooLarge { what: "value", length, limit });
                }
                let command = Command::Put(who(), path_of(&key)?, value);
                self.command_plain(waiting, command, Form::Written, cx)
            }
            Operation::Delete { key, .. } => {
                let item = Item::Delete { path: path_of(&key)?, version: None };
                self.command_plain(waiting, Command::One(who(), item), Form::Deleted, cx)
            }
            Operation::Scan { from, limit } => {
                let most = u32::try_from(SCAN_KEYS_MAX).unwrap_or(u32::MAX);
                let question = Question::List(paths_from(&from), limit.clamp(1, most));
                self.ask_plain(waiting, question, Form::Page)
            }
            // Doors refuse what the engine cannot do.
            _ => Err(Refusal::Unsupported),
        }
    }

    fn ask_plain(
        &mut self,
        waiting: Waiting,
        question: Question,
        form: Form,
    ) -> Result<(), Refusal> {
        let asking = Asking { waiting, client: None, form, then: Then::Nothing };
        self.question(question, 0, asking).map(|_| ())
    }

    fn command_plain(
        &mut self,
        waiting: Waiting,
        command: Command,
        form: Form,
        cx: &Context<'_>,
    ) -> Result<(), Refusal> {
        let asking = Asking { waiting, client: None, form, then: Then::Nothing };
        self.command(command, Some(Origin::Operation(asking)), cx).map(|_| ())
    }

    /// Puts a command into the stream; its number.
    pub(super) fn command(
        &mut self,
        command: Command,
        origin: Option<Origin>,
        cx: &Context<'_>,
    ) -> Result<u64, Refusal> {
        if !self.gateway.stream.has_room() {
            return Err(Refusal::Overloaded);
        }
        if !Tree::is_sound(&command) {
            // Nobody would put it into the log.
            return Err(Refusal::Node(Failure::BadArguments));
        }
        let bytes = command.bytes();
        Ok(self.gateway.stream.command(command, bytes, origin, cx.now))
    }

    fn question(&mut self, question: Question, after: u64, asking: Asking) -> Result<u64, Refusal> {
        if self.gateway.stream.questions() >= QUESTIONS_MAX {
            return Err(Refusal::Overloaded);
        }
        let origin = Origin::Operation(asking);
        self.gateway.begun += usize::from(origin.begins());
        Ok(self.gateway.stream.question(question, after, origin))
    }

    fn begin_ask(
        &mut self,
        waiting: Waiting,
        ask: Ask,
        cx: &mut Context<'_>,
    ) -> Result<(), Refusal> {
        self.is_within(&ask.act)?;
        let Some(session) = ask.session else {
            return self.begin_act(waiting, None, ask.act, cx);
        };
        if let Some(known) = self.gateway.sessions.get_mut(&session) {
            known.heard = cx.now;
        }
        let Some((ticket, connection)) = self.gateway.connection(session) else {
            return Err(Refusal::NoSession);
        };
        if !connection.queue.is_empty() {
            if connection.queue.len() >= CLIENT_OPERATIONS_MAX {
                return Err(Refusal::Overloaded);
            }
            connection.queue.push_back((waiting, ask.act));
            return Ok(());
        }
        self.begin_or_wait(waiting, ticket, ask.act, cx)
    }

    /// Whether what is asked is within the keyspace's limits.
    fn is_within(&self, act: &Act) -> Result<(), Refusal> {
        let items = match act {
            Act::One(item) => core::slice::from_ref(item),
            Act::All(items) | Act::Each(items) => &items[..],
            _ => &[],
        };
        let limit = self.settings.value_bytes_max;
        let lengths = items.iter().map(|item| match item {
            Item::Create { data, .. } | Item::Set { data, .. } => data.len(),
            _ => 0,
        });
        match lengths.max().filter(|length| *length > limit) {
            Some(length) => Err(Refusal::TooLarge { what: "value", length, limit }),
            None => Ok(()),
        }
    }

    /// A command waits while questions before it are not answered: they must not see it.
    fn begin_or_wait(
        &mut self,
        waiting: Waiting,
        ticket: Ticket,
        act: Act,
        cx: &mut Context<'_>,
    ) -> Result<(), Refusal> {
        let Some(connection) = self.gateway.connections.get_mut(&ticket) else {
            return Err(Refusal::NoSession);
        };
        let waits = act.is_write() && !connection.questions.is_empty();
        if waits && !mutant!("tree_write_overtakes_read") {
            connection.queue.push_back((waiting, act));
            return Ok(());
        }
        self.begin_act(waiting, Some(ticket), act, cx)
    }

    /// What waits in a client's queue goes on as far as it can.
    pub(super) fn go_on(&mut self, ticket: Ticket, cx: &mut Context<'_>) {
        while let Some(connection) = self.gateway.connections.get_mut(&ticket)
            && let Some((_, act)) = connection.queue.front()
            && !(act.is_write() && !connection.questions.is_empty())
            && let Some((waiting, act)) = connection.queue.pop_front()
        {
            if let Err(refusal) = self.begin_act(waiting, Some(ticket), act, cx) {
                // Nothing was done.
                cx.fx.answer_early(waiting.ticket, Outcome::Refused(refusal));
            }
        }
    }

    fn begin_act(
        &mut self,
        waiting: Waiting,
        client: Option<Ticket>,
        act: Act,
        cx: &mut Context<'_>,
    ) -> Result<(), Refusal> {
        let who = self.gateway.who(cx.me, client);
        let needs_session = matches!(
            act,
            Act::Follow { .. }
                | Act::Unfollow { .. }
                | Act::Refollow(_)
                | Act::Authenticate { .. }
                | Act::Close
                | Act::Ping
        );
        if needs_session && client.is_none() {
            return Err(Refusal::NoSession);
        }
        let is_write = act.is_write();
        let (question, then) = match act {
            Act::One(item) if is_write => {
                return self.begin_command(waiting, client, Command::One(who, item), cx);
            }
            Act::All(items) if is_write => {
                return self.begin_command(waiting, client, Command::All(who, items), cx);
            }
            Act::Close => {
                self.begin_command(waiting, client, Command::Close(who), cx)?;
                if let Some(connection) =
                    client.and_then(|it| self.gateway.connections.get_mut(&it))
                {
                    connection.is_closing = true;
                }
                return Ok(());
            }
            Act::One(item) => {
                let then = watched(&item).filter(|_| client.is_some());
                (Question::One(who, item), then.unwrap_or(Then::Nothing))
            }
            Act::All(items) => (Question::All(who, items), Then::Nothing),
            Act::Each(items) => (Question::Each(who, items), Then::Nothing),
            Act::Sync { .. } => (Question::Sync(who), Then::Nothing),
            Act::Follow { path, recursive } => {
                let how = if recursive { How::Recursive } else { How::Persistent };
                (Question::Sync(who), Then::Watch(path, how, true))
            }
            Act::Refollow(refollow) => {
                (Question::Refollow(who, refollow.clone()), Then::Refollow(refollow))
            }
            Act::Unfollow { path, kind, only_check } => {
                // What was asked before it may begin to follow, and end it.
                (Question::Sync(who), Then::Unfollow(path, kind, only_check))
            }
            Act::Authenticate { scheme, credential: shown } => {
                let told = self.authenticate(client, &scheme, &shown);
                self.tell(waiting.ticket, told, cx);
                return Ok(());
            }
            Act::WhoAmI => {
                let peer = who.peer.map(|ip| Id { scheme: "ip".into(), id: string(ip) });
                let ids: Vec<Id> = peer.into_iter().chain(who.ids).collect();
                self.tell(waiting.ticket, Ok(Told::Ids(ids)), cx);
                return Ok(());
            }
            Act::Ping => {
                self.tell(waiting.ticket, Ok(Told::Done), cx);
                return Ok(());
            }
        };
        let connection = client.and_then(|ticket| self.gateway.connections.get(&ticket));
        let after = connection.map_or(0, |connection| connection.last);
        let asking = Asking { waiting, client, form: Form::Tree, then };
        let number = self.question(question, after, asking)?;
        if let Some(connection) = client.and_then(|it| self.gateway.connections.get_mut(&it)) {
            connection.questions.insert(number);
        }
        Ok(())
    }

    fn begin_command(
        &mut self,
        waiting: Waiting,
        client: Option<Ticket>,
        command: Command,
        cx: &Context<'_>,
    ) -> Result<(), Refusal> {
        let asking = Asking { waiting, client, form: Form::Tree, then: Then::Nothing };
        let number = self.command(command, Some(Origin::Operation(asking)), cx)?;
        if let Some(connection) = client.and_then(|it| self.gateway.connections.get_mut(&it)) {
            connection.last = number;
        }
        Ok(())
    }

    /// Tells what this host knows by itself.
    fn tell(&self, ticket: Ticket, told: Result<Told, Failure>, cx: &mut Context<'_>) {
        let reply = Reply { zxid: self.gateway.zxid, told };
        // It rests on nothing that this node stores.
        cx.fx.answer_early(ticket, Outcome::Tree(Box::new(reply)));
    }

    fn authenticate(
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
        let connection = Connection { peer: connect.peer, ..Connection::default() };
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

    /// Tells a client that its session has expired; it is told nothing more.
    pub(super) fn expire_client(&mut self, ticket: Ticket, cx: &mut Context<'_>) {
        let event = Event::Session(SessionEvent::Expired);
        // It rests on what a majority has, or on what the client has shown.
        cx.fx.answer_early(ticket, Outcome::More(Vec::from([event])));
        self.end_connection(ticket, Refusal::NoSession, cx);
    }

    /// Ends a client's connection: it may go on with its session at another host, or here.
    pub(super) fn end_connection(
        &mut self,
        ticket: Ticket,
        refusal: Refusal,
        cx: &mut Context<'_>,
    ) {
        self.disconnect(ticket, cx);
        // It rests on nothing that this node stores.
        cx.fx.answer_early(ticket, Outcome::Refused(refusal));
    }

    /// A client is gone: its session goes on without it for a while.
    pub(crate) fn disconnect(&mut self, ticket: Ticket, cx: &mut Context<'_>) {
        self.gateway.watches.drop_client(ticket);
        let Some(connection) = self.gateway.connections.remove(&ticket) else { return };
        if let Some(session) = connection.session.and_then(|it| self.gateway.sessions.get_mut(&it))
            && session.connection == Some(ticket)
        {
            session.connection = None;
        }
        for (waiting, _) in connection.queue {
            // Nothing was done.
            cx.fx.answer_early(waiting.ticket, Outcome::Refused(Refusal::NoSession));
        }
    }

    /// The connection that a session has.
    pub(super) fn client_of(&self, session: SessionId) -> Option<Ticket> {
        self.gateway.sessions.get(&session)?.connection
    }
}

/// The most clients of a host that have sessions.
const SESSIONS_MAX: usize = 65_536;
/// How many credentials one client may show.
const IDS_MAX: usize = 16;

fn string(ip: core::net::IpAddr) -> String {
    alloc::format!("{ip}")
}

/// What the answer of a question begins to follow.
fn watched(item: &Item) -> Option<Then> {
    let (path, how, anyway) = match item {
        Item::Exists { path, watch: true } => (path, How::Data, true),
        Item::Get { path, watch: true } => (path, How::Data, false),
        Item::Children { path, watch: true } => (path, How::Children, false),
        _ => return None,
    };
    Some(Then::Watch(path.clone(), how, anyway))
}
