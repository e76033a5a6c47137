//! The engine as a process: the one match on inputs.

use super::message::Message;
use super::pending::{KeyAsk, What};
use super::recover;
use super::repair::join::Standing;
use super::replica::version::{RequestId, Version};
use super::state::State;
use super::timer::Timer;
use super::{Context, Epidemic, Level, Settings};
use crate::epto::EventKey;
use crate::gossip::cyclon::Peer;
use crate::slices::Changed;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Operation, Outcome, Refusal, Which};
use quorate_kernel::part::Part;
use quorate_kernel::process::{Inspect, Process, Recovery, Request};
use quorate_kernel::receipt::TokenError;
use quorate_kernel::ring::Ring;
use quorate_kernel::time::Span;
use quorate_kernel::write::Replaces;

/// After how many rounds K and TTL are reckoned anew.
const PARAMETERS_ROUNDS: u64 = 16;
/// Every how many rounds a node exchanges views with one that it only has been told of.
const HINT_ROUNDS: u64 = 16;

impl Epidemic {
    /// The engine before its start.
    #[must_use]
    pub fn new(settings: Settings) -> Epidemic {
        if let Some(problem) = settings.problem() {
            panic!("{problem}");
        }
        let state = State::new(Incarnation::default(), &settings);
        Epidemic { settings, state }
    }

    /// This node's entry in views.
    fn own(&self) -> Peer {
        Peer { who: self.state.me, age: 0, address: self.settings.address.clone() }
    }

    /// Nodes that may be there, to begin with and whenever nobody is known.
    pub fn hint(&mut self, hints: Vec<Peer>) {
        self.state.hints = hints;
    }

    /// One round: everything that time does. It may be late by more than half of its length.
    fn on_round(&mut self, (is_late, length): (bool, Span), cx: &mut Context<'_>) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        let state = &mut self.state;
        let (elapsed, length) = (cx.now - state.round_at, length.0);
        let elapsed = (elapsed.0 + length / 2) / length;
        let elapsed = if state.round == 0 { 1 } else { u32::try_from(elapsed).unwrap_or(u32::MAX) };
        (state.round, state.round_at) = (state.round + 1, cx.now);
        let is_joining = matches!(state.standing, Standing::Joining(_));
        if is_joining || state.round.is_multiple_of(PARAMETERS_ROUNDS) {
            let measured = self.state.measured.surviving_ppm();
            let parameters = self.settings.parameters(self.state.slices.count(), measured);
            self.state.epto.set_parameters(parameters);
        }
        if self.state.cyclon.view().is_empty() {
            let hints = self.state.hints.clone();
            hints.into_iter().for_each(|peer| self.state.cyclon.seed(peer));
        }
        // Before an exchange takes its partner out of the view: of two nodes each is the only one
        // whom the other can tell.
        let fanout = self.state.epto.parameters().fanout;
        let targets = self.state.cyclon.sample(fanout, cx.rng, |_| true);
        self.on_neighbours_round(is_late, cx);
        if self.state.epto.has_place() {
            let (round, clock) = (self.state.round, self.state.epto.clock());
            self.state.past.note(round, cx.now, clock);
        }
        self.broadcast_waiting(cx);
        let mut actions = Vec::new();
        self.state.epto.on_round(elapsed.max(1), &targets, &mut actions);
        self.on_actions(actions, cx);
        self.on_pending_round(cx);
        self.on_listings_round(cx);
        self.on_holes_round(cx);
        if self.state.round.is_multiple_of(self.settings.repair_rounds) {
            self.on_repair_round(cx);
            self.on_former_round(cx);
        }
        self.on_drop_round(cx);
        self.on_join_round(cx);
        self.flush(cx);
        invariant!(self.state.writes.is_empty(), "all that was changed was written");
    }

    fn on_neighbours_round(&mut self, is_late: bool, cx: &mut Context<'_>) {
        let own = self.own();
        let told = self.state.slices.told();
        let begun = match self.stranger(cx) {
            Some(hint) => Some((hint, self.state.cyclon.begin_with(hint, own.clone(), cx.rng))),
            None => self.state.cyclon.begin(own.clone(), cx.rng),
        };
        // Views are hints: nothing rests on them.
        self.state.measured.on_round(self.state.round, is_late);
        if let Some((to, entries)) = begun {
            self.state.measured.ask(to, self.state.round, cx.now);
            cx.fx.send_early(to, Message::Shuffle { entries, told });
        }
        let before = self.members();
        let changed = self.state.slices.on_period();
        self.note_change(changed, before, cx);
        let (to, members) = self.state.slices.tell(own, cx.rng);
        for member in to {
            cx.fx.send_early(member, Message::Members(members.clone()));
        }
    }

    /// Now and then, somebody who may be there and whom the view does not have: the other side, if
    /// the network was divided.
    fn stranger(&self, cx: &mut Context<'_>) -> Option<NodeId> {
        if !self.state.round.is_multiple_of(HINT_ROUNDS) || mutant!("epidemic_hints_once") {
            return None;
        }
        let view = self.state.cyclon.view();
        let is_known = |node| view.iter().any(|peer| peer.who.node == node);
        let hints = self.state.hints.iter().map(|peer| peer.who.node);
        let me = self.state.me.node;
        let strangers: Vec<NodeId> = hints.filter(|node| *node != me && !is_known(*node)).collect();
        cx.rng.pick(&strangers).copied()
    }

    fn members(&self) -> Vec<NodeId> {
        self.state.slices.members().iter().map(|peer| peer.who.node).collect()
    }

    fn note_change(&mut self, changed: Option<Changed>, before: Vec<NodeId>, cx: &mut Context<'_>) {
        if let Some(changed) = changed {
            self.on_changed(changed, before);
            self.flush(cx);
        }
    }

    fn on_shuffle(
        &mut self,
        from: Incarnation,
        entries: Vec<Peer>,
        told: crate::slices::Profile,
        cx: &mut Context<'_>,
    ) {
        invariant!(from.node != self.state.me.node, "nobody is his own neighbour");
        let before = self.members();
        let changed = self.state.slices.on_exchange(from.node, &entries, told);
        self.note_change(changed, before, cx);
        let entries = self.state.cyclon.on_shuffle(from.node, entries, cx.rng);
        let told = self.state.slices.told();
        // Views are hints: nothing rests on them.
        cx.fx.send_early(from, Message::ShuffleReply { entries, told });
        invariant!(self.state.writes.is_empty(), "views are not stored");
    }

    fn on_shuffle_reply(
        &mut self,
        from: Incarnation,
        entries: Vec<Peer>,
        told: crate::slices::Profile,
        cx: &mut Context<'_>,
    ) {
        invariant!(from.node != self.state.me.node, "nobody is his own neighbour");
        let before = self.members();
        let changed = self.state.slices.on_exchange(from.node, &entries, told);
        self.note_change(changed, before, cx);
        self.state.measured.answer(from.node, cx.now);
        self.state.cyclon.on_reply(from.node, entries);
        invariant!(self.state.writes.is_empty(), "views are not stored");
    }
}

/// Who may be there, as the ring has it.
fn hints(ring: &Ring, me: NodeId) -> Vec<Peer> {
    let start = |node| ring.host(node).map_or(Incarnation::default().start, |host| host.who.start);
    let peer = |node| Peer {
        who: Incarnation { node, start: start(node) },
        age: 0,
        address: ring.host(node).map_or("", |host| &host.address).into(),
    };
    ring.others(me).map(peer).collect()
}

impl Epidemic {
    /// The event that a client had seen when it was given this token; none of versions that clients
    /// have chosen, which have no order.
    pub(super) fn seen_in(
        &self,
        token: &[u8],
        lane: LaneId,
    ) -> Result<Option<EventKey>, TokenError> {
        Ok(match self.settings.tokens.open(lane, token)? {
            Version::Ordered(event) => Some(event),
            Version::Explicit(_) => None,
        })
    }
}

impl Process for Epidemic {
    type Message = Message;
    type Timer = Timer;
    const HEARS: &'static [Topic] = &[Topic::Ring, Topic::Keyspace];

    fn start(&mut self, _: Recovery, cx: &mut Context<'_>) {
        let hints = core::mem::take(&mut self.state.hints);
        self.state = State::new(cx.me, &self.settings);
        self.state.hints = hints;
        recover::load(&mut self.state, self.settings.level, cx.table);
        let has_copies = self.state.last.is_none() && !self.state.store.is_empty();
        if has_copies && self.settings.level != Level::None {
            // A join broke off: how old its copies are is not known, and others have them.
            self.drop_all(cx);
        }
        // Rounds of nodes that start together shall not fall together.
        let first = Span(cx.rng.below(self.settings.round.0));
        (self.state.round_at, self.state.round_due) = (cx.now + first, cx.now + first);
        cx.fx.arm(Timer::Round, cx.now + first);
    }

    fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        self.state.store.begin();
        match message {
            Message::Epto(message) => {
                let mut actions = Vec::new();
                self.state.epto.on_message(from.node, &message, &mut actions);
                self.on_actions(actions, cx);
            }
            Message::Shuffle { entries, told } => self.on_shuffle(from, entries, told, cx),
            Message::ShuffleReply { entries, told } => {
                self.on_shuffle_reply(from, entries, told, cx);
            }
            Message::Members(members) => self.state.slices.on_members(&members),
            Message::Did { event, members, results } => {
                self.on_did(from, (event, members), results, cx);
            }
            Message::Flask(flask) => self.on_flask(from, flask, cx),
            Message::Flasked { id, members, result } => {
                self.on_flasked(from, (id, members), result, cx);
            }
            Message::Compare { number, range, sums, ids, last, forgotten } => {
                self.on_compare(from, (number, range), (&sums, ids), (last, forgotten), cx);
            }
            Message::Leaves { number, parts, sums, ids } => {
                self.on_leaves(from, (number, &parts), sums, ids, cx);
            }
            Message::Equal { number } => self.on_equal(from, number, cx),
            Message::Listed { page, after, held } => self.on_listed(from, page, after, held, cx),
            Message::Records { page, heard, records, ids, wanted } => {
                self.on_records(from, (page, heard, records), ids, &wanted, cx);
            }
            Message::SnapshotA { number, range, after, ids_below } => {
                self.on_snapshot(from, (number, range), &after, &ids_below, cx);
            }
            Message::SnapshotB(page) => self.on_page(from, (page, Vec::new()), cx),
            Message::SnapshotC { page, lost } => self.on_page(from, (page, lost), cx),
            Message::CopyA { number, range } => self.on_copy(from, (number, range), cx),
            Message::CopyB { number, parts } => self.on_copies(from, (number, parts), cx),
            Message::MissingA(wanted) => self.on_missing(from, &wanted, cx),
            Message::MissingB(found) => self.on_found(from, found, cx),
            Message::ListA(asked) => self.on_list(from, &asked, cx),
            Message::ListB(page) => self.on_page_of_keys(from, page, cx),
        }
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        self.state.store.begin();
        // Nothing was done.
        let refuse = |cx: &mut Context<'_>, why| {
            cx.fx.answer_early(ticket, Outcome::Refused(why));
        };
        let (key, what, name, after) = match request.operation {
            Operation::Scan { from, limit } => {
                return self.list(ticket, (&from, limit), request.deadline, cx);
            }
            Operation::Get { key, which, .. } => match which {
                Which::One => (key, What::Get, None, None),
                Which::After(token) => (key, What::Get, None, Some(token)),
                Which::Version(version) => (key, What::GetVersion(version), None, None),
                Which::All => return refuse(cx, Refusal::Unsupported),
            },
            Operation::Put { key, value, replaces, name } => {
                let (what, after) = match replaces {
                    Replaces::Whatever => (What::Put(value), None),
                    Replaces::After(token) => (What::Put(value), Some(token)),
                    Replaces::Version(version) => (What::PutVersion(version, value), None),
                    Replaces::Seen(_) => return refuse(cx, Refusal::Unsupported),
                };
                (key, what, name, after)
            }
            Operation::Delete { key, replaces: Replaces::Whatever } => {
                (key, What::Delete, None, None)
            }
            Operation::Delete { key, replaces: Replaces::After(token) } => {
                (key, What::Delete, None, Some(token))
            }
            _ => return refuse(cx, Refusal::Unsupported),
        };
        // Who has seen nothing hands back nothing.
        let after = after.filter(|token| !token.is_empty());
        let seen = match after.map(|token| self.seen_in(&token, cx.lane)) {
            None => None,
            Some(Ok(event)) => event,
            Some(Err(why)) => return refuse(cx, Refusal::Token(why)),
        };
        let id = name.map(|name| RequestId(name.id.0));
        let age = name.map_or(Span(0), |name| name.age);
        let ask = KeyAsk { key, what, id, age, seen, deadline: request.deadline };
        self.ask(ticket, ask, cx);
    }

    fn on_timer(&mut self, Timer::Round: Timer, cx: &mut Context<'_>) {
        self.state.store.begin();
        let round = self.settings.round;
        // A tenth more or less, so that rounds of different nodes do not fall together.
        let next = round.0 - round.0 / 10 + cx.rng.below(round.0 / 5 + 1);
        let due = core::mem::replace(&mut self.state.round_due, cx.now + Span(next));
        cx.fx.arm(Timer::Round, self.state.round_due);
        let length = core::mem::replace(&mut self.state.round_length, round);
        let length = if mutant!("epidemic_rounds_are_as_altered") { round } else { length };
        let is_late = cx.now - due > Span(length.0 / 2);
        self.on_round((is_late, length), cx);
    }

    fn on_news(&mut self, news: News<'_>, _: &mut Context<'_>) {
        match news {
            News::Ring(ring) => self.hint(hints(ring, self.state.me.node)),
            News::Keyspace(keyspace) => self.settings.alter(&keyspace.settings),
            _ => unreachable!("a lane is told what it hears"),
        }
    }

    /// It places nothing, so it has no parts; but while it takes over what it shall answer for it
    /// cannot serve clients. Who hears nobody has nothing to wait for: hosts may be started one
    /// after the other, each when the one before is ready.
    fn parts(&self) -> Vec<Part> {
        let is_taking = self.state.slices.hears() && !self.state.is_whole();
        if is_taking { Vec::from([Part::unknown()]) } else { Vec::new() }
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        self.show(into);
    }

    fn check(&self) {
        self.check_state();
    }
}
