//! The engine as a value: what its keyspaces let be set, and how one is opened.

use super::{Linearizable, Mode, Pace, Settings};
use crate::order::Order;
use alloc::vec::Vec;
use quorate_kernel::engine::{Capability, Engine, Listing, Opening, Pace as Numbers, Placement};
use quorate_kernel::keyspace::{Birth, CatalogRefusal, Keyspace, Settings as Words};
use quorate_kernel::limits::VALUE_BYTES_MAX;
use quorate_kernel::rules::{Alter, Setting, Takes};
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
    quorum: |members| members / 2 + 1,
    token: |settings, key| order(settings).token(key),
    mode: |settings| if is_eventual(settings) { "eventual" } else { "atomic" },
    open: |opening| Ok(super::lane(Settings::of(opening)?)),
    numbers: &[
        "beat",
        "compare",
        "list_keys",
        "purge",
        "settle",
        "transfer_bytes_per_second",
        "weigh",
    ],
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

fn is_eventual(settings: &Words) -> bool {
    settings.get("mode").is_some_and(|word| word == "eventual")
}

/// In which order keys lie on the ring.
#[must_use]
pub fn order(settings: &Words) -> Order {
    if settings.get("order").is_some_and(|word| word == "key") { Order::Key } else { Order::Hash }
}

impl Settings {
    /// What a keyspace is set to as the catalog has it.
    ///
    /// # Errors
    /// A setting cannot be read.
    pub fn of(opening: &Opening<'_>) -> Result<Settings, CatalogRefusal> {
        let Opening { keyspace, pace, .. } = opening;
        ENGINE.check(&keyspace.settings)?;
        let replicas = keyspace.replicas();
        let first_views = match &keyspace.birth {
            Birth::Groups(views) => views.clone(),
            Birth::Groupless => Vec::new(),
        };
        let durability = keyspace.durability();
        Ok(Settings {
            first_views,
            replicas,
            order: order(&keyspace.settings),
            mode: if is_eventual(&keyspace.settings) { Mode::Eventual } else { Mode::Atomic },
            durability,
            value_bytes_max: keyspace.value_bytes_max(),
            // A value is copied and checksummed by each member that sends it, also one that is in
            // memory; only where the own replica is behind a get asks twice.
            digest_reads: true,
            ask_majority_first: true,
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
            maintain: usual.maintain,
            beat: span("beat", usual.beat),
            settle: span("settle", usual.settle),
            purge: span("purge", usual.purge),
            compare: span("compare", usual.compare),
            weigh: span("weigh", usual.weigh),
            is_weighing: numbers.get("weigh").is_some(),
            list_keys: numbers.get("list_keys").map_or(usual.list_keys, |keys| {
                usize::try_from(keys).unwrap_or(usual.list_keys).clamp(1, usual.list_keys)
            }),
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
    use alloc::string::ToString;
    use quorate_kernel::ids::{ClusterId, GroupId, LaneId, NodeId};
    use quorate_kernel::limits::{LIST_KEYS_MAX, VALUE_BYTES_DEFAULT};
    use quorate_kernel::storage::Durability;
    use quorate_kernel::view::{Range, View, ViewId};

    fn words(pairs: &[(&str, &str)]) -> Words {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    fn keyspace(pairs: &[(&str, &str)]) -> Keyspace {
        let settings = ENGINE.complete(&words(pairs)).expect("they are allowed");
        Keyspace::new("k", LaneId(17), ENGINE.name, settings, 1)
    }

    fn settings_of(keyspace: &Keyspace, pace: &Numbers) -> Result<Settings, CatalogRefusal> {
        let (cluster, signing_key) = (ClusterId(1), [7; 32]);
        Settings::of(&Opening { keyspace, cluster, signing_key, pace })
    }

    #[test]
    fn the_first_views_are_those_that_the_catalog_has() {
        let usual = Numbers::default();
        let id = ViewId { group: GroupId(7), version: 0 };
        let views = Vec::from([View::new(id, Range::ALL, [1, 2, 3].map(NodeId).into())]);
        // What a keyspace is set to may be altered later, and does not matter here.
        let altered = keyspace(&[("replicas", "1")]);
        let keyspace = Keyspace { birth: Birth::Groups(views.clone()), ..altered };
        assert_eq!(settings_of(&keyspace, &usual).expect("good settings").first_views, views);
    }

    #[test]
    fn settings_are_those_of_the_catalog_and_what_it_cannot_have_is_refused() {
        let usual = Numbers::default();
        let words = [
            ("replicas", "5"),
            ("durability", "memory"),
            ("value", "77"),
            ("order", "key"),
            ("mode", "eventual"),
        ];
        let other = keyspace(&words);
        let settings = settings_of(&other, &usual).expect("good settings");
        assert_eq!((settings.replicas, settings.value_bytes_max), (5, 77));
        assert_eq!((settings.order, settings.mode), (Order::Key, Mode::Eventual));
        assert_eq!((settings.durability, settings.digest_reads), (Durability::Memory, true));
        assert_eq!(settings.transfer_bytes_per_second, 0);
        let looks = |settings: &Settings| (settings.pace.is_weighing, settings.pace.weigh);
        assert_eq!(looks(&settings), (false, Pace::default().weigh));
        assert_eq!(settings.pace.list_keys, LIST_KEYS_MAX);
        for (given, taken) in [(0, 1), (3, 3), (u64::MAX, LIST_KEYS_MAX)] {
            let pace = Numbers::default().with("list_keys", given);
            let settings = settings_of(&other, &pace).expect("good settings");
            assert_eq!(settings.pace.list_keys, taken, "{given}");
        }
        let pace = Numbers::default().with("transfer_bytes_per_second", 9).with("weigh", 40);
        let settings = settings_of(&other, &pace).expect("good settings");
        assert_eq!(settings.transfer_bytes_per_second, 9);
        assert_eq!(looks(&settings), (true, Span::millis(40)));
        for (name, value) in [("replicas", "2"), ("order", "sorted"), ("value", "0")] {
            let mut broken = other.clone();
            broken.settings.insert(name.to_string(), value.to_string());
            assert!(settings_of(&broken, &usual).is_err(), "{name} = {value}");
        }
    }

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
