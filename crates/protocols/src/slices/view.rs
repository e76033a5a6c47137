//! The members of a node's own slice that it knows.

use crate::gossip::cyclon::Peer;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::rng::Rng;

/// The members, without the node itself.
#[derive(Clone, Debug)]
pub struct View {
    me: NodeId,
    /// In the order of node ids.
    members: Vec<Peer>,
    members_max: usize,
    age_max: u16,
}

impl View {
    /// An empty view.
    #[must_use]
    pub fn new(me: NodeId, members_max: usize, age_max: u16) -> View {
        View { me, members: Vec::new(), members_max, age_max }
    }

    /// The members, in the order of their node ids.
    #[must_use]
    pub fn members(&self) -> &[Peer] {
        &self.members
    }

    /// A period has passed: who was not heard of for too long is dropped.
    pub fn age(&mut self) {
        self.members.iter_mut().for_each(|peer| peer.age = peer.age.saturating_add(1));
        let age_max = self.age_max;
        self.members.retain(|peer| peer.age <= age_max);
    }

    /// Keeps those for which `is_member` holds.
    pub fn keep(&mut self, is_member: impl Fn(NodeId) -> bool) {
        self.members.retain(|peer| is_member(peer.who.node));
    }

    /// Takes in those told of for which `is_member` holds: the newest start, and the younger age of
    /// it. Who is too old is no news. Where there is no room the oldest goes.
    pub fn merge(&mut self, told: &[Peer], is_member: impl Fn(NodeId) -> bool) {
        for peer in told {
            let node = peer.who.node;
            if node == self.me || peer.age > self.age_max || !is_member(node) {
                continue;
            }
            match self.members.binary_search_by_key(&node, |known| known.who.node) {
                Ok(place) => {
                    let known = &mut self.members[place];
                    let is_newer = peer.who.start > known.who.start;
                    let is_same = peer.who.start == known.who.start;
                    if is_newer || (is_same && peer.age < known.age) {
                        *known = peer.clone();
                    }
                }
                Err(place) => {
                    self.members.insert(place, peer.clone());
                    self.fit();
                }
            }
        }
    }

    fn fit(&mut self) {
        if self.members.len() > self.members_max {
            let age = |place: &usize| (self.members[*place].age, self.members[*place].who.node);
            let oldest = (0..self.members.len()).max_by_key(age);
            oldest.map(|place| self.members.remove(place));
        }
    }

    /// Some random members.
    pub fn sample(&self, count: usize, rng: &mut Rng) -> Vec<NodeId> {
        let mut left: Vec<NodeId> = self.members.iter().map(|peer| peer.who.node).collect();
        let mut chosen = Vec::with_capacity(count.min(left.len()));
        while chosen.len() < count && !left.is_empty() {
            chosen.push(left.swap_remove(rng.below(left.len() as u64) as usize));
        }
        chosen
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        assert!(self.members.len() <= self.members_max, "a view is bounded");
        assert!(self.members.iter().all(|peer| peer.who.node != self.me), "others are members");
        let is_sorted = self.members.is_sorted_by(|a, b| a.who.node < b.who.node);
        assert!(is_sorted, "nobody is a member twice");
        assert!(self.members.iter().all(|peer| peer.age <= self.age_max), "nobody is too old");
    }
}
