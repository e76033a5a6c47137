//! The lanes of a host's node.

use super::{Options, span};
use crate::engines;
use crate::ring::founding::{self, context_key};
use quorate_kernel::engine::{Opening, Pace};
use quorate_kernel::ids::Start;
use quorate_kernel::keyspace::{CatalogRefusal, Keyspace};
use quorate_kernel::lane::LaneSpec;
use quorate_kernel::process::Recovery;
use quorate_kernel::ring::Door;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_node::node::Opener;
use quorate_protocols::engines::{always, open};
use quorate_protocols::overlay::tokens::weights::Balance;
use quorate_protocols::{catalog, overlay, roll};
use std::net::SocketAddr;

/// How often the load is told between two looks at it, and how often at most.
const WEIGHED_IN_LOOK: u32 = 2;
const WEIGH_MIN: Span = Span::millis(500);

/// The lanes that this host's node begins with.
///
/// # Errors
/// The directory names a keyspace that this build cannot serve.
pub(super) fn of(
    options: &Options,
    cluster: SocketAddr,
    doors: &[(&str, SocketAddr)],
) -> Result<Vec<LaneSpec>, CatalogRefusal> {
    let identity = options.directory.identity();
    founding::check(identity)?;
    let overlay = overlay_of(options, cluster, doors);
    let keyspaces = identity.keyspaces.clone();
    let founding = founding::ring(identity).map(|ring| catalog::Founding { ring, keyspaces });
    let lanes = founding::lanes(identity);
    let born = founding.as_ref().map(|founding| &founding.ring);
    let roll = options.roll.map(|kind| roll::Settings::of(kind, born));
    Ok(always(overlay, catalog::Settings { engines: engines::all(), founding, lanes }, roll))
}

/// Makes the lanes of keyspaces, each in the condition in which the directory found it.
pub(super) fn opener(options: &Options) -> Opener {
    let directory = &options.directory;
    let start = directory.start();
    // A lane that this start heard of first has nothing that it could have forgotten.
    let levels = [Durability::Sync, Durability::Memory, Durability::Periodic { every_ms: 1 }];
    let [sync, memory, periodic] = levels.map(|level| directory.remembers(level));
    let mut pace = Pace::default().with("transfer_bytes_per_second", options.transfer_rate);
    if let Some(look) = options.balance {
        let weigh = span(look / WEIGHED_IN_LOOK).max(WEIGH_MIN);
        pace = pace.with("weigh", weigh.as_millis());
    }
    let identity = directory.identity();
    let (cluster, signing_key) = (identity.cluster, context_key(identity));
    Box::new(move |keyspace: &Keyspace, since: Start| {
        let remembers = match keyspace.durability() {
            Durability::Sync => sync,
            Durability::Memory => memory,
            Durability::Periodic { .. } => periodic,
        };
        let is_intact = remembers || since == start;
        let recovery = if is_intact { Recovery::Intact } else { Recovery::Forgot };
        let opening = Opening { keyspace, cluster, signing_key, pace: &pace };
        open(engines::all(), &opening, recovery).ok()
    })
}

/// What the overlay begins with: this host as the directory has it, and the hosts it names.
fn overlay_of(
    options: &Options,
    cluster: SocketAddr,
    doors: &[(&str, SocketAddr)],
) -> overlay::Settings {
    let identity = options.directory.identity();
    let hosts = &options.hosts;
    let mine = hosts.iter().find(|host| host.who.node == identity.node);
    let address = mine.map_or_else(|| cluster.to_string(), |host| host.address.clone());
    let door = |(name, at): &(&str, SocketAddr)| Door {
        name: String::from(*name),
        address: reachable(&address, *at),
    };
    overlay::Settings {
        doors: doors.iter().map(door).collect(),
        address,
        zone: mine.map_or_else(String::new, |host| host.zone.clone()),
        tokens: mine.map_or_else(Vec::new, |host| host.tokens.clone()),
        hosts: hosts.clone(),
        balance: options.balance.map(|look| Balance { look: span(look), ..Balance::default() }),
    }
}

/// Where others find a door: a door on all addresses is where the host's cluster door is found.
fn reachable(cluster: &str, door: SocketAddr) -> String {
    match cluster.rsplit_once(':') {
        Some((host, _)) if door.ip().is_unspecified() => format!("{host}:{}", door.port()),
        _ => door.to_string(),
    }
}

#[test]
fn a_door_on_all_addresses_is_found_where_the_host_is() {
    let at = |text: &str| text.parse().expect("an address");
    assert_eq!(reachable("db1.example:7400", at("0.0.0.0:6379")), "db1.example:6379");
    assert_eq!(reachable("[::1]:7400", at("[::]:6379")), "[::1]:6379");
    assert_eq!(reachable("db1.example:7400", at("127.0.0.1:6379")), "127.0.0.1:6379");
}
