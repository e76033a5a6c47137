//! What doors of clients know of the host.

use crate::cluster::handshake::settings_hash;
use crate::metrics::{DoorCells, Shared};
use quorate_doors::{Facts, Identity, Stored};
use quorate_kernel::ids::LaneId;
use quorate_kernel::time::WallTime;
use std::sync::Arc;

/// The host as one of its doors sees it.
pub(super) struct HostFacts {
    shared: Arc<Shared>,
    door: Arc<DoorCells>,
}

impl HostFacts {
    pub fn new(shared: &Arc<Shared>, door: &Arc<DoorCells>) -> HostFacts {
        HostFacts { shared: Arc::clone(shared), door: Arc::clone(door) }
    }
}

impl Facts for HostFacts {
    fn is_ready(&self) -> bool {
        let shared = &self.shared;
        shared.knows_keyspaces() && shared.keyspaces().iter().all(|cells| cells.is_ready())
    }

    fn clients(&self) -> u64 {
        self.door.clients.get()
    }

    fn connections_total(&self) -> u64 {
        self.door.accepted.get()
    }

    fn operations_total(&self) -> u64 {
        self.shared.keyspaces().iter().map(|cells| cells.answered_total()).sum()
    }

    fn stored(&self) -> Option<Stored> {
        let (table_bytes, log_bytes) = (self.shared.table_bytes.get(), self.shared.log_bytes.get());
        Some(Stored { table_bytes, log_bytes })
    }

    fn shown(&self, lane: LaneId, name: &str) -> Option<u64> {
        let keyspaces = self.shared.keyspaces();
        let shown = keyspaces.iter().find(|cells| cells.lane() == lane)?.shown();
        let (_, value) = shown.into_iter().find(|(of, _)| *of == name)?;
        value.parse().ok()
    }

    fn memory_bytes(&self) -> u64 {
        // The second field of this file is the resident memory in pages of 4 KiB.
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = text.split(' ').nth(1).and_then(|field| field.parse::<u64>().ok());
        pages.unwrap_or(0) * 4096
    }
}

/// Who the host is, for doors of clients.
pub(crate) fn identity(
    identity: &quorate_store::Identity,
    shared: &Shared,
    started: WallTime,
    seed: u64,
) -> Identity {
    let run_id = format!("{seed:016x}{:016x}{:08x}", settings_hash(identity), shared.start.0);
    Identity {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cluster: identity.cluster,
        node: identity.node,
        run_id,
        process_id: std::process::id(),
        started,
    }
}
