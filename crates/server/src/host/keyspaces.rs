//! The keyspaces of a host as the catalog has them now: for the loop, the doors and the metrics.

use crate::metrics::{KeyspaceCells, Shared};
use quorate_doors::resp;
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::Keyspaces;
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::Durability;
use quorate_node::catalog::{Catalog, Keyspace};
use std::sync::Arc;
use std::time::Duration;

/// Everything that follows from the catalog.
#[derive(Default)]
pub(super) struct Table {
    /// What the catalog says.
    pub records: Arc<Keyspaces>,
    /// The keyspaces that this build can serve.
    pub catalog: Catalog,
    /// Their cells, in the same order.
    pub cells: Vec<Arc<KeyspaceCells>>,
}

impl Table {
    /// The table after the catalog has changed. Cells of keyspaces that stay go on counting.
    pub fn after(&self, records: &Arc<Keyspaces>, founding: Option<&Ring>) -> Table {
        let mut table = Table { records: Arc::clone(records), ..Table::default() };
        for (record, _) in &records.list {
            let keyspace = match Keyspace::of(record, founding) {
                Ok(keyspace) => keyspace,
                Err(error) => {
                    let (event, keyspace) = ("keyspace_not_served", &record.name);
                    tracing::error!(event, keyspace, %error, "upgrade this host");
                    continue;
                }
            };
            let lane = keyspace.lane;
            let before = self.catalog.keyspaces.iter().position(|other| other.lane == lane);
            let cells = before.map_or_else(
                || {
                    let (name, engine) = (&record.name, &record.engine);
                    let (durability, replicas) = (keyspace.durability, keyspace.replicas);
                    Arc::new(KeyspaceCells::new(name, engine, durability, replicas))
                },
                |index| Arc::clone(&self.cells[index]),
            );
            cells.set_replicas(keyspace.replicas);
            if let Err(error) = table.catalog.add(keyspace) {
                tracing::error!(event = "keyspace_not_served", keyspace = record.name, %error);
                continue;
            }
            table.cells.push(cells);
        }
        table
    }

    /// The keyspaces as the RESP door numbers them: by their lanes, so that a number is never given
    /// to another one.
    pub fn numbered(&self) -> Vec<resp::Keyspace> {
        let last = self.catalog.keyspaces.last().map_or(0, |keyspace| number(keyspace.lane));
        let lane = |number: usize| LaneId(LaneId::KEYSPACES.0 + number as u32);
        let mut all: Vec<resp::Keyspace> =
            (0..=last).map(|number| resp::Keyspace::closed(lane(number))).collect();
        for keyspace in &self.catalog.keyspaces {
            all[number(keyspace.lane)] = resp::Keyspace {
                name: keyspace.name.clone(),
                lane: keyspace.lane,
                engine: keyspace.engine.to_string(),
                order: keyspace.order.to_string(),
                value_bytes_max: keyspace.value_bytes_max,
                is_open: true,
            };
        }
        all
    }

    /// Whether all data is on disk before it is acknowledged.
    pub fn is_durable(&self) -> bool {
        self.catalog.keyspaces.iter().all(|keyspace| keyspace.durability == Durability::Sync)
    }

    /// The shortest sync interval of the periodic keyspaces.
    pub fn sync_every(&self) -> Option<Duration> {
        let every = self.catalog.keyspaces.iter().filter_map(|k| k.durability.every());
        every.min().map(|span| Duration::from_nanos(span.0))
    }

    /// Tells the outside which keyspaces there are.
    pub fn show(&self, shared: &Shared) {
        shared.set_keyspaces(self.cells.clone());
    }
}

/// The number of a keyspace at the RESP door.
pub(super) fn number(lane: LaneId) -> usize {
    (lane.0 - LaneId::KEYSPACES.0) as usize
}
