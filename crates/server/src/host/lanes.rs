//! The lanes of a host's node.

use quorate_kernel::process::Recovery;
use quorate_kernel::ring::RingHost;
use quorate_kernel::storage::Durability;
use quorate_node::catalog::Catalog;
use quorate_node::factory::{Pace, overlay};
use quorate_node::lanes::{LaneSpec, lanes};
use quorate_store::Directory;
use std::net::SocketAddr;
use std::time::Duration;

/// The lanes of this host's node, each in the condition in which the directory found it.
pub(super) fn of(
    catalog: &Catalog,
    directory: &Directory,
    hosts: &[RingHost],
    cluster: SocketAddr,
) -> Vec<LaneSpec> {
    let recovery = |durability: Durability| match directory.remembers(durability) {
        true => Recovery::Intact,
        false => Recovery::Forgot,
    };
    let overlay = overlay_of(catalog, directory, hosts, cluster);
    lanes(overlay, catalog, Pace::default(), recovery)
}

/// What the overlay begins with: this host as the directory has it, and the hosts it names.
fn overlay_of(
    catalog: &Catalog,
    directory: &Directory,
    hosts: &[RingHost],
    cluster: SocketAddr,
) -> overlay::Settings {
    let me = directory.identity().node;
    let mine = hosts.iter().find(|host| host.who.node == me);
    let replicas = catalog.keyspaces.iter().map(|keyspace| usize::from(keyspace.replicas));
    overlay::Settings {
        address: mine.map_or_else(|| cluster.to_string(), |host| host.address.clone()),
        zone: mine.map_or_else(String::new, |host| host.zone.clone()),
        tokens: mine.map_or_else(Vec::new, |host| host.tokens.clone()),
        hosts: hosts.to_vec(),
        replicas_max: replicas.max().unwrap_or(1),
        balance: false,
    }
}

/// The shortest sync interval of the periodic keyspaces.
pub(super) fn sync_every(catalog: &Catalog) -> Option<Duration> {
    let every = catalog.keyspaces.iter().filter_map(|keyspace| keyspace.durability.every());
    every.min().map(|span| Duration::from_nanos(span.0))
}
