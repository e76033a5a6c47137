//! The baseline as a value, for scenarios of the lab: no list of the product's engines has it.

use super::{Settings, lane};
use alloc::boxed::Box;
use quorate_kernel::engine::{Capability, Engine, Listing, Opening, Placement};
use quorate_kernel::keyspace::{self, CatalogRefusal};
use quorate_kernel::lane::Lane;
use quorate_kernel::rules::{Alter, Setting, Takes};
use quorate_kernel::time::Span;
use quorate_protocols::causal::keys::hash_of_key;
use quorate_protocols::causal::map::{Map, Shape};
use quorate_protocols::causal::token::Tokens;

/// Small trees, so that leaves hold several keys and several leaves differ.
const WIDTH: u32 = 2;
const NEVER: Alter = Alter::Never("it is a baseline");

/// The baseline in which replicas compare hash trees. It acknowledges what one replica holds.
pub const MERKLE: Engine = Engine {
    name: "merkle",
    placement: Placement::Partitions,
    can: &[Capability::Values, Capability::Siblings, Capability::Replies],
    listing: Listing { is_complete: false, text: "it lists nothing" },
    quorum: |_| 1,
    token: |_, key| hash_of_key(key),
    mode: |_| "eventual",
    open,
    numbers: &[],
    settings: &[
        Setting { name: "replicas", takes: Takes::Whole(1, 7), default: "3", alter: NEVER },
        Setting { name: "partitions", takes: Takes::Whole(1, 64), default: "6", alter: NEVER },
        Setting { name: "durability", takes: Takes::Durability, default: "sync", alter: NEVER },
        Setting { name: "value", takes: Takes::Whole(1, 65_536), default: "65536", alter: NEVER },
        Setting { name: "w", takes: Takes::Whole(1, 1), default: "1", alter: NEVER },
        Setting {
            name: "sync_interval_ms",
            takes: Takes::Whole(10, 60_000),
            default: "100",
            alter: NEVER,
        },
    ],
};

fn open(opening: &Opening<'_>) -> Result<Box<dyn Lane>, CatalogRefusal> {
    let keyspace = opening.keyspace;
    MERKLE.check(&keyspace.settings)?;
    let shape = Shape::new(
        number(&keyspace.settings, "partitions"),
        number(&keyspace.settings, "replicas"),
    );
    let tokens = Tokens::with_key(opening.signing_key, opening.cluster);
    let interval = u64::from(number(&keyspace.settings, "sync_interval_ms"));
    Ok(lane(Settings {
        sync_interval: Span::millis(interval),
        // What spreads by comparison alone is what shall be seen.
        replicate_on_write: false,
        width: WIDTH,
        ..Settings::usual(shape, Some(Map::of(keyspace)), tokens)
    }))
}

fn number(settings: &keyspace::Settings, name: &str) -> u16 {
    settings[name].parse().expect("the settings were checked")
}
