//! The lanes of a node.

use crate::catalog::Catalog;
use crate::factory::{Pace, overlay};
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorate_kernel::ids::LaneId;
use quorate_kernel::lane::Lane;
use quorate_kernel::process::Recovery;
use quorate_kernel::storage::Durability;

/// One lane to be put on a node.
pub struct LaneSpec {
    /// Its number, the same on every node.
    pub lane: LaneId,
    /// How durable its data is.
    pub durability: Durability,
    /// What the directory still knows of it.
    pub recovery: Recovery,
    /// The protocol.
    pub process: Box<dyn Lane>,
}

/// The lanes of a node: the overlay, and those of a catalog, each in the condition the directory
/// found it in.
pub fn lanes(
    overlay: overlay::Settings,
    catalog: &Catalog,
    pace: Pace,
    recovery: impl Fn(Durability) -> Recovery,
) -> Vec<LaneSpec> {
    let overlay = LaneSpec {
        lane: LaneId::OVERLAY,
        durability: Durability::Sync,
        recovery: recovery(Durability::Sync),
        process: crate::factory::overlay_lane(overlay),
    };
    let spec = |keyspace: &crate::catalog::Keyspace| LaneSpec {
        lane: keyspace.lane,
        durability: keyspace.durability,
        recovery: recovery(keyspace.durability),
        process: crate::factory::lane(keyspace, pace),
    };
    core::iter::once(overlay).chain(catalog.keyspaces.iter().map(spec)).collect()
}
