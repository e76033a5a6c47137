//! The pointers of all tokens of a node, and what nodes ask each other about them.
//!
//! Once in a period a node asks the first living successor of each own token for its neighbours.
//! All questions to one node go in one message, so the cost follows the number of successors, not
//! of hosts.

use super::pointers::{Place, Pointers};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::{SUCCESSORS_MAX, TOKENS_PER_HOST_MAX};
use serde::{Deserialize, Serialize};

/// How many successors of a token are watched, beside its predecessor.
pub const SUCCESSORS_WATCHED: usize = 3;
/// How many nodes are asked in one period, at most; the others get their turn after them.
pub const ASKED_MAX: usize = 8;

/// "I am the token `own`; tell me the neighbours of your token `of`, and know that I precede it."
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeighboursRequest {
    /// The asker's token.
    pub own: u64,
    /// The token asked about.
    pub of: u64,
}

/// The neighbours of a token that was asked about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeighboursReply {
    /// The question.
    pub ask: NeighboursRequest,
    /// The predecessor that the token had before it heard of the asker.
    pub predecessor: Option<Place>,
    /// Those that follow the token, the nearest first.
    pub successors: Vec<Place>,
}

/// The pointers of one node.
#[derive(Clone, Debug)]
pub struct Stabilizer {
    me: NodeId,
    tokens: Vec<Pointers>,
    turn: usize,
}

impl Stabilizer {
    /// A node without tokens.
    #[must_use]
    pub fn new(me: NodeId) -> Stabilizer {
        Stabilizer { me, tokens: Vec::new(), turn: 0 }
    }

    /// Sets the node's tokens. What is known of those that stay is kept.
    pub fn set_tokens(&mut self, tokens: &[u64]) {
        assert!(tokens.len() <= TOKENS_PER_HOST_MAX, "tokens are bounded");
        self.tokens.retain(|pointers| tokens.contains(&pointers.own()));
        for token in tokens {
            if self.tokens.iter().all(|pointers| pointers.own() != *token) {
                self.tokens.push(Pointers::new(*token));
            }
        }
        for token in tokens {
            self.consider(Place { token: *token, node: self.me });
        }
    }

    /// The pointers of each token.
    #[must_use]
    pub fn pointers(&self) -> &[Pointers] {
        &self.tokens
    }

    /// Takes in a token that lives; returns whether it improved something.
    pub fn consider(&mut self, place: Place) -> bool {
        self.tokens.iter_mut().fold(false, |is_better, pointers| {
            let is_own = place.node != self.me && place.token == pointers.own();
            (!is_own && pointers.consider(place)) | is_better
        })
    }

    /// Drops what does not live any more; returns whether something was dropped.
    pub fn drop_dead(&mut self, is_alive: impl Fn(&Place) -> bool) -> bool {
        let dropped = |pointers: &mut Pointers| pointers.drop_dead(&is_alive);
        self.tokens.iter_mut().fold(false, |any, pointers| dropped(pointers) | any)
    }

    /// Whom to ask what in this period.
    pub fn asks(&mut self) -> Vec<(NodeId, Vec<NeighboursRequest>)> {
        let mut asks: BTreeMap<NodeId, Vec<NeighboursRequest>> = BTreeMap::new();
        for pointers in &self.tokens {
            let other = pointers.successors().iter().find(|place| place.node != self.me);
            if let Some(place) = other {
                let ask = NeighboursRequest { own: pointers.own(), of: place.token };
                asks.entry(place.node).or_default().push(ask);
            }
        }
        let mut asks: Vec<(NodeId, Vec<NeighboursRequest>)> = asks.into_iter().collect();
        if asks.len() > ASKED_MAX {
            let first = self.turn % asks.len();
            self.turn = first + ASKED_MAX;
            asks.rotate_left(first);
            asks.truncate(ASKED_MAX);
        }
        asks
    }

    /// A node asks; it precedes the tokens that it asks about, if it lives.
    pub fn on_asks(
        &mut self,
        from: NodeId,
        asks: &[NeighboursRequest],
        is_alive: impl Fn(&Place) -> bool,
    ) -> Vec<NeighboursReply> {
        let mut answers = Vec::with_capacity(asks.len());
        for ask in asks {
            let Some(pointers) = self.tokens.iter().find(|one| one.own() == ask.of) else {
                continue;
            };
            answers.push(NeighboursReply {
                ask: *ask,
                predecessor: pointers.predecessor(),
                successors: pointers.successors().to_vec(),
            });
        }
        for ask in asks {
            let place = Place { token: ask.own, node: from };
            if is_alive(&place) {
                self.consider(place);
            }
        }
        assert!(answers.len() <= asks.len(), "one answer to each question");
        assert!(self.tokens.len() <= TOKENS_PER_HOST_MAX, "who asks adds no token");
        answers
    }

    /// A successor answers. What it names is taken only if it lives.
    pub fn on_answers(
        &mut self,
        from: NodeId,
        answers: &[NeighboursReply],
        is_alive: impl Fn(&Place) -> bool,
    ) {
        let own: Vec<u64> = self.tokens.iter().map(Pointers::own).collect();
        for answer in answers {
            let of = Place { token: answer.ask.of, node: from };
            let Some(pointers) = self.tokens.iter_mut().find(|one| one.own() == answer.ask.own)
            else {
                continue;
            };
            // Own tokens that lie before the one that was asked stay where they are.
            let before = pointers.successors().iter().take_while(|place| place.token != of.token);
            if before.clone().any(|place| !own.contains(&place.token)) || !is_alive(&of) {
                continue;
            }
            let mut list: Vec<Place> = before.copied().collect();
            list.push(of);
            list.extend(answer.successors.iter().filter(|place| is_alive(place)));
            pointers.adopt(list.into_iter());
            assert!(pointers.successors().len() <= SUCCESSORS_MAX, "the list is bounded");
            assert!(
                pointers.successors().iter().all(|place| place.token != pointers.own()),
                "no token follows itself"
            );
            if let Some(place) = answer.predecessor.filter(&is_alive) {
                self.consider(place);
            }
        }
    }

    /// How many tokens know a successor.
    #[must_use]
    pub fn linked(&self) -> usize {
        self.tokens.iter().filter(|pointers| !pointers.successors().is_empty()).count()
    }

    /// Whether a successor list is so short that it should be filled from all hosts known.
    #[must_use]
    pub fn is_thin(&self) -> bool {
        self.tokens.iter().any(|one| one.predecessor().is_none() || one.successors().len() < 4)
    }

    /// The nodes next to this one on the ring: the nearest of each token first, then the farther.
    #[must_use]
    pub fn neighbours(&self, successors: usize) -> Vec<NodeId> {
        let (mut seen, mut nodes) = (BTreeSet::from([self.me]), Vec::new());
        for rank in 0..=successors {
            for pointers in &self.tokens {
                let place = match rank {
                    0 => pointers.successors().first().copied(),
                    1 => pointers.predecessor(),
                    _ => pointers.successors().get(rank - 1).copied(),
                };
                nodes.extend(place.map(|place| place.node).filter(|node| seen.insert(*node)));
            }
        }
        nodes
    }

    /// Asserts what must hold between two calls.
    pub fn check(&self) {
        self.tokens.iter().for_each(Pointers::check);
    }
}
