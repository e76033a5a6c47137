//! How many peers each round sends to, and for how many rounds (the paper's K and TTL).
//!
//! For a chance of a hole that falls like n^(−c), the paper (§4) asks for K ≥ ⌈2e·ln n / ln ln n⌉
//! and TTL ≥ ⌈(c + 1)·log2 n⌉; where balls get lost or nodes come and go, K is divided by the share
//! that gets through. Logarithms are in fixed point: all hosts come to the same numbers.

use quorate_kernel::limits::{
    EPTO_EVENTS_MAX, EPTO_FANOUT_MAX, EPTO_HELD_BYTES_MAX, EPTO_HOLD_ROUNDS, EPTO_TTL_MAX,
};

/// The fraction bits of fixed-point numbers.
const POINT: u32 = 32;
const ONE: u128 = 1 << POINT;
/// 2e.
const TWO_E: u128 = 23349863109;
/// ln 2.
const LN_2: u128 = 2977044471;
/// Below so many nodes everybody is told each round: ln ln n is of no use there.
const ALL_BELOW: u64 = 20;
/// The shortest TTL: in the smallest cluster too there are late balls, and nodes that stand still
/// for some rounds.
const TTL_MIN: u16 = 8;
/// The least share that is believed to get through, in millionths.
const SURVIVING_PPM_MIN: u32 = 250_000;

/// What K and TTL follow from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// How many nodes there are, as far as known. More than there are costs time only.
    pub nodes: u64,
    /// The paper's c: 2 unless there is a reason.
    pub exponent: u8,
    /// Of a million balls that are sent so many are taken in, as far as was measured.
    pub surviving_ppm: u32,
}

/// What a node broadcasts, relays and holds by. Nodes may differ in all of it, and change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The paper's K: how many random peers get this node's ball each round.
    pub fanout: usize,
    /// The paper's TTL, of the events that this node broadcasts from now on.
    pub ttl: u16,
    /// For how many rounds a stable event whose payload is missing holds others back.
    pub hold_rounds: u16,
    /// The most events that wait to be delivered.
    pub events_max: usize,
    /// The most bytes of payloads in memory.
    pub held_bytes_max: usize,
}

impl Parameters {
    /// Those for a cluster of this scale.
    #[must_use]
    pub fn of(scale: Scale) -> Parameters {
        let nodes = scale.nodes.max(2);
        let others = usize::try_from(nodes - 1).unwrap_or(usize::MAX);
        let surviving = scale.surviving_ppm.clamp(SURVIVING_PPM_MIN, 1_000_000);
        let fanout = (fanout(nodes) * 1_000_000).div_ceil(u64::from(surviving));
        let fanout = usize::try_from(fanout).unwrap_or(usize::MAX).min(EPTO_FANOUT_MAX);
        let ttl = ((u128::from(scale.exponent) + 1) * log2(u128::from(nodes) * ONE)).div_ceil(ONE);
        let ttl = u16::try_from(ttl).unwrap_or(EPTO_TTL_MAX);
        Parameters {
            fanout: fanout.min(others),
            ttl: ttl.clamp(TTL_MIN, EPTO_TTL_MAX),
            hold_rounds: EPTO_HOLD_ROUNDS,
            events_max: EPTO_EVENTS_MAX,
            held_bytes_max: EPTO_HELD_BYTES_MAX,
        }
    }
}

/// The formula of K, without losses.
fn fanout(nodes: u64) -> u64 {
    if nodes < ALL_BELOW {
        return nodes - 1;
    }
    let ln = ln(u128::from(nodes) * ONE);
    let fanout = (TWO_E * ln).div_ceil(self::ln(ln)).div_ceil(ONE);
    u64::try_from(fanout).expect("a logarithm is small")
}

fn ln(of: u128) -> u128 {
    log2(of) * LN_2 / ONE
}

/// The logarithm of a fixed-point number that is 1 or more: whole part, then bit by bit by
/// squaring.
fn log2(of: u128) -> u128 {
    let whole = of.ilog2() - POINT;
    let (mut rest, mut log) = (of >> whole, u128::from(whole) << POINT);
    for bit in (0..POINT).rev() {
        rest = (rest * rest) >> POINT;
        if rest >= 2 * ONE {
            rest >>= 1;
            log |= 1 << bit;
        }
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(nodes: u64, exponent: u8, surviving_ppm: u32) -> (usize, u16) {
        let parameters = Parameters::of(Scale { nodes, exponent, surviving_ppm });
        (parameters.fanout, parameters.ttl)
    }

    #[test]
    fn they_are_those_of_the_paper() {
        // K = 18 and TTL = 25 are what its evaluation uses for 300 nodes.
        assert_eq!(of(300, 2, 1_000_000), (18, 25));
        let sizes = [100, 500, 1000, 2000, 5000, 10_000];
        assert_eq!(sizes.map(|n| of(n, 2, 1_000_000).0), [17, 19, 20, 21, 22, 23]);
        assert_eq!(sizes.map(|n| of(n, 2, 1_000_000).1), [20, 27, 30, 33, 37, 40]);
        assert_eq!(sizes.map(|n| of(n, 1, 1_000_000).1), [14, 18, 20, 22, 25, 27]);
    }

    #[test]
    fn losses_raise_the_fanout_and_nothing_leaves_its_bounds() {
        assert_eq!(of(1000, 2, 800_000).0, 25);
        assert_eq!(of(1000, 2, 500_000).0, 40);
        assert_eq!(of(1000, 2, 0).0, EPTO_FANOUT_MAX.min(80));
        assert_eq!(of(5, 2, 500_000).0, 4, "there are no more");
        assert_eq!(of(0, 2, 1_000_000), (1, TTL_MIN));
        assert_eq!(of(u64::MAX, 255, 0), (EPTO_FANOUT_MAX, EPTO_TTL_MAX));
    }
}
