//! The lanes of a host's node.

use super::{Options, span};
use crate::provision::context_key;
use crate::ring::founding;
use quorate_kernel::ids::Start;
use quorate_kernel::keyspace::Keyspace as Record;
use quorate_kernel::process::Recovery;
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_node::catalog::{Catalog, CatalogError, Keyspace};
use quorate_node::factory::overlay::weights::Balance;
use quorate_node::factory::{ENGINES, Pace, catalog, overlay};
use quorate_node::lanes::{LaneSpec, always, lane};
use quorate_node::node::Opener;
use quorate_protocols::causal::token::Tokens;
use std::net::SocketAddr;

/// How often the load is told between two looks at it, and how often at most.
const WEIGHED_IN_LOOK: u32 = 2;
const WEIGH_MIN: Span = Span::millis(500);

/// The lanes that this host's node begins with.
///
/// # Errors
/// The directory names a keyspace that this build cannot serve.
pub(super) fn of(options: &Options, cluster: SocketAddr) -> Result<Vec<LaneSpec>, CatalogError> {
    let identity = options.directory.identity();
    let born = founding::catalog(identity)?;
    let overlay = overlay_of(&born, options, cluster);
    let founded = |keyspace: &Keyspace| catalog::Founded {
        name: keyspace.name.clone(),
        engine: keyspace.engine.to_string(),
        settings: keyspace.settings(),
    };
    let founding = founding::ring(identity).map(|ring| catalog::Founding {
        ring,
        keyspaces: born.keyspaces.iter().map(founded).collect(),
    });
    let lanes = born.keyspaces.iter().map(|keyspace| keyspace.lane).collect();
    Ok(always(overlay, catalog::Settings { engines: ENGINES, founding, lanes }))
}

/// Makes the lanes of keyspaces, each in the condition in which the directory found it.
pub(super) fn opener(options: &Options) -> Opener {
    let directory = &options.directory;
    let start = directory.start();
    // A lane that this start heard of first has nothing that it could have forgotten.
    let levels = [Durability::Sync, Durability::Memory, Durability::Periodic { every_ms: 1 }];
    let [sync, memory, periodic] = levels.map(|level| directory.remembers(level));
    let ring: Option<Ring> = founding::ring(directory.identity());
    let mut pace = Pace { transfer_bytes_per_second: options.transfer_rate, ..Pace::default() };
    if let Some(look) = options.balance {
        pace.linearizable.is_weighing = true;
        pace.linearizable.weigh = span(look / WEIGHED_IN_LOOK).max(WEIGH_MIN);
    }
    let identity = directory.identity();
    let tokens = Tokens::with_key(context_key(identity), identity.cluster);
    Box::new(move |record: &Record, since: Start| {
        let keyspace = Keyspace::of(record, ring.as_ref()).ok()?;
        let remembers = match keyspace.durability {
            Durability::Sync => sync,
            Durability::Memory => memory,
            Durability::Periodic { .. } => periodic,
        };
        let is_intact = remembers || since == start;
        let recovery = if is_intact { Recovery::Intact } else { Recovery::Forgot };
        Some(lane(&keyspace, pace, &tokens, recovery))
    })
}

/// What the overlay begins with: this host as the directory has it, and the hosts it names.
fn overlay_of(born: &Catalog, options: &Options, cluster: SocketAddr) -> overlay::Settings {
    let me = options.directory.identity().node;
    let hosts = &options.hosts;
    let mine = hosts.iter().find(|host| host.who.node == me);
    let replicas = born.keyspaces.iter().map(|keyspace| usize::from(keyspace.replicas));
    overlay::Settings {
        address: mine.map_or_else(|| cluster.to_string(), |host| host.address.clone()),
        zone: mine.map_or_else(String::new, |host| host.zone.clone()),
        tokens: mine.map_or_else(Vec::new, |host| host.tokens.clone()),
        hosts: hosts.clone(),
        replicas_max: replicas.max().unwrap_or(1),
        balance: options.balance.map(|look| Balance { look: span(look), ..Balance::default() }),
    }
}
