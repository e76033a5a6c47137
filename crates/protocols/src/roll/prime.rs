//! The roll by reports in one probable order ([`crate::membership::prime`]).

use super::keeper::{From, Keeper, Keeping, RollNews, Stands, Wanted};
use super::names::member;
use super::{Says, keys};
use crate::epto::Scale;
use crate::membership::Configuration;
use crate::membership::prime::{Action, Prime as Node};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::effects::{Recipients, Release};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::process::Inspect;
use quorate_kernel::ring::Standing;
use quorate_kernel::storage::Class;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::{invariant, mutant};

/// A round of the order (EpTO's δ): longer than nearly all messages take.
const ROUND: Span = Span::millis(250);
/// The paper's c, and of a million balls so many that are taken in: no less than most networks do.
const SCALE: Scale = Scale { nodes: 2, exponent: 2, surviving_ppm: 900_000 };

/// PRIME's roll of this host.
#[derive(Debug)]
pub(super) struct Prime {
    node: Node,
    /// What it has stored: it changes with the view.
    stored: Option<Bytes>,
    /// When its last round was.
    round_at: Option<Time>,
    /// Before any view is known.
    none: Configuration,
}

impl Prime {
    /// Before its start.
    pub fn new() -> Prime {
        let me = Incarnation { node: NodeId(0), start: Start(0) };
        let node = Node::join(me, member(NodeId(0), 0), &[], SCALE);
        Prime { node, stored: None, round_at: None, none: Configuration::default() }
    }

    fn me(cx: &Keeping<'_>) -> Incarnation {
        Incarnation { node: cx.own().id, start: cx.me.start }
    }

    /// Calls the node, and asks for what it asks for.
    fn call(&mut self, cx: &mut Keeping<'_>, call: impl FnOnce(&mut Node, &mut Vec<Action>)) {
        let before = (self.node.known().map(|view| view.id), self.node.is_member());
        let mut out = Vec::new();
        call(&mut self.node, &mut out);
        if before != (self.node.known().map(|view| view.id), self.node.is_member()) {
            self.store(cx);
        }
        for action in out {
            match action {
                Action::Send { to, message } => self.send(to, message, cx),
                Action::View(view) => invariant!(view.contains(cx.own().id), "it is a member"),
                // One that leaves does not come again.
                Action::Out if self.node.is_leaving() => {}
                Action::Out => cx.tell(RollNews::Removed),
                Action::Refuse { .. } => cx.asks.push(Wanted::Refuse("a clock that is far ahead")),
            }
        }
    }

    /// Stores what the next start goes on from, before anybody is told what comes of it.
    fn store(&mut self, cx: &mut Keeping<'_>) {
        self.stored = self.node.stored();
        if let Some(stored) = self.stored.clone().filter(|_| !mutant!("roll_prime_stores_nothing"))
        {
            cx.write(keys::of(cx.coming, keys::PRIME), stored);
        }
    }

    fn send(
        &self,
        to: Vec<NodeId>,
        message: crate::membership::prime::Message,
        cx: &mut Keeping<'_>,
    ) {
        let (coming, is_for_any) = (cx.coming, message.is_for_any_id());
        let says = Says::Prime(message);
        let release = Release::State;
        if is_for_any {
            let to = Recipients::Group(to.into());
            return cx.asks.push(Wanted::Send { coming, to, is_for_any, says, release });
        }
        for name in to {
            let (to, says, release) = (Recipients::from(name), says.clone(), release.clone());
            cx.asks.push(Wanted::Send { coming, to, is_for_any, says, release });
        }
    }

    /// Peers for one round, drawn at random of all hosts that seem to be there: newcomers, and
    /// hosts beyond what was a division, are no members.
    fn targets(&self, cx: &mut Keeping<'_>) -> Vec<NodeId> {
        let me = cx.me.node;
        let is_there = |host: &&quorate_kernel::ring::RingHost| {
            host.standing != Standing::Left && !host.is_suspected && host.who.node != me
        };
        let there = cx.ring.hosts().iter().filter(is_there);
        let mut there: Vec<NodeId> = there.map(|host| host.who.node).collect();
        let fanout = self.node.epto().parameters().fanout.min(there.len());
        for place in 0..fanout {
            let left = (there.len() - place) as u64;
            let drawn = place + usize::try_from(cx.rng.below(left)).expect("it is an index");
            there.swap(place, drawn);
        }
        there.truncate(fanout);
        there
    }
}

impl Keeper for Prime {
    fn every(&self) -> Span {
        ROUND
    }

    fn start(&mut self, founding: Option<Configuration>, cx: &mut Keeping<'_>) {
        let me = Prime::me(cx);
        let stored = cx.table.get(Class::State, &keys::of(cx.coming, keys::PRIME));
        self.node = match (&stored, founding) {
            (Some(stored), _) => Node::restart(me, cx.own(), stored, SCALE),
            (None, Some(founding)) if founding.contains(me.node) => {
                Node::found(me, founding, SCALE)
            }
            (None, _) => Node::join(me, cx.own(), &[], SCALE),
        };
        self.stored = stored;
        if self.stored.is_none() {
            self.store(cx);
        }
    }

    fn come_again(&mut self, cx: &mut Keeping<'_>) {
        for key in keys::all_of(cx.coming - 1) {
            cx.delete(key);
        }
        cx.write(keys::coming_key(), keys::store_coming(cx.coming, None));
        self.node = Node::join(Prime::me(cx), cx.own(), &[], SCALE);
        self.stored = None;
    }

    fn tick(&mut self, cx: &mut Keeping<'_>) {
        let passed = self.round_at.map_or(ROUND, |at| cx.now - at);
        // A round that comes a little early or late is one.
        let elapsed = (passed.0 + ROUND.0 / 2) / ROUND.0;
        let elapsed = u32::try_from(elapsed).unwrap_or(u32::MAX).max(1);
        self.round_at = Some(cx.now);
        let (targets, now) = (self.targets(cx), cx.now);
        self.call(cx, |node, out| node.on_round(elapsed, &targets, now, out));
    }

    fn on_message(&mut self, from: From, whom: Option<NodeId>, says: Says, cx: &mut Keeping<'_>) {
        let Says::Prime(message) = says else { return cx.refuse_kind() };
        if whom.is_none_or(|whom| whom == cx.own().id) {
            self.call(cx, |node, out| node.on_message(from.name, message, out));
        }
    }

    fn join(&mut self, contacts: &[NodeId], _: &mut Keeping<'_>) {
        if !contacts.is_empty() {
            self.node.set_contacts(contacts);
        }
    }

    fn leave(&mut self, _: &mut Keeping<'_>) {
        self.node.leave();
    }

    /// Its observers find it silent, or it leaves by itself: nobody can report another's wish.
    fn send_away(&mut self, _: NodeId, _: &mut Keeping<'_>) {}

    fn configuration(&self) -> &Configuration {
        self.node.known().map_or(&self.none, |known| known)
    }

    fn is_member(&self) -> bool {
        self.node.is_member()
    }

    fn stands(&self, _: Time) -> Stands {
        let node = &self.node;
        if node.is_out() {
            Stands::Out
        } else if node.is_member() {
            let goes_on = node.epto().has_place() && !node.doubts_for_long();
            Stands::Member { goes_on }
        } else if node.has_contacts() {
            Stands::Joining
        } else {
            Stands::Away
        }
    }

    fn is_certain(&self) -> bool {
        false
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        into.field("has_place", &u8::from(self.node.epto().has_place()));
        into.field("doubts", &u8::from(self.node.is_in_doubt()));
        into.field("heard", &((self.node.heard().0 >> 64) as u64));
        for step in self.node.steps() {
            let (number, digest) = (step.view.number.0, (step.view.digest.0 >> 64) as u64);
            let time = step.by.map_or(0, |by| by.time.0);
            let source = step.by.map_or(NodeId(0), |by| by.source.node);
            let start = step.by.map_or(0, |by| by.source.start.0);
            into.row(
                "steps",
                &[
                    ("number", &number),
                    ("digest", &digest),
                    ("time", &time),
                    ("source", &source.0),
                    ("start", &start),
                ],
            );
        }
    }

    fn check(&self) {
        self.node.check();
    }
}
