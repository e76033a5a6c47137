//! The ping failure detector: suspicions, possibly false, that end (Chandra and Toueg, 1996).
//!
//! Once in a period each watched node gets a ping that carries the time it was sent, and echoes it.
//! A node is suspected when a ping has found no answer for longer than its time-out: a second, more
//! if its round trips take long, more with each suspicion that turned out false. So under partial
//! synchrony suspicions of a live node end.
//!
//! - Anything else that a node sends is a sign of life too: its answer may wait behind large
//!   frames, or behind the work that they make. But it does not say that the node hears, so it puts
//!   a suspicion off by [`UNANSWERED_MAX`] at most.
//! - An answer of a newer start says that the old incarnation is gone and the new one lives.
//! - When the observer's own timer is late by more than a period it was the observer that stood
//!   still: all time-outs begin anew instead of suspecting everybody.
//!
//! What lanes want to know sooner is [`observe`].

pub mod observe;
mod patience;
#[cfg(test)]
mod tests;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use patience::Patience;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::WATCHED_MAX;
use quorate_kernel::time::{Span, Time};

/// The time between two pings of a node.
pub const PERIOD: Span = Span::millis(500);
/// The shortest time-out.
pub const TIMEOUT_MIN: Span = Span::millis(1000);
/// By how much a false suspicion lengthens the time-out of its suspect.
pub const PENALTY: Span = Span::millis(500);
/// How much a time-out can be lengthened.
pub const PENALTY_MAX: Span = Span::secs(10);
/// How long a node may leave pings without an answer while other signs of life come from it.
pub const UNANSWERED_MAX: Span = Span::secs(5);
/// How long a suspect is still pinged after it is not to be watched any more.
pub const SUSPECT_KEPT: Span = Span::secs(30);
/// How many such suspects are kept.
const SUSPECTS_MAX: usize = 2 * WATCHED_MAX;
/// Of a penalty one part in this is forgiven at each answer.
const FORGIVEN: u64 = 256;
const _: () = assert!(UNANSWERED_MAX.0 > PERIOD.0 + TIMEOUT_MIN.0, "other signs count");

/// What is known of a watched node.
#[derive(Clone, Debug)]
struct Peer {
    who: Incarnation,
    /// When the newest answered ping was sent, or the watch began.
    alive_at: Time,
    /// When anything of it was last heard, or the watch began.
    heard_at: Time,
    patience: Patience,
    suspected_at: Option<Time>,
    is_watched: bool,
}

impl Peer {
    fn new(who: Incarnation, now: Time) -> Peer {
        Peer {
            who,
            alive_at: now,
            heard_at: now,
            patience: Patience::default(),
            suspected_at: None,
            is_watched: true,
        }
    }

    /// For how long it has given no sign that counts.
    fn silence(&self, now: Time) -> Span {
        let last = self.heard_at.min(self.alive_at + UNANSWERED_MAX);
        now - self.alive_at.max(last)
    }

    fn timeout(&self) -> Span {
        self.patience.timeout(TIMEOUT_MIN)
    }
}

/// What an answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Nothing: it is of a node that is not watched, of an older start, or impossible.
    Nothing,
    /// The node lives, as was believed.
    Alive,
    /// The node lives though it is suspected. It stays so until it refutes
    /// ([`Detector::on_refuted`]); each of its answers says this again.
    Restored,
    /// The node lives in this newer start; its older one is gone.
    Restarted,
}

/// What is to be done when a period has passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Whom to ping.
    pub pings: Vec<NodeId>,
    /// Who is suspected from now on.
    pub suspects: Vec<Incarnation>,
    /// Whether the observer itself stood still, so that nobody was judged.
    pub is_late: bool,
}

/// The detector of one node.
#[derive(Clone, Debug, Default)]
pub struct Detector {
    peers: BTreeMap<NodeId, Peer>,
    ticked_at: Option<Time>,
}

impl Detector {
    /// Sets whom to watch. Suspects that are not in the list are pinged for a while longer, so that
    /// a false suspicion is found out.
    pub fn watch(&mut self, nodes: impl Iterator<Item = Incarnation>, now: Time) {
        self.peers.values_mut().for_each(|peer| peer.is_watched = false);
        for who in nodes.take(WATCHED_MAX) {
            let peer = self.peers.entry(who.node).or_insert_with(|| Peer::new(who, now));
            if peer.who.start < who.start {
                *peer = Peer::new(who, now);
            } else if !peer.is_watched && peer.suspected_at.is_some() {
                // It was believed again elsewhere: it gets its time-out anew.
                peer.alive_at = now;
            }
            peer.is_watched = true;
        }
        self.peers.retain(|_, peer| peer.is_watched || peer.suspected_at.is_some());
        while self.peers.len() > WATCHED_MAX + SUSPECTS_MAX {
            let spare = self.peers.values().filter(|peer| !peer.is_watched);
            let Some((_, node)) = spare.map(|peer| (peer.suspected_at, peer.who.node)).min() else {
                break;
            };
            self.peers.remove(&node);
        }
    }

    /// A period has passed.
    pub fn tick(&mut self, now: Time) -> Due {
        let since = self.ticked_at.map_or(PERIOD, |last| now - last);
        self.ticked_at = Some(now);
        let mut due = Due { is_late: since.0 > 2 * PERIOD.0, ..Due::default() };
        if due.is_late {
            self.peers.values_mut().for_each(|peer| peer.alive_at = now);
        }
        for peer in self.peers.values_mut() {
            due.pings.push(peer.who.node);
            let silence = peer.silence(now);
            // The first ping without an answer left at most a period after the last with one.
            if peer.suspected_at.is_none() && silence.0 >= PERIOD.0 + peer.timeout().0 {
                peer.suspected_at = Some(now);
                due.suspects.push(peer.who);
            }
        }
        let is_kept = |peer: &Peer| {
            peer.is_watched || peer.suspected_at.is_some_and(|at| now - at < SUSPECT_KEPT)
        };
        self.peers.retain(|_, peer| is_kept(peer));
        due
    }

    /// Something of a node was heard then. Of a suspect only its own word counts.
    pub fn on_heard(&mut self, from: Incarnation, at: Time) {
        invariant!(self.is_bounded(), "the watched are bounded");
        let Some(peer) = self.peers.get_mut(&from.node) else { return };
        invariant!(peer.who.node == from.node, "a peer is kept under its own id");
        if peer.who == from {
            peer.heard_at = peer.heard_at.max(at);
        }
    }

    /// A node echoes a ping that was sent at `sent`.
    pub fn on_pong(&mut self, from: Incarnation, sent: Time, now: Time) -> Heard {
        invariant!(self.is_bounded(), "the watched are bounded");
        let Some(peer) = self.peers.get_mut(&from.node) else { return Heard::Nothing };
        invariant!(peer.who.node == from.node, "a peer is kept under its own id");
        if sent > now || from.start < peer.who.start {
            return Heard::Nothing;
        }
        if from.start > peer.who.start {
            *peer = Peer { is_watched: peer.is_watched, ..Peer::new(from, now) };
            return Heard::Restarted;
        }
        peer.alive_at = peer.alive_at.max(sent);
        peer.patience.measure(now - sent, FORGIVEN);
        if peer.suspected_at.is_none() { Heard::Alive } else { Heard::Restored }
    }

    /// A suspect refuted: it is judged anew from now on, more patiently.
    pub fn on_refuted(&mut self, who: Incarnation, now: Time) {
        invariant!(self.is_bounded(), "the watched are bounded");
        if let Some(peer) = self.peers.get_mut(&who.node)
            && peer.who == who
            && peer.suspected_at.take().is_some()
        {
            let before = peer.timeout();
            peer.alive_at = now;
            peer.patience.lengthen(PENALTY, PENALTY_MAX);
            invariant!(peer.timeout() >= before, "who was suspected in vain gets more time");
        }
    }

    /// A node is suspected because others say so: if it is watched here it is pinged for as long as
    /// if it had been silent here.
    pub fn on_believed(&mut self, node: NodeId, now: Time) {
        if let Some(peer) = self.peers.get_mut(&node) {
            invariant!(peer.who.node == node, "each is known under its name");
            peer.suspected_at.get_or_insert(now);
            invariant!(peer.suspected_at.is_some(), "a suspect is pinged for a while");
        }
    }

    /// Whether a node that is watched here has given a sign of life within its time-out.
    #[must_use]
    pub fn hears(&self, node: NodeId, now: Time) -> bool {
        let is_fresh = |peer: &Peer| peer.silence(now) < Span(PERIOD.0 + peer.timeout().0);
        self.peers.get(&node).is_some_and(|peer| peer.suspected_at.is_none() && is_fresh(peer))
    }

    /// Whether this detector suspects a node.
    #[must_use]
    pub fn is_suspected(&self, node: NodeId) -> bool {
        self.peers.get(&node).is_some_and(|peer| peer.suspected_at.is_some())
    }

    /// Who is watched.
    #[must_use]
    pub fn watched(&self) -> BTreeSet<NodeId> {
        let watched = self.peers.values().filter(|peer| peer.is_watched);
        watched.map(|peer| peer.who.node).collect()
    }

    /// The present time-out of a node.
    #[must_use]
    pub fn timeout(&self, node: NodeId) -> Option<Span> {
        self.peers.get(&node).map(Peer::timeout)
    }

    /// Whether no more are kept than may be.
    fn is_bounded(&self) -> bool {
        self.peers.len() <= WATCHED_MAX + SUSPECTS_MAX
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        invariant!(self.is_bounded(), "the watched are bounded");
    }
}
