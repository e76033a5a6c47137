//! What a node believes of the ring: the hosts it knows, their tokens, and who is suspected.
//!
//! It is a hint and may be wrong at any time; which nodes hold a key is decided by group views
//! (CATS §5). A host has one or more **tokens**, places on the ring; each is a virtual node. A
//! key belongs to the first token at or after its own, clockwise.

use crate::ids::{Incarnation, NodeId};
use crate::rng::mix;
use crate::view::Range;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// How a host stands, by its own word or an operator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Standing {
    /// It takes part.
    Up,
    /// It hands over what it holds, and shall hold nothing new.
    Leaving,
    /// It is gone for good; its node id never comes back.
    Left,
}

/// Whether the whole cluster is being shut down, as far as a node was told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Closing {
    /// It is not.
    #[default]
    No,
    /// It is: nothing new is begun for clients, and nobody proposes a change of any group.
    Finishing,
    /// Every host that was told has finished: this one syncs and ends.
    Over,
}

/// A door at which clients find a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Door {
    /// Its name: `resp`, `http`.
    pub name: String,
    /// Where it is: a hint.
    pub address: String,
}

/// One host on the ring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingHost {
    /// Who it is, in the newest start known.
    pub who: Incarnation,
    /// Where its cluster door was last heard of: a hint, never an identity.
    pub address: String,
    /// Its failure zone; empty if none is configured.
    pub zone: String,
    /// Its tokens on the ring, ascending.
    pub tokens: Vec<u64>,
    /// How it stands.
    pub standing: Standing,
    /// Whether the failure detector here, or that of a node that is believed, suspects it.
    pub is_suspected: bool,
    /// Where its clients find it, as it last said.
    pub doors: Vec<Door>,
}

/// How much a host, or one lane of it, has to do. Estimates: nothing that is right depends on them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Load {
    /// Keys it stores.
    pub keys: u64,
    /// Bytes of keys and values it stores.
    pub bytes: u64,
    /// Operations it serves in a second.
    pub operations: u32,
}

/// What a part of the ring has to do, for each host that holds it: an estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The part; it lies within one group.
    pub range: Range,
    /// How many hosts hold it.
    pub replicas: u8,
    /// Bytes of keys and values in it.
    pub bytes: u64,
    /// Operations that one of its hosts serves in a second.
    pub operations: u32,
}

/// What a lane tells of how much it has to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weighed {
    /// All of it.
    pub load: Load,
    /// On which ring the pieces were weighed ([`Ring::shape`]), from begin to end with all groups
    /// at rest; 0 if they were not.
    pub shape: u64,
    /// The parts of the ring to which this node is the closest member.
    pub pieces: Vec<Piece>,
}

/// A snapshot of the ring as one node believes it to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    /// Rises with each change seen at this node; numbers of two nodes say nothing to each other.
    pub version: u64,
    /// Whether the cluster is being shut down.
    pub closing: Closing,
    hosts: Vec<RingHost>,
    /// Every token with the place of its host, ascending.
    tokens: Vec<(u64, usize)>,
}

impl Ring {
    /// A ring of these hosts. Those that have left keep no token.
    #[must_use]
    pub fn new(version: u64, mut hosts: Vec<RingHost>) -> Ring {
        hosts.sort_by_key(|host| host.who.node);
        hosts.dedup_by_key(|host| host.who.node);
        let mut tokens = Vec::new();
        for (index, host) in hosts.iter().enumerate() {
            if host.standing != Standing::Left {
                tokens.extend(host.tokens.iter().map(|token| (*token, index)));
            }
        }
        // Two hosts with one token: the lower node id has it, everywhere alike.
        tokens.sort_unstable();
        tokens.dedup_by_key(|(token, _)| *token);
        Ring { version, closing: Closing::No, hosts, tokens }
    }

    /// Every host known, in the order of node ids, those that have left included.
    #[must_use]
    pub fn hosts(&self) -> &[RingHost] {
        &self.hosts
    }

    /// The nodes of all hosts but this one that have not left, ascending.
    pub fn others(&self, me: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let is_there = |host: &&RingHost| host.standing != Standing::Left;
        let nodes = self.hosts.iter().filter(is_there).map(|host| host.who.node);
        nodes.filter(move |node| *node != me)
    }

    /// What is known of a node; none if it was never heard of.
    #[must_use]
    pub fn host(&self, node: NodeId) -> Option<&RingHost> {
        let index = self.hosts.binary_search_by_key(&node, |host| host.who.node).ok()?;
        Some(&self.hosts[index])
    }

    /// Every token and its host's node, ascending.
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = (u64, NodeId)> + '_ {
        self.tokens.iter().map(|(token, index)| (*token, self.hosts[*index].who.node))
    }

    /// One number for where hosts stand that may hold something. Equal rings, equal number, at
    /// whatever node; it is never 0.
    #[must_use]
    pub fn shape(&self) -> u64 {
        let may_hold = |host: &RingHost| host.standing == Standing::Up && !host.is_suspected;
        let token = |sum: u64, (token, index): &(u64, usize)| {
            let host = &self.hosts[*index];
            mix(mix(mix(sum ^ token) ^ host.who.node.0) ^ u64::from(may_hold(host)))
        };
        self.tokens.iter().fold(0, token) | 1
    }

    /// Whether a node is suspected, or has left.
    #[must_use]
    pub fn is_suspected(&self, node: NodeId) -> bool {
        let is_away = |host: &RingHost| host.is_suspected || host.standing == Standing::Left;
        self.host(node).is_some_and(is_away)
    }

    /// The hosts from a token on, clockwise, each once, at its first token.
    pub fn walk(&self, token: u64) -> impl Iterator<Item = &RingHost> + '_ {
        let first = self.tokens.partition_point(|(other, _)| *other < token);
        let mut is_met = alloc::vec![false; self.hosts.len()];
        let (before, after) = self.tokens.split_at(first);
        let in_order = after.iter().chain(before);
        in_order.filter_map(move |(_, index)| {
            let is_new = !core::mem::replace(&mut is_met[*index], true);
            is_new.then(|| &self.hosts[*index])
        })
    }

    /// The first token strictly inside a range of tokens that is of a host that is `Up`, if
    /// there is one.
    #[must_use]
    pub fn token_inside(&self, range: &Range) -> Option<u64> {
        let is_up = |index: usize| self.hosts[index].standing == Standing::Up;
        let inside = |token: u64| range.contains(token) && token != range.high;
        let mut tokens = self.tokens.iter().filter(|(_, index)| is_up(*index));
        tokens.find(|(token, _)| inside(*token)).map(|(token, _)| *token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Start;
    use alloc::vec;

    fn host(node: u64, tokens: &[u64]) -> RingHost {
        RingHost {
            who: Incarnation { node: NodeId(node), start: Start(1) },
            address: String::new(),
            zone: String::new(),
            tokens: tokens.to_vec(),
            standing: Standing::Up,
            is_suspected: false,
            doors: Vec::new(),
        }
    }

    #[test]
    fn a_walk_goes_round_once_and_meets_each_host_once() {
        let ring = Ring::new(1, vec![host(2, &[20, 50]), host(1, &[10, 40]), host(3, &[30])]);
        let walk = |at| ring.walk(at).map(|host| host.who.node.0).collect::<Vec<_>>();
        assert_eq!(walk(11), [2, 3, 1]);
        assert_eq!(walk(20), [2, 3, 1], "a token itself is its host's");
        assert_eq!(walk(51), [1, 2, 3], "it wraps");
        assert_eq!(walk(21), [3, 1, 2]);
        assert!(Ring::default().walk(7).next().is_none());
    }

    #[test]
    fn a_shape_is_of_tokens_and_of_who_may_hold_something() {
        let shape = |version, hosts: &[RingHost]| Ring::new(version, hosts.to_vec()).shape();
        let mut hosts = [host(1, &[10]), host(2, &[20])];
        let before = shape(1, &hosts);
        hosts[1].address = String::from("elsewhere");
        assert_eq!(shape(2, &hosts), before);
        hosts[1].is_suspected = true;
        let suspected = shape(2, &hosts);
        hosts[1].tokens = vec![21];
        let moved = shape(2, &hosts);
        assert!(before != suspected && suspected != moved && before != moved);
    }

    #[test]
    fn hosts_that_have_left_hold_nothing_and_equal_tokens_have_one_owner() {
        let mut gone = host(1, &[10]);
        gone.standing = Standing::Left;
        let ring = Ring::new(1, vec![gone, host(5, &[30]), host(4, &[30, 60])]);
        assert!(ring.tokens().eq([(30, NodeId(4)), (60, NodeId(4))]));
        assert!(ring.others(NodeId(5)).eq([NodeId(4)]));
        assert!(ring.is_suspected(NodeId(1)) && !ring.is_suspected(NodeId(4)));
        assert!(!ring.is_suspected(NodeId(99)), "of a stranger nothing is said");
        assert_eq!(ring.token_inside(&Range { low: 0, high: 60 }), Some(30));
        assert_eq!(ring.token_inside(&Range { low: 30, high: 60 }), None);
    }
}
