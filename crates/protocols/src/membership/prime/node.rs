//! One node: what it does in each round, and with what it hears.

use super::super::configuration::{Configuration, Member};
use super::super::number::{Digest, RollId};
use super::super::observe::Edges;
use super::super::timer::STALL;
use super::ledger::{Ledger, Report, Step};
use super::message::Message;
use super::repair::Doubt;
use super::rest::Rest;
use super::sides::Sides;
use crate::epto::{self, Epto, EventKey, Parameters, Scale};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::ROLL_JOINERS_MAX;
use quorate_kernel::time::Time;
use quorate_kernel::{invariant, mutant, probe};
use serde::{Deserialize, Serialize};

/// How many reports are kept, to take them in again on another state.
pub(super) const LOG_MAX: usize = 256;

/// What the caller is asked and told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Sends a message.
    Send {
        /// Who shall receive it; never this node.
        to: Vec<NodeId>,
        /// The message, the same for all.
        message: Message,
    },
    /// This node is in another view, and is a member.
    View(Arc<Configuration>),
    /// This node is no member any more; it is alive, and what it holds stays.
    Out,
    /// A peer's clock is not to be believed: the connection is to be closed.
    Refuse {
        /// Who.
        peer: NodeId,
    },
}

/// What an event carries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Said {
    /// The view in which it was said. All that led to it comes before in the order: who is behind
    /// it then has a hole.
    pub view: RollId,
    pub report: Report,
}

/// The state of one node in one start.
#[derive(Debug)]
pub struct Prime {
    pub(super) me: Incarnation,
    /// This node as the others shall know it.
    own: Arc<Member>,
    /// The same, until it is a member.
    pub(super) joins: Option<Arc<Member>>,
    pub(super) contacts: Vec<NodeId>,
    pub(super) scale: Scale,
    pub(super) epto: Epto,
    /// None before the first state was taken over.
    pub(super) ledger: Option<Ledger>,
    edges: Edges,
    /// What this node has said of whom, and in which round.
    said: BTreeMap<NodeId, (bool, u64)>,
    /// The newest reports.
    pub(super) log: VecDeque<(EventKey, Report)>,
    pub(super) doubt: Doubt,
    pub(super) rest: Rest,
    pub(super) sides: Sides,
    pub(super) round: u64,
    ticked_at: Time,
    is_leaving: bool,
    pub(super) is_member: bool,
    /// It was a member, or cannot become one, and this id does not come back.
    pub(super) is_out: bool,
}

impl Prime {
    /// A node of the first ones: all begin with the same view.
    #[must_use]
    pub fn found(me: Incarnation, founding: Configuration, scale: Scale) -> Prime {
        invariant!(founding.contains(me.node), "a founder is a member");
        let scale = Scale { nodes: founding.members.len() as u64, ..scale };
        let epto = Epto::found(me, Parameters::of(scale));
        let own = founding.member(me.node).map(|own| (**own).clone()).unwrap_or_default();
        let mut prime = Prime { epto, ..Prime::join(me, own, &[], scale) };
        (prime.joins, prime.is_member) = (None, true);
        prime.set_ledger(Ledger::new(founding));
        prime
    }

    /// A node that wants to be a member, or is one and was started again. It asks those.
    #[must_use]
    pub fn join(me: Incarnation, member: Member, contacts: &[NodeId], scale: Scale) -> Prime {
        let own = Arc::new(member);
        Prime {
            me,
            joins: Some(Arc::clone(&own)),
            own,
            contacts: contacts.to_vec(),
            scale,
            epto: Epto::join(me, Parameters::of(scale)),
            ledger: None,
            edges: Edges::default(),
            said: BTreeMap::new(),
            log: VecDeque::new(),
            doubt: Doubt::default(),
            rest: Rest::default(),
            sides: Sides::default(),
            round: 0,
            ticked_at: Time(0),
            is_leaving: false,
            is_member: false,
            is_out: false,
        }
    }

    /// These are asked from now on, beside the members that it knows.
    pub fn set_contacts(&mut self, contacts: &[NodeId]) {
        self.contacts = contacts.to_vec();
    }

    /// Whether it has anybody to ask.
    #[must_use]
    pub fn has_contacts(&self) -> bool {
        !self.contacts.is_empty()
    }

    /// Wishes to be no member any more. [`Action::Out`] tells when.
    pub fn leave(&mut self) {
        self.is_leaving = true;
    }

    /// Whether it wishes to be no member.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// Whether it is a member, as far as it knows.
    #[must_use]
    pub fn is_member(&self) -> bool {
        self.is_member
    }

    /// Whether it was a member and is none any more, or cannot become one under this id.
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.is_out
    }

    /// The view that it is in; none before it has a place in the order.
    #[must_use]
    pub fn view(&self) -> Option<&Arc<Configuration>> {
        let ledger = self.ledger.as_ref().filter(|_| self.epto.has_place());
        ledger.map(Ledger::configuration)
    }

    /// The newest view that it knows, also one to which it has no place any more, or not yet.
    #[must_use]
    pub fn known(&self) -> Option<&Arc<Configuration>> {
        self.ledger.as_ref().map(Ledger::configuration)
    }

    /// The newest steps that led to it, the last one last.
    pub fn steps(&self) -> impl Iterator<Item = Step> + '_ {
        self.ledger.iter().flat_map(Ledger::steps)
    }

    /// What names the reports that led to it, in their order; all zeros before there is a view.
    #[must_use]
    pub fn heard(&self) -> Digest {
        self.ledger.as_ref().map_or(Digest::default(), Ledger::heard)
    }

    /// Whether it knows that its view may be wrong, and asks the others.
    #[must_use]
    pub fn is_in_doubt(&self) -> bool {
        self.doubt.is_open()
    }

    /// Whether it has asked more than once, and is none the wiser.
    #[must_use]
    pub fn doubts_for_long(&self) -> bool {
        self.doubt.is_long(self.round)
    }

    /// The order of reports, for its counters and how many targets it wants.
    #[must_use]
    pub fn epto(&self) -> &Epto {
        &self.epto
    }

    /// A round of the order has passed ([`Epto::on_round`]).
    pub fn on_round(&mut self, elapsed: u32, targets: &[NodeId], now: Time, out: &mut Vec<Action>) {
        self.round += 1;
        if now - self.ticked_at > STALL {
            self.edges.start_anew(now);
        }
        self.ticked_at = now;
        if self.is_out {
            return;
        }
        let mut told = Vec::new();
        self.epto.on_round(elapsed, targets, &mut told);
        self.act(told, out);
        let has_place = self.epto.has_place();
        // Who joins may have a hole as well: it is a member at the others, and does not know it.
        if has_place && (self.is_member || !mutant!("prime_joiner_is_sure")) {
            self.repair(out);
        }
        if has_place && self.is_member {
            self.observe(now, out);
            self.meet(targets, out);
        } else {
            self.come(out);
            self.rest(out);
        }
    }

    fn observe(&mut self, now: Time, out: &mut Vec<Action>) {
        let Some(view) = self.ledger.as_ref().map(|it| it.configuration().id) else { return };
        for (subject, nonce) in self.edges.probe(now) {
            let message = Message::Probe { nonce, view };
            out.push(Action::Send { to: Vec::from([subject]), message });
        }
        let failing: Vec<NodeId> = self.edges.failing().collect();
        failing.iter().for_each(|subject| self.say(Report::Down(*subject), *subject));
        let Some(ledger) = &self.ledger else { return };
        let subjects = ledger.rings().subjects_of(self.me.node);
        let is_well = |it: &NodeId| !failing.contains(it) && ledger.has_reported(self.me.node, *it);
        let well: Vec<NodeId> = subjects.into_iter().filter(is_well).collect();
        well.into_iter().for_each(|subject| self.say(Report::Well(subject), subject));
        if self.is_leaving {
            self.say(Report::Leaves, self.me.node);
        }
    }

    /// Broadcasts a report, unless it has done so lately: it takes its time to be delivered.
    pub(super) fn say(&mut self, report: Report, of: NodeId) {
        let Some(ledger) = &self.ledger else { return };
        let is_well = matches!(report, Report::Well(_));
        let again = 3 * u64::from(self.epto.parameters().ttl);
        let lately = self.said.get(&of);
        if lately.is_some_and(|(well, at)| *well == is_well && self.round < at + again) {
            return;
        }
        if self.said.len() >= ROLL_JOINERS_MAX {
            let round = self.round;
            self.said.retain(|_, (_, at)| round < *at + again);
            if self.said.len() >= ROLL_JOINERS_MAX {
                return;
            }
        }
        let said = Said { view: ledger.configuration().id, report };
        let bytes = postcard::to_allocvec(&said).expect("plain data always serializes");
        if self.epto.broadcast(Bytes::from(bytes)).is_ok() {
            self.said.insert(of, (is_well, self.round));
        }
    }

    /// A message has come.
    pub fn on_message(&mut self, from: NodeId, message: Message, out: &mut Vec<Action>) {
        if self.is_out {
            return;
        }
        match message {
            Message::Epto(message) => {
                let mut told = Vec::new();
                self.epto.on_message(from, &message, &mut told);
                self.act(told, out);
            }
            Message::Probe { nonce, view } => self.on_probe(from, nonce, view, out),
            Message::ProbeAck { nonce, view } => self.on_probe_ack(from, nonce, view),
            Message::Ask => self.on_ask(from, out),
            Message::Views { chain, last } => self.on_views(from, chain, last, out),
            Message::Fetch => self.on_fetch(from, out),
            Message::Whole(Some(whole)) => self.on_whole(from, &whole, out),
            Message::Whole(None) => {}
            Message::Join(member) => self.on_join(from, &member, out),
            Message::Gone => self.on_gone(from, out),
            Message::Rests { view, last } => self.on_rests(from, view, last),
            Message::Meet { chain, members, is_sure } => {
                self.on_meet(from, &chain, (members, is_sure), out);
            }
        }
    }

    fn on_probe(&mut self, from: NodeId, nonce: u64, view: RollId, out: &mut Vec<Action>) {
        invariant!(from != self.me.node, "nobody observes itself");
        self.hear_of(view);
        let own = self.ledger.as_ref().map_or(view, |it| it.configuration().id);
        let message = Message::ProbeAck { nonce, view: own };
        out.push(Action::Send { to: Vec::from([from]), message });
        invariant!(self.log.len() <= LOG_MAX, "the log is bounded");
    }

    fn on_probe_ack(&mut self, from: NodeId, nonce: u64, view: RollId) {
        invariant!(from != self.me.node, "nobody observes itself");
        self.edges.answered(from, nonce);
        self.hear_of(view);
        invariant!(self.log.len() <= LOG_MAX, "the log is bounded");
    }

    /// Does what the order asks for, and takes in what it delivers.
    pub(super) fn act(&mut self, told: Vec<epto::Action>, out: &mut Vec<Action>) {
        for action in told {
            match action {
                epto::Action::Send { to, message } => {
                    out.push(Action::Send { to, message: Message::Epto(message) });
                }
                epto::Action::Deliver { event, payload } => {
                    // What cannot be read is of no correct peer, and is nothing to anybody.
                    if let Ok(said) = postcard::from_bytes::<Said>(&payload) {
                        self.take_in(event.key, said, out);
                    }
                }
                epto::Action::Hole { .. }
                | epto::Action::Late { .. }
                | epto::Action::Gap { .. } => self.doubt.begin(self.round),
                epto::Action::LostPlace => {
                    probe!("prime/place_lost");
                    self.log.clear();
                }
                epto::Action::Refuse { peer } => out.push(Action::Refuse { peer }),
            }
        }
    }

    fn take_in(&mut self, key: EventKey, said: Said, out: &mut Vec<Action>) {
        let Some(ledger) = &mut self.ledger else { return };
        let number = ledger.configuration().id.number;
        if ledger.differs(said.view) || said.view.number > number {
            self.doubt.begin(self.round);
        }
        if self.log.len() == LOG_MAX {
            self.log.pop_front();
        }
        self.log.push_back((key, said.report.clone()));
        let is_new = ledger.last().is_none_or(|last| key > last);
        if is_new && ledger.apply(key, &said.report) {
            self.on_view(out);
        }
    }

    /// Another state is the node's own from now on.
    pub(super) fn set_ledger(&mut self, ledger: Ledger) {
        self.ledger = Some(ledger);
        self.follow();
    }

    /// Observes whom the view says.
    fn follow(&mut self) {
        let Some(ledger) = &self.ledger else { return };
        self.edges.observe(&ledger.rings().subjects_of(self.me.node));
        let configuration = ledger.configuration();
        self.scale.nodes = configuration.members.len() as u64;
        self.said.retain(|node, _| configuration.contains(*node));
        self.epto.set_parameters(Parameters::of(self.scale));
    }

    pub(super) fn on_view(&mut self, out: &mut Vec<Action>) {
        self.follow();
        let Some(view) = self.view().cloned() else { return };
        if view.contains(self.me.node) {
            (self.is_member, self.joins) = (true, None);
            out.push(Action::View(view));
        } else if core::mem::take(&mut self.is_member) {
            if !view.has_left(self.me.node) {
                // A majority has not let it in: it asks again.
                self.joins = Some(Arc::clone(&self.own));
                return;
            }
            probe!("prime/out");
            self.is_out = true;
            out.push(Action::Out);
        }
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        invariant!(self.log.len() <= LOG_MAX, "the log is bounded");
        self.epto.check();
        if let Some(ledger) = &self.ledger {
            ledger.check();
        }
    }
}
