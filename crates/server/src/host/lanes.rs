//! The lanes of a host's node.

use quorate_kernel::process::Recovery;
use quorate_kernel::storage::Durability;
use quorate_node::catalog::Catalog;
use quorate_node::node::{LaneSpec, lanes};
use quorate_store::Directory;
use std::time::Duration;

/// The lanes of this host's node, each in the condition in which the directory found it.
pub(super) fn of(catalog: &Catalog, directory: &Directory) -> Vec<LaneSpec> {
    lanes(catalog, |durability: Durability| match directory.remembers(durability) {
        true => Recovery::Intact,
        false => Recovery::Forgot,
    })
}

/// The shortest sync interval of the periodic keyspaces.
pub(super) fn sync_every(catalog: &Catalog) -> Option<Duration> {
    let every = catalog.keyspaces.iter().filter_map(|keyspace| keyspace.durability.every());
    every.min().map(|span| Duration::from_nanos(span.0))
}
