//! Cyclon: a random overlay (Voulgaris, Gavidia, van Steen, "Cyclon", 2005).
//!
//! Each node keeps a view of a few random neighbours. Once in a period it takes the oldest out of
//! its view and exchanges some entries with it. A neighbour that does not answer is gone from the
//! view already: that is all the failure handling there is.
//!
//! ```text
//! q = the oldest, removed;  q ◀── Shuffle(ℓ − 1 random others and self, aged 0)
//!                           q ──▶ ShuffleReply(ℓ random entries)
//! both: an entry of a known node is kept if it is younger; a new one takes a free place, or the
//!       place of one that was given away; otherwise it is dropped
//! ```
//! Departures: an entry carries the incarnation, and a newer start replaces an older one whatever
//! their ages; the requester is never in the answer it gets.
//!
//! Who uses it has a view of its own, as large as it needs ([`Shape`]), with its own period.

use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::CYCLON_VIEW_MAX;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use serde::{Deserialize, Serialize};

/// How large a view is, and how often and how much of it is exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The most neighbours; [`CYCLON_VIEW_MAX`] at most.
    pub view: usize,
    /// How many entries are exchanged: one at least, and at most a whole view.
    pub shuffle: usize,
    /// The time between two exchanges that a node begins. Its user keeps it.
    pub period: Span,
    /// Whether entries become older by one as they are told. Else one of a node that is gone can
    /// stay young for ever in a cluster that is hardly larger than a view: it is told to a node
    /// whose period has begun by one whose period has not, and so on.
    pub ages_when_told: bool,
}

impl Shape {
    /// The usual one: news of hosts spread over it.
    pub const USUAL: Shape =
        Shape { view: 20, shuffle: 8, period: Span::secs(1), ages_when_told: false };

    /// Whether a view can have this shape.
    #[must_use]
    pub const fn is_sound(&self) -> bool {
        0 < self.shuffle && self.shuffle <= self.view && self.view <= CYCLON_VIEW_MAX
    }
}

/// A neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// The newest start of the node that is known.
    pub who: Incarnation,
    /// How many periods ago it spoke for itself.
    pub age: u16,
    /// Where it may be found.
    pub address: Arc<str>,
}

/// The view of one node.
#[derive(Clone, Debug)]
pub struct Cyclon {
    me: NodeId,
    shape: Shape,
    view: Vec<Peer>,
    /// With whom an exchange is open, and what was given away in it.
    open: Option<(NodeId, Vec<NodeId>)>,
}

impl Cyclon {
    /// An empty view.
    #[must_use]
    pub fn new(me: NodeId, shape: Shape) -> Cyclon {
        invariant!(shape.is_sound(), "a shuffle fits a view, and a view its limit");
        Cyclon { me, shape, view: Vec::with_capacity(shape.view), open: None }
    }

    /// How large the view is, and how often it is exchanged.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The neighbours.
    #[must_use]
    pub fn view(&self) -> &[Peer] {
        &self.view
    }

    /// Adds a neighbour if there is room: how a node joins, copying what it was told of.
    pub fn seed(&mut self, peer: Peer) {
        self.merge([peer], &mut Vec::new());
    }

    /// Drops a neighbour that has left for good.
    pub fn forget(&mut self, node: NodeId) {
        self.view.retain(|peer| peer.who.node != node);
    }

    /// A period has passed: whom to send what. `own` is the entry of this node itself.
    pub fn begin(&mut self, own: Peer, rng: &mut Rng) -> Option<(NodeId, Vec<Peer>)> {
        self.view.iter_mut().for_each(|peer| peer.age = peer.age.saturating_add(1));
        let is_older = |place: &usize| (self.view[*place].age, self.view[*place].who.node);
        let oldest = (0..self.view.len()).max_by_key(is_older)?;
        let partner = self.view.swap_remove(oldest).who.node;
        Some((partner, self.open(partner, own, rng)))
    }

    /// As [`Cyclon::begin`], with a node of which the caller knows otherwise. When a network was
    /// divided for so long that neither side has any of the other in its views, nothing else brings
    /// them together again.
    pub fn begin_with(&mut self, partner: NodeId, own: Peer, rng: &mut Rng) -> Vec<Peer> {
        invariant!(partner != self.me, "nobody is his own neighbour");
        self.view.iter_mut().for_each(|peer| peer.age = peer.age.saturating_add(1));
        self.open(partner, own, rng)
    }

    /// Opens an exchange: what to send.
    fn open(&mut self, partner: NodeId, own: Peer, rng: &mut Rng) -> Vec<Peer> {
        let mut given = self.told(self.shape.shuffle - 1, rng, |_| true);
        let mut away: Vec<NodeId> = given.iter().map(|peer| peer.who.node).collect();
        away.push(partner);
        self.open = Some((partner, away));
        given.push(own);
        given
    }

    /// A neighbour exchanges: what to answer.
    pub fn on_shuffle(&mut self, from: NodeId, given: Vec<Peer>, rng: &mut Rng) -> Vec<Peer> {
        let answer = self.told(self.shape.shuffle, rng, |peer| peer.who.node != from);
        let mut away = answer.iter().map(|peer| peer.who.node).collect();
        self.merge(given, &mut away);
        assert!(answer.iter().all(|peer| peer.who.node != from), "nobody is told of himself");
        assert!(self.view.len() <= self.shape.view, "the view is bounded");
        answer
    }

    /// The answer of the neighbour with whom an exchange is open; any other is ignored.
    pub fn on_reply(&mut self, from: NodeId, given: Vec<Peer>) {
        if let Some((_, mut away)) = self.open.take_if(|(partner, _)| *partner == from) {
            self.merge(given, &mut away);
        }
        assert!(self.view.len() <= self.shape.view, "the view is bounded");
        assert!(self.view.iter().all(|peer| peer.who.node != self.me), "nobody is his neighbour");
    }

    /// Some random neighbours for which `is_good` holds.
    pub fn sample(
        &self,
        count: usize,
        rng: &mut Rng,
        is_good: impl Fn(NodeId) -> bool,
    ) -> Vec<NodeId> {
        let chosen = self.random(count, rng, |peer| is_good(peer.who.node));
        chosen.into_iter().map(|peer| peer.who.node).collect()
    }

    /// Some random neighbours, as they are told.
    fn told(&self, count: usize, rng: &mut Rng, is_good: impl Fn(&Peer) -> bool) -> Vec<Peer> {
        let mut chosen = self.random(count, rng, is_good);
        if self.shape.ages_when_told {
            chosen.iter_mut().for_each(|peer| peer.age = peer.age.saturating_add(1));
        }
        chosen
    }

    fn random(&self, count: usize, rng: &mut Rng, is_good: impl Fn(&Peer) -> bool) -> Vec<Peer> {
        let mut places: [u8; CYCLON_VIEW_MAX] = core::array::from_fn(|place| place as u8);
        let (mut chosen, mut left) = (Vec::with_capacity(count + 1), self.view.len());
        while chosen.len() < count && left > 0 {
            let drawn = rng.below(left as u64) as usize;
            left -= 1;
            let peer = &self.view[usize::from(places[drawn])];
            places.swap(drawn, left);
            if is_good(peer) {
                chosen.push(peer.clone());
            }
        }
        chosen
    }

    fn merge(&mut self, given: impl IntoIterator<Item = Peer>, away: &mut Vec<NodeId>) {
        for peer in given {
            if peer.who.node == self.me {
                continue;
            }
            let known = self.view.iter_mut().find(|known| known.who.node == peer.who.node);
            if let Some(known) = known {
                let is_newer = peer.who.start > known.who.start;
                let is_same = peer.who.start == known.who.start;
                if is_newer || (is_same && peer.age < known.age) {
                    *known = peer;
                }
            } else if self.view.len() < self.shape.view {
                self.view.push(peer);
            } else if let Some(place) = self.given_away(away) {
                self.view[place] = peer;
            }
        }
    }

    /// The place of an entry that was given away and is still here.
    fn given_away(&self, away: &mut Vec<NodeId>) -> Option<usize> {
        loop {
            let node = away.pop()?;
            if let Some(place) = self.view.iter().position(|peer| peer.who.node == node) {
                return Some(place);
            }
        }
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        assert!(self.view.len() <= self.shape.view, "the view is bounded");
        assert!(self.view.iter().all(|peer| peer.who.node != self.me), "nobody is his neighbour");
    }
}

const _: () = assert!(CYCLON_VIEW_MAX < 256 && Shape::USUAL.is_sound());
