//! What a host does for the catalog unasked: it talks to others, and looks after the system group,
//! after partitions whose nodes leave, and after nodes that have fewer partitions than others.

use super::chain::decree::{Decree, Entry};
use super::message::{Message, Purpose};
use super::partitions::{levelling, moves};
use super::state::{Doing, Want};
use super::timer::Timer;
use super::{CatalogLane, Context, PERIOD, system_size};
use crate::placement;
use crate::reconfigure::Ground;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{LaneId, NodeId};
use quorate_kernel::keyspace::{Keyspace, Settlement};
use quorate_kernel::limits::CATALOG_ORDERS_MAX;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::ring::{Ring, RingHost};
use quorate_kernel::time::Span;

/// For how many periods a member waits for the proposer of what it has accepted, if it is the one
/// to see to what is due; the others wait twice as long.
const PATIENCE: u32 = 2;
/// For how many periods hosts stay as they are before partitions are evened out: who came may go
/// again, and who started anew may have forgotten what it held.
const CALM: u32 = 10;
/// How many partitions are given to other nodes at a time, at most.
const MOVES_MAX: usize = 16;
/// With so many wishes that wait, words of engines are forgotten: orders must find room.
const WORDS_MAX: usize = CATALOG_ORDERS_MAX / 2;
/// How long the host's own wishes may take.
const OWN_DEADLINE: Span = Span::secs(10);

impl CatalogLane {
    /// A period has passed.
    pub(super) fn on_period(&mut self, cx: &mut Context<'_>) {
        cx.fx.arm(Timer::Period, cx.now + PERIOD);
        self.talk(cx);
        let accepted = self.state.stored.acceptor.accepted().is_some();
        self.state.periods_accepted = if accepted { self.state.periods_accepted + 1 } else { 0 };
        self.state.periods_calm = self.state.periods_calm.saturating_add(1);
        let is_idle = self.state.running.is_none() && self.state.waiting.is_empty();
        let wants = if is_idle || self.is_held_up() { self.due(cx) } else { Vec::new() };
        let wants = self.admitted(wants, cx);
        if !wants.is_empty() {
            if let Some(running) = self.state.running.take() {
                self.state.waiting.push_front(running.wish);
            }
            let count = wants.len();
            for want in wants {
                self.wish(None, want, cx.now + OWN_DEADLINE, cx);
            }
            // It comes first: what else there is may wait for it.
            self.state.waiting.rotate_right(count);
            self.proceed(cx);
        }
    }

    /// Whether the wish in hand waits for replies that members do not give while they do not know
    /// what becomes of what they have accepted, this one among them.
    fn is_held_up(&self) -> bool {
        let running = self.state.running.as_ref();
        running.is_some_and(|running| matches!(running.doing, Doing::Confirm { .. }))
            && self.state.periods_accepted > PATIENCE
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
        let is_first = placement::proposer(view, ring) == Some(cx.me.node);
        let patience = if is_first { PATIENCE } else { 2 * PATIENCE };
        if self.state.periods_accepted > patience
            && let Some((_, entry)) = stored.acceptor.accepted()
        {
            // Its proposer may be gone, and may have been told that it was decided. The first
            // member need not have accepted it.
            probe!("catalog/complete");
            return Vec::from([Want::Complete(Entry::clone(entry))]);
        }
        if !is_first {
            return Vec::from_iter(self.own_share(cx.me.node));
        }
        if let Some(change) = placement::next_member(view, ring, system_size(ring)) {
            return Vec::from([Want::Due(Decree::Members(change))]);
        }
        let due = catalog.keyspaces().flat_map(|keyspace| {
            let lane = keyspace.lane;
            if let Some(node) = moves::next_gone(keyspace, ring) {
                probe!("catalog/gone");
                return Vec::from([Want::Due(Decree::Gone { lane, node })]);
            }
            let next = moves::replacements(keyspace, ring, MOVES_MAX);
            next.into_iter().map(|next| replace(keyspace, next)).collect()
        });
        let due: Vec<Want> = due.take(MOVES_MAX).collect();
        if due.is_empty() { Vec::from_iter(self.own_share(cx.me.node)) } else { due }
    }

    /// A partition that this host should have so that all have equal shares. Only who gains asks
    /// for it: a host knows best that it leaves itself, so that none which was told to leave is
    /// given anything by one that has not heard of it, or of its suspicion, for long.
    fn own_share(&self, me: NodeId) -> Option<Want> {
        let (catalog, ring) = (self.state.stored.catalog.as_ref()?, &self.state.ring);
        if self.state.periods_calm <= CALM {
            return None;
        }
        catalog.keyspaces().find_map(|keyspace| {
            let (partition, to) = levelling::next_levelling(keyspace, ring)?;
            (to == me).then(|| {
                probe!("catalog/levelling");
                replace(keyspace, (partition, to))
            })
        })
    }

    /// The ring is another one.
    pub(super) fn on_ring(&mut self, ring: &Arc<Ring>) {
        let stands = |host: &RingHost| (host.who, host.standing, host.is_suspected);
        let before = self.state.ring.hosts().iter().map(stands);
        if !before.eq(ring.hosts().iter().map(stands)) {
            self.state.periods_calm = 0;
        }
        self.state.ring = Arc::clone(ring);
    }

    /// A keyspace's engine has fetched all it needs for a partition, or handed over all it had of a
    /// former one. Engines say so again until the catalog knows, so what is refused is forgotten:
    /// what was said of a partition before it went to another node, too. So is what is said of very
    /// many partitions at once, beyond what may wait.
    pub(super) fn on_settled(
        &mut self,
        lane: LaneId,
        (partition, since): (u32, u64),
        settlement: Settlement,
        cx: &mut Context<'_>,
    ) {
        let decree = match settlement {
            Settlement::Joined => Decree::Settle { lane, partition, since },
            Settlement::HandedOver => Decree::HandOver { lane, partition, since },
        };
        if self.state.waiting.len() >= WORDS_MAX && !mutant!("catalog_words_pile_up") {
            return;
        }
        let fits = |catalog: &super::Catalog| catalog.judge(&decree).is_ok();
        if self.state.stored.catalog.as_ref().is_some_and(|catalog| fits(catalog)) {
            self.wish(None, Want::Due(decree), cx.now + OWN_DEADLINE, cx);
            self.proceed(cx);
        }
    }
}

/// The wish that another node has a partition.
fn replace(keyspace: &Keyspace, (partition, to): (usize, NodeId)) -> Want {
    let (since, partition) = (keyspace.partitions[partition].since, partition as u32);
    Want::Due(Decree::Replace { lane: keyspace.lane, partition, since, to })
}
