//! The engine as a value.

use super::state::{Settings, lane};
use crate::order::Order;
use quorate_kernel::engine::{Capability, Engine, Listing, Placement};
use quorate_kernel::limits::GROUP_MEMBERS_MAX;
use quorate_kernel::rules::{Alter, Setting, Takes};

/// The engine.
pub const ENGINE: Engine = Engine {
    name: "coordination",
    placement: Placement::Groups,
    can: &[Capability::Values, Capability::Listing, Capability::Tree],
    listing: Listing {
        is_complete: true,
        text: "a page shows the nodes that there were at one moment after it was asked, parents \
               before their children; the listing as a whole is no snapshot, and each value is \
               read by itself",
    },
    quorum: |members| members / 2 + 1,
    token: |_, key| Order::Hash.token(key),
    mode: |_| "atomic",
    open: |opening| Ok(lane(Settings::of(opening)?)),
    numbers: &["failed", "kept"],
    settings: &[
        Setting {
            name: "replicas",
            takes: Takes::Whole(1, GROUP_MEMBERS_MAX as u64),
            default: "3",
            alter: Alter::Live("the group gains or loses members one at a time, as hosts allow"),
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
            takes: Takes::Whole(1, NODE_BYTES_MAX as u64),
            default: "1048576",
            alter: Alter::Live("nodes that have more keep it, and can be read"),
        },
        Setting {
            name: "timeout_min",
            takes: Takes::Whole(TIMEOUT_LEAST_MS, TIMEOUT_MOST_MS),
            default: "4000",
            alter: Alter::Live("sessions that are there keep their time-outs"),
        },
        Setting {
            name: "timeout_max",
            takes: Takes::Whole(TIMEOUT_LEAST_MS, TIMEOUT_MOST_MS),
            default: "40000",
            alter: Alter::Live("sessions that are there keep their time-outs"),
        },
        Setting {
            name: "reads",
            takes: Takes::Word(&["atomic", "session"]),
            default: "atomic",
            alter: Alter::Later("each host answers so once it knows of it; the data stays"),
        },
    ],
};

/// The most bytes that a node has: ZooKeeper's limit of a message, which its clients have too.
pub const NODE_BYTES_MAX: usize = 1024 * 1024;
/// The shortest time-out that may be set, in milliseconds: shorter than the fail-over of a primary
/// would end sessions for nothing.
pub(crate) const TIMEOUT_LEAST_MS: u64 = 2000;
/// The longest time-out that may be set, in milliseconds.
const TIMEOUT_MOST_MS: u64 = 24 * 60 * 60 * 1000;
