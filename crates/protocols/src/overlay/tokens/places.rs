//! Where hosts stand on the ring when a cluster is born, and when one joins.
//!
//! Pure functions, for servers and simulators alike.

use crate::overlay::{Context, Overlay};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::TOKENS_PER_HOST_MAX;
use quorate_kernel::probe;
use quorate_kernel::ring::{Ring, Standing};
use quorate_kernel::rng::Rng;

/// Tokens for the hosts that a cluster is born with: all together cut the ring into equal
/// ranges, and neighbours are different hosts.
#[must_use]
pub fn founding(hosts: usize, per_host: usize) -> Vec<Vec<u64>> {
    assert!((1..=TOKENS_PER_HOST_MAX).contains(&per_host), "tokens are bounded");
    let total = (hosts * per_host) as u128;
    // Multiplied before it is divided, so that the last range ends where the ring does.
    let token = |place: usize| ((place as u128 + 1) * (1 << 64) / total - 1) as u64;
    let of = |host: usize| (0..per_host).map(|turn| token(turn * hosts + host)).collect();
    (0..hosts).map(of).collect()
}

/// Tokens for a host that joins: each takes the front of the widest range that is not its own,
/// at most half of it and at most its part of a fair share.
///
/// `former` are tokens that bound a group although no token stands there any more: groups are
/// never merged, so one that lies about where a token is wanted is taken, and no further group
/// comes to be. Otherwise the place is a little off by chance, so that two hosts that join at once
/// differ.
#[must_use]
pub fn joining(ring: &Ring, former: &[u64], count: usize, rng: &mut Rng) -> Vec<u64> {
    assert!(count <= TOKENS_PER_HOST_MAX, "tokens are bounded");
    let mut taken: Vec<(u64, Option<NodeId>)> =
        ring.tokens().map(|(token, node)| (token, Some(node))).collect();
    let owners: BTreeSet<NodeId> = taken.iter().filter_map(|(_, node)| *node).collect();
    let part = u64::MAX / (owners.len() as u64 + 1) / count.max(1) as u64;
    let mut chosen = Vec::new();
    while chosen.len() < count {
        taken.sort_unstable();
        let gaps = taken.iter().enumerate().map(|(place, (high, owner))| {
            let low = taken[(place + taken.len() - 1) % taken.len()].0;
            let width = if low == *high { u64::MAX } else { high.wrapping_sub(low) };
            (owner.is_some(), width, low)
        });
        let token = match gaps.max() {
            None => rng.next(),
            Some((_, width, low)) => {
                let wanted = part.min(width / 2);
                let off = low.wrapping_add(wanted - rng.below(wanted / 8));
                near(former, low, width, wanted).unwrap_or(off)
            }
        };
        if taken.iter().all(|(other, _)| *other != token) {
            taken.push((token, None));
            chosen.push(token);
        }
    }
    chosen.sort_unstable();
    chosen
}

/// The former token in a gap that is nearest to what is wanted, if it is near: it takes no less
/// than half and no more than half as much again.
fn near(former: &[u64], low: u64, width: u64, wanted: u64) -> Option<u64> {
    let reach = |token: &u64| token.wrapping_sub(low);
    let is_near = |token: &&u64| {
        let taken = reach(token);
        taken > 0 && taken >= wanted / 2 && taken <= (wanted + wanted / 2).min(width - 1)
    };
    let distance = |token: &&u64| (reach(token).abs_diff(wanted), **token);
    former.iter().filter(is_near).min_by_key(distance).copied()
}

impl Overlay {
    /// Two hosts stand in one place: of two that joined at once, both took a former token. The
    /// lower node has it ([`Ring::new`]), so the other takes another, or it would stand nowhere.
    pub(crate) fn give_way(&mut self, to: NodeId, cx: &mut Context<'_>) {
        let state = &self.state;
        let (own, other) = (&state.own().record.tokens, state.record(to));
        let is_lower = |record: &&crate::gossip::record::HostRecord| {
            to < cx.me.node && record.standing != Standing::Left
        };
        let Some(other) = other.filter(is_lower).filter(|_| !state.is_passive()) else { return };
        let is_shared = |token: &&u64| other.tokens.binary_search(token).is_ok();
        let lost = own.iter().filter(is_shared).count();
        if lost == 0 {
            return;
        }
        probe!("overlay/gave_way");
        let kept = own.iter().copied().filter(|token| !is_shared(&token));
        let new = joining(&self.ring(), &[], lost, cx.rng);
        let mut tokens: Vec<u64> = kept.chain(new).collect();
        tokens.sort_unstable();
        self.revise(|record| record.tokens = tokens.into(), cx);
        self.store(cx.me.node, cx);
    }
}
