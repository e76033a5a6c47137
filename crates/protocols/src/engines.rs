//! The engines of this build. A new one is a folder beside this file, and a line here.

use crate::{catalog, events, overlay, roll};
use crate::{causal, coordination, epidemic, linearizable, serializable};
use alloc::vec::Vec;
use quorate_kernel::engine::{self, Engine, Opening};
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::CatalogRefusal;
use quorate_kernel::lane::LaneSpec;
use quorate_kernel::process::Recovery;
use quorate_kernel::storage::Durability;

/// All of them; the first is that of a keyspace that is made without a word on it.
pub const ENGINES: &[&Engine] = &[
    &linearizable::ENGINE,
    &causal::ENGINE,
    &serializable::ENGINE,
    &coordination::ENGINE,
    &epidemic::ENGINE,
];

/// The lane of a keyspace on one node, in the condition that the directory found it in.
///
/// # Errors
/// None of these is its engine, or the engine cannot read the settings.
pub fn open(
    engines: &[&'static Engine],
    opening: &Opening<'_>,
    recovery: Recovery,
) -> Result<LaneSpec, CatalogRefusal> {
    let keyspace = opening.keyspace;
    let engine = engine::find(engines, &keyspace.engine)?;
    let (lane, durability) = (keyspace.lane, keyspace.durability());
    Ok(LaneSpec { lane, durability, recovery, process: (engine.open)(opening)? })
}

/// The key by which a cluster's engines sign what clients keep for them. The secret that it is made
/// of cannot be told from it.
#[must_use]
pub fn signing_key(secret: &[u8]) -> [u8; 32] {
    blake3::derive_key("quorate 2026 causal context tokens", secret)
}

/// The lanes that a node has whatever keyspaces there are: the overlay, the catalog, the one that
/// tells clients of both, and the roll if there shall be one. Those of keyspaces are opened as the
/// catalog says.
#[must_use]
pub fn always(
    overlay: overlay::Settings,
    catalog: catalog::Settings,
    roll: Option<roll::Settings>,
) -> Vec<LaneSpec> {
    let usual = [
        (LaneId::OVERLAY, overlay::lane(overlay)),
        (LaneId::CATALOG, catalog::lane(catalog)),
        (LaneId::EVENTS, events::lane()),
    ];
    let spec = |(lane, process)| {
        let (durability, recovery) = (Durability::Sync, Recovery::Intact);
        LaneSpec { lane, durability, recovery, process }
    };
    let roll = roll.map(|settings| (LaneId::ROLL, roll::lane(settings)));
    usual.into_iter().chain(roll).map(spec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::sync::Arc;
    use quorate_kernel::engine::{Capability, Pace, Placement, Served};
    use quorate_kernel::ids::ClusterId;
    use quorate_kernel::keyspace::{Keyspace, Settings};
    use quorate_kernel::rules::Alter;

    fn keyspace(engine: &Engine) -> Keyspace {
        let settings = engine.complete(&Settings::new()).expect("defaults");
        Keyspace::new("k", LaneId(17), engine.name, settings, 3)
    }

    fn refusal(keyspace: &Keyspace) -> Option<CatalogRefusal> {
        let (cluster, pace) = (ClusterId(1), &Pace::default());
        let opening = Opening { keyspace, cluster, signing_key: [7; 32], pace };
        open(ENGINES, &opening, Recovery::Intact).err()
    }

    #[test]
    fn every_engine_opens_what_it_lets_be_set_and_nothing_else() {
        for engine in ENGINES {
            let usual = keyspace(engine);
            assert_eq!(refusal(&usual), None, "{}", engine.name);
            assert_eq!(engine.check(&usual.settings), Ok(()));
            for setting in engine.settings {
                let mut broken = usual.clone();
                broken.settings.insert(setting.name.to_string(), "?".to_string());
                let refused = refusal(&broken).expect("no setting is `?`").to_string();
                assert!(refused.contains(setting.name), "{refused}");
                broken.settings.remove(setting.name);
                let is_needed = !matches!(setting.alter, Alter::Later(_));
                assert_eq!(refusal(&broken).is_some(), is_needed, "{} is missing", setting.name);
            }
            for needed in ["replicas", "durability", "value"] {
                assert!(engine.settings.iter().any(|it| it.name == needed), "{needed}");
            }
            let has_partitions = engine.settings.iter().any(|it| it.name == "partitions");
            assert_eq!(has_partitions, engine.placement == Placement::Partitions);
            assert!(engine.can(Capability::Values));
        }
    }

    #[test]
    fn a_foreign_engine_is_named_with_those_there_are() {
        let foreign = Keyspace { engine: "gossip".to_string(), ..keyspace(ENGINES[0]) };
        let refused = refusal(&foreign).expect("this build does not have it").to_string();
        assert_eq!(
            refused,
            "unknown engine `gossip`; this build has: linearizable, causal, serializable, \
             coordination, epidemic"
        );
        assert!(Served::of(&Arc::new(foreign), ENGINES).is_err());
    }
}
