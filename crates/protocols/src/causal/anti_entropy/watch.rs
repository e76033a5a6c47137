//! Whom a replica exchanges with next.
//!
//! Peers take turns in shuffled rounds, so each is met once in as many intervals as there are
//! peers; one random peer a time would leave some unmet for long.

use super::backoff::Backoff;
use super::window::Chains;
#[cfg(test)]
use crate::causal::message::Window;
use crate::dots::clock::Clock;
use crate::dots::dot::{Actor, Dot, Partition};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{NodeId, Start};
use quorate_kernel::mutant;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::{Span, Time};

/// How long an unanswered question is waited for before it is asked again.
pub(crate) const PATIENCE: Span = Span::millis(1000);
/// How many unanswered questions make a peer count as unreachable.
pub(crate) const SILENT_MAX: u32 = 3;

/// A scan of one peer's keys that is under way.
#[derive(Clone, Debug)]
pub(crate) struct Scan {
    /// Who is asked.
    pub(crate) host: NodeId,
    /// Whom.
    pub actor: Option<Actor>,
    /// In which start of its host: one that leaves keeps its name when it forgets.
    pub start: Option<Start>,
    /// The first question that begins where the scan has come to: any of them may be answered yet.
    pub first: u64,
    /// The last one that was asked.
    pub step: u64,
    /// Where they begin.
    pub from: Bytes,
    /// The peer's clock when the scan began.
    pub clock: Option<Clock>,
    /// When the question was asked.
    pub asked_at: Time,
    /// How often in a row it was not answered.
    pub silent: u32,
}

impl Scan {
    /// Whether this is the answer to a question that begins where the scan has come to. Who takes
    /// longer than it is waited for answers an earlier one than the last.
    pub(crate) fn awaits(&self, step: u64) -> bool {
        let first = if mutant!("late_page_in_vain") { self.step } else { self.first };
        (first..=self.step).contains(&step)
    }

    /// The number of its next question.
    pub(crate) fn ask(&mut self, last_step: &mut u64, now: Time) -> u64 {
        *last_step = 1 + if mutant!("scans_count_anew") { self.step } else { *last_step };
        if self.step == 0 {
            self.first = *last_step;
        }
        (self.step, self.asked_at) = (*last_step, now);
        self.step
    }

    /// What the peer had seen when the scan began, if a page has come that speaks of this key.
    pub(crate) fn passed(&self, key: &[u8]) -> Option<&Clock> {
        let is_behind = key < &self.from[..] && !mutant!("pages_forget");
        self.clock.as_ref().filter(|_| is_behind)
    }
}

/// The rounds of one replica.
#[derive(Debug, Default)]
pub struct Rounds {
    left: Vec<Partition>,
    asked: BTreeMap<Partition, Time>,
    /// The exchanges of more than one answer.
    pub(crate) chains: Chains,
    pub(crate) scans: BTreeMap<Partition, Scan>,
    /// The last question of any scan. No two have one number: a page does not say where it begins,
    /// and a late one of an earlier scan begins elsewhere.
    pub(crate) last_step: u64,
    /// Whether everybody is asked who is still to be copied from.
    pub(crate) asks_all: bool,
    /// Behind which key the pass of stripping goes on; empty before the first.
    pub(crate) strip_from: Bytes,
    /// Whether it goes on soon.
    pub(crate) is_stripping: bool,
    /// Behind which entry of the dot-key map the pass of collecting goes on; before the first one
    /// where it begins.
    pub(crate) collect_from: Dot,
    /// Whether that pass has not come to its end.
    pub(crate) is_collecting: bool,
    /// When it asks less often.
    pub(crate) backoff: Backoff,
}

impl Rounds {
    /// The scan of a partition ends, and who is to be scanned in its place was not asked yet.
    pub(crate) fn end_scan(&mut self, peer: Partition) {
        self.scans.remove(&peer);
        self.asks_all = false;
    }

    /// Whether a page was not enough.
    pub fn has_more_to_strip(&self) -> bool {
        self.is_stripping || self.is_collecting
    }

    /// The next peer of the round, unless it still owes an answer.
    pub fn next(
        &mut self,
        peers: impl Iterator<Item = Partition>,
        now: Time,
        rng: &mut Rng,
    ) -> Option<Partition> {
        if self.left.is_empty() {
            self.left = peers.collect();
            for last in (1..self.left.len()).rev() {
                self.left.swap(last, rng.below(last as u64 + 1) as usize);
            }
        }
        let next = self.left.pop()?;
        if self.owes(next, now) {
            return None;
        }
        self.asked.insert(next, now);
        Some(next)
    }

    /// Whether a peer was asked, and its answer may still come.
    fn owes(&self, peer: Partition, now: Time) -> bool {
        self.asked.get(&peer).is_some_and(|at| now < *at + PATIENCE)
    }

    /// Whether a chain of answers of a peer goes on. One whose next answer is lost does not: who
    /// backs off asks for no other one for long, and must take what the peer offers.
    pub fn goes_on(&self, peer: Partition, now: Time) -> bool {
        let is_late = !self.owes(peer, now) && !mutant!("causal_broken_chains_go_on");
        self.chains.is_open(peer) && !is_late
    }

    /// A peer is asked once more.
    pub fn ask(&mut self, peer: Partition, now: Time) {
        self.asked.insert(peer, now);
    }

    /// A peer has answered.
    pub fn answered(&mut self, peer: Partition) {
        self.asked.remove(&peer);
    }
}

/// A chain whose next answer is lost holds nobody up: who rests asks for no other one for long.
#[test]
fn a_chain_goes_on_as_long_as_an_answer_may_come() {
    let (mut rounds, peer) = (Rounds::default(), Partition(1));
    let actor = Actor { partition: peer, ..Actor::default() };
    let begins = Window { after: None, until: Some(Dot { actor, counter: 5 }) };
    let (asked, late) = (Time(0) + Span::secs(9), Time(0) + Span::secs(9) + PATIENCE);
    assert!(!rounds.goes_on(peer, asked), "there is none");
    assert_eq!(rounds.chains.take(actor, begins, (true, 1, &Clock::default())), None);
    rounds.ask(peer, asked);
    assert!(rounds.goes_on(peer, Time(late.0 - 1)));
    assert!(!rounds.goes_on(peer, late), "it is broken off");
    rounds.ask(peer, late);
    assert!(rounds.goes_on(peer, late));
}

#[test]
fn every_peer_is_met_once_in_a_round() {
    let (mut rounds, mut rng) = (Rounds::default(), Rng::new(1));
    for round in 0..20 {
        let mut met: Vec<u16> = Vec::new();
        for turn in 0..4 {
            let now = Time(0) + Span::secs(round * 10 + turn);
            let next = rounds.next((1..=4).map(Partition), now, &mut rng).expect("nobody owes");
            rounds.answered(next);
            met.push(next.0);
        }
        met.sort_unstable();
        assert_eq!(met, [1, 2, 3, 4]);
    }
    let (at, late) = (Time(0) + Span::secs(999), Time(0) + Span::secs(999) + Span::millis(500));
    let first = rounds.next([Partition(1)].into_iter(), at, &mut rng);
    assert!(first.is_some());
    assert_eq!(rounds.next([Partition(1)].into_iter(), late, &mut rng), None, "it owes an answer");
    let again = rounds.next([Partition(1)].into_iter(), late + PATIENCE, &mut rng);
    assert!(again.is_some());
}
