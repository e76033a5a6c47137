//! The lanes of a node.

use crate::catalog::{Catalog, Keyspace};
use crate::factory::{Pace, catalog, overlay};
use alloc::boxed::Box;
use alloc::vec::Vec;
use quorate_kernel::ids::{ClusterId, LaneId};
use quorate_kernel::lane::Lane;
use quorate_kernel::process::Recovery;
use quorate_kernel::storage::Durability;
use quorate_protocols::causal::token::Tokens;

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

/// The lanes that a node has whatever keyspaces there are: the overlay and the catalog. Those of
/// keyspaces are opened as the catalog says.
pub fn always(overlay: overlay::Settings, catalog: catalog::Settings) -> Vec<LaneSpec> {
    let spec = |lane, process| {
        let (durability, recovery) = (Durability::Sync, Recovery::Intact);
        LaneSpec { lane, durability, recovery, process }
    };
    let overlay = spec(LaneId::OVERLAY, crate::factory::overlay_lane(overlay));
    Vec::from([overlay, spec(LaneId::CATALOG, crate::factory::catalog_lane(catalog))])
}

/// The lane of a keyspace, in the condition the directory found it in.
#[must_use]
pub fn lane(keyspace: &Keyspace, pace: Pace, tokens: &Tokens, recovery: Recovery) -> LaneSpec {
    LaneSpec {
        lane: keyspace.lane,
        durability: keyspace.durability,
        recovery,
        process: crate::factory::lane(keyspace, pace, tokens),
    }
}

/// The lanes of a node whose keyspaces stay as they are: the overlay and these, each in the
/// condition the directory found it in.
pub fn lanes(
    overlay: overlay::Settings,
    keyspaces: &Catalog,
    pace: Pace,
    recovery: impl Fn(Durability) -> Recovery,
) -> Vec<LaneSpec> {
    let overlay = LaneSpec {
        lane: LaneId::OVERLAY,
        durability: Durability::Sync,
        recovery: recovery(Durability::Sync),
        process: crate::factory::overlay_lane(overlay),
    };
    // Nothing of such a world leaves it.
    let tokens = Tokens::new(&[], ClusterId(0));
    let spec = |keyspace: &Keyspace| lane(keyspace, pace, &tokens, recovery(keyspace.durability));
    core::iter::once(overlay).chain(keyspaces.keyspaces.iter().map(spec)).collect()
}
