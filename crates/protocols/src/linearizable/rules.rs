//! What a keyspace of this engine lets be set, and what may be altered while it serves.

use super::Linearizable;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::limits::VALUE_BYTES_MAX;
use quorate_kernel::rules::{Alter, Rules, Setting, Takes};

/// The engine's settings.
pub const RULES: Rules = Rules {
    engine: "linearizable",
    has_positions: false,
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
    use quorate_kernel::keyspace::Settings;
    use quorate_kernel::limits::VALUE_BYTES_DEFAULT;

    #[test]
    fn defaults_are_those_of_the_catalog_and_only_live_ones_are_altered() {
        let all = RULES.complete(&Settings::new()).expect("defaults");
        assert_eq!(all["value"].parse(), Ok(VALUE_BYTES_DEFAULT));
        for setting in RULES.settings {
            let is_live = matches!(setting.alter, Alter::Live(_));
            assert_eq!(is_live, ["replicas", "value"].contains(&setting.name), "{}", setting.name);
        }
    }
}
