//! What siblings lose and bear: what was acknowledged is on so many hosts as the keyspace waits
//! for, so it bears the loss of one less at a time.

use crate::fault::What;
use crate::host::{Host, Running};
use crate::queue::HostIndex;
use crate::workload::Ground;
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

/// Whether these hosts may have had the only copy of a key, by the catalog: they hold it, or have
/// not handed it over yet; of any key at all without one. Where nobody knows, they may.
pub(super) fn may_have_lost(hosts: &[HostIndex], key: Option<&[u8]>, ground: &Ground<'_>) -> bool {
    let (Some(known), Some(engine)) = (ground.known, ground.engine) else { return true };
    let home = key.map(|key| known.partition_of((engine.token)(&known.settings, key)));
    let places = match home {
        None if known.partitions.is_empty() => return true,
        None => 0..known.partitions.len(),
        Some(None) => return true,
        Some(Some(home)) => known.holders(home),
    };
    let nodes = ground.nodes(hosts);
    let is_here = |partition: usize, node| places.contains(&partition) && nodes.contains(node);
    let mut has = known.partitions.iter().map(|place| &place.node).enumerate();
    let mut had = known.former.iter().map(|one| (one.partition as usize, &one.node));
    has.any(|(partition, node)| is_here(partition, node))
        || had.any(|(partition, node)| is_here(partition, node))
}

/// From when on what was acknowledged may be gone, now that these hosts have lost what they had not
/// synced; nothing if a copy is certain to be elsewhere.
pub(super) fn lost_since(targets: &[HostIndex], ground: &Ground<'_>) -> Option<u64> {
    ground.durability.every()?;
    // Also while partitions move: who has something hands it over before it lets go of it. A host
    // that is down has what it had.
    let mut others = ground.hosts.iter().enumerate();
    let is_elsewhere = targets.len() < ground.copies
        && ground.known.is_some()
        && others.all(|(index, host)| {
            targets.contains(&index) || !host.has_joined || !host.has_forgotten
        });
    let lost = targets.iter().map(|host| ground.hosts[*host].lost_since.1);
    lost.min().filter(|_| !is_elsewhere)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines;
    use crate::workload::tests::{ground, periodic};
    use quorate_kernel::engine::Placement;
    use quorate_kernel::ids::{LaneId, NodeId};
    use quorate_kernel::keyspace::{Keyspace, Partition, Settings, Tenure};

    /// That something else moves, or that another host is down, is no reason to doubt the keys of
    /// who has lost nothing.
    #[test]
    fn a_key_is_lost_with_who_has_it_or_has_not_handed_it_over() {
        let mut hosts = [None; 4].map(periodic);
        (1..).zip(&mut hosts).for_each(|(node, host)| host.node_id = NodeId(node));
        let is_so = |it: &&&quorate_kernel::engine::Engine| it.placement == Placement::Partitions;
        let engine = engines::all().iter().find(is_so).copied().expect("there is one");
        let settings: Settings = [("replicas".into(), "1".into())].into();
        let mut known = Keyspace::new("k", LaneId(17), engine.name, settings, 1);
        let place = |node| Partition { node: NodeId(node), since: 1, is_settled: true };
        known.partitions = vec![place(1), place(2)];
        let token = |key: &[u8]| known.partition_of((engine.token)(&known.settings, key));
        let keys = (0..64_u8).map(|number| [number]);
        let of = |home| keys.clone().find(|key| token(key) == Some(home)).expect("there is one");
        let (first, second) = (of(0), of(1));
        known.former = vec![Tenure { partition: 1, since: 1, node: NodeId(3) }];
        let (engine, known) = (Some(engine), Some(&known));
        let ground = Ground { engine, known, ..ground(&hosts, "memory") };
        let lost =
            |host, key: Option<&[u8; 1]>| may_have_lost(&[host], key.map(|key| &key[..]), &ground);
        assert!(lost(0, Some(&first)) && !lost(0, Some(&second)));
        assert!(lost(1, Some(&second)) && !lost(1, Some(&first)));
        assert!(lost(2, Some(&second)) && !lost(2, Some(&first)), "it has not handed it over");
        assert!(!lost(3, Some(&first)) && !lost(3, Some(&second)) && !lost(3, None));
        assert!(lost(0, None) && lost(2, None));
        let untold = Ground { known: None, ..ground };
        assert!(may_have_lost(&[3], Some(&first), &untold), "nobody says who has it");
    }
}
