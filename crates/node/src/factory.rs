//! The list of engines. A new engine is a folder under `protocols` and a line here.

use crate::catalog::{Engine, Keyspace, Mode, Order};
use alloc::boxed::Box;
use quorate_kernel::lane::Lane;
use quorate_kernel::rules::Rules;
use quorate_kernel::storage::Durability;
use quorate_protocols::causal::token::Tokens;
pub use quorate_protocols::{catalog, causal, linearizable, overlay};

/// What the engines of this build let be set.
pub const ENGINES: &[&Rules] = &[&linearizable::rules::RULES, &causal::rules::RULES];

/// The lane of a keyspace.
///
/// # Panics
/// The keyspace is of an engine with positions and not one of the catalog's.
#[must_use]
pub fn lane(keyspace: &Keyspace, pace: Pace, tokens: &Tokens) -> Box<dyn Lane> {
    match keyspace.engine {
        Engine::Causal => {
            let placed = keyspace.placed.as_deref().expect("the catalog has its positions");
            let settings = causal::Settings::of(placed, tokens.clone());
            causal::lane(settings.expect("a keyspace is made of settings that can be read"))
        }
        Engine::Linearizable => linearizable::lane(linearizable::Settings {
            first_views: keyspace.first_views.clone(),
            replicas: usize::from(keyspace.replicas),
            order: match keyspace.order {
                Order::Hash => linearizable::Order::Hash,
                Order::Key => linearizable::Order::Key,
            },
            mode: match keyspace.mode {
                Mode::Atomic => linearizable::Mode::Atomic,
                Mode::Eventual => linearizable::Mode::Eventual,
            },
            durability: keyspace.durability,
            value_bytes_max: keyspace.value_bytes_max,
            // A digest read spares the network and the store of the other members; with everything
            // in memory the value costs less than a second question.
            digest_reads: keyspace.durability != Durability::Memory,
            ask_majority_first: true,
            static_views: keyspace.static_views,
            transfer_bytes_per_second: pace.transfer_bytes_per_second,
            pace: pace.linearizable,
        }),
    }
}

/// How fast and how often the lanes of a node do what nobody waits for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// How many bytes of records a second each lane may move; 0 is no limit.
    pub transfer_bytes_per_second: u64,
    /// How often the engine `linearizable` looks after its groups.
    pub linearizable: linearizable::Pace,
}

/// The catalog's lane, [`quorate_kernel::ids::LaneId::CATALOG`] on every node.
#[must_use]
pub fn catalog_lane(settings: catalog::Settings) -> Box<dyn Lane> {
    catalog::lane(settings)
}

/// The overlay's lane, [`quorate_kernel::ids::LaneId::OVERLAY`] on every node.
#[must_use]
pub fn overlay_lane(settings: overlay::Settings) -> Box<dyn Lane> {
    overlay::lane(settings)
}
