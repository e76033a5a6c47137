//! The ring and the keyspaces of a data directory, as the cluster was born or joined.

use quorate_kernel::ids::{Incarnation, Start};
use quorate_kernel::keyspace::Keyspace as Record;
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_node::catalog::{Catalog, CatalogError, Engine, Keyspace};
use quorate_store::{HostRecord, Identity, KeyspaceRecord};
use std::collections::BTreeMap;

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
    };
    records.iter().map(host).collect()
}

/// The ring that the cluster was born with, if the identity is a founder's.
#[must_use]
pub fn ring(identity: &Identity) -> Option<Ring> {
    identity.is_founder.then(|| Ring::new(0, ring_hosts(&identity.hosts)))
}

/// The keyspaces of an identity.
///
/// # Errors
/// A record breaks a rule of this build, or names an engine that it does not have.
pub fn catalog(identity: &Identity) -> Result<Catalog, CatalogError> {
    let ring = ring(identity);
    let mut catalog = Catalog::default();
    for record in &identity.keyspaces {
        catalog.add(keyspace(record, ring.as_ref())?)?;
    }
    Ok(catalog)
}

/// A keyspace of a record: born on this ring, or joined.
fn keyspace(record: &KeyspaceRecord, ring: Option<&Ring>) -> Result<Keyspace, CatalogError> {
    let (name, lane, engine) = (&record.name, record.lane, record.engine.parse()?);
    if engine != Engine::Linearizable {
        // The catalog will have it so, but for its positions: they follow from the ring.
        let record = Record::new(name, lane, &record.engine, record.settings.clone(), 1);
        return Keyspace::of(&record, ring);
    }
    let (durability, replicas) = (record.durability, record.replicas);
    let keyspace = match ring {
        Some(ring) => Keyspace::founded(name, lane, engine, durability, replicas, ring)?,
        None => Keyspace::joined(name, lane, engine, durability, replicas)?,
    };
    let bytes = usize::try_from(record.value_bytes_max).unwrap_or(usize::MAX);
    let keyspace = keyspace.with_value_bytes_max(bytes)?;
    let keyspace = keyspace.with_order_and_mode(record.order.parse()?, record.mode.parse()?);
    Ok(Keyspace { static_views: has_static_views(record), ..keyspace })
}

pub use quorate_node::record::STATIC_VIEWS;

/// Whether the hosts of a keyspace neither send nor compare views, so that it is not linearizable.
#[must_use]
pub fn has_static_views(record: &KeyspaceRecord) -> bool {
    record.settings.get(STATIC_VIEWS).is_some_and(|value| value == "true")
}

/// The record of a keyspace.
#[must_use]
pub fn record(keyspace: &Keyspace) -> KeyspaceRecord {
    KeyspaceRecord {
        name: keyspace.name.clone(),
        lane: keyspace.lane,
        engine: keyspace.engine.to_string(),
        durability: keyspace.durability,
        value_bytes_max: keyspace.value_bytes_max as u64,
        replicas: keyspace.replicas,
        order: keyspace.order.to_string(),
        mode: keyspace.mode.to_string(),
        settings: settings_of(keyspace),
    }
}

fn settings_of(keyspace: &Keyspace) -> BTreeMap<String, String> {
    if let Some(placed) = &keyspace.placed {
        return placed.settings.clone();
    }
    let setting = |name: &str| (name.to_owned(), String::from("true"));
    keyspace.static_views.then(|| setting(STATIC_VIEWS)).into_iter().collect()
}
