//! The engine as a value: what its keyspaces let be set, and how one is opened.

use super::{Linearizable, Mode, Order, Pace, Settings};
use crate::placement;
use alloc::vec::Vec;
use quorate_kernel::engine::{Capability, Engine, Listing, Opening, Pace as Numbers, Placement};
use quorate_kernel::keyspace::{Birth, CatalogRefusal, Keyspace, Settings as Words};
use quorate_kernel::limits::VALUE_BYTES_MAX;
use quorate_kernel::rules::{Alter, Setting, Takes};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;

/// The engine.
pub const ENGINE: Engine = Engine {
    name: "linearizable",
    placement: Placement::Groups,
    can: &[Capability::Values, Capability::Listing, Capability::Explaining],
    listing: Listing {
        is_complete: true,
        text: "a key that is there throughout is listed; a key that is written or deleted \
               meanwhile may be or not, but what a page has shown no later read denies; the \
               listing as a whole is no snapshot, and each value is read by itself",
    },
    position: |settings, key| order(settings).position(key),
    mode: |settings| if is_eventual(settings) { "eventual" } else { "atomic" },
    open: |opening| Ok(super::lane(Settings::of(opening)?)),
    settings: &[
        Setting {
            name: "replicas",
            takes: Takes::Word(&["1", "3", "5", "7"]),
            default: "3",
            alter: Alter::Live(
                "each group takes in or lets go one member at a time; the data is copied",
            ),
        },
        Setting {
            name: "durability",
            takes: Takes::Durability,
            default: "sync",
            alter: Alter::Never(
                "it says what of the data is on disk; make another keyspace and copy",
            ),
        },
        Setting {
            name: "value",
            takes: Takes::Whole(1, VALUE_BYTES_MAX as u64),
            default: "16777216",
            alter: Alter::Live("longer values that are there stay, and can be read"),
        },
        Setting {
            name: "order",
            takes: Takes::Word(&["hash", "key"]),
            default: "hash",
            alter: Alter::Never("every key would stand elsewhere on the ring"),
        },
        Setting {
            name: "mode",
            takes: Takes::Word(&["atomic", "eventual"]),
            default: "atomic",
            alter: Alter::Never("what was written in one mode promises nothing in the other"),
        },
    ],
};

/// A setting of keyspaces without consistent quorums. The engine's table does not have it: only a
/// cluster that measures is born with it.
pub const STATIC_VIEWS: &str = "unsafe_static_views";

fn is_eventual(settings: &Words) -> bool {
    settings.get("mode").is_some_and(|word| word == "eventual")
}

/// In which order keys lie on the ring.
#[must_use]
pub fn order(settings: &Words) -> Order {
    if settings.get("order").is_some_and(|word| word == "key") { Order::Key } else { Order::Hash }
}

/// Whether the hosts of a keyspace that is set like this neither send nor compare views, so that it
/// is not linearizable.
#[must_use]
pub fn has_static_views(settings: &Words) -> bool {
    settings.get(STATIC_VIEWS).is_some_and(|word| word == "true")
}

impl Settings {
    /// What a keyspace is set to as the catalog has it.
    ///
    /// # Errors
    /// A setting cannot be read.
    pub fn of(opening: &Opening<'_>) -> Result<Settings, CatalogRefusal> {
        let Opening { keyspace, founding, pace, .. } = opening;
        ENGINE.check(&keyspace.settings)?;
        let replicas = keyspace.replicas();
        let first_views = match (&keyspace.birth, founding) {
            (Birth::Online(views), _) => views.clone(),
            (Birth::WithCluster, Some(ring)) => placement::first_views(ring, replicas),
            // A host that joined learns from the others which groups there are.
            (Birth::WithCluster, None) => Vec::new(),
        };
        let durability = keyspace.durability();
        Ok(Settings {
            first_views,
            replicas,
            order: order(&keyspace.settings),
            mode: if is_eventual(&keyspace.settings) { Mode::Eventual } else { Mode::Atomic },
            durability,
            value_bytes_max: keyspace.value_bytes_max(),
            // A digest read spares the network and the store of the other members; with everything
            // in memory the value costs less than a second question.
            digest_reads: durability != Durability::Memory,
            ask_majority_first: true,
            static_views: has_static_views(&keyspace.settings),
            transfer_bytes_per_second: pace.get("transfer_bytes_per_second").unwrap_or(0),
            pace: Pace::of(pace),
        })
    }
}

impl Pace {
    /// The usual pace, but for what these numbers say.
    fn of(numbers: &Numbers) -> Pace {
        let usual = Pace::default();
        let span = |name, usual| numbers.get(name).map_or(usual, Span::millis);
        Pace {
            tend: usual.tend,
            beat: span("beat", usual.beat),
            settle: span("settle", usual.settle),
            purge: span("purge", usual.purge),
            compare: span("compare", usual.compare),
            weigh: span("weigh", usual.weigh),
            is_weighing: numbers.get("weigh").is_some(),
        }
    }
}

const _: () = assert!(VALUE_BYTES_MAX as u64 >= 16_777_216);

impl Linearizable {
    /// Takes the settings that may be altered; what rests on them follows at the next look.
    pub(super) fn alter(&mut self, keyspace: &Keyspace) {
        self.settings.replicas = keyspace.replicas();
        if let Ok(bytes) = keyspace.setting("value").parse() {
            self.settings.value_bytes_max = bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::limits::VALUE_BYTES_DEFAULT;

    #[test]
    fn defaults_are_those_of_the_catalog_and_only_live_ones_are_altered() {
        let all = ENGINE.complete(&Words::new()).expect("defaults");
        assert_eq!(all["value"].parse(), Ok(VALUE_BYTES_DEFAULT));
        for setting in ENGINE.settings {
            let is_live = matches!(setting.alter, Alter::Live(_));
            assert_eq!(is_live, ["replicas", "value"].contains(&setting.name), "{}", setting.name);
        }
    }
}
