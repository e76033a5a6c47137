//! The keyspaces of a host as the catalog has them now: for the loop, the doors and the metrics.

use crate::engines;
use crate::metrics::{KeyspaceCells, Shared};
use quorate_kernel::engine;
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::{Keyspace, Keyspaces};
use quorate_kernel::storage::Durability;
use std::sync::Arc;
use std::time::Duration;

/// Everything that follows from the catalog.
#[derive(Default)]
pub(super) struct Table {
    /// What the catalog says.
    pub records: Arc<Keyspaces>,
    /// The keyspaces that this build can serve, in the order of their lanes.
    pub served: Vec<Arc<Served>>,
}

/// A keyspace that this host serves, for the doors on other threads.
#[derive(Debug)]
pub struct Served {
    /// The keyspace and its engine.
    pub entry: engine::Served,
    /// Where the core thread counts what its clients do.
    pub cells: Arc<KeyspaceCells>,
}

impl Served {
    /// The keyspace as the catalog has it.
    #[must_use]
    pub fn keyspace(&self) -> &Keyspace {
        &self.entry.keyspace
    }
}

impl Table {
    /// The table after the catalog has changed. Cells of keyspaces that stay go on counting.
    pub fn after(&self, records: &Arc<Keyspaces>) -> Table {
        let mut table = Table { records: Arc::clone(records), ..Table::default() };
        for (keyspace, _) in &records.list {
            let entry = match engine::Served::of(keyspace, engines::all()) {
                Ok(entry) => entry,
                Err(error) => {
                    let (event, keyspace) = ("keyspace_not_served", &keyspace.name);
                    tracing::error!(event, keyspace, %error, "upgrade this host");
                    continue;
                }
            };
            let before = self.served.iter().find(|other| other.keyspace().lane == keyspace.lane);
            let new = || Arc::new(KeyspaceCells::new(&entry));
            let cells = before.map_or_else(new, |before| Arc::clone(&before.cells));
            cells.set_replicas(keyspace.replicas());
            table.served.push(Arc::new(Served { entry, cells }));
        }
        table
    }

    /// Whether this build can serve everything that there is.
    pub fn serves_all(&self) -> bool {
        self.served.len() == self.records.list.len()
    }

    /// The keyspaces that are served.
    pub fn keyspaces(&self) -> impl Iterator<Item = &Keyspace> {
        self.served.iter().map(|served| served.keyspace())
    }

    /// The keyspaces as doors of clients number them: by their lanes, so that a number is never
    /// given to another one.
    pub fn numbered(&self) -> Vec<Option<engine::Served>> {
        let count = self.keyspaces().last().map_or(1, |last| number(last.lane) + 1);
        let mut all = vec![None; count];
        for served in &self.served {
            all[number(served.keyspace().lane)] = Some(served.entry.clone());
        }
        all
    }

    /// Their names.
    pub fn names(&self) -> Vec<&str> {
        self.keyspaces().map(|keyspace| keyspace.name.as_str()).collect()
    }

    /// Whether all data is on disk before it is acknowledged.
    pub fn is_durable(&self) -> bool {
        self.keyspaces().all(|keyspace| keyspace.durability() == Durability::Sync)
    }

    /// The shortest sync interval of the periodic keyspaces.
    pub fn sync_every(&self) -> Option<Duration> {
        let every = self.keyspaces().filter_map(|keyspace| keyspace.durability().every());
        every.min().map(|span| Duration::from_nanos(span.0))
    }

    /// Tells the outside which keyspaces there are.
    pub fn show(&self, shared: &Shared) {
        shared.set_keyspaces(self.served.iter().map(|it| Arc::clone(&it.cells)).collect());
    }
}

/// The number of a keyspace at doors of clients.
pub(super) fn number(lane: LaneId) -> usize {
    (lane.0 - LaneId::KEYSPACES.0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::Start;
    use quorate_kernel::keyspace::Settings;

    #[test]
    fn a_keyspace_of_an_unknown_engine_is_not_served() {
        let known = crate::samples::served("a", engines::usual(), &[], LaneId(16));
        let known = Arc::new(known.keyspace().clone());
        let unknown = Arc::new(Keyspace::new("b", LaneId(17), "later", Settings::new(), 1));
        let table = |list: &[&Arc<Keyspace>]| {
            let list = list.iter().map(|keyspace| (Arc::clone(keyspace), Start(1))).collect();
            Table::default().after(&Arc::new(Keyspaces { list, ..Keyspaces::default() }))
        };
        assert!(table(&[&known]).serves_all());
        let both = table(&[&known, &unknown]);
        assert_eq!(both.names(), ["a"]);
        assert!(!both.serves_all());
    }
}
