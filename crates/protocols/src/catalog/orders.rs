//! From what an operator asks to a decree, by what this host knows now.

use super::chain::decree::Decree;
use super::chain::fold::Catalog;
use super::partitions::seats;
use crate::placement;
use alloc::string::ToString;
use alloc::vec::Vec;
use quorate_kernel::engine::{self, Engine, Placement};
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::{
    Birth, CatalogRefusal, KeyspaceOrder, NewKeyspace, Settings, is_name,
};
use quorate_kernel::limits::FIRST_GROUPS_MAX;
use quorate_kernel::ring::Ring;

/// The decree that does what is asked; `None` if nothing is left to do.
///
/// # Errors
/// It cannot be done, as far as this host knows.
pub(super) fn decree(
    catalog: &Catalog,
    ring: &Ring,
    engines: &[&'static Engine],
    order: &KeyspaceOrder,
) -> Result<Option<Decree>, CatalogRefusal> {
    let decree = match order {
        KeyspaceOrder::Create(NewKeyspace { name, engine, settings }) => {
            if !is_name(name) {
                return Err(CatalogRefusal::Name { name: name.clone() });
            }
            let engine = engine::find(engines, engine)?;
            if catalog.named(name).is_ok() {
                return Err(CatalogRefusal::Exists { name: name.clone() });
            }
            create(ring, engine, name, settings)?
        }
        KeyspaceOrder::Alter { name, settings } => {
            let keyspace = catalog.named(name)?;
            let engine = engine::find(engines, &keyspace.engine)?;
            let settings = engine.alter(&keyspace.settings, settings)?;
            if settings.is_empty() {
                return Ok(None);
            }
            Decree::Alter { lane: keyspace.lane, settings }
        }
        KeyspaceOrder::Drop { name } => Decree::Drop { lane: catalog.named(name)?.lane },
        KeyspaceOrder::Replace { name, partition, to } => {
            let keyspace = catalog.named(name)?;
            if !seats::takers(ring).any(|host| host.who.node == *to) {
                let why = alloc::format!("node {to} does not take part, or does not answer");
                return Err(CatalogRefusal::Partitions { why });
            }
            let since = keyspace.partitions.get(*partition as usize).map_or(0, |place| place.since);
            Decree::Replace { lane: keyspace.lane, partition: *partition, since, to: *to }
        }
    };
    catalog.judge(&decree)?;
    Ok(Some(decree))
}

/// All settings of a new keyspace; the usual number of partitions fits its replicas.
///
/// # Errors
/// A setting is not the engine's, or does not take its value.
pub fn complete(engine: &Engine, asked: &Settings) -> Result<Settings, CatalogRefusal> {
    let mut settings = engine.complete(asked)?;
    if engine.placement == Placement::Partitions && !asked.contains_key("partitions") {
        let (usual, replicas) = (number(&settings, "partitions"), number(&settings, "replicas"));
        let count = seats::usual_count(usual, replicas);
        settings.insert("partitions".to_string(), count.to_string());
    }
    Ok(settings)
}

fn number(settings: &Settings, name: &str) -> usize {
    settings.get(name).and_then(|text| text.parse().ok()).unwrap_or(1).max(1)
}

/// The views that a keyspace of groups begins with.
pub(super) fn groups_of(ring: &Ring, settings: &Settings) -> Birth {
    let replicas = number(settings, "replicas");
    Birth::Groups(placement::first_views(ring, replicas, FIRST_GROUPS_MAX))
}

/// Whether each group of the keyspace that this makes begins with as many members as it shall have.
pub(super) fn has_all_replicas(decree: &Decree) -> bool {
    match decree {
        Decree::Create { settings, birth: Birth::Groups(views), .. } => {
            let replicas = number(settings, "replicas");
            views.iter().all(|view| view.members().len() >= replicas)
        }
        _ => true,
    }
}

fn create(
    ring: &Ring,
    engine: &Engine,
    name: &str,
    asked: &Settings,
) -> Result<Decree, CatalogRefusal> {
    let settings = complete(engine, asked)?;
    let replicas = number(&settings, "replicas");
    let (birth, places) = match engine.placement {
        Placement::Partitions => {
            let count = number(&settings, "partitions");
            (Birth::Groupless, seats::spread(ring, count, replicas)?)
        }
        Placement::Groups => {
            let birth = groups_of(ring, &settings);
            if birth == Birth::Groups(Vec::new()) {
                return Err(CatalogRefusal::Hosts { needed: 1, there: 0 });
            }
            (birth, Vec::<NodeId>::new())
        }
        Placement::Everywhere => (Birth::Groupless, Vec::new()),
    };
    Ok(Decree::Create {
        name: name.to_string(),
        engine: engine.name.to_string(),
        settings,
        birth,
        places,
    })
}
