//! What the RESP door says of the host.

use super::handshake::settings_hash;
use super::keyspaces::Table;
use crate::metrics::Shared;
use quorate_doors::resp::{self, Facts};
use quorate_kernel::time::WallTime;
use quorate_store::Identity;
use std::sync::Arc;

struct HostFacts(Arc<Shared>);

impl Facts for HostFacts {
    fn is_ready(&self) -> bool {
        self.0.knows_keyspaces() && self.0.keyspaces().iter().all(|cells| cells.is_ready())
    }

    fn knows_keyspaces(&self) -> bool {
        self.0.knows_keyspaces()
    }

    fn clients(&self) -> u64 {
        self.0.clients.get()
    }

    fn connections_total(&self) -> u64 {
        self.0.clients_accepted.get()
    }

    fn memory_bytes(&self) -> u64 {
        // The second field of this file is the resident memory in pages of 4 KiB.
        let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages = text.split(' ').nth(1).and_then(|field| field.parse::<u64>().ok());
        pages.unwrap_or(0) * 4096
    }
}

/// What all connections of the RESP door share while it is not known which keyspaces there are.
pub(super) fn door(
    identity: &Identity,
    shared: &Arc<Shared>,
    tcp_port: u16,
    clients_max: usize,
    started: WallTime,
    seed: u64,
) -> resp::Shared {
    let run_id = format!("{seed:016x}{:016x}{:08x}", settings_hash(identity), shared.start.0);
    let itself = resp::Identity {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        cluster: identity.cluster,
        node: identity.node,
        run_id,
        process_id: std::process::id(),
        tcp_port,
        started,
        is_durable: true,
        clients_max: clients_max as u64,
    };
    resp::Shared::new(Table::default().numbered(), itself, Box::new(HostFacts(Arc::clone(shared))))
}
