//! Engines of the lab alone: `serializable`, but for one thing that the paper does otherwise.

use quorate_kernel::engine::{Engine, Opening};
use quorate_kernel::keyspace::CatalogRefusal;
use quorate_kernel::lane::Lane;
use quorate_protocols::serializable;
use quorate_protocols::serializable::lane::{Settings, lane};

/// Transactions that only read are committed as those that write, in the logs of all their groups
/// (§6.1). Figure 8 and the ablations measure keyspaces of both.
pub const LOGGED_READS: Engine = Engine {
    name: "logged-reads",
    open: |opening| open(opening, |settings| settings.commits_reads = true),
    ..serializable::ENGINE
};

/// Members doubt a primary because the membership has removed it, not because it is silent (§6.4):
/// to measure one crash. Figure 13 measures keyspaces of both.
pub const BY_MEMBERSHIP: Engine = Engine {
    name: "by-membership",
    open: |opening| open(opening, |settings| settings.by_membership = true),
    ..serializable::ENGINE
};

/// Who rests on a version that has gone waits for its keys before it fails (§5 without *fast
/// aborts*), for the ablations.
pub const SLOW_ABORTS: Engine = Engine {
    name: "slow-aborts",
    open: |opening| open(opening, |settings| settings.optimizations.fast_aborts = false),
    ..serializable::ENGINE
};

/// Every key of a transaction is held alone (§5 without *read-write locks*), for the ablations.
pub const ONE_LOCK: Engine = Engine {
    name: "one-lock",
    open: |opening| open(opening, |settings| settings.optimizations.shared_locks = false),
    ..serializable::ENGINE
};

/// A keyspace as it is set, but for what is changed.
fn open(
    opening: &Opening<'_>,
    change: impl FnOnce(&mut Settings),
) -> Result<Box<dyn Lane>, CatalogRefusal> {
    let mut settings = Settings::of(opening)?;
    change(&mut settings);
    Ok(lane(settings))
}
