//! Maps of partitions, and rings of hosts that stand as a test wants.

use crate::catalog::partitions::seats::near;
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start};
use quorate_kernel::keyspace::{Keyspace, Partition, Settings};
use quorate_kernel::ring::{Ring, RingHost, Standing};
use std::string::{String, ToString};
use std::vec::Vec;

/// A host that takes part.
pub fn host(node: u64) -> RingHost {
    RingHost {
        who: Incarnation { node: NodeId(node), start: Start(1) },
        address: String::new(),
        zone: String::new(),
        tokens: Vec::from([node << 40]),
        standing: Standing::Up,
        is_suspected: false,
        doors: Vec::new(),
    }
}

/// A ring of hosts 1 to some number.
pub fn ring(hosts: u64) -> Ring {
    Ring::new(1, (1..=hosts).map(host).collect())
}

/// A ring of hosts, some of which stand otherwise.
pub fn standing(hosts: &[u64], others: &[u64], standing: Standing) -> Ring {
    let other = |node: &u64| RingHost { standing, ..host(*node) };
    Ring::new(1, hosts.iter().map(|node| host(*node)).chain(others.iter().map(other)).collect())
}

/// A keyspace that is settled, with these nodes at its partitions.
pub fn keyspace(places: &[NodeId], replicas: usize) -> Keyspace {
    let settings = Settings::from([("replicas".to_string(), replicas.to_string())]);
    let mut keyspace = Keyspace::new("k", LaneId(16), "e", settings, 1);
    let place = |node: &NodeId| Partition { node: *node, since: 1, is_settled: true };
    keyspace.partitions = places.iter().map(place).collect();
    keyspace
}

/// Who holds what.
pub fn places(keyspace: &Keyspace) -> Vec<NodeId> {
    keyspace.partitions.iter().map(|place| place.node).collect()
}

/// How many partitions each of these has.
pub fn counts(keyspace: &Keyspace, hosts: &[u64]) -> Vec<usize> {
    let count = |host: &u64| places(keyspace).iter().filter(|node| node.0 == *host).count();
    hosts.iter().map(count).collect()
}

/// Asserts that partitions with keys in common are of distinct nodes.
pub fn check(places: &[NodeId], replicas: usize) {
    for (partition, node) in places.iter().enumerate() {
        let mut near = near(places.len(), replicas, partition);
        assert!(near.all(|other| places[other] != *node), "partition {partition} of {places:?}");
    }
}
