//! From what is stored, or from the cluster's birth, to a member of the chain.

use super::chain::decree::{Decree, Entry, Origin};
use super::chain::fold::Catalog;
use super::orders::groups_of;
use super::partitions::seats;
use super::state::State;
use super::timer::Timer;
use super::{CatalogLane, Context, PERIOD, keys, system_size};
use crate::placement;
use crate::reconfigure::Ground;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::engine::{self, Placement};
use quorate_kernel::ids::{LaneId, Start};
use quorate_kernel::invariant;
use quorate_kernel::keyspace::{Birth, Keyspaces, NewKeyspace};
use quorate_kernel::ring::Ring;
use quorate_kernel::time::Span;
use quorate_kernel::view::Range;

impl CatalogLane {
    pub(super) fn recover(&mut self, cx: &mut Context<'_>) {
        self.state = State::new(cx.me, keys::load(cx.table));
        if self.state.stored.catalog.is_none() {
            // Also of a host that was there before there was a catalog: whatever its lanes of then
            // had forgotten, they may have forgotten since its first start.
            let opened = &mut self.state.stored.opened;
            opened.extend(self.settings.lanes.iter().map(|lane| (*lane, Start(1))));
            if let Some(founding) = self.settings.founding.clone() {
                let replicas = system_size(&founding.ring);
                let members = placement::desired(&founding.ring, Range::ALL.high, replicas);
                self.state.stored.catalog = Some(Arc::new(Catalog::born(members)));
                let entries = founding.keyspaces.iter().map(|one| self.birth(&founding.ring, one));
                let entries: Vec<Entry> = entries.collect();
                self.store(cx);
                self.append(1, &entries, cx);
                let stored = &self.state.stored;
                let lanes = stored.catalog.iter().flat_map(|catalog| catalog.keyspaces());
                invariant!(
                    lanes.map(|keyspace| keyspace.lane).eq(self.settings.lanes.iter().copied()),
                    "a cluster is born with the lanes that follow one another"
                );
            }
        }
        self.announce(cx);
        let phase = Span(1 + cx.rng.below(PERIOD.0));
        cx.fx.arm(Timer::Period, cx.now + phase);
    }

    /// Tells the node which keyspaces there are. Held until what it rests on is durable.
    pub(super) fn announce(&self, cx: &mut Context<'_>) {
        let stored = &self.state.stored;
        let Some(catalog) = &stored.catalog else { return };
        let list = catalog.keyspaces().map(|keyspace| {
            let start = stored.opened.get(&keyspace.lane).copied();
            (Arc::clone(keyspace), start.expect("it is opened when it is learnt"))
        });
        let is_dropped = |lane: &&LaneId| catalog.keyspace(**lane).is_none();
        let keyspaces = Keyspaces {
            version: catalog.version(),
            members: catalog.view().members().to_vec(),
            list: list.collect(),
            dropped: stored.opened.keys().filter(is_dropped).copied().collect(),
        };
        cx.fx.announce_keyspaces(Arc::new(keyspaces));
    }

    /// A keyspace of a cluster's birth as a decree. Nobody decided it: all founders know it.
    fn birth(&self, ring: &Ring, founded: &NewKeyspace) -> Entry {
        let NewKeyspace { name, engine, settings } = founded.clone();
        let placed = engine::find(self.settings.engines, &engine).map(|engine| engine.placement);
        let (birth, places) = match placed {
            Ok(Placement::Partitions) => {
                let places = seats::founding(ring, &settings)
                    .unwrap_or_else(|why| panic!("keyspace `{name}` cannot be born: {why}"));
                (Birth::Groupless, places)
            }
            // What a keyspace is set to may change later: the first views never do.
            Ok(Placement::Groups) => (groups_of(ring, &settings), Vec::new()),
            // One of a later build is opened by nobody.
            Ok(Placement::Everywhere) | Err(_) => (Birth::Groupless, Vec::new()),
        };
        let decree = Decree::Create { name, engine, settings, birth, places };
        Entry { origin: Origin::default(), decree }
    }
}
