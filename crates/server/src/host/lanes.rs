//! The lanes of a host's node.

use super::Options;
use quorate_kernel::process::Recovery;
use quorate_kernel::storage::Durability;
use quorate_node::catalog::Catalog;
use quorate_node::factory::{Pace, overlay};
use quorate_node::lanes::{LaneSpec, lanes};
use std::net::SocketAddr;
use std::time::Duration;

/// The lanes of this host's node, each in the condition in which the directory found it.
pub(super) fn of(catalog: &Catalog, options: &Options, cluster: SocketAddr) -> Vec<LaneSpec> {
    let recovery = |durability: Durability| match options.directory.remembers(durability) {
        true => Recovery::Intact,
        false => Recovery::Forgot,
    };
    let overlay = overlay_of(catalog, options, cluster);
    let pace = Pace { transfer_bytes_per_second: options.transfer_rate, ..Pace::default() };
    lanes(overlay, catalog, pace, recovery)
}

/// What the overlay begins with: this host as the directory has it, and the hosts it names.
fn overlay_of(catalog: &Catalog, options: &Options, cluster: SocketAddr) -> overlay::Settings {
    let me = options.directory.identity().node;
    let hosts = &options.hosts;
    let mine = hosts.iter().find(|host| host.who.node == me);
    let replicas = catalog.keyspaces.iter().map(|keyspace| usize::from(keyspace.replicas));
    overlay::Settings {
        address: mine.map_or_else(|| cluster.to_string(), |host| host.address.clone()),
        zone: mine.map_or_else(String::new, |host| host.zone.clone()),
        tokens: mine.map_or_else(Vec::new, |host| host.tokens.clone()),
        hosts: hosts.clone(),
        replicas_max: replicas.max().unwrap_or(1),
        balance: options.balance,
    }
}

/// The shortest sync interval of the periodic keyspaces.
pub(super) fn sync_every(catalog: &Catalog) -> Option<Duration> {
    let every = catalog.keyspaces.iter().filter_map(|keyspace| keyspace.durability.every());
    every.min().map(|span| Duration::from_nanos(span.0))
}
