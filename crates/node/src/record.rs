//! From the catalog's records, which are words, to keyspaces, and back.

use crate::catalog::{CatalogError, Engine, Keyspace, Mode};
use crate::factory::causal;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use quorate_kernel::keyspace::{Birth, Keyspace as Record, Settings};
use quorate_kernel::ring::Ring;

/// The setting of a keyspace without consistent quorums. No engine has it among its rules: only a
/// cluster that measures is born with it.
pub const STATIC_VIEWS: &str = "unsafe_static_views";

impl Keyspace {
    /// The keyspace of a record of the catalog. `ring` is that of the cluster's birth, on hosts
    /// that it was born with.
    ///
    /// # Errors
    /// This build does not have its engine, or cannot read a setting.
    pub fn of(record: &Record, ring: Option<&Ring>) -> Result<Keyspace, CatalogError> {
        let (name, lane) = (&record.name, record.lane);
        let (engine, durability) = (record.engine.parse()?, record.durability());
        let replicas = u8::try_from(record.replicas()).unwrap_or(0);
        let mut keyspace = match (&record.birth, ring) {
            (Birth::WithCluster, Some(ring)) => {
                Keyspace::founded(name, lane, engine, durability, replicas, ring)?
            }
            _ => Keyspace::joined(name, lane, engine, durability, replicas)?,
        };
        if let Birth::Online(views) = &record.birth {
            keyspace.first_views.clone_from(views);
        }
        let bytes = record.setting("value").parse().unwrap_or(0);
        if engine == Engine::Causal {
            if causal::rules::shape(&record.settings).is_none() {
                let why = String::from("it has no positions for its replicas");
                return Err(CatalogError::Settings { name: name.clone(), why });
            }
            let keyspace = keyspace.with_value_bytes_max(bytes)?;
            let (mode, placed) = (Mode::Eventual, Some(Arc::new(record.clone())));
            return Ok(Keyspace { mode, placed, ..keyspace });
        }
        let (order, mode) = (record.setting("order").parse()?, record.setting("mode").parse()?);
        let keyspace = keyspace.with_value_bytes_max(bytes)?.with_order_and_mode(order, mode);
        Ok(Keyspace { static_views: record.setting(STATIC_VIEWS) == "true", ..keyspace })
    }

    /// Its settings as the catalog has them.
    #[must_use]
    pub fn settings(&self) -> Settings {
        if let Some(placed) = &self.placed {
            return placed.settings.clone();
        }
        let pairs = [
            ("replicas", self.replicas.to_string()),
            ("durability", self.durability.to_string()),
            ("value", self.value_bytes_max.to_string()),
            ("order", self.order.to_string()),
            ("mode", self.mode.to_string()),
        ];
        let flag = self.static_views.then(|| (STATIC_VIEWS, String::from("true")));
        pairs.into_iter().chain(flag).map(|(name, value)| (String::from(name), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Order;
    use crate::factory::ENGINES;
    use quorate_kernel::ids::LaneId;
    use quorate_kernel::storage::Durability;

    #[test]
    fn a_record_of_the_rules_is_the_keyspace_that_wrote_it() {
        let (lane, engine) = (LaneId(17), Engine::Linearizable);
        let durability = Durability::Periodic { every_ms: 20 };
        let keyspace = Keyspace::joined("k", lane, engine, durability, 5).expect("valid");
        let keyspace = keyspace.with_order_and_mode(Order::Key, Mode::Atomic);
        let keyspace = keyspace.with_value_bytes_max(77).expect("valid");
        let settings = keyspace.settings();
        assert_eq!(ENGINES[0].complete(&settings), Ok(settings.clone()), "the rules know them all");
        let record = Record::new("k", lane, &engine.to_string(), settings, 3);
        assert_eq!(Keyspace::of(&record, None), Ok(keyspace));
        let settings = ENGINES[1].complete(&Settings::new()).expect("defaults");
        let causal = Record { engine: Engine::Causal.to_string(), settings, ..record.clone() };
        let keyspace = Keyspace::of(&causal, None).expect("the defaults can be served");
        assert_eq!((keyspace.engine, keyspace.replicas), (Engine::Causal, 3));
        assert_eq!(keyspace.settings(), causal.settings);
        let mut few = causal;
        few.settings.insert(String::from("positions"), String::from("2"));
        assert!(matches!(Keyspace::of(&few, None), Err(CatalogError::Settings { .. })));
        let foreign = Record { engine: String::from("epidemic"), ..record };
        assert!(matches!(Keyspace::of(&foreign, None), Err(CatalogError::Engine { .. })));
    }
}
