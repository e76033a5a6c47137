//! What the overlay of a node knows.

use super::message::Message;
use super::operators::shutdown::Shutdown;
use super::tokens::weights::Known;
use super::{Context, Overlay};
use crate::detector::Detector;
use crate::detector::observe::Observer;
use crate::gossip::cyclon::{Cyclon, Peer, Shape};
use crate::gossip::doubts::Doubts;
use crate::gossip::hosts::Hosts;
use crate::gossip::record::{HostRecord, News, Rank, Stamp};
use crate::gossip::rumours::Rumours;
use crate::ring::stabilize::Stabilizer;
use crate::ring::unification::Unification;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use quorate_kernel::effects::Recipients;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::ring::Standing;
use quorate_kernel::time::Time;

/// What the console shows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub messages_sent: u64,
    pub pings_sent: u64,
    pub suspicions: u64,
    pub refutations: u64,
    /// How often this observer found that it had stood still.
    pub pauses: u64,
    /// How often somebody else spoke in this node's name, in a later start.
    pub clones: u64,
}

/// The state. Durable is only what [`super::keys`] lists: the records in `hosts`.
#[derive(Debug)]
pub(super) struct State {
    pub me: Incarnation,
    /// Every host known, this one among them.
    pub hosts: Hosts,
    /// Whose records are newer than their stored form.
    pub dirty: BTreeSet<NodeId>,
    pub cyclon: Cyclon,
    pub rumours: Rumours,
    pub is_round_armed: bool,
    pub doubts: Doubts,
    pub detector: Detector,
    /// The peers that lanes of this node observe.
    pub observer: Observer,
    pub ring: Stabilizer,
    /// Whether the neighbours may have changed since they were last set to be watched.
    pub is_watch_old: bool,
    pub unification: Unification,
    /// The host of another ring that must refute before it can be merged.
    pub merging: Option<Incarnation>,
    pub ring_version: u64,
    pub announced_at: Option<Time>,
    pub is_announce_armed: bool,
    pub periods: u64,
    pub started_at: Time,
    /// Whether any other host was heard in this start.
    pub is_joined: bool,
    pub known: Known,
    pub counters: Counters,
    pub shutdown: Shutdown,
}

impl State {
    pub fn new(me: Incarnation, now: Time) -> State {
        State {
            me,
            hosts: Hosts::default(),
            dirty: BTreeSet::new(),
            cyclon: Cyclon::new(me.node, Shape::USUAL),
            rumours: Rumours::default(),
            is_round_armed: false,
            doubts: Doubts::default(),
            detector: Detector::default(),
            observer: Observer::default(),
            ring: Stabilizer::new(me.node),
            is_watch_old: true,
            unification: Unification::default(),
            merging: None,
            ring_version: 0,
            announced_at: None,
            is_announce_armed: false,
            periods: 0,
            started_at: now,
            is_joined: false,
            known: Known::default(),
            counters: Counters::default(),
            shutdown: Shutdown::default(),
        }
    }

    /// What this node says of itself.
    pub fn own(&self) -> &News {
        self.hosts.get(self.me.node).expect("a node knows itself")
    }

    /// Whether this node has left: it listens, and says nothing of itself any more.
    pub fn is_passive(&self) -> bool {
        self.own().record.standing == Standing::Left
    }

    /// This node as a neighbour of others.
    pub fn own_peer(&self) -> Peer {
        Peer { who: self.me, age: 0, address: Arc::clone(&self.own().record.address) }
    }

    /// What this node says of itself, and how it stands. Neither goes back.
    pub fn own_marks(&self) -> (Stamp, Rank) {
        let own = &self.own().record;
        (own.stamp(), own.rank())
    }

    /// Whether rounds go on while anything is hot.
    pub fn has_rounds(&self) -> bool {
        self.is_round_armed || !self.rumours.is_hot()
    }

    pub fn record(&self, node: NodeId) -> Option<&HostRecord> {
        self.hosts.get(node).map(|news| &*news.record)
    }
}

fn count(to: &Recipients) -> u64 {
    match to {
        Recipients::One(_) => 1,
        Recipients::Group(nodes) => nodes.len() as u64,
    }
}

impl Overlay {
    /// Sends a message in the order of the lane: what it rests on is durable before.
    pub(super) fn send(
        &mut self,
        to: impl Into<Recipients>,
        message: Message,
        cx: &mut Context<'_>,
    ) {
        let to = to.into();
        self.state.counters.messages_sent += count(&to);
        cx.fx.send(to, message);
    }

    /// Sends at once what promises nothing.
    pub(super) fn send_early(
        &mut self,
        to: impl Into<Recipients>,
        message: Message,
        cx: &mut Context<'_>,
    ) {
        let to = to.into();
        self.state.counters.messages_sent += count(&to);
        cx.fx.send_early(to, message);
    }

    /// Pings. A question promises nothing, so it leaves at once: held back by a slow disk of its
    /// own, an observer would suspect others for it.
    pub(super) fn ping(&mut self, to: impl Into<Recipients>, cx: &mut Context<'_>) {
        let to = to.into();
        self.state.counters.pings_sent += count(&to);
        self.send_early(to, Message::Ping { sent: cx.now.0 }, cx);
    }

    pub(super) fn check_state(&self) {
        let state = &self.state;
        state.hosts.check();
        state.cyclon.check();
        state.rumours.check();
        state.detector.check();
        state.observer.check();
        state.ring.check();
        let own = state.own();
        assert_eq!(own.record.who, state.me, "a node knows its own start");
        assert!(own.suspected_by.is_none(), "a node does not suspect itself");
    }
}
