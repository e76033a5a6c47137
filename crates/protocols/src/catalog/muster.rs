//! Who is there when a keyspace is made: it begins on hosts that answer.
//!
//! The ring says that a host is there until it is suspected, and a host that has just started, or
//! hears no news, suspects nobody. A group that begins on a host which is down cannot choose
//! another one itself. So whoever makes a keyspace asks all that seem to be there, and takes those
//! for suspected that have not answered by the second time.
//!
//! Where those that answer cannot hold the keyspace with all its replicas, the others are taken
//! too: they may be slow, or come back, and then hear of it. Who waits for all of them could make
//! none while one is away; who does without them would have too few copies of what is acknowledged.

use super::chain::decree::Decree;
use super::chain::fold::Catalog;
use super::message::{Message, Purpose};
use super::orders;
use super::partitions::seats;
use super::state::{Doing, Want, Wish};
use super::timer::Timer;
use super::{CatalogLane, Context};
use crate::reconfigure::backoff;
use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::invariant;
use quorate_kernel::keyspace::{CatalogRefusal, KeyspaceOrder};
use quorate_kernel::mutant;
use quorate_kernel::ring::Ring;

/// How often hosts are asked whether they are there.
const ASKED_MAX: u32 = 2;

impl CatalogLane {
    /// Whether hosts are to be asked before a wish is proposed.
    pub(super) fn is_to_muster(&self, wish: &Wish) -> bool {
        let makes = matches!(wish.want, Want::Order(KeyspaceOrder::Create(_)));
        makes && wish.there.is_none() && !mutant!("catalog_begins_unheard")
    }

    /// Asks all hosts that seem to be there.
    pub(super) fn muster(&mut self, mut wish: Wish, cx: &mut Context<'_>) {
        let nodes = seats::takers(&self.state.ring).map(|host| host.who.node);
        let asked: BTreeSet<NodeId> = nodes.filter(|node| *node != cx.me.node).collect();
        if asked.is_empty() {
            wish.there = Some(BTreeSet::from([cx.me.node]));
            return self.state.waiting.push_front(wish);
        }
        self.state.questions += 1;
        let question = self.state.questions;
        self.begin(wish, Doing::Muster { question, asked }, cx);
    }

    /// Asks those that have not answered once more, or goes on without them; whether hosts are
    /// being asked.
    pub(super) fn muster_again(&mut self, cx: &mut Context<'_>) -> bool {
        let version = self.state.version();
        let Some(running) = &mut self.state.running else { return false };
        let Doing::Muster { question, asked } = &running.doing else { return false };
        if running.attempts == ASKED_MAX {
            self.go_on_with_those(cx);
            return true;
        }
        let silent: Vec<NodeId> = asked.difference(&running.heard).copied().collect();
        invariant!(!silent.is_empty(), "who has heard all goes on");
        let message = Message::Length { version, purpose: Purpose::Ask(*question) };
        let wait = backoff(running.attempts, cx.rng);
        running.attempts += 1;
        cx.fx.arm(Timer::Retry, cx.now + wait);
        // A question promises nothing.
        cx.fx.send_early(&Arc::from(silent), message);
        true
    }

    /// Whatever a host says, it is there. What is late says it too: no more is known then than the
    /// ring says.
    pub(super) fn note_there(&mut self, node: NodeId, cx: &mut Context<'_>) {
        let Some(running) = &mut self.state.running else { return };
        let Doing::Muster { asked, .. } = &running.doing else { return };
        if !asked.contains(&node) {
            return;
        }
        running.heard.insert(node);
        if running.heard.len() == asked.len() {
            self.go_on_with_those(cx);
        }
    }

    fn go_on_with_those(&mut self, cx: &mut Context<'_>) {
        let Some(mut running) = self.state.running.take() else { return };
        running.heard.insert(cx.me.node);
        running.wish.there = Some(running.heard);
        self.state.waiting.push_front(running.wish);
        self.proceed(cx);
    }

    /// The decree that does what is asked, on hosts that answer if they are enough.
    ///
    /// # Errors
    /// It cannot be done; if only because too few seem to be there, then by those that answer.
    pub(super) fn decree(
        &self,
        wish: &Wish,
        catalog: &Catalog,
        order: &KeyspaceOrder,
    ) -> Result<Option<Decree>, CatalogRefusal> {
        let on = |ring: &Ring| orders::decree(catalog, ring, self.settings.engines, order);
        let ring = &self.state.ring;
        let Some(there) = &wish.there else { return on(ring) };
        match on(&answering(ring, there)) {
            Ok(decree) if decree.as_ref().is_none_or(orders::has_all_replicas) => Ok(decree),
            few => on(ring).or(few),
        }
    }
}

/// The ring with those suspected that have not answered.
fn answering(ring: &Ring, there: &BTreeSet<NodeId>) -> Ring {
    let mut hosts = ring.hosts().to_vec();
    for host in &mut hosts {
        host.is_suspected |= !there.contains(&host.who.node);
    }
    Ring::new(ring.version, hosts)
}
