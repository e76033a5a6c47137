//! What such a keyspace loses and bears: what was acknowledged is on as many hosts as it waits for.

use crate::fault::What;
use crate::queue::HostIndex;
use crate::workload::Ground;
use quorate_kernel::storage::Durability;

/// Whether a fault takes no copy that may be the last one. Who has lost his disk must have taken
/// over what others have before the next one may.
pub(super) fn bears(what: &What, ground: &Ground<'_>) -> bool {
    let is_sync = ground.durability == Durability::Sync;
    let is_all = |hosts: &[HostIndex]| hosts.len() == ground.hosts.len();
    let is_whole = ground.unsettled.is_none() && !ground.has_lost_lately;
    let has_forgotten = ground.hosts.iter().any(|host| host.has_forgotten || host.is_wiped);
    match what {
        What::Kill { .. } => is_sync || (is_whole && !has_forgotten),
        What::Power { hosts } => {
            is_sync || is_all(hosts) || (hosts.len() == 1 && is_whole && !has_forgotten)
        }
        What::FailSync { .. } => is_sync,
        // A copy is put back later, which is a loss of the disk.
        What::Wipe { .. } => is_whole && !has_forgotten,
        _ => true,
    }
}

/// From when on what was acknowledged may be gone, now that these hosts have lost what they had not
/// synced; nothing if one of all has it.
pub(super) fn lost_since(targets: &[HostIndex], ground: &Ground<'_>) -> Option<u64> {
    ground.durability.every()?;
    let is_all = targets.len() == ground.hosts.len();
    let lost = targets.iter().map(|host| ground.hosts[*host].disk.survives_until());
    lost.min().filter(|_| is_all || ground.copies == 1)
}
