//! Statistics spread by gossip, and the one change of tokens that is under way.
//!
//! Only where `balance` is on. Every host tells how much the parts of the ring have to do to which
//! it is the closest; the newest word of each is passed on for some rounds. The most loaded host
//! **advises** one change of one host's tokens, and gossip spreads that too. Who is advised acts a
//! look later, if it still agrees on who is the most loaded. So of several hosts that could relieve
//! one only one does, and everybody has heard of it before.
//!
//! Nobody decides anything but on words of all hosts that were weighed on the very ring that stands
//! now, with all groups at rest ([`Weighed::shape`]). A change of any token makes all words old, so
//! the next change waits until everything has moved and was weighed again.

use super::balance::{Decision, Least, Model, TokenMove};
use crate::detector;
use crate::gossip::record::News;
use crate::gossip::rumours::FANOUT;
use crate::overlay::message::Message;
use crate::overlay::{Context, Overlay};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::{NEWS_BYTES_MAX, PIECES_MAX};
use quorate_kernel::probe;
use quorate_kernel::ring::{Piece, Standing};
use quorate_kernel::time::Span;
use serde::{Deserialize, Serialize};

/// How the load is evened out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Balance {
    /// Between two looks at it.
    pub look: Span,
    /// What is too little for a move.
    pub least: Least,
}

impl Default for Balance {
    fn default() -> Balance {
        Balance { look: Span::secs(60), least: Least { bytes: 16 << 20, operations: 100 } }
    }
}

/// How many looks an advice may stand before it is thought over.
const ADVICE_LOOKS_MAX: u32 = 10;
/// No less than the encoded bytes of a word without its pieces, and of a piece.
const WORD_BYTES: usize = 96;
const PIECE_BYTES: usize = 40;

/// A change of tokens that the most loaded host wishes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    /// Who shall change its tokens.
    pub to: NodeId,
    /// On which ring; on any other it is void.
    pub shape: u64,
    /// How.
    pub change: TokenMove,
}

/// What a host tells of its load, and of what it wishes for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Weights {
    /// Who tells it.
    pub who: Incarnation,
    /// Which of its words in this start it is.
    pub number: u64,
    /// The ring on which the pieces were weighed; 0 if its groups were not at rest.
    pub shape: u64,
    /// The parts of the ring to which it is closest.
    pub pieces: Vec<Piece>,
    /// What it wishes for.
    pub advice: Option<Advice>,
}

impl Weights {
    /// No less than its encoded bytes.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        WORD_BYTES + PIECE_BYTES * self.pieces.len()
    }
}

/// A word, and for how many rounds it is still passed on.
#[derive(Debug)]
struct Word {
    weights: Weights,
    rounds: u32,
}

/// What is known of everybody's load.
#[derive(Debug, Default)]
pub(crate) struct Known {
    words: BTreeMap<NodeId, Word>,
    /// The advice to this node that stood at the last look, and whose it was.
    noted: Option<(NodeId, Advice)>,
    /// For how many looks the own advice has stood.
    stood: u32,
    /// How many hosts had said at the last look how much they have to do on the ring as it stood.
    pub heard: usize,
    /// Whether everybody was heard at the last look, and nothing was left to wish for.
    pub is_content: bool,
    /// How often this node has changed its tokens on advice, in this start.
    pub moves: u64,
}

impl Overlay {
    /// Looks at the load of all hosts: acts on advice, and advises if this host has the most to do.
    pub(crate) fn look_at_balance(&mut self, cx: &mut Context<'_>) {
        let Some(balance) = self.settings.balance else { return };
        let ring = self.ring();
        let shape = ring.shape();
        let hosts = &self.state.hosts;
        let is_there = |node: NodeId| {
            hosts.get(node).is_some_and(|news| news.record.standing != Standing::Left)
        };
        self.state.known.words.retain(|node, _| is_there(*node));
        let words = &self.state.known.words;
        let says =
            |news: &News| words.get(&news.node()).is_some_and(|word| word.weights.shape == shape);
        let heard = words.values().filter(|word| word.weights.shape == shape).count();
        let is_expected = |news: &&News| Self::is_up(news) && !news.record.tokens.is_empty();
        let is_heard = hosts.iter().filter(is_expected).all(says);
        self.state.known.heard = heard;
        if !is_heard {
            self.state.known.is_content = false;
            return self.advise(None, cx);
        }
        let current = words.values().filter(|word| word.weights.shape == shape);
        let pieces: Vec<Piece> = current.flat_map(|word| word.weights.pieces.clone()).collect();
        let model = Model::new(&ring, &pieces, balance.least);
        let busiest = model.busiest();
        let advice = busiest.and_then(|by| Some((by, words.get(&by)?.weights.advice?)));
        self.state.known.is_content = advice.is_none_or(|(_, advice)| advice.shape != shape);
        let mine = advice.filter(|(_, advice)| advice.to == cx.me.node && advice.shape == shape);
        let noted = core::mem::replace(&mut self.state.known.noted, mine);
        if let Some((_, advice)) = mine.filter(|_| mine == noted) {
            return self.follow(&advice, cx);
        }
        if busiest != Some(cx.me.node) {
            return self.advise(None, cx);
        }
        let standing = advice.map(|(_, advice)| advice).filter(|advice| advice.shape == shape);
        let is_young = self.state.known.stood < ADVICE_LOOKS_MAX;
        if standing.is_some_and(|advice| is_young && hosts.is_alive(advice.to)) {
            self.state.known.stood += 1;
            return;
        }
        let decision = model.decide();
        self.state.known.is_content = decision.is_none();
        let advice = decision.map(|Decision { to, change }| Advice { to, shape, change });
        self.advise(advice, cx);
    }

    /// Does as it is advised.
    fn follow(&mut self, advice: &Advice, cx: &mut Context<'_>) {
        probe!("overlay/token_moved");
        let own = &self.state.own().record;
        let Some(tokens) = advice.change.within_bounds(&own.tokens) else { return };
        if own.standing != Standing::Up {
            return;
        }
        self.state.known.noted = None;
        self.state.known.moves += 1;
        self.revise(|record| record.tokens = tokens.into(), cx);
        self.store(cx.me.node, cx);
    }

    fn advise(&mut self, advice: Option<Advice>, cx: &mut Context<'_>) {
        let words = &self.state.known.words;
        if let Some(own) = words.get(&cx.me.node).filter(|own| own.weights.advice != advice) {
            let mut weights = own.weights.clone();
            weights.advice = advice;
            self.state.known.stood = 0;
            self.tell_weights(weights);
        }
    }

    /// The lanes have said how much they have to do: everybody hears of it.
    pub(crate) fn weigh(&mut self, cx: &mut Context<'_>) {
        let mut shapes = self.lanes.values().map(|lane| lane.shape);
        let first = shapes.next().unwrap_or(0);
        let shape = if shapes.all(|shape| shape == first) { first } else { 0 };
        let known = self.state.known.words.get(&cx.me.node);
        if shape == 0 && known.is_some_and(|word| word.weights.shape == 0) {
            return;
        }
        let mut pieces: Vec<Piece> =
            self.lanes.values().flat_map(|lane| lane.pieces.iter().copied()).collect();
        pieces.sort_by_key(|piece| core::cmp::Reverse((piece.operations, piece.bytes)));
        pieces.truncate(PIECES_MAX);
        let advice = known.and_then(|word| word.weights.advice);
        self.tell_weights(Weights { who: cx.me, number: 0, shape, pieces, advice });
    }

    fn tell_weights(&mut self, mut weights: Weights) {
        let known = &mut self.state.known;
        let before = known.words.get(&weights.who.node);
        weights.number = before.map_or(0, |word| word.weights.number) + 1;
        let rounds = rounds(self.state.hosts.len());
        known.words.insert(weights.who.node, Word { weights, rounds });
    }

    /// Passes on what is new, once in a period.
    pub(crate) fn spread_weights(&mut self, cx: &mut Context<'_>) {
        let hosts = &self.state.hosts;
        let mut batches: Vec<Vec<Weights>> = Vec::new();
        let mut bytes = NEWS_BYTES_MAX;
        for word in self.state.known.words.values_mut().filter(|word| word.rounds > 0) {
            word.rounds -= 1;
            bytes += word.weights.bytes_max();
            if bytes > NEWS_BYTES_MAX {
                bytes = word.weights.bytes_max();
                batches.push(Vec::new());
            }
            batches.last_mut().expect("one was pushed").push(word.weights.clone());
        }
        if batches.is_empty() {
            return;
        }
        // Whom all are told by must be anybody: in a small cluster a host may be in nobody's view.
        let me = cx.me.node;
        let fit = |news: &News| news.node() != me && news.is_alive();
        let picks = (0..FANOUT).filter_map(|_| hosts.pick(cx.rng, fit).map(News::node));
        let peers: BTreeSet<NodeId> = picks.collect();
        let peers: Arc<[NodeId]> = peers.into_iter().collect();
        for words in batches.into_iter().filter(|_| !peers.is_empty()) {
            self.send(&peers, Message::Weights { words }, cx);
        }
    }

    /// A peer passes on what is new there.
    pub(crate) fn on_weights(&mut self, words: Vec<Weights>, cx: &mut Context<'_>) {
        let rounds = rounds(self.state.hosts.len());
        for weights in words {
            let node = weights.who.node;
            let is_known = self
                .state
                .record(node)
                .is_some_and(|record| record.standing != Standing::Left && node != cx.me.node);
            let stamp = |weights: &Weights| (weights.who.start, weights.number);
            let before = self.state.known.words.get(&node);
            let is_newer = before.is_none_or(|word| stamp(&word.weights) < stamp(&weights));
            if is_known && is_newer {
                self.state.known.words.insert(node, Word { weights, rounds });
            }
        }
    }

    /// In how many periods the load is looked at.
    pub(crate) fn look_periods(&self) -> Option<u64> {
        Some((self.settings.balance?.look.0 / detector::PERIOD.0).max(1))
    }
}

/// Enough that everybody hears of it, probably.
fn rounds(hosts: usize) -> u32 {
    hosts.max(1).ilog2() + 2
}
