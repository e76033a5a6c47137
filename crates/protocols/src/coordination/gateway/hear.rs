//! What the primary tells is told to clients, in its order.

use super::stream::Waiting;
use super::{Asking, Form, Origin, Session, Then};
use crate::coordination::message::{GatewayNews, News};
use crate::coordination::tree::{Answer, Change, grants};
use crate::coordination::values::{cursor_of, is_key, key_of};
use crate::coordination::{Context, Coordination};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::probe;
use quorate_kernel::time::Span;
use quorate_kernel::tree::{self, Connect, Failure, SessionEvent, SessionId, TreeReply, Zxid};
use quorate_kernel::watch::Event;

impl Coordination {
    /// The primary tells something.
    pub(crate) fn on_told(&mut self, from: Incarnation, told: GatewayNews, cx: &mut Context<'_>) {
        if !self.gateway.stream.is_asked(from.node) && !mutant!("tree_anybody_tells") {
            return;
        }
        if told.has_ended {
            // A later start of this node is known, so this one has ended and does not know it yet.
            return self.end_all(cx);
        }
        if self.gateway.stream.life() != Some(told.life) {
            return self.begin_life(told.life, told.done, cx);
        }
        self.gateway.stream.heard(from.node, told.touch, !told.news.is_empty(), cx.now);
        self.gateway.stream.is_late(told.turn, cx.now);
        if !self.gateway.stream.is_next((from, told.view), told.turn, told.number) {
            return;
        }
        if told.lacks && !mutant!("tree_lacks_nothing") {
            probe!("coordination/lacks_changes");
            self.end_connections(&Refusal::TooSlow, cx);
            self.gateway.seen = 0;
        }
        let mut answered = BTreeSet::new();
        for news in told.news {
            match news {
                News::Change(number, change) => {
                    if number > self.gateway.seen || mutant!("tree_event_twice") {
                        self.gateway.seen = number;
                        self.on_change(change, cx);
                    }
                }
                News::Done(number, answer) => self.on_done(number, answer, cx),
                News::Answer(number, answer) => answered.extend(self.on_answer(number, answer, cx)),
            }
            if mutant!("tree_goes_on_in_a_message") {
                core::mem::take(&mut answered).into_iter().for_each(|it| self.go_on(it, cx));
            }
        }
        self.tell_all_events(cx);
        self.gateway.seen = self.gateway.seen.max(told.upto);
        // Behind all of the message: what of it is answered need not go ahead of anything.
        self.give_room(cx);
        answered.into_iter().for_each(|client| self.go_on(client, cx));
        invariant!(self.gateway.stream.is_in_order(), "what is answered was asked");
        invariant!(
            self.gateway.begun <= self.gateway.stream.questions() + self.gateway.stream.ahead(),
            "an answer that begins a watch is waited for"
        );
    }

    fn on_change(&mut self, change: Change, cx: &mut Context<'_>) {
        match change {
            Change::Node { zxid, path, what } => {
                self.gateway.zxid = self.gateway.zxid.max(zxid);
                let told = self.gateway.watches.change(zxid, &path, what);
                told.into_iter().for_each(|told| self.gateway.events.add(told));
            }
            Change::Guarded { zxid, path, what, acl } => {
                self.gateway.zxid = self.gateway.zxid.max(zxid);
                let mut watches = core::mem::take(&mut self.gateway.watches);
                let may_read = |client: Ticket| {
                    let who = self.gateway.who(cx.me, Some(client));
                    grants(&acl, tree::READ, &who) || mutant!("tree_tells_who_may_not_read")
                };
                let told = watches.change_of(zxid, &path, what, may_read);
                self.gateway.watches = watches;
                told.into_iter().for_each(|told| self.gateway.events.add(told));
            }
            Change::Session { session, gateway, is_moved } if gateway == cx.me => {
                let client = self.client_of(session);
                self.gateway.sessions.remove(&session);
                let Some(ticket) = client else { return };
                match (self.gateway.is_closing(ticket), is_moved) {
                    // Its answer follows.
                    (true, false) => {}
                    // Where it is now it goes on, though it was to be closed here.
                    (_, true) => self.end_connection(ticket, Refusal::NoSession, cx),
                    (false, false) => self.expire_client(ticket, cx),
                }
            }
            Change::Session { .. } => {}
        }
    }

    fn on_done(&mut self, number: u64, answer: Answer, cx: &mut Context<'_>) {
        let ahead = self.gateway.stream.ahead();
        let Some(origin) = self.gateway.stream.done(number, cx.now) else { return };
        self.gateway.stream.has_come(answer.bytes());
        if self.gateway.stream.ahead() < ahead {
            self.gateway.expected.hear(answer.bytes());
        }
        let begins = origin.as_ref().is_some_and(Origin::begins);
        self.gateway.begun -= usize::from(begins);
        self.note_zxid(&answer);
        match origin {
            None => {}
            Some(Origin::Operation(asking))
                if answer == Answer::Lost && !mutant!("tree_lost_is_an_answer") =>
            {
                self.lose(&asking, cx);
            }
            Some(Origin::Operation(asking)) => {
                let client = asking.client;
                self.on_answered(asking, answer, cx);
                self.end_if_over(client, cx);
            }
            Some(Origin::Open(ticket, connect)) => self.on_open(ticket, connect, &answer, cx),
            Some(Origin::Expire(session, attached)) => {
                self.on_expired((session, attached), &answer, cx);
            }
        }
    }

    /// A question is answered; whose it is, if that was not known before.
    fn on_answer(&mut self, number: u64, answer: Answer, cx: &mut Context<'_>) -> Option<Ticket> {
        if self.overtakes(number) {
            return None;
        }
        let origin = self.gateway.stream.answered(number)?;
        self.gateway.expected.hear(answer.bytes());
        self.gateway.begun -= usize::from(origin.begins());
        self.note_zxid(&answer);
        let Origin::Operation(asking) = origin else { return None };
        let client = asking.client;
        self.on_answered(asking, answer, cx);
        self.gateway.end_question(client?, number);
        client
    }

    /// Nobody knows any more what was found in front of a command that is executed: its client
    /// comes again, and asks anew.
    fn lose(&mut self, asking: &Asking, cx: &mut Context<'_>) {
        probe!("coordination/loses_an_answer");
        self.gateway.expected.lose();
        answer_with(asking.waiting, Outcome::Refused(Refusal::TooSlow), cx);
        if let Some(client) = asking.client.filter(|it| self.gateway.connections.contains_key(it)) {
            self.end_connection(client, Refusal::TooSlow, cx);
        }
    }

    /// An operation is answered: what follows from that, and then its client is told.
    pub(super) fn on_answered(&mut self, mut asking: Asking, answer: Answer, cx: &mut Context<'_>) {
        let then = core::mem::replace(&mut asking.then, Then::Nothing);
        let client = asking.client;
        let (mut changed, mut has_room) = (Vec::new(), true);
        let failure = client.and_then(|client| match then {
            Then::Nothing => None,
            Then::Watch(path, how, anyway) => {
                let has_room = self.watch(client, &path, (how, anyway), &answer);
                (!has_room).then_some(Failure::Quota)
            }
            Then::Unfollow(path, kind, only_ask) => {
                let is_told = matches!(&answer, Answer::Told(reply) if reply.told.is_ok());
                let watches = &mut self.gateway.watches;
                let follows = !is_told || watches.unfollow(client, &path, kind, only_ask);
                (!follows).then_some(Failure::NotFollowed)
            }
            Then::Refollow(refollow) => {
                let found = self.refollow(client, &refollow, &answer);
                has_room = found.is_some() || mutant!("tree_refollows_in_part");
                changed = found.unwrap_or_default();
                None
            }
        });
        if let Some(client) = client.filter(|_| !has_room) {
            // Clients look at no error of this one: they would wait for what is never told.
            answer_with(asking.waiting, Outcome::Refused(Refusal::Overloaded), cx);
            return self.end_connection(client, Refusal::Overloaded, cx);
        }
        if let Some(client) = client {
            changed.into_iter().for_each(|one| self.gateway.events.add((client, one)));
            self.tell_events(client, cx);
        }
        match failure {
            None => self.answer(&asking, answer, cx),
            Some(failure) => {
                let (zxid, told) = (self.gateway.known_to(client), Err(failure));
                answer_with(asking.waiting, Outcome::Tree(Box::new(TreeReply { zxid, told })), cx);
            }
        }
    }

    /// Whether an answer has overtaken that of an earlier question of its client, which was lost or
    /// is late: it may show less than that one will. Both are asked again, in their order.
    fn overtakes(&mut self, number: u64) -> bool {
        let stream = &mut self.gateway.stream;
        let client = stream.origin(number).and_then(|origin| match origin {
            Origin::Operation(asking) => asking.client,
            _ => None,
        });
        let connection = client.and_then(|client| self.gateway.connections.get(&client));
        let first = connection.and_then(|it| it.questions.first().copied()).unwrap_or(number);
        let overtakes = first < number && !mutant!("tree_read_overtakes_read");
        if overtakes {
            probe!("coordination/overtakes");
            [first, number].into_iter().for_each(|number| stream.ask_again(number));
        }
        overtakes
    }

    fn note_zxid(&mut self, answer: &Answer) {
        let zxid = match answer {
            Answer::Told(reply) => reply.zxid,
            Answer::Open { zxid, .. } | Answer::Changed { zxid, .. } => *zxid,
            Answer::Expired | Answer::Paths { .. } | Answer::Lost => Zxid(0),
        };
        self.gateway.zxid = self.gateway.zxid.max(zxid);
    }

    /// A session is here.
    fn on_open(&mut self, ticket: Ticket, connect: Connect, answer: &Answer, cx: &mut Context<'_>) {
        let Answer::Open { session, timeout_ms, attached, zxid } = *answer else {
            return match answer {
                // It has waited for too long, or is gone.
                _ if !self.gateway.connections.contains_key(&ticket) => {}
                // There are as many sessions as there can be.
                Answer::Told(_) => self.end_connection(ticket, Refusal::Overloaded, cx),
                _ => self.expire_client(ticket, cx),
            };
        };
        let timeout = Span::millis(u64::from(timeout_ms));
        let here = self.gateway.connections.contains_key(&ticket);
        let is_known = connect.seen <= zxid;
        let connection = (here && is_known).then_some(ticket);
        let known = Session { connection, attached, timeout, heard: cx.now, is_expiring: false };
        let before = self.gateway.sessions.insert(session, known).and_then(|it| it.connection);
        if let Some(before) = before.filter(|before| *before != ticket) {
            // Its client has come anew, while the link to it seemed to be there.
            self.gateway.replaced.insert(session);
            self.end_connection(before, Refusal::NoSession, cx);
        }
        if !here {
            return;
        }
        if !is_known {
            // It has seen a later state than there is: of another cluster, or of lost data.
            return self.end_connection(ticket, Refusal::Unsupported, cx);
        }
        // What its client has asked before, by an earlier connection, may be done yet.
        let last = self.gateway.stream.last();
        if let Some(connection) = self.gateway.connections.get_mut(&ticket) {
            connection.last = if mutant!("tree_resumes_before_writes") { 0 } else { last };
            connection.session = Some(session);
        }
        let password = super::password(&self.settings.key, cx.lane, session);
        let event = SessionEvent::Open { session, password, timeout_ms, opening: attached };
        // It rests on what a majority has.
        cx.fx.answer_early(ticket, Outcome::More(Vec::from([Event::Session(event)])));
    }

    fn on_expired(
        &mut self,
        (session, attached): (SessionId, u64),
        answer: &Answer,
        cx: &mut Context<'_>,
    ) {
        let Some(known) = self.gateway.sessions.get(&session) else { return };
        // If it goes on, it was attached since: here, and then that is known by now, or elsewhere,
        // and that may have been told when this gateway heard nothing.
        let is_over = *answer == Answer::Expired;
        let is_as_before = known.attached == attached && !mutant!("tree_keeps_who_moved_unseen");
        if !is_over && !is_as_before {
            return;
        }
        match self.gateway.sessions.remove(&session).and_then(|it| it.connection) {
            Some(ticket) if is_over => self.expire_client(ticket, cx),
            Some(ticket) => self.end_connection(ticket, Refusal::NoSession, cx),
            None => {}
        }
    }

    /// Answers an operation, behind the events that it may show.
    fn answer(&mut self, asking: &Asking, answer: Answer, cx: &mut Context<'_>) {
        if let Some(client) = asking.client {
            self.tell_events(client, cx);
        }
        answer_with(asking.waiting, outcome(asking.form, answer), cx);
    }
}

/// It tells what a majority has: nothing waits for this node's disk.
pub(super) fn answer_with(waiting: Waiting, outcome: Outcome, cx: &mut Context<'_>) {
    cx.fx.answer_early(waiting.ticket, outcome);
}

/// What an answer is to a client that asks for values, or for a tree.
fn outcome(form: Form, answer: Answer) -> Outcome {
    let reply = match (form, answer) {
        (Form::Page, Answer::Paths { paths, next }) => {
            // What the tree keeps for itself is no key of a client.
            let keys = paths.iter().filter(|path| is_key(path)).map(|path| key_of(path)).collect();
            return Outcome::Page { keys, next: next.map(|next| cursor_of(&next)) };
        }
        (Form::Tree, Answer::Changed { zxid, .. }) => {
            TreeReply { zxid, told: Ok(tree::Told::Done) }
        }
        (_, Answer::Told(reply)) => reply,
        (_, _) => TreeReply { zxid: Zxid(0), told: Err(Failure::SessionExpired) },
    };
    match (form, reply.told) {
        (Form::Tree, told) => Outcome::Tree(Box::new(TreeReply { zxid: reply.zxid, told })),
        (Form::Value, Ok(tree::Told::Data { data, .. })) => {
            // A node that was given none is there, so its value is: the empty one.
            Outcome::value(Some(data.unwrap_or_default()))
        }
        (Form::Value, Err(Failure::NoNode)) => Outcome::value(None),
        (Form::Written, Ok(_)) => Outcome::written(),
        (Form::Deleted, Ok(_)) => Outcome::deleted(true),
        (Form::Deleted, Err(Failure::NoNode)) => Outcome::deleted(false),
        (_, Err(failure)) => Outcome::Refused(Refusal::Node(failure)),
        (_, Ok(_)) => Outcome::Refused(Refusal::Unsupported),
    }
}
