//! Slices: nodes divide themselves into groups, by their own position and what they hear.
//!
//! From Maia et al., "DataFlasks: epidemic store for massive scale systems" (SRDS 2014), as
//! Ribeiro, Machado, Maia, Matos use it in "Totally Ordered Replication for Massive Scale Key-Value
//! Stores" (DAIS 2018, section 2.2). Nobody has a list of all nodes, and nobody decides for others.
//!
//! | file | what it is |
//! |---|---|
//! | [`position`] | where a node stands, and which of the slices that is |
//! | [`view`] | the members of a node's own slice that it knows, with ages |
//! | [`estimate`] | how many slices there should be, from what others count, with hysteresis |
//! | [`floor`] | the smallest slice that anybody knows of |
//!
//! ```text
//! each Cyclon exchange: both tell their number of slices and how many nodes they count
//! each period:          a node tells two members of its slice whom it knows there
//! a joiner:             takes the number that most of its first partners have
//! ```
//!
//! # Departures from the papers
//! - Positions are 64-bit integers and follow from the node id, which is drawn once and never
//!   reused: nothing is stored or told, and 0 is in the first slice. Binary fractions would place
//!   nodes on exact borders differently from language to language.
//! - The papers double and halve by the size of a node's own slice. Positions are random, so sizes
//!   spread by a third around their mean: a slice of five beside one of nine is too small alone and
//!   too large together, and would change for ever. Here the mean of what the last partners of
//!   exchanges tell is compared. Each counts `others · slices + 1`, which is right on average, and
//!   tells a quarter of that and three of the mean that it heard, so that all come close together.
//! - A node changes its number only after several estimates in a row that want the same, and once
//!   in a greatest age, after which its view is filled again; meanwhile it does not tell a count.
//! - Of what partners count the highest quarter and the lowest are left out, so that one that is
//!   wrong moves nobody.
//! - Doubling waits until the mean is an eighth above twice the least, even where the most is
//!   lower, so that no number of nodes is right for neither. Where two numbers are right nodes take
//!   that of the majority they hear, so they agree.
//! - The papers know no bound for the smallest slice, which is empty at times: nobody has its keys.
//!   Where [`Bounds::floor`] is set slices are cut only if every half is large enough, and joined
//!   if one is too small. They have more members then than the mean that is wanted.
//! - Ages count a node's own periods, as those of Cyclon, and not exchanges received.

pub mod estimate;
pub mod floor;
pub mod position;
#[cfg(test)]
mod tests;
pub mod view;

use crate::gossip::cyclon::Peer;
use alloc::vec::Vec;
use estimate::{Bounds, Estimate};
use floor::{Floor, Least};
use position::{Groups, Position, Slice};
use quorate_kernel::ids::NodeId;
use quorate_kernel::rng::Rng;
use quorate_kernel::{invariant, mutant};
use serde::{Deserialize, Serialize};
use view::View;

/// How many members of its slice a node tells in a period whom it knows.
pub const TOLD: usize = 2;
/// After how many greatest ages without any word of it the slice beside the own one is empty: views
/// are random, and in a large cluster few entries are of that slice.
const EMPTY_AGES: u16 = 16;

/// What the two sides of a Cyclon exchange tell of themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The number of slices that the sender goes by; none while it has not settled for one.
    pub groups: Option<Groups>,
    /// How many nodes there are, as it counts and hears; none while its view is being filled.
    pub count: Option<u32>,
    /// The smallest slice and half of one of this number of slices that it knows of.
    pub least: Option<Least>,
}

/// A node's number of slices has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed {
    /// The number that it went by; none if this is its first.
    pub from: Option<Groups>,
    /// The number that it goes by now.
    pub to: Groups,
}

/// What one node knows of slices.
#[derive(Clone, Debug)]
pub struct Slices {
    me: NodeId,
    view: View,
    estimate: Estimate,
    floor: Floor,
    /// For how many periods nobody was heard of in the slice beside the own one.
    unheard: u16,
}

impl Slices {
    /// A node that knows nobody yet.
    #[must_use]
    pub fn new(me: NodeId, bounds: Bounds) -> Slices {
        let view = View::new(me, bounds.members_max(), bounds.age_max);
        Slices { me, view, estimate: Estimate::new(bounds), floor: Floor::default(), unheard: 0 }
    }

    /// The number of slices that this node goes by; none before it has settled for one.
    #[must_use]
    pub fn groups(&self) -> Option<Groups> {
        self.estimate.groups()
    }

    /// The slice of this node.
    #[must_use]
    pub fn own(&self) -> Option<Slice> {
        self.groups().map(|groups| groups.slice(Position::of(self.me)))
    }

    /// The members of the own slice that are known, without this node.
    #[must_use]
    pub fn members(&self) -> &[Peer] {
        self.view.members()
    }

    /// How many nodes there are, as far as exchanges tell; one at least.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.estimate.mean().unwrap_or_else(|| self.own_count().unwrap_or(1))
    }

    /// What an exchange tells of this node.
    #[must_use]
    pub fn told(&self) -> Profile {
        let is_filled = self.estimate.is_filled();
        let own = self.own_count().filter(|_| is_filled);
        let count = own.map(|own| self.estimate.blended(own));
        Profile { groups: self.groups(), count, least: self.floor.told() }
    }

    /// Whether the members of the own slice had the time to be heard of since it changed.
    #[must_use]
    pub fn is_filled(&self) -> bool {
        self.estimate.is_filled()
    }

    /// Whether anybody was heard lately.
    #[must_use]
    pub fn hears(&self) -> bool {
        self.estimate.hears()
    }

    fn own_count(&self) -> Option<u32> {
        let groups = self.groups()?;
        let others = u64::try_from(self.view.members().len()).expect("a view is small");
        Some(u32::try_from((others << groups.log2()) + 1).unwrap_or(u32::MAX))
    }

    /// Whether a node is in the slice beside the own one, with which it would be joined.
    fn is_beside(&self, node: NodeId) -> bool {
        let own = self.groups().zip(self.own());
        own.is_some_and(|(groups, own)| groups.slice(Position::of(node)).0 == own.0 ^ 1)
    }

    /// How many members the own slice and its smaller half have; none while the view is filled.
    fn own_sizes(&self) -> Option<(u16, u16)> {
        // Who was cut off knows nobody, and must hear of all others again before it counts.
        let is_sure = self.is_filled() && self.estimate.is_together();
        let groups = self.groups().filter(|_| is_sure)?;
        let small = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
        let nodes = self.view.members().iter().map(|peer| peer.who.node).chain([self.me]);
        // Where there can be no more slices nobody asks for halves.
        let halves = Groups::power(groups.log2() + 1).unwrap_or(groups);
        let half = |node| halves.slice(Position::of(node)).0 % 2;
        let upper = nodes.filter(|node| half(*node) == 1).count();
        let whole = self.view.members().len() + 1;
        let half = small(upper.min(whole - upper));
        // An empty slice has nobody who could say so.
        let is_empty =
            groups.log2() > 0 && self.unheard > EMPTY_AGES * self.estimate.bounds().age_max;
        Some((if is_empty && !mutant!("slices_empty_unseen") { 0 } else { small(whole) }, half))
    }

    /// A Cyclon exchange has brought entries, and what the partner tells of itself.
    pub fn on_exchange(
        &mut self,
        from: NodeId,
        entries: &[Peer],
        told: Profile,
    ) -> Option<Changed> {
        invariant!(from != self.me, "nobody is its own partner");
        let changed = self.estimate.hear(from, told);
        if changed.is_some() {
            self.unheard = 0;
        } else if told.groups == self.groups() {
            self.floor.hear(told.least, self.estimate.bounds().age_max);
        }
        let mut told_of = entries.iter().map(|peer| peer.who.node).chain([from]);
        if told_of.any(|node| self.is_beside(node)) {
            self.unheard = 0;
        }
        self.on_members(entries);
        self.check();
        invariant!(self.groups().is_none_or(Groups::is_sound), "there are not too many slices");
        changed
    }

    /// Somebody tells of nodes: those of the own slice are kept.
    pub fn on_members(&mut self, entries: &[Peer]) {
        let Some((groups, own)) = self.groups().zip(self.own()) else { return };
        self.view.merge(entries, |node| groups.slice(Position::of(node)) == own);
    }

    /// A period has passed.
    pub fn on_period(&mut self) -> Option<Changed> {
        self.view.age();
        let own = self.own_count();
        self.unheard = self.unheard.saturating_add(1);
        self.floor.on_period(self.own_sizes(), self.estimate.bounds().age_max);
        let changed = self.estimate.on_period(own, self.floor.least());
        if changed.is_some() {
            self.floor.clear();
            self.unheard = 0;
        }
        if let Some((groups, own)) = self.groups().zip(self.own()) {
            self.view.keep(|node| groups.slice(Position::of(node)) == own);
        }
        self.check();
        changed
    }

    /// Who is told in this period whom this node knows of its slice, and what. `own` is its entry.
    pub fn tell(&self, own: Peer, rng: &mut Rng) -> (Vec<NodeId>, Vec<Peer>) {
        invariant!(own.who.node == self.me && own.age == 0, "a node speaks for itself, now");
        let mut known = self.view.members().to_vec();
        // Else one that is gone could stay young on its way round.
        known.iter_mut().for_each(|peer| peer.age = peer.age.saturating_add(1));
        known.push(own);
        (self.view.sample(TOLD, rng), known)
    }

    /// Drops a member that has left for good.
    pub fn forget(&mut self, node: NodeId) {
        self.view.keep(|known| known != node);
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        self.view.check();
        self.estimate.check();
        let is_unplaced = self.groups().is_none();
        assert!(!is_unplaced || self.members().is_empty(), "without a slice there are no members");
        if let Some((groups, own)) = self.groups().zip(self.own()) {
            let is_own = |peer: &Peer| groups.slice(Position::of(peer.who.node)) == own;
            assert!(self.members().iter().all(is_own), "all members are of the own slice");
        }
    }
}
