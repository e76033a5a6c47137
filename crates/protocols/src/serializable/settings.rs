//! What a keyspace can be set to.

use super::lane::BUCKETS;
use super::rules::VALUE_OF_PUT_BYTES_MAX;
use quorate_kernel::keyspace::Settings as Words;
use quorate_kernel::limits::GROUP_MEMBERS_MAX;
use quorate_kernel::rules::{Alter, Setting, Takes};

/// The settings.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        name: "replicas",
        takes: Takes::Whole(1, GROUP_MEMBERS_MAX as u64),
        default: "3",
        alter: Alter::Live("groups gain or lose members one at a time, as hosts allow"),
    },
    Setting {
        name: "groups",
        takes: Takes::Whole(0, BUCKETS),
        default: "0",
        alter: Alter::Synced("keys move to other groups, some at a time, while all are served"),
    },
    Setting {
        name: "durability",
        takes: Takes::Durability,
        default: "sync",
        alter: Alter::Never("it says what of the data is on disk; make another keyspace and copy"),
    },
    Setting {
        name: "value",
        takes: Takes::Whole(1, VALUE_OF_PUT_BYTES_MAX as u64),
        default: "1048576",
        alter: Alter::Live("longer values that are there stay, and can be read"),
    },
    Setting {
        name: "reads",
        takes: Takes::Word(&["atomic", "any"]),
        default: "atomic",
        alter: Alter::Later("each host reads so once it knows of it; the data stays"),
    },
];

/// Whether what is read first is read of any replica; not so of a keyspace that says nothing of it.
pub(super) fn is_any(settings: &Words) -> bool {
    settings.get("reads").is_some_and(|word| word == "any")
}
