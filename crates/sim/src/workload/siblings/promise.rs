//! What siblings lose and bear: what was acknowledged is on so many hosts as the keyspace waits
//! for, so it bears the loss of one less at a time.

use crate::fault::What;
use crate::host::{Host, Running};
use crate::queue::HostIndex;
use crate::workload::Ground;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::storage::Durability;

/// Whether a fault takes no copy that may be the last one. A loss of power takes little from a
/// `periodic` host, see [`lost_since`].
pub(super) fn bears(what: &What, ground: &Ground<'_>) -> bool {
    let is_memory = ground.durability == Durability::Memory;
    match what {
        What::Kill { host } => {
            !is_memory || is_any_borne(ground) || is_rolling(&ground.hosts[*host], ground)
        }
        What::Power { hosts } => {
            let is_all = ground.hosts.len() == hosts.len();
            !is_memory || is_all || (hosts.len() == 1 && is_any_borne(ground))
        }
        What::FailSync { .. } => ground.durability == Durability::Sync,
        // A copy is put back later, which is a loss of the disk.
        What::Wipe { .. } => !ground.has_lost_lately && is_any_borne(ground),
        _ => true,
    }
}

/// Whether what one host alone loses is at others; or at nobody by design, where there is but one
/// copy: see [`crate::workload::Workload::on_lost_copies`].
fn is_any_borne(ground: &Ground<'_>) -> bool {
    let has_forgotten = ground.hosts.iter().any(|host| host.has_forgotten);
    let is_only = ground.replicas == 1;
    is_only || (ground.copies > 1 && !has_forgotten && ground.unsettled.is_none())
}

/// Whether a restart of this host is one of hosts that restart one by one: all others run and have
/// again what they forgot. Partitions may move meanwhile.
fn is_rolling(host: &Host, ground: &Ground<'_>) -> bool {
    let is_whole = |host: &Host| host.running == Running::Up && !host.has_forgotten;
    let mut others = ground.hosts.iter().filter(|other| other.has_joined);
    ground.copies > 1 && !host.has_forgotten && others.all(is_whole)
}

/// From when on what was acknowledged may be gone, now that these hosts have lost what they had not
/// synced; nothing if a copy is certain to be elsewhere.
pub(super) fn lost_since(targets: &[HostIndex], ground: &Ground<'_>) -> Option<u64> {
    ground.durability.every()?;
    let mut others = ground.hosts.iter().enumerate();
    let has_copies = |host: &Host| host.running == Running::Up && !host.has_forgotten;
    let is_quiescent = |keyspace: &Keyspace| {
        keyspace.former.is_empty() && keyspace.partitions.iter().all(|place| place.is_settled)
    };
    let is_elsewhere = targets.len() < ground.copies
        && ground.known.is_some_and(is_quiescent)
        && others
            .all(|(index, host)| targets.contains(&index) || !host.has_joined || has_copies(host));
    let lost = targets.iter().map(|host| ground.hosts[*host].lost_since.1);
    lost.min().filter(|_| !is_elsewhere)
}
