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
/// synced; nothing if one of all has it. Who had nothing to sync has lost nothing that was
/// acknowledged before.
pub(super) fn lost_since(targets: &[HostIndex], ground: &Ground<'_>) -> Option<u64> {
    ground.durability.every()?;
    let is_all = targets.len() == ground.hosts.len();
    let lost = targets.iter().map(|host| ground.hosts[*host].lost_since.1);
    lost.min().filter(|_| is_all || ground.copies == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::{ground, periodic};
    use quorate_store::memory::Crash;

    #[test]
    fn a_host_that_has_synced_all_has_lost_nothing_of_before() {
        let mut hosts = [Some(40), None, None].map(periodic);
        hosts.iter_mut().for_each(|host| host.stop(Crash::PowerLoss, true, 90));
        let since = |targets: &[HostIndex], copies| {
            lost_since(targets, &Ground { copies, ..ground(&hosts, "periodic=50ms") })
        };
        assert_eq!(since(&[0, 1, 2], 2), Some(40), "since the first one's write");
        assert_eq!(since(&[1, 2], 2), None, "another one has it");
        assert_eq!(since(&[1], 1), Some(90), "it had nothing to sync");
        assert_eq!(since(&[0], 1), Some(40));
    }
}
