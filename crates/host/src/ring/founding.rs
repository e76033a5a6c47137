//! The ring and the keyspaces of a data directory, as the cluster was born or joined.

use crate::engines;
use quorate_kernel::engine;
use quorate_kernel::ids::{Incarnation, LaneId, Start};
use quorate_kernel::keyspace::{CatalogRefusal, NewKeyspace};
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_protocols::engines::signing_key;
use quorate_store::{HostRecord, Identity};

/// The hosts of an identity as the ring has them. Nothing is known of their starts.
#[must_use]
pub fn ring_hosts(records: &[HostRecord]) -> Vec<RingHost> {
    let host = |record: &HostRecord| RingHost {
        who: Incarnation { node: record.node, start: Start(0) },
        address: record.address.clone(),
        zone: record.zone.clone(),
        tokens: record.tokens.clone(),
        standing: Standing::Up,
        is_suspected: false,
        doors: Vec::new(),
    };
    records.iter().map(host).collect()
}

/// The ring that the cluster was born with, if the identity is a founder's.
#[must_use]
pub fn ring(identity: &Identity) -> Option<Ring> {
    identity.is_founder.then(|| Ring::new(0, ring_hosts(&identity.hosts)))
}

/// The lanes of the keyspaces that the cluster was born with: they follow one another.
#[must_use]
pub fn lanes(identity: &Identity) -> Vec<LaneId> {
    (LaneId::KEYSPACES.0..).map(LaneId).take(identity.keyspaces.len()).collect()
}

/// Whether this build can serve the keyspaces of an identity.
///
/// # Errors
/// It does not have an engine, or the engine cannot read the settings.
pub fn check(identity: &Identity) -> Result<(), CatalogRefusal> {
    let check = |keyspace: &NewKeyspace| {
        engine::find(engines::all(), &keyspace.engine)?.check(&keyspace.settings)
    };
    identity.keyspaces.iter().try_for_each(check)
}

/// The key that signs what clients keep for engines, the same on all hosts however their cluster's
/// secret has changed.
#[must_use]
pub fn context_key(identity: &Identity) -> [u8; 32] {
    identity.context_key.unwrap_or_else(|| signing_key(&identity.secret.0))
}
