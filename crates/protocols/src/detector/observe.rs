//! Silence that lanes want to know of soon: the peers that they observe.
//!
//! Beside the ring's detector, with shorter periods, and without a word to anybody but the lanes
//! that asked. Each lane says whom it observes and how often; a peer is asked as often as the lane
//! says that wants it most. It is silent when it has given no sign of life for six of its periods:
//! five for an answer and one before the first question that found none. So with 50 ms silence is
//! known within 350 ms of the last sign, while round trips take no more than a few of the periods.
//!
//! - A peer has more time if its round trips take long, and two periods more after each silence
//!   that was none. One that has never answered has at least [`TIMEOUT_MIN`].
//! - Anything else that it sends is a sign of life too, for [`UNANSWERED_MAX`] at most.
//! - The end of a connection is no silence. But who does not come back on another one within half
//!   of that time is silent.
//! - Time in which the observer itself stood still does not count.

#[cfg(test)]
mod tests;

use super::patience::Patience;
use super::{FORGIVEN, PERIOD, TIMEOUT_MIN, UNANSWERED_MAX};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start};
use quorate_kernel::limits::HOSTS_MAX;
use quorate_kernel::observe::{Every, Observation};
use quorate_kernel::time::{Span, Time};

/// For how many periods at least a question may be without an answer.
const ANSWER_PERIODS: u64 = 5;
/// By how many periods a false silence lengthens that.
const PENALTY_PERIODS: u64 = 2;
/// By how many it can be lengthened.
const PENALTY_PERIODS_MAX: u64 = 20;

/// What a lane is to be told: a peer that it observes is silent, or back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The one that observes.
    pub lane: LaneId,
    /// The one that it observes.
    pub peer: NodeId,
    /// Whether it is back.
    pub is_over: bool,
}

/// What is to be done when a period has passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Whom to ask.
    pub asks: Vec<NodeId>,
    /// What lanes are to be told.
    pub silences: Vec<Silence>,
}

/// What is known of an observed peer.
#[derive(Clone, Debug)]
struct Peer {
    every: Every,
    /// The newest start that answered.
    start: Start,
    asked_at: Option<Time>,
    /// When the newest answered question was sent, or the observation began.
    alive_at: Time,
    /// When anything of it was last heard, or the observation began.
    heard_at: Time,
    /// When its connection ended, if nothing was heard of it since.
    unlinked_at: Option<Time>,
    patience: Patience,
    is_silent: bool,
}

impl Peer {
    fn new(every: Every, now: Time) -> Peer {
        Peer {
            every,
            start: Start(0),
            asked_at: None,
            alive_at: now,
            heard_at: now,
            unlinked_at: None,
            patience: Patience::default(),
            is_silent: false,
        }
    }

    fn periods(&self, count: u64) -> Span {
        Span(self.every.span().0 * count)
    }

    /// Whether it is asked so often from now on. Until now it had no reason to be so quick.
    fn set_every(&mut self, every: Every, now: Time) {
        if every < self.every && !self.is_silent {
            self.alive_at = now;
        }
        self.every = every;
    }

    /// Time has passed in which the observer stood still.
    fn skip(&mut self, span: Span, now: Time) {
        let later = |at: Time| (at + span).min(now);
        (self.alive_at, self.heard_at) = (later(self.alive_at), later(self.heard_at));
        self.unlinked_at = self.unlinked_at.map(later);
    }

    fn hear(&mut self, at: Time) {
        self.heard_at = self.heard_at.max(at);
        self.unlinked_at = self.unlinked_at.filter(|unlinked| *unlinked >= at);
    }

    /// Whether it has given no sign that counts for too long.
    fn is_overdue(&self, now: Time) -> bool {
        let answer = self.periods(ANSWER_PERIODS);
        let least = if self.patience.is_measured() { answer } else { TIMEOUT_MIN.max(answer) };
        // The first question without an answer left at most a period after the last with one.
        let limit = self.every.span().0 + self.patience.timeout(least).0;
        let last = self.alive_at.max(self.heard_at.min(self.alive_at + UNANSWERED_MAX));
        let is_cut_off = self.unlinked_at.is_some_and(|at| (now - at).0 >= limit / 2);
        (now - last).0 >= limit || is_cut_off
    }

    fn is_due(&self, now: Time) -> bool {
        self.asked_at.is_none_or(|at| now - at >= self.every.span())
    }

    /// It has answered, in this start, a question sent then. Returns whether it was silent.
    fn answer(&mut self, start: Start, sent: Time, now: Time) -> bool {
        if start > self.start {
            // Another process: what the earlier one was like says nothing of it.
            (self.start, self.patience) = (start, Patience::default());
        } else if self.is_silent {
            let (by, most) = (self.periods(PENALTY_PERIODS), self.periods(PENALTY_PERIODS_MAX));
            self.patience.lengthen(by, most);
        }
        // As much is forgiven in a time as by the ring's detector, whose answers are fewer.
        self.patience.measure(now - sent, FORGIVEN * PERIOD.0 / self.every.span().0);
        let was_silent = core::mem::take(&mut self.is_silent);
        self.alive_at = if was_silent { now } else { self.alive_at.max(sent) };
        self.hear(now);
        was_silent
    }
}

/// The peers that the lanes of one node observe.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    /// What each lane asked last.
    lanes: BTreeMap<LaneId, Observation>,
    peers: BTreeMap<NodeId, Peer>,
    ticked_at: Option<Time>,
}

impl Observer {
    /// A lane asks anew. It is told at once who is silent already.
    pub fn ask(
        &mut self,
        lane: LaneId,
        observation: &Observation,
        is_known: impl Fn(NodeId) -> bool,
        now: Time,
    ) -> Vec<Silence> {
        self.lanes.remove(&lane);
        if !observation.peers.is_empty() {
            self.lanes.insert(lane, observation.clone());
        }
        self.set_known(is_known, now);
        let silent = self
            .peers
            .iter()
            .filter(|(peer, known)| known.is_silent && observation.peers.contains(peer));
        silent.map(|(peer, _)| Silence { lane, peer: *peer, is_over: false }).collect()
    }

    /// Other hosts may be known than before: of those that lanes observe the known are asked.
    pub fn set_known(&mut self, is_known: impl Fn(NodeId) -> bool, now: Time) {
        let mut wanted: BTreeMap<NodeId, Every> = BTreeMap::new();
        for Observation { peers, every } in self.lanes.values() {
            for peer in peers.iter().filter(|peer| is_known(**peer)) {
                let least = wanted.entry(*peer).or_insert(*every);
                *least = (*least).min(*every);
            }
        }
        self.peers.retain(|peer, _| wanted.contains_key(peer));
        for (peer, every) in wanted {
            self.peers.entry(peer).or_insert_with(|| Peer::new(every, now)).set_every(every, now);
        }
        if self.peers.is_empty() {
            self.ticked_at = None;
        }
    }

    /// The shortest period that any lane wants; none if nobody is observed.
    #[must_use]
    pub fn every(&self) -> Option<Every> {
        self.peers.values().map(|peer| peer.every).min()
    }

    /// The shortest period has passed.
    pub fn tick(&mut self, now: Time) -> Due {
        let Some(every) = self.every() else { return Due::default() };
        let since = self.ticked_at.replace(now).map_or(every.span(), |last| now - last);
        let is_late = since.0 > 2 * every.span().0;
        let mut asks = Vec::new();
        let mut silent = Vec::new();
        for (node, peer) in &mut self.peers {
            if is_late {
                peer.skip(Span(since.0 - every.span().0), now);
            }
            if !peer.is_silent && peer.is_overdue(now) {
                peer.is_silent = true;
                silent.push(*node);
            }
            if peer.is_due(now) {
                peer.asked_at = Some(now);
                asks.push(*node);
            }
        }
        let silences = silent.into_iter().flat_map(|node| self.tell(node, false)).collect();
        Due { asks, silences }
    }

    /// Something of a node was heard then.
    pub fn on_heard(&mut self, from: Incarnation, at: Time) {
        if let Some(peer) = self.peers.get_mut(&from.node) {
            let before = peer.heard_at;
            peer.hear(at);
            assert!(peer.heard_at >= before, "a sign of life is not taken back");
            assert!(peer.heard_at >= at, "it counts");
        }
    }

    /// A node answers a question that was sent at `sent`.
    pub fn on_answer(&mut self, from: Incarnation, sent: Time, now: Time) -> Vec<Silence> {
        self.check();
        let Some(peer) = self.peers.get_mut(&from.node) else { return Vec::new() };
        let is_sound = sent <= now && from.start >= peer.start;
        if !is_sound || !peer.answer(from.start, sent, now) {
            return Vec::new();
        }
        assert!(!peer.is_silent, "who answers is back");
        assert!(!peer.is_overdue(now), "it gets its time anew");
        self.tell(from.node, true).collect()
    }

    /// A connection to a node has ended. Returns whether to ask it at once.
    pub fn on_unlinked(&mut self, node: NodeId, now: Time) -> bool {
        let Some(peer) = self.peers.get_mut(&node) else { return false };
        peer.unlinked_at.get_or_insert(now);
        true
    }

    fn tell(&self, peer: NodeId, is_over: bool) -> impl Iterator<Item = Silence> {
        let lanes = self.lanes.iter().filter(move |(_, asked)| asked.peers.contains(&peer));
        lanes.map(move |(lane, _)| Silence { lane: *lane, peer, is_over })
    }

    /// How many peers are observed, and how many of them are silent.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.peers.len(), self.peers.values().filter(|peer| peer.is_silent).count())
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        assert!(self.peers.len() <= HOSTS_MAX, "only hosts that are known are observed");
        let is_asked = |peer| self.lanes.values().any(|asked| asked.peers.contains(peer));
        debug_assert!(self.peers.keys().all(is_asked), "none is observed for nobody");
    }
}
