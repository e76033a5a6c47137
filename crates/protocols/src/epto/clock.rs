//! The logical clock of one node, and what it does not believe.
//!
//! Whoever moves all clocks far ahead makes everybody's later events huge, and the lower ones of
//! others late. So a ball that is further ahead than [`EPTO_CLOCK_JUMP_MAX`] is refused. But a node
//! may be that far behind itself: a new one, or one that was cut off for long. It believes what
//! several senders say alike, or two for many rounds, or, if it knows one peer alone, what that one
//! still says some rounds later. Of a division in which a side of one node alone is that far ahead
//! the two sides do not meet again.

use super::key::LogicalTime;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::EPTO_CLOCK_JUMP_MAX;
use quorate_kernel::mutant;

/// How many senders a node that has no clock yet hears.
const WITNESSES_NEW: usize = 2;
/// How many senders say that a node which has one is far behind.
const WITNESSES_BEHIND: usize = 3;
/// After how many rounds two of them are enough: there may be no third on their side.
const INSIST_ROUNDS: u64 = 32;
/// For how many rounds a sender's word is kept.
const KEPT_ROUNDS: u64 = 64;
/// After how many rounds the only peer is believed.
const ALONE_ROUNDS: u64 = 3;

/// What is thought of a ball.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It is believed; the clock shows its time, or more.
    Sound,
    /// There is no clock yet to judge it by: it is left aside.
    Unknown,
    /// It is too far ahead: the connection on which it came is no good.
    Refused,
    /// So say others, too: this node has missed a lot.
    Behind,
}

#[derive(Clone, Copy, Debug)]
struct Witness {
    from: NodeId,
    time: LogicalTime,
    round: u64,
    /// When it said so last.
    last: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    now: LogicalTime,
    /// The highest that peers have shown: the clocks of others are about there.
    shown: LogicalTime,
    is_set: bool,
    /// Who was ahead lately, each once.
    witnesses: Vec<Witness>,
}

impl Clock {
    /// The clock of a node that was there before the first event.
    pub fn of_founder() -> Clock {
        Clock { is_set: true, ..Clock::default() }
    }

    pub fn now(&self) -> LogicalTime {
        self.now
    }

    /// A client has seen this time. It counts by what peers have shown, not by this clock: else
    /// each call could take it further, until no peer believes it. Half a jump leaves room for
    /// peers that are a little behind.
    pub fn see(&mut self, time: LogicalTime) {
        let base = if mutant!("epto_walks_with_tokens") { self.now } else { self.shown };
        if self.is_set && time.0 <= base.0.saturating_add(EPTO_CLOCK_JUMP_MAX / 2) {
            self.now = self.now.max(time);
        }
    }

    /// One node says that it has come so far, which is no ball that others would have refused.
    /// Peers must believe what this node broadcasts next, also those that are a little behind.
    pub fn hear_of(&mut self, time: LogicalTime) {
        if self.is_set && time.0 <= self.shown.0.saturating_add(EPTO_CLOCK_JUMP_MAX / 4 * 3) {
            self.now = self.now.max(time);
        }
    }

    /// Whether there is anything to judge by.
    pub fn is_set(&self) -> bool {
        self.is_set
    }

    /// A time that a state has reached which this node takes over.
    pub fn reach(&mut self, time: LogicalTime) {
        self.now = self.now.max(time);
        self.shown = self.shown.max(time);
        self.is_set = true;
    }

    /// Whether a state of this time may be taken over: a node that has a clock takes no state that
    /// it would take for a lie in a ball.
    pub fn believes(&self, time: LogicalTime) -> bool {
        !self.is_set || time.0 <= self.now.0.saturating_add(EPTO_CLOCK_JUMP_MAX)
    }

    /// The time of the next event.
    pub fn tick(&mut self) -> LogicalTime {
        self.now.0 = self.now.0.checked_add(1).expect("jumps are bounded");
        self.now
    }

    /// A ball whose highest time is this comes from a peer, of so many that are known.
    pub fn judge(
        &mut self,
        from: NodeId,
        time: LogicalTime,
        round: u64,
        peers: usize,
    ) -> Judgement {
        let is_near = time.0 <= self.now.0.saturating_add(EPTO_CLOCK_JUMP_MAX);
        if (self.is_set && is_near) || mutant!("epto_clock_follows_a_bomb") {
            self.now = self.now.max(time);
            self.shown = self.shown.max(time);
            return Judgement::Sound;
        }
        let was_set = self.is_set;
        if !was_set && mutant!("epto_newcomer_believes_one") {
            self.reach(time);
            return Judgement::Sound;
        }
        let wanted = if was_set { WITNESSES_BEHIND } else { WITNESSES_NEW };
        let Some(lowest) = self.agreed(from, time, round, wanted.min(peers.max(1))) else {
            return if was_set { Judgement::Refused } else { Judgement::Unknown };
        };
        self.witnesses.clear();
        self.reach(lowest.max(time));
        if was_set { Judgement::Behind } else { Judgement::Sound }
    }

    /// The lowest of what so many senders say, if they say about the same.
    fn agreed(
        &mut self,
        from: NodeId,
        time: LogicalTime,
        round: u64,
        wanted: usize,
    ) -> Option<LogicalTime> {
        self.witnesses.retain(|witness| witness.round + KEPT_ROUNDS > round);
        let is_like = |witness: &&Witness| witness.time.0.abs_diff(time.0) <= EPTO_CLOCK_JUMP_MAX;
        let known = self.witnesses.iter().position(|witness| witness.from == from);
        let since = match known.map(|at| self.witnesses[at]) {
            Some(witness) if is_like(&&witness) => {
                let at = known.expect("it is known");
                self.witnesses[at].last = round;
                witness.round
            }
            _ => {
                // What it said before is not true any more; of many the first is forgotten.
                let is_full = self.witnesses.len() == 2 * WITNESSES_BEHIND;
                if let Some(at) = known.or(is_full.then_some(0)) {
                    self.witnesses.remove(at);
                }
                self.witnesses.push(Witness { from, time, round, last: round });
                round
            }
        };
        let alike: Vec<LogicalTime> =
            self.witnesses.iter().filter(is_like).map(|witness| witness.time).collect();
        // It has said so for long, and says so still.
        let insists = |witness: &&Witness| {
            round >= witness.round + INSIST_ROUNDS && witness.last + INSIST_ROUNDS / 4 >= round
        };
        let insisting = self.witnesses.iter().filter(is_like).filter(insists).count();
        let is_heard = match wanted {
            0 | 1 => round >= since + ALONE_ROUNDS,
            _ => alike.len() >= wanted || insisting >= WITNESSES_NEW,
        };
        alike.into_iter().min().filter(|_| is_heard)
    }

    pub fn check(&self) {
        assert!(self.witnesses.len() <= 2 * WITNESSES_BEHIND, "few witnesses are kept");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::limits::EPTO_TIME_MAX;

    const BOMB: LogicalTime = LogicalTime(EPTO_TIME_MAX);
    const FAR: LogicalTime = LogicalTime(EPTO_CLOCK_JUMP_MAX + 1);

    #[test]
    fn what_is_too_far_ahead_is_refused_and_moves_nothing() {
        let mut clock = Clock::of_founder();
        assert_eq!(clock.judge(NodeId(1), LogicalTime(FAR.0 - 1), 1, 9), Judgement::Sound);
        assert_eq!(clock.tick(), FAR);
        for round in 1..100 {
            let judged = clock.judge(NodeId(1), BOMB, round, 9);
            assert_eq!(judged, Judgement::Refused, "one sender says what it likes");
        }
        assert_eq!(clock.now(), FAR);
        clock.check();
    }

    #[test]
    fn clients_do_not_take_a_clock_further_than_peers_believe() {
        let mut clock = Clock::of_founder();
        for step in 1..10 {
            clock.see(LogicalTime(step * EPTO_CLOCK_JUMP_MAX / 2));
        }
        assert_eq!(clock.now(), LogicalTime(EPTO_CLOCK_JUMP_MAX / 2));
        let shown = LogicalTime(EPTO_CLOCK_JUMP_MAX);
        assert_eq!(clock.judge(NodeId(1), shown, 1, 9), Judgement::Sound);
        clock.see(FAR);
        assert_eq!(clock.now(), FAR);
        assert!(clock.believes(LogicalTime(2 * FAR.0 - 1)) && !clock.believes(BOMB));
        assert!(Clock::default().believes(BOMB), "it has none to judge by");
    }

    #[test]
    fn a_new_node_hears_two() {
        let mut clock = Clock::default();
        assert_eq!(clock.judge(NodeId(1), BOMB, 1, 9), Judgement::Unknown);
        assert_eq!(clock.judge(NodeId(2), FAR, 1, 9), Judgement::Unknown);
        assert_eq!(clock.judge(NodeId(2), FAR, 9, 9), Judgement::Unknown, "the same again");
        assert_eq!(clock.judge(NodeId(3), LogicalTime(FAR.0 + 5), 9, 9), Judgement::Sound);
        assert_eq!(clock.now(), LogicalTime(FAR.0 + 5));
        assert_eq!(clock.judge(NodeId(1), BOMB, 9, 9), Judgement::Refused);
    }

    #[test]
    fn three_that_say_the_same_show_that_this_node_is_behind() {
        let mut clock = Clock::of_founder();
        let judged = [1, 2, 3].map(|peer| clock.judge(NodeId(peer), FAR, peer, 9));
        assert_eq!(judged, [Judgement::Refused, Judgement::Refused, Judgement::Behind]);
        assert_eq!(clock.judge(NodeId(4), FAR, 4, 9), Judgement::Sound);
    }

    /// Of a division's smaller side there may be no more. One alone is never enough.
    #[test]
    fn two_that_go_on_saying_it_are_believed_in_the_end() {
        let mut clock = Clock::of_founder();
        for round in 1..=INSIST_ROUNDS {
            assert_eq!(clock.judge(NodeId(1), FAR, round, 9), Judgement::Refused);
            assert_eq!(clock.judge(NodeId(2), FAR, round, 9), Judgement::Refused);
        }
        let round = INSIST_ROUNDS + 1;
        assert_eq!(clock.judge(NodeId(2), FAR, round, 9), Judgement::Behind);
        assert_eq!(clock.judge(NodeId(1), FAR, round, 9), Judgement::Sound);
    }

    #[test]
    fn who_said_it_once_does_not_insist() {
        let mut clock = Clock::of_founder();
        for peer in [1, 2] {
            assert_eq!(clock.judge(NodeId(peer), FAR, 1, 9), Judgement::Refused);
        }
        assert_eq!(clock.judge(NodeId(1), FAR, 1 + INSIST_ROUNDS, 9), Judgement::Refused);
    }

    #[test]
    fn the_only_peer_is_believed_when_it_says_so_again_later() {
        let mut clock = Clock::default();
        assert_eq!(clock.judge(NodeId(1), FAR, 1, 1), Judgement::Unknown);
        assert_eq!(clock.judge(NodeId(1), FAR, 3, 1), Judgement::Unknown);
        assert_eq!(clock.judge(NodeId(1), FAR, 4, 1), Judgement::Sound);
    }
}
