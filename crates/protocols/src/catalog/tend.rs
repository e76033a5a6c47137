//! What a host does for the catalog unasked: it talks to others, and looks after the system group
//! and after positions whose nodes leave.

use super::decree::{Decree, Entry};
use super::message::{Message, Purpose};
use super::state::Want;
use super::timer::Timer;
use super::{CatalogLane, Context, PERIOD, positions, system_size};
use crate::placement;
use crate::reconfigure::Ground;
use alloc::vec::Vec;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::probe;
use quorate_kernel::time::Span;

/// For how many periods a member waits for the proposer of what it has accepted.
const PATIENCE: u32 = 2;
/// How many positions are given to other nodes at a time, at most.
const MOVES_MAX: usize = 16;
/// How long the host's own wishes may take.
const OWN_DEADLINE: Span = Span::secs(10);

impl CatalogLane {
    /// A period has passed.
    pub(super) fn on_period(&mut self, cx: &mut Context<'_>) {
        cx.fx.arm(Timer::Period, cx.now + PERIOD);
        self.talk(cx);
        let accepted = self.state.stored.acceptor.accepted().is_some();
        self.state.periods_accepted = if accepted { self.state.periods_accepted + 1 } else { 0 };
        if self.state.running.is_none() && self.state.waiting.is_empty() {
            for want in self.due(cx) {
                self.wish(None, want, cx.now + OWN_DEADLINE, cx);
            }
            self.proceed(cx);
        }
    }

    /// Tells a random host how long the chain is here.
    fn talk(&mut self, cx: &mut Context<'_>) {
        let others = self.others(cx.me.node);
        if others.is_empty() {
            return;
        }
        let to = others[cx.rng.below(others.len() as u64) as usize];
        let version = self.state.version();
        cx.fx.send(to, Message::Length { version, purpose: Purpose::News });
    }

    /// What this host holds to be due, if it is the one to see to it. Two that take themselves for
    /// it are harmless: consensus decides.
    fn due(&self, cx: &Context<'_>) -> Vec<Want> {
        let (stored, ring) = (&self.state.stored, &self.state.ring);
        let Some(catalog) = stored.catalog.as_ref() else { return Vec::new() };
        let view = catalog.view();
        if placement::proposer(view, ring) != Some(cx.me.node) {
            return Vec::new();
        }
        if self.state.periods_accepted > PATIENCE
            && let Some((_, entry)) = stored.acceptor.accepted()
        {
            // Its proposer may be gone, and may have been told that it was decided.
            probe!("catalog/complete");
            return Vec::from([Want::Complete(Entry::clone(entry))]);
        }
        if let Some(change) = placement::next_member(view, ring, system_size(ring)) {
            return Vec::from([Want::Due(Decree::Members(change))]);
        }
        let moves = catalog.keyspaces().flat_map(|keyspace| {
            let lane = keyspace.lane;
            if let Some(node) = positions::next_gone(keyspace, ring) {
                probe!("catalog/gone");
                return Vec::from([Want::Due(Decree::Gone { lane, node })]);
            }
            let replace = |(position, to): (usize, NodeId)| {
                let (since, position) = (keyspace.positions[position].since, position as u32);
                Want::Due(Decree::Replace { lane, position, since, to })
            };
            let next = positions::replacements(keyspace, ring, MOVES_MAX);
            next.into_iter().map(replace).collect()
        });
        moves.take(MOVES_MAX).collect()
    }

    /// A keyspace's engine has fetched all it needs for a position, or handed over all it had of a
    /// former one. Engines say so again until the catalog knows, so what is refused is forgotten.
    pub(super) fn on_position_settled(
        &mut self,
        lane: LaneId,
        position: u32,
        since: u64,
        cx: &mut Context<'_>,
    ) {
        let decree = Decree::Settle { lane, position, since };
        let fits = |catalog: &super::Catalog| catalog.judge(&decree).is_ok();
        if self.state.stored.catalog.as_ref().is_some_and(|catalog| fits(catalog)) {
            self.wish(None, Want::Due(decree), cx.now + OWN_DEADLINE, cx);
            self.proceed(cx);
        }
    }
}
