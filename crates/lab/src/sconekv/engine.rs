//! Engines of the lab alone: `serializable`, but for one thing that the paper does otherwise.

use quorate_kernel::engine::Engine;
use quorate_protocols::serializable::lane::{Settings, lane};
use quorate_protocols::serializable::{self, Optimizations};

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

/// Who rests on a version that has gone waits for its keys before it fails (§5 without *fast
/// aborts*), for the ablations.
pub const SLOW_ABORTS: Engine = Engine {
    name: "slow-aborts",
    open: |opening| {
        let optimizations = Optimizations { fast_aborts: false, ..Optimizations::default() };
        Ok(lane(Settings { optimizations, ..Settings::of(opening)? }))
    },
    ..serializable::ENGINE
};

/// Every key of a transaction is held alone (§5 without *read-write locks*), for the ablations.
pub const ONE_LOCK: Engine = Engine {
    name: "one-lock",
    open: |opening| {
        let optimizations = Optimizations { shared_locks: false, ..Optimizations::default() };
        Ok(lane(Settings { optimizations, ..Settings::of(opening)? }))
    },
    ..serializable::ENGINE
};
