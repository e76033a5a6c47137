//! Seats: who founds which group, from the hosts that the catalog's record names.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::Birth;
use quorate_kernel::limits::GROUP_MEMBERS_MAX;
use quorate_kernel::rng::mix;

/// The founders of each group, all hosts alike: as many groups as are asked for, or as the hosts
/// can fill if that is 0, and no more than `groups_max`. None if the record names no host.
#[must_use]
pub fn founders(
    birth: &Birth,
    replicas: usize,
    groups: u64,
    groups_max: usize,
) -> Vec<Arc<[NodeId]>> {
    let Birth::Groups(views) = birth else { return Vec::new() };
    let named: BTreeSet<NodeId> = views.iter().flat_map(|view| view.members()).copied().collect();
    let mut hosts: Vec<NodeId> = named.into_iter().collect();
    if hosts.is_empty() {
        return Vec::new();
    }
    hosts.sort_unstable_by_key(|node| (mix(node.0), *node));
    let size = replicas.clamp(1, GROUP_MEMBERS_MAX).min(hosts.len());
    let count = if groups == 0 { hosts.len() / size } else { groups as usize };
    let count = count.clamp(1, groups_max);
    let seats = |group: usize| {
        let taken = (0..size).map(|seat| hosts[(group * size + seat) % hosts.len()]);
        let mut members: Vec<NodeId> = taken.collect();
        members.sort_unstable();
        Arc::from(members)
    };
    (0..count).map(seats).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vsr::are_members;
    use quorate_kernel::ids::GroupId;
    use quorate_kernel::view::{Range, View, ViewId};

    fn birth(hosts: u64) -> Birth {
        let id = ViewId { group: GroupId(1), version: 0 };
        let view = |first: u64| View::new(id, Range::ALL, Vec::from([NodeId(first)]));
        Birth::Groups((1..=hosts).map(view).collect())
    }

    #[test]
    fn every_host_has_a_seat_and_seats_are_spread() {
        for (hosts, replicas, groups, wanted) in [
            (3, 3, 0, 1),
            (20, 4, 0, 5),
            (1, 3, 0, 1),
            (3, 3, 8, 8),
            (7, 3, 0, 2),
            (5, 5, 300, 256),
        ] {
            let all = founders(&birth(hosts), replicas, groups, 256);
            assert_eq!(all.len(), wanted, "{hosts} hosts");
            assert!(all.iter().all(|members| are_members(members)));
            let size = replicas.min(hosts as usize);
            assert!(all.iter().all(|members| members.len() == size));
            let seats = |node| all.iter().filter(|members| members.contains(&NodeId(node))).count();
            let counts: Vec<usize> = (1..=hosts).map(seats).collect();
            let (least, most) = (counts.iter().min(), counts.iter().max());
            assert!(most.zip(least).is_some_and(|(most, least)| most - least <= 1), "{counts:?}");
        }
    }

    #[test]
    fn who_names_no_host_founds_nothing() {
        assert!(founders(&Birth::Groupless, 3, 0, 256).is_empty());
        assert!(founders(&Birth::Groups(Vec::new()), 3, 2, 256).is_empty());
    }
}
