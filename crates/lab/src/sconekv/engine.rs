//! Engines of the lab alone: `serializable`, but for one thing that the paper does otherwise.

use quorate_kernel::engine::Engine;
use quorate_protocols::serializable;
use quorate_protocols::serializable::lane::{Settings, lane};

/// Transactions that only read are committed as those that write, in the logs of all their groups
/// (§6.1). Figure 8 and the ablations measure keyspaces of both.
pub const LOGGED_READS: Engine = Engine {
    name: "logged-reads",
    open: |opening| Ok(lane(Settings { commits_reads: true, ..Settings::of(opening)? })),
    ..serializable::ENGINE
};

/// Members doubt a primary because the membership has removed it, not because it is silent (§6.4):
/// to measure one crash. Figure 13 measures keyspaces of both.
pub const BY_MEMBERSHIP: Engine = Engine {
    name: "by-membership",
    open: |opening| Ok(lane(Settings { by_membership: true, ..Settings::of(opening)? })),
    ..serializable::ENGINE
};
