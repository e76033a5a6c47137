//! The lanes of a host's node.

use super::Options;
use quorate_kernel::process::Recovery;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_node::catalog::Catalog;
use quorate_node::factory::overlay::weights::Balance;
use quorate_node::factory::{Pace, overlay};
use quorate_node::lanes::{LaneSpec, lanes};
use std::net::SocketAddr;
use std::time::Duration;

/// How often the load is told between two looks at it, and how often at most.
const WEIGHED_IN_LOOK: u32 = 2;
const WEIGH_MIN: Span = Span::millis(500);

/// The lanes of this host's node, each in the condition in which the directory found it.
pub(super) fn of(catalog: &Catalog, options: &Options, cluster: SocketAddr) -> Vec<LaneSpec> {
    let recovery = |durability: Durability| match options.directory.remembers(durability) {
        true => Recovery::Intact,
        false => Recovery::Forgot,
    };
    let overlay = overlay_of(catalog, options, cluster);
    let mut pace = Pace { transfer_bytes_per_second: options.transfer_rate, ..Pace::default() };
    if let Some(look) = options.balance {
        pace.linearizable.is_weighing = true;
        pace.linearizable.weigh = span(look / WEIGHED_IN_LOOK).max(WEIGH_MIN);
    }
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
        balance: options.balance.map(|look| Balance { look: span(look), ..Balance::default() }),
    }
}

fn span(duration: Duration) -> Span {
    Span(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}

/// The shortest sync interval of the periodic keyspaces.
pub(super) fn sync_every(catalog: &Catalog) -> Option<Duration> {
    let every = catalog.keyspaces.iter().filter_map(|keyspace| keyspace.durability.every());
    every.min().map(|span| Duration::from_nanos(span.0))
}
