//! From what an operator asks to a decree, by what this host knows now.

use super::decree::Decree;
use super::fold::Catalog;
use super::positions;
use crate::placement;
use alloc::string::ToString;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::{Birth, CatalogRefusal, KeyspaceOrder, Settings, is_name};
use quorate_kernel::limits::FIRST_GROUPS_MAX;
use quorate_kernel::ring::Ring;
use quorate_kernel::rules::Rules;

/// The decree that does what is asked; `None` if nothing is left to do.
///
/// # Errors
/// It cannot be done, as far as this host knows.
pub(super) fn decree(
    catalog: &Catalog,
    ring: &Ring,
    engines: &[&'static Rules],
    order: &KeyspaceOrder,
) -> Result<Option<Decree>, CatalogRefusal> {
    let decree = match order {
        KeyspaceOrder::Create { name, engine, settings } => {
            if !is_name(name) {
                return Err(CatalogRefusal::Name { name: name.clone() });
            }
            let rules = rules(engines, engine)?;
            if catalog.named(name).is_ok() {
                return Err(CatalogRefusal::Exists { name: name.clone() });
            }
            create(ring, rules, name, settings)?
        }
        KeyspaceOrder::Alter { name, settings } => {
            let keyspace = catalog.named(name)?;
            let rules = rules(engines, &keyspace.engine)?;
            let settings = rules.alter(&keyspace.settings, settings)?;
            if settings.is_empty() {
                return Ok(None);
            }
            Decree::Alter { lane: keyspace.lane, settings }
        }
        KeyspaceOrder::Drop { name } => Decree::Drop { lane: catalog.named(name)?.lane },
        KeyspaceOrder::Replace { name, position, to } => {
            let keyspace = catalog.named(name)?;
            if !positions::takers(ring).any(|host| host.who.node == *to) {
                let why = alloc::format!("node {to} does not take part, or does not answer");
                return Err(CatalogRefusal::Positions { why });
            }
            let since = keyspace.positions.get(*position as usize).map_or(0, |place| place.since);
            Decree::Replace { lane: keyspace.lane, position: *position, since, to: *to }
        }
    };
    catalog.judge(&decree)?;
    Ok(Some(decree))
}

fn create(
    ring: &Ring,
    rules: &Rules,
    name: &str,
    asked: &Settings,
) -> Result<Decree, CatalogRefusal> {
    let mut settings = rules.complete(asked)?;
    let number = |settings: &Settings, name: &str| {
        settings.get(name).and_then(|text| text.parse::<usize>().ok()).unwrap_or(1)
    };
    let replicas = number(&settings, "replicas").max(1);
    let (birth, places) = if rules.has_positions {
        let mut count = number(&settings, "positions");
        if !asked.contains_key("positions") {
            count = positions::usual_count(count, replicas);
            settings.insert("positions".to_string(), count.to_string());
        }
        (Birth::WithCluster, positions::spread(ring, count, replicas)?)
    } else {
        let views = placement::online_views(ring, replicas, FIRST_GROUPS_MAX);
        if views.is_empty() {
            return Err(CatalogRefusal::Hosts { needed: 1, there: 0 });
        }
        (Birth::Online(views), Vec::<NodeId>::new())
    };
    Ok(Decree::Create {
        name: name.to_string(),
        engine: rules.engine.to_string(),
        settings,
        birth,
        places,
    })
}

fn rules(engines: &[&'static Rules], name: &str) -> Result<&'static Rules, CatalogRefusal> {
    engines.iter().copied().find(|rules| rules.engine == name).ok_or_else(|| {
        let known: Vec<&str> = engines.iter().map(|rules| rules.engine).collect();
        CatalogRefusal::Engine { name: name.to_string(), known: known.join(", ") }
    })
}
