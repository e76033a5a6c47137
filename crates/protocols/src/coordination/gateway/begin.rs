//! What clients ask begins.

use super::stream::{QUESTIONS_MAX, Waiting};
use super::watches::How;
use super::{Asking, Form, Origin, Then};
use crate::coordination::tree::{Command, Question, Tree, Who};
use crate::coordination::values::{path_of, paths_from};
use crate::coordination::{Context, Coordination, GROUP};
use crate::smr::Machine;
use alloc::boxed::Box;
use alloc::string::String;
use quorate_kernel::ids::Ticket;
use quorate_kernel::limits::{CLIENT_OPERATIONS_MAX, SCAN_KEYS_MAX};
use quorate_kernel::mutant;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::process::Request;
use quorate_kernel::tree::{Act, Ask, Failure, Id, Item, Told, TreeReply};

impl Coordination {
    /// A client asks.
    pub(crate) fn begin(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        let waiting = Waiting { ticket, deadline: request.deadline };
        let writes = match &request.operation {
            Operation::Tree(ask) if ask.act.is_write() => ask.session,
            _ => None,
        };
        let refusal = match self.begin_operation(waiting, request.operation, cx) {
            Ok(()) => return,
            Err(refusal) => refusal,
        };
        // Nothing was done.
        cx.fx.answer_early(ticket, Outcome::Refused(refusal.clone()));
        if let Some(client) = writes.and_then(|session| self.client_of(session)) {
            self.cut(client, refusal, cx);
        }
    }

    /// A write of a client was not done. Its client has asked for what comes behind in this order,
    /// and some of it may be on its way to here already: none of that is done. If the client is
    /// told why, and would be told the same again, it can go on.
    pub(super) fn cut(&mut self, client: Ticket, refusal: Refusal, cx: &mut Context<'_>) {
        let is_told = matches!(
            refusal,
            Refusal::TooLarge { .. } | Refusal::Node(Failure::BadArguments) | Refusal::NoSession
        );
        if !is_told && !mutant!("tree_goes_on_behind_a_refusal") {
            self.end_connection(client, refusal, cx);
        }
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
            Operation::Tree(ask) => self.begin_ask(waiting, *ask, cx),
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
        if !self.gateway.stream.has_room_for(&command) {
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
        let is_replaced = self.gateway.replaced.contains(&session) && ask.act != Act::Ping;
        if is_replaced && !mutant!("tree_hears_replaced_connections") {
            // Its client has come anew, and does not know yet that it has the session again: it has
            // given up what it had asked before, and may ask something else now. That it is there
            // is true whichever connection says so.
            return Err(Refusal::NoSession);
        }
        if let Some(known) = self.gateway.sessions.get_mut(&session) {
            known.heard = cx.now;
            let is_late = ask.opening.is_some_and(|opening| opening != known.attached);
            if is_late && ask.act != Act::Ping && !mutant!("tree_hears_earlier_openings") {
                // Its client has gone on with its session meanwhile, and given that up.
                return Err(Refusal::NoSession);
            }
        }
        let Some((ticket, connection)) = self.gateway.connection(session) else {
            return Err(Refusal::NoSession);
        };
        if !connection.queue.is_empty() {
            if ask.act == Act::Ping && !mutant!("tree_refuses_heartbeats") {
                // It was heard, and promises nothing of what is asked before: so heartbeats of
                // sessions that wait take no room of others.
                self.tell((waiting.ticket, Some(ticket)), Ok(Told::Done), cx);
                return Ok(());
            }
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
        let lengths = items.iter().map(Item::data_bytes);
        match lengths.max().filter(|length| *length > limit) {
            Some(length) => Err(Refusal::TooLarge { what: "value", length, limit }),
            None => Ok(()),
        }
    }

    /// A command waits while there is no room, and while questions before it are not answered, and
    /// cannot go ahead of it: they must not see it.
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
        let is_behind = act.is_write() && !connection.questions.is_empty();
        let waits = is_behind && !mutant!("tree_write_overtakes_read");
        let finds_no_room = act.is_write() && !self.gateway.takes_writes();
        if finds_no_room || (waits && !self.gateway.put_ahead(ticket, cx.now)) {
            if finds_no_room {
                self.gateway.wait_for_room(ticket);
            }
            if let Some(connection) = self.gateway.connections.get_mut(&ticket) {
                connection.queue.push_back((waiting, act));
            }
            return Ok(());
        }
        self.begin_act(waiting, Some(ticket), act, cx)
    }

    /// What waits in a client's queue goes on as far as it can. Behind a write that is refused
    /// nothing is done: its client has asked for both in this order.
    pub(super) fn go_on(&mut self, ticket: Ticket, cx: &mut Context<'_>) {
        while let Some(connection) = self.gateway.connections.get_mut(&ticket)
            && let Some((_, act)) = connection.queue.front()
            && (!act.is_write() || self.gateway.may_write(ticket, cx.now))
            && let Some(connection) = self.gateway.connections.get_mut(&ticket)
            && let Some((waiting, act)) = connection.queue.pop_front()
        {
            let is_write = act.is_write();
            let Err(refusal) = self.begin_act(waiting, Some(ticket), act, cx) else { continue };
            // Nothing was done.
            cx.fx.answer_early(waiting.ticket, Outcome::Refused(refusal.clone()));
            if is_write {
                self.cut(ticket, refusal, cx);
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
        if needs_session(&act) && client.is_none() {
            return Err(Refusal::NoSession);
        }
        let who = self.gateway.who(cx.me, client);
        if act.is_write() {
            return self.begin_write(waiting, client, (who, act), cx);
        }
        let (question, then) = match act {
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
            other => {
                let told = self.done_here(client, who, other);
                self.tell((waiting.ticket, client), told, cx);
                return Ok(());
            }
        };
        let connection = client.and_then(|ticket| self.gateway.connections.get(&ticket));
        let after = connection.map_or(0, |connection| connection.last);
        let asking = Asking { waiting, client, form: Form::Tree, then };
        if let Some(answer) = self.found_here(&question, after, &asking, cx.now) {
            self.on_answered(asking, answer, cx);
            return Ok(());
        }
        let number = self.question(question, after, asking)?;
        if let Some(connection) = client.and_then(|it| self.gateway.connections.get_mut(&it)) {
            connection.questions.insert(number);
        }
        Ok(())
    }

    fn begin_write(
        &mut self,
        waiting: Waiting,
        client: Option<Ticket>,
        (who, act): (Who, Act),
        cx: &Context<'_>,
    ) -> Result<(), Refusal> {
        let command = match act {
            Act::One(item) => Command::One(who, item),
            Act::All(items) => Command::All(who, items),
            _ => Command::Close(who),
        };
        self.begin_command(waiting, client, command, cx)
    }

    /// What this host does by itself.
    fn done_here(&mut self, client: Option<Ticket>, who: Who, act: Act) -> Result<Told, Failure> {
        match (act, client) {
            (Act::Authenticate { scheme, credential }, client) => {
                self.authenticate(client, &scheme, &credential)
            }
            (Act::WhoAmI, _) => {
                let peer = who.peer.map(|ip| Id { scheme: "ip".into(), id: string(ip) });
                Ok(Told::Ids(peer.into_iter().chain(who.ids).collect()))
            }
            // It is there.
            _ => Ok(Told::Done),
        }
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
    fn tell(
        &self,
        (ticket, client): (Ticket, Option<Ticket>),
        told: Result<Told, Failure>,
        cx: &mut Context<'_>,
    ) {
        let reply = TreeReply { zxid: self.gateway.known_to(client), told };
        // It rests on nothing that this node stores.
        cx.fx.answer_early(ticket, Outcome::Tree(Box::new(reply)));
    }
}

/// Whether only the client of a session can ask it.
fn needs_session(act: &Act) -> bool {
    matches!(
        act,
        Act::Follow { .. }
            | Act::Unfollow { .. }
            | Act::Refollow(_)
            | Act::Authenticate { .. }
            | Act::Close
            | Act::Ping
    )
}

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
