//! What clients of this node wait for.
//!
//! A replica's word counts once, whatever it says and however often. So a write is answered when so
//! many replicas have it, and not when one of them has said so several times; an ordered read when
//! so many have read at the same event.

use super::keys::wire_key;
use super::message::{Came, Flask, FlaskAct};
use super::ordered::batch::{Act, BatchItem};
use super::replica::version::RequestId;
use super::{Context, Epidemic, Level};
use crate::epto::{EventKey, LogicalTime};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::limits::{EPTO_PAYLOAD_BYTES_MAX, KEY_BYTES_MAX};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::receipt::TokenError;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::{mutant, probe};

/// The most requests in hand.
pub(super) const PENDING_MAX: usize = 4096;
/// The longest value that is written in the one order: with the longest key it fits an event.
pub const ORDERED_VALUE_BYTES_MAX: usize = EPTO_PAYLOAD_BYTES_MAX - KEY_BYTES_MAX - 64;
/// How long a repeated write may be on its way from its client: by so much it may be older than it
/// says.
const ON_ITS_WAY: Span = Span::secs(1);
/// After how many rounds without any answer a request without order is sent on its way again.
const FLASK_ROUNDS: u64 = 8;
/// How many rounds more than a TTL a write may take before it is broadcast again.
const AGAIN_ROUNDS: u64 = 4;

/// What a client asks.
#[derive(Clone, Debug)]
pub struct KeyAsk {
    /// The client's key.
    pub key: Bytes,
    /// What is done.
    pub what: What,
    /// The client's name for it, if it has one.
    pub id: Option<RequestId>,
    /// How long ago the client sent it first, under this name; zero if it does now.
    pub age: Span,
    /// The latest event that the client has seen.
    pub seen: Option<EventKey>,
    /// When it must have been answered.
    pub deadline: Time,
}

/// What is done with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// Reads the newest value.
    Get,
    /// Sets the value, as the order has it.
    Put(Bytes),
    /// Removes it, as the order has it.
    Delete,
    /// Reads a version that a client has chosen.
    GetVersion(u64),
    /// Sets the value of a version that the client chooses.
    PutVersion(u64, Bytes),
}

/// One request in hand.
#[derive(Clone, Debug)]
pub struct Pending {
    pub(super) tickets: Vec<Ticket>,
    pub(super) way: Way,
    /// When it was sent last; none while it waits for an event.
    pub(super) sent: Option<u64>,
    pub(super) attempt: u8,
    pub(super) deadline: Time,
    /// The latest event that its client had seen.
    pub(super) seen: LogicalTime,
    /// How many replicas there are at most, as one of them has said.
    pub(super) members: u16,
    /// What each replica has said: of a read, at each event.
    pub(super) said: BTreeMap<Option<EventKey>, BTreeMap<NodeId, Came>>,
}

/// By which way a request goes.
#[derive(Clone, Debug)]
pub(super) enum Way {
    Ordered(BatchItem),
    Flask(Bytes, FlaskAct),
}

/// Why a value is not taken: no event could carry it.
fn too_large(ask: &KeyAsk) -> Option<Refusal> {
    let What::Put(value) = &ask.what else { return None };
    let (length, limit) = (value.len(), ORDERED_VALUE_BYTES_MAX);
    (length > limit).then_some(Refusal::TooLarge { what: "value", length, limit })
}

impl Epidemic {
    /// A client asks.
    pub fn ask(&mut self, ticket: Ticket, ask: KeyAsk, cx: &mut Context<'_>) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        // Nothing was done that an answer could rest on.
        let refuse = |cx: &mut Context<'_>, why| {
            cx.fx.answer_early(ticket, Outcome::Refused(why));
        };
        if let Some(why) = too_large(&ask) {
            return refuse(cx, why);
        }
        let key = wire_key(&ask.key);
        let id = ask.id.unwrap_or_else(|| {
            RequestId(u128::from(cx.rng.next()) << 64 | u128::from(cx.rng.next()))
        });
        if let Some(pending) = self.state.pending.get_mut(&id) {
            pending.tickets.push(ticket);
            return;
        }
        if self.state.pending.len() + self.state.listings.open() >= PENDING_MAX {
            return refuse(cx, Refusal::Overloaded);
        }
        let since = (ask.age > Span(0)).then(|| self.since(ask.age, cx.now));
        let Some(way) = self.way((id, since), key, ask.what, ask.seen) else {
            return refuse(cx, Refusal::Value { expected: self.expected() });
        };
        let seen = ask.seen.map_or(LogicalTime(0), |seen| seen.time);
        let is_read = matches!(way, Way::Flask(..));
        if is_read && self.state.epto.has_place() && !self.state.epto.on_seen(seen) {
            // No replica would ever be as far.
            return refuse(cx, Refusal::Token(TokenError::Ahead));
        }
        if !is_read && seen > LogicalTime(0) {
            self.state.unplaced.insert(id);
        }
        let tickets = Vec::from([ticket]);
        let (deadline, said) = (ask.deadline, BTreeMap::new());
        let pending =
            Pending { tickets, way, sent: None, attempt: 0, deadline, seen, members: 0, said };
        self.state.pending.insert(id, pending);
        self.send_off(id, cx);
        self.flush(cx);
        invariant!(self.state.pending.len() <= PENDING_MAX, "few requests are in hand");
    }

    /// The time that all clocks have passed before a client first sent what is that old: what this
    /// one showed was everywhere a TTL later.
    fn since(&self, age: Span, now: Time) -> LogicalTime {
        let rounds = u64::from(self.state.epto.parameters().ttl) + AGAIN_ROUNDS;
        let apart = self.settings.round.0.saturating_mul(rounds).saturating_add(ON_ITS_WAY.0);
        let first_sent = now.0.checked_sub(age.0.saturating_add(apart)).map(Time);
        self.state.past.at(first_sent)
    }

    fn way(
        &self,
        (id, since): (RequestId, Option<LogicalTime>),
        key: Bytes,
        what: What,
        seen: Option<EventKey>,
    ) -> Option<Way> {
        let ordered = |key, act| Way::Ordered(BatchItem { id, key, act, since });
        let get = |key, version, after| Way::Flask(key, FlaskAct::Get { version, after });
        Some(match (self.settings.level, what) {
            // Without an order nobody is behind.
            (Level::None, What::Get) => get(key, None, None),
            (Level::None, What::GetVersion(version)) => get(key, Some(version), None),
            (Level::None, What::PutVersion(version, value)) => {
                Way::Flask(key, FlaskAct::Put(version, value))
            }
            (Level::Eventual, What::Get) => get(key, None, seen),
            (Level::Strong, What::Get) => ordered(key, Act::Get),
            (Level::Eventual | Level::Strong, What::Put(value)) => ordered(key, Act::Put(value)),
            (Level::Eventual | Level::Strong, What::Delete) => ordered(key, Act::Delete),
            _ => return None,
        })
    }

    /// What a keyspace of this level takes, where it was asked for something else.
    fn expected(&self) -> &'static str {
        match self.settings.level {
            Level::None => {
                "writes under a version that the client chooses, as its level is `none`, and no \
                 deletes"
            }
            Level::Eventual | Level::Strong => {
                "no versions of clients, as its level puts writes in order"
            }
        }
    }

    /// Sends a request on its way, or has it wait for the next event.
    fn send_off(&mut self, id: RequestId, cx: &mut Context<'_>) {
        let pending = self.state.pending.get_mut(&id).expect("it is in hand");
        match pending.way.clone() {
            Way::Ordered(asked) => {
                pending.sent = None;
                if !self.state.waiting.push(asked) {
                    self.end(id, Outcome::Refused(Refusal::Overloaded), cx);
                }
            }
            Way::Flask(key, act) => {
                pending.sent = Some(self.state.round);
                self.state.tries += 1;
                let (attempt, entry, number) = (pending.attempt, self.state.me, self.state.tries);
                let flask = Flask { id, attempt, entry, number, hops: 0, key, act };
                self.pass(self.state.me, flask, cx);
            }
        }
    }

    /// Has what waits come behind what its clients have seen, now that there is a clock. What no
    /// clock comes to was never told to a client.
    fn place_waiting(&mut self, cx: &mut Context<'_>) {
        for id in core::mem::take(&mut self.state.unplaced) {
            let seen = self.state.pending.get(&id).map_or(LogicalTime(0), |one| one.seen);
            if !self.state.epto.on_seen(seen) && !mutant!("epidemic_forgets_what_was_seen") {
                self.end(id, Outcome::Refused(Refusal::Token(TokenError::Ahead)), cx);
            }
        }
    }

    /// Broadcasts what waits, as far as that may be done now.
    pub(super) fn broadcast_waiting(&mut self, cx: &mut Context<'_>) {
        use quorate_kernel::plain::PlainData;
        if self.state.epto.may_broadcast() {
            self.place_waiting(cx);
        }
        while let Some(batch) = self.state.waiting.take() {
            let Ok(event) = self.state.epto.broadcast(batch.to_bytes()) else {
                self.state.waiting.put_back(batch);
                break;
            };
            self.state.counters.broadcast += 1;
            for asked in &batch.0 {
                if let Some(pending) = self.state.pending.get_mut(&asked.id) {
                    pending.sent = Some(self.state.round);
                    // Sent again it may have been done by this event, or by a later one.
                    if let Way::Ordered(asked) = &mut pending.way {
                        let before = LogicalTime(event.time.0 - 1);
                        asked.since.get_or_insert(before);
                    }
                }
            }
        }
        debug_assert!(cx.me == self.state.me, "a node broadcasts as itself");
    }

    /// Replicas tell what an event did.
    pub(super) fn on_did(
        &mut self,
        from: Incarnation,
        (event, members): (EventKey, u16),
        results: Vec<(RequestId, Came)>,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        for (id, came) in results {
            let Some(pending) = self.state.pending.get(&id) else { continue };
            let at = if pending.is_write() { None } else { Some(event) };
            self.count(id, from.node, at, (came, members), cx);
        }
        invariant!(self.state.writes.is_empty(), "an answer writes nothing");
    }

    /// A replica tells what came of a request without order.
    pub(super) fn on_flasked(
        &mut self,
        from: Incarnation,
        (id, members): (RequestId, u16),
        came: Came,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.state.writes.is_empty(), "an input begins without writes");
        self.count(id, from.node, None, (came, members), cx);
        invariant!(self.state.pending.len() <= PENDING_MAX, "few requests are in hand");
    }

    fn count(
        &mut self,
        id: RequestId,
        from: NodeId,
        at: Option<EventKey>,
        (came, members): (Came, u16),
        cx: &mut Context<'_>,
    ) {
        let acks = usize::from(self.settings.acks);
        // What a client does next through this node comes after what it is told here.
        self.state.epto.on_seen(came.time());
        let level = self.settings.level;
        let Some(pending) = self.state.pending.get_mut(&id) else { return };
        let is_found = matches!(came, Came::Read { version: Some(_), .. });
        let said = pending.said.entry(at).or_default();
        let by = if mutant!("epidemic_words_counted") { NodeId(said.len() as u64) } else { from };
        said.insert(by, came);
        // Without order the first that has something is as good as any.
        let is_first = is_found && at.is_none() && level != Level::Strong;
        // Where positions lie far apart a slice has few members: more cannot say so. The receipt
        // tells how many did. Replicas know that, and not this node, which may know nobody yet.
        pending.members = pending.members.max(members).max(1);
        let members = usize::from(pending.members);
        let members = if mutant!("epidemic_entry_counts_nodes") {
            members.min(usize::try_from(self.state.slices.count()).unwrap_or(usize::MAX))
        } else {
            members
        };
        if let Some(why) = pending.refused(members) {
            return self.end(id, Outcome::Refused(why), cx);
        }
        let needed = if is_first { 1 } else { acks.min(members) };
        if pending.is_hopeless(needed, members) {
            return self.end(id, Outcome::Refused(Refusal::Overloaded), cx);
        }
        let tokens = &self.settings.tokens;
        let seal = |version| tokens.seal(cx.lane, version);
        if let Some(outcome) = pending.outcome(needed, &seal) {
            self.end(id, outcome, cx);
        }
    }

    fn end(&mut self, id: RequestId, outcome: Outcome, cx: &mut Context<'_>) {
        let Some(pending) = self.state.pending.remove(&id) else { return };
        self.state.waiting.forget(id);
        self.state.unplaced.remove(&id);
        for ticket in pending.tickets {
            // It rests on what replicas have said is durable with them.
            cx.fx.answer_early(ticket, outcome.clone());
        }
    }

    /// A round has passed: what has taken too long ends, or is sent again.
    pub(super) fn on_pending_round(&mut self, cx: &mut Context<'_>) {
        let (round, ttl) = (self.state.round, u64::from(self.state.epto.parameters().ttl));
        let ended: Vec<RequestId> = {
            let is_over = |one: &Pending| {
                let is_silent = one.sent.is_some_and(|sent| round >= sent + FLASK_ROUNDS);
                one.deadline <= cx.now || (is_silent && one.is_refused())
            };
            let late = self.state.pending.iter().filter(|(_, one)| is_over(one));
            late.map(|(id, _)| *id).collect()
        };
        for id in ended {
            let outcome = self.given_up(id);
            self.end(id, outcome, cx);
        }
        let mut again = Vec::new();
        for (id, pending) in &mut self.state.pending {
            let patience = match pending.way {
                Way::Ordered(_) => ttl + AGAIN_ROUNDS,
                Way::Flask(..) => FLASK_ROUNDS,
            };
            let is_due = pending.sent.is_some_and(|sent| round >= sent + patience);
            // What some have refused others may have taken, and will lose.
            let is_refused = pending.is_refused();
            let may_go = pending.attempt < u8::MAX && !is_refused && !mutant!("epidemic_sent_once");
            // Its own word may be all that there is: the event may have reached nobody else.
            if is_due && may_go {
                pending.attempt += 1;
                // Who knew of no bound then may know one by now.
                pending.members = 0;
                again.push(*id);
            }
        }
        for id in again {
            probe!("epidemic/again");
            self.state.counters.again += 1;
            self.send_off(id, cx);
        }
    }

    fn given_up(&self, id: RequestId) -> Outcome {
        let pending = &self.state.pending[&id];
        // What was sent before, to whichever node, may have been done then.
        let is_again = matches!(&pending.way, Way::Ordered(item) if item.since.is_some())
            && !mutant!("epidemic_repeat_is_nothing");
        let is_sent = pending.sent.is_some() || pending.attempt > 0 || is_again;
        if pending.is_write() && is_sent {
            return Outcome::Refused(Refusal::OutcomeUnknown);
        }
        if pending.is_overloaded() {
            return Outcome::Refused(Refusal::Overloaded);
        }
        let small = |count: usize| u8::try_from(count).unwrap_or(u8::MAX);
        let (reached, needed) = (small(pending.reached()), self.settings.acks);
        Outcome::Refused(Refusal::NoQuorum { reached, needed })
    }
}
