//! One ring of two: after a partition each side takes the other for dead (Shafaat, Ghodsi, Haridi,
//! "Dealing with network partitions in structured overlay networks", 2009).
//!
//! Once in a period a node pings one random host that it takes for dead, or a configured seed. If
//! it answers in the incarnation that is known, and is no neighbour, the two compare all they know,
//! and each suspect that lives refutes. News of the found host is then routed along the ring to its
//! own neighbourhood (the paper's `mlookup`), and the neighbourhood tells it of itself
//! (`trymerge`).
//!
//! Departure: a step carries the host's record and taking it in is what improves pointers, so a
//! step that comes twice or races with stabilization does nothing, and each node on the way hears
//! of the host and spreads it: the paper's gossip variant. The passive list is every host that is
//! known and suspected: the known hosts are stored, so two rings cannot forget each other.

use super::pointers::Place;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::time::{Span, Time};

/// The time between two attempts of one node.
pub const PERIOD: Span = Span::secs(10);

/// The attempts of one node: at most one in a period.
#[derive(Clone, Debug, Default)]
pub struct Unification {
    asked: Option<(Incarnation, Time)>,
    /// How many hosts were asked.
    tried: u64,
    begun: u64,
}

impl Unification {
    /// A host was pinged.
    pub fn ask(&mut self, who: Incarnation, now: Time) {
        self.asked = Some((who, now));
        self.tried += 1;
    }

    /// A host answers: whether it is the one that was asked, in the incarnation that was known.
    /// Another incarnation is a host that restarted, and no sign of another ring.
    pub fn on_answer(&mut self, from: Incarnation) -> bool {
        let is_asked = self.asked.take_if(|(who, _)| who.node == from.node);
        let is_same = is_asked.is_some_and(|(who, _)| who == from);
        self.begun += u64::from(is_same);
        invariant!(self.begun <= self.tried, "who was not asked begins nothing");
        let is_open = self.asked.is_some_and(|(who, _)| who.node == from.node);
        invariant!(!is_open, "a question is answered once");
        is_same
    }

    /// How many were begun.
    #[must_use]
    pub fn begun(&self) -> u64 {
        self.begun
    }
}

/// The place from which a lookup of a token goes on: the closest before it. `None` if there is none
/// closer than `own`, so that the lookup has arrived.
pub fn closest_before(token: u64, own: u64, places: impl Iterator<Item = Place>) -> Option<Place> {
    let reach = token.wrapping_sub(own);
    let is_between = |place: &Place| {
        let distance = place.token.wrapping_sub(own);
        distance > 0 && distance < reach
    };
    places.filter(is_between).max_by_key(|place| (place.token.wrapping_sub(own), place.node))
}
