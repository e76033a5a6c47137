//! Which one change of tokens evens out the load best.
//!
//! Pure functions over what gossip tells. CATS balances load by moving virtual nodes by such
//! statistics, and leaves open how (§2, §3). Here every host knows the weight of every part of the
//! ring, so it can tell what each host would have to do if a token stood elsewhere, replicas and
//! zones included: the most loaded host looks for the change that evens out most.
//!
//! # Why moves end
//! A change is wished for only while some host has more than half as much again as the mean, and
//! only if it lessens by an eighth what the loads differ from their mean (the sum of their squares'
//! excess). Under constant load that sum falls with each change and cannot fall for ever.

use crate::placement;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::TOKENS_PER_HOST_MAX;
use quorate_kernel::ring::{Piece, Ring, RingHost, Standing};
use serde::{Deserialize, Serialize};

/// One change of a host's own tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum TokenMove {
    /// Give a token up.
    Remove {
        /// Which.
        token: u64,
    },
    /// Give one token up for another.
    Move {
        /// Which.
        from: u64,
        /// Where to.
        to: u64,
    },
    /// Take a further token.
    Add {
        /// Where.
        at: u64,
    },
}

impl TokenMove {
    /// The tokens after the change, ascending.
    #[must_use]
    pub fn apply(&self, tokens: &[u64]) -> Vec<u64> {
        let (added, removed) = match *self {
            TokenMove::Add { at } => (Some(at), None),
            TokenMove::Remove { token } => (None, Some(token)),
            TokenMove::Move { from, to } => (Some(to), Some(from)),
        };
        let kept = tokens.iter().copied().filter(|token| Some(*token) != removed);
        let mut tokens: Vec<u64> = kept.chain(added).collect();
        tokens.sort_unstable();
        tokens.dedup();
        tokens
    }

    /// The same, if a host may have so many. Whoever advises it knows other tokens than the host
    /// has, or lies.
    #[must_use]
    pub fn within_bounds(&self, tokens: &[u64]) -> Option<Vec<u64>> {
        let tokens = self.apply(tokens);
        (1..=TOKENS_PER_HOST_MAX).contains(&tokens.len()).then_some(tokens)
    }

    fn added(&self) -> Option<u64> {
        match *self {
            TokenMove::Add { at } => Some(at),
            TokenMove::Move { to, .. } => Some(to),
            TokenMove::Remove { .. } => None,
        }
    }
}

/// A change of one host's tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Decision {
    /// Whose tokens change.
    pub to: NodeId,
    /// How.
    pub change: TokenMove,
}

/// What is too little to be worth a move: the least mean of a host's bytes, and of its operations
/// a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Least {
    /// Bytes.
    pub bytes: u64,
    /// Operations a second.
    pub operations: u64,
}

/// Shares are counted in parts of this.
const WHOLE: u64 = 1 << 16;
/// How many of the least loaded hosts are considered for a further token.
const TAKERS_MAX: usize = 3;
/// How many ends of groups are considered for a further token.
const PIECES_MAX: usize = 32;
/// How many tokens of a host are considered for being moved or given up.
const TOKENS_MAX: usize = 4;
/// How much may be looked at for one decision: changes, times tokens and pieces.
const EFFORT_MAX: usize = 1 << 17;

/// The load of all hosts, and what it would be.
pub struct Model<'a> {
    ring: Ring,
    /// In the order of their ends.
    pieces: Vec<&'a Piece>,
    /// The hosts that may hold something, in the order of node ids.
    nodes: Vec<NodeId>,
    least: Least,
    /// All hosts' bytes and operations together.
    totals: [u128; 2],
    now: Vec<[u64; 2]>,
}

impl<'a> Model<'a> {
    /// The loads on a ring whose parts weigh so much.
    #[must_use]
    pub fn new(
        ring: &Ring,
        pieces: impl IntoIterator<Item = &'a Piece>,
        least: Least,
    ) -> Model<'a> {
        // Addresses do not matter, and would be copied again and again.
        let bare = |host: &RingHost| RingHost {
            address: String::new(),
            doors: Vec::new(),
            ..host.clone()
        };
        let ring = Ring::new(0, ring.hosts().iter().map(bare).collect());
        let mut pieces: Vec<&Piece> = pieces.into_iter().collect();
        pieces.sort_by_key(|piece| piece.range.high);
        let may_hold = |host: &&RingHost| {
            host.standing == Standing::Up && !host.is_suspected && !host.tokens.is_empty()
        };
        let nodes = ring.hosts().iter().filter(may_hold).map(|host| host.who.node).collect();
        let mut model = Model { ring, pieces, nodes, least, totals: [0; 2], now: Vec::new() };
        let loads = model.loads(&model.ring);
        for load in &loads {
            model.totals[0] += u128::from(load[0]);
            model.totals[1] += u128::from(load[1]);
        }
        model.now = model.shares(&loads);
        model
    }

    /// Bytes and operations of each host, if the tokens stood so.
    fn loads(&self, ring: &Ring) -> Vec<[u64; 2]> {
        let tokens: Vec<u64> = ring.tokens().map(|(token, _)| token).collect();
        let mut loads = Vec::from_iter(self.nodes.iter().map(|_| [0_u64; 2]));
        let mut known: Option<((usize, u8), Vec<usize>)> = None;
        for piece in &self.pieces {
            // All keys up to a token have the same holders.
            let place = tokens.partition_point(|token| *token < piece.range.high);
            let of = (place, piece.replicas);
            if known.as_ref().is_none_or(|(known, _)| *known != of) {
                known = Some((of, self.holders(ring, piece)));
            }
            for holder in known.iter().flat_map(|(_, holders)| holders) {
                let [bytes, operations] = &mut loads[*holder];
                *bytes = bytes.saturating_add(piece.bytes);
                *operations = operations.saturating_add(piece.operations.into());
            }
        }
        loads
    }

    fn holders(&self, ring: &Ring, piece: &Piece) -> Vec<usize> {
        let nodes = placement::desired(ring, piece.range.high, piece.replicas.into());
        nodes.iter().filter_map(|node| self.nodes.binary_search(node).ok()).collect()
    }

    /// Each host's shares of the whole; of what is too little for a move none has any.
    fn shares(&self, loads: &[[u64; 2]]) -> Vec<[u64; 2]> {
        let least = [self.least.bytes, self.least.operations];
        let hosts = self.nodes.len().max(1) as u128;
        let share = |dimension: usize, load: u64| {
            let total = self.totals[dimension];
            let counts = total > 0 && total / hosts >= u128::from(least[dimension]);
            if counts { (u128::from(load) * u128::from(WHOLE) / total) as u64 } else { 0 }
        };
        loads.iter().map(|[bytes, operations]| [share(0, *bytes), share(1, *operations)]).collect()
    }

    /// How far the shares are from even.
    fn excess(&self, shares: &[[u64; 2]]) -> u64 {
        let hosts = self.nodes.len() as u64;
        let of = |dimension: usize| {
            let squares: u64 = shares.iter().map(|share| share[dimension].pow(2)).sum();
            let sum: u64 = shares.iter().map(|share| share[dimension]).sum();
            squares.saturating_sub(sum.pow(2) / hosts.max(1))
        };
        of(0) + of(1)
    }

    /// The host with the largest share, if it is more than half as much again as the mean. Of two
    /// the lower node.
    #[must_use]
    pub fn busiest(&self) -> Option<NodeId> {
        let hosts = self.nodes.len() as u64;
        let largest = |share: &[u64; 2]| share[0].max(share[1]);
        let all = self.nodes.iter().zip(&self.now);
        let (node, share) = all.max_by_key(|(node, share)| (largest(share), Reverse(**node)))?;
        (2 * hosts * largest(share) > 3 * WHOLE).then_some(*node)
    }

    /// The largest share of any host in hundredths of the mean.
    #[must_use]
    pub fn largest_percent(&self) -> u64 {
        let all = self.now.iter().flatten().max().copied().unwrap_or(0);
        all * self.nodes.len() as u64 * 100 / WHOLE
    }

    /// The change that evens out the load best, if one is worth it.
    #[must_use]
    pub fn decide(&self) -> Option<Decision> {
        let busiest = self.busiest()?;
        let before = self.excess(&self.now);
        let cost = self.ring.tokens().len() + self.pieces.len();
        let ends: BTreeSet<u64> = self.pieces.iter().map(|piece| piece.range.low).collect();
        let mut best = None;
        for decision in self.candidates(busiest).into_iter().take(EFFORT_MAX / cost.max(1)) {
            let ring = self.after(&decision);
            let after = self.excess(&self.shares(&self.loads(&ring)));
            if after > before - before / 8 {
                continue;
            }
            // A group more is for good, so a change that splits one must be that much better. Of
            // those that are about as good the simplest is taken.
            let splits = decision.change.added().is_some_and(|at| !ends.contains(&at));
            let cost = after + if splits { before / 8 } else { 0 };
            let rank = (cost / (before / 32).max(1), decision.change, decision.to);
            if best.as_ref().is_none_or(|(known, _)| rank < *known) {
                best = Some((rank, decision));
            }
        }
        best.map(|(_, decision)| decision)
    }

    /// The ring after a change.
    fn after(&self, decision: &Decision) -> Ring {
        let mut hosts = self.ring.hosts().to_vec();
        for host in hosts.iter_mut().filter(|host| host.who.node == decision.to) {
            host.tokens = decision.change.apply(&host.tokens);
        }
        Ring::new(0, hosts)
    }

    /// What could be done, the most promising first: the least loaded hosts take a token or move
    /// there, the busiest one moves away or gives a token up.
    fn candidates(&self, busiest: NodeId) -> Vec<Decision> {
        let mut takers: Vec<(u64, NodeId)> = self
            .nodes
            .iter()
            .zip(&self.now)
            .map(|(node, share)| (share[0].max(share[1]), *node))
            .collect();
        takers.sort_unstable();
        let takers = takers.into_iter().map(|(_, node)| node).filter(|node| *node != busiest);
        let movers: Vec<NodeId> = takers.take(TAKERS_MAX).chain([busiest]).collect();
        let mut found = Vec::new();
        let own = self.tokens(busiest, true);
        if self.ring.host(busiest).is_some_and(|host| host.tokens.len() > 1) {
            let remove =
                |token: &u64| Decision { to: busiest, change: TokenMove::Remove { token: *token } };
            found.extend(own.iter().map(remove));
        }
        for at in self.ends(busiest) {
            for &to in &movers {
                let tokens = self.tokens(to, to == busiest);
                let moves = tokens.into_iter().map(|from| TokenMove::Move { from, to: at });
                let is_full =
                    self.ring.host(to).is_none_or(|host| host.tokens.len() >= TOKENS_PER_HOST_MAX);
                let add = (to != busiest && !is_full).then_some(TokenMove::Add { at });
                found.extend(add.into_iter().chain(moves).map(|change| Decision { to, change }));
            }
        }
        found
    }

    /// Ends of pieces at which no token stands: of the heaviest that the busiest host holds first.
    fn ends(&self, busiest: NodeId) -> Vec<u64> {
        let taken: BTreeSet<u64> = self.ring.tokens().map(|(token, _)| token).collect();
        let mut ranked: Vec<(bool, u64, u64)> = Vec::new();
        for piece in self.pieces.iter().filter(|piece| !taken.contains(&piece.range.high)) {
            let holders = self.holders(&self.ring, piece);
            let is_held = holders.iter().any(|place| self.nodes[*place] == busiest);
            let [bytes, operations] = self.shares(&[[piece.bytes, piece.operations.into()]])[0];
            ranked.push((is_held, bytes + operations, piece.range.high));
        }
        ranked.sort_unstable_by_key(|rank| Reverse(*rank));
        ranked.dedup_by_key(|(_, _, high)| *high);
        ranked.into_iter().map(|(_, _, high)| high).take(PIECES_MAX).collect()
    }

    /// Some tokens of a host: those before which most, or least, is to be done.
    fn tokens(&self, node: NodeId, is_heaviest: bool) -> Vec<u64> {
        let Some(host) = self.ring.host(node) else { return Vec::new() };
        let all: Vec<u64> = self.ring.tokens().map(|(token, _)| token).collect();
        let mut weights: Vec<(u64, u64)> = host.tokens.iter().map(|token| (0, *token)).collect();
        for piece in &self.pieces {
            let place = all.partition_point(|token| *token < piece.range.high);
            let owner = all.get(place).or(all.first());
            let [bytes, operations] = self.shares(&[[piece.bytes, piece.operations.into()]])[0];
            let mine = weights.iter_mut().find(|(_, token)| owner == Some(token));
            mine.into_iter().for_each(|(weight, _)| *weight += bytes + operations);
        }
        weights.sort_unstable();
        if is_heaviest {
            weights.reverse();
        }
        weights.into_iter().map(|(_, token)| token).take(TOKENS_MAX).collect()
    }
}
