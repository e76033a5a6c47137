//! From the catalog's records, which are words, to keyspaces, and back.

use crate::catalog::{CatalogError, Keyspace};
use alloc::string::{String, ToString};
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
        let (order, mode) = (record.setting("order").parse()?, record.setting("mode").parse()?);
        let keyspace = keyspace.with_value_bytes_max(bytes)?.with_order_and_mode(order, mode);
        Ok(Keyspace { static_views: record.setting(STATIC_VIEWS) == "true", ..keyspace })
    }

    /// Its settings as the catalog has them.
    #[must_use]
    pub fn settings(&self) -> Settings {
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
    use crate::catalog::{Engine, Mode, Order};
    use crate::factory::ENGINES;
    use alloc::vec::Vec;
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
        let record = Record {
            name: String::from("k"),
            lane,
            engine: engine.to_string(),
            settings,
            created: 3,
            changed: 3,
            birth: Birth::WithCluster,
            positions: Vec::new(),
        };
        assert_eq!(Keyspace::of(&record, None), Ok(keyspace));
        let foreign = Record { engine: String::from("epidemic"), ..record };
        assert!(matches!(Keyspace::of(&foreign, None), Err(CatalogError::Engine { .. })));
    }
}
