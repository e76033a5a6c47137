//! Numbers: of configurations, of rounds, and the digests that name what is agreed on.

use core::fmt;
use quorate_kernel::ids::NodeId;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

/// The number of a configuration: 1 is what the founders begin with, and each decided change makes
/// the next. 0 is that of a node that has none yet.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Number(pub u64);

impl Number {
    /// The number that follows.
    #[must_use]
    pub fn next(self) -> Number {
        Number(self.0.saturating_add(1))
    }
}

/// 128 bits that name a change, or the whole chain of changes up to a configuration.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Digest(pub u128);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(xxh3_128(bytes))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", (self.0 >> 96) as u32)
    }
}

/// Which configuration, of which chain. Two of one number have the same digest, unless the founders
/// were told different things.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RollId {
    /// Its number.
    pub number: Number,
    /// The digest of the founding and of all changes since.
    pub digest: Digest,
}

impl fmt::Debug for RollId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.number.0)
    }
}

/// The highest number of a configuration that a peer is believed: half of what is counted to, so
/// that others can follow.
pub(super) const NUMBER_MAX: u64 = u64::MAX / 2;

/// The highest number of a round; nobody begins one behind it.
pub(super) const ROUND_MAX: u64 = u32::MAX as u64;

/// A round of the agreement on one change (Fast Paxos's round number with its coordinator). Rounds
/// of different coordinators are never equal.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Round {
    /// 0 before all rounds, 1 the fast round, from 2 on classic ones.
    pub number: u64,
    /// Who coordinates it; nobody does in the fast round.
    pub coordinator: NodeId,
}

impl Round {
    /// Before all rounds.
    pub const NONE: Round = Round { number: 0, coordinator: NodeId(0) };
    /// The fast round: its value is whatever a member proposes.
    pub const FAST: Round = Round { number: 1, coordinator: NodeId(0) };

    /// Whether a coordinator chooses its value.
    #[must_use]
    pub fn is_classic(self) -> bool {
        self.number > Round::FAST.number
    }

    /// Whether a correct peer can name it as a classic one.
    pub(super) fn may_be_classic(self) -> bool {
        self.is_classic() && self.number <= ROUND_MAX
    }
}

impl fmt::Debug for Round {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_classic() {
            write!(f, "{}.{}", self.number, self.coordinator.0)
        } else {
            write!(f, "{}", self.number)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_two_coordinators_are_ordered_and_never_equal() {
        let of = |number, node| Round { number, coordinator: NodeId(node) };
        let order = [Round::NONE, Round::FAST, of(2, 0), of(2, 7), of(3, 1)];
        assert!(order.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(!Round::FAST.is_classic() && of(2, 0).may_be_classic());
        assert!(!of(ROUND_MAX + 1, 0).may_be_classic());
    }
}
