//! Who holds the fixed partitions of a keyspace.
//!
//! The keys of a partition are held by it and the `replicas - 1` partitions that follow, round the
//! end. So partitions that are less than `replicas` apart have keys in common, and are of distinct
//! nodes, also where the last ones meet the first: that is what everything here is about. The
//! number of partitions never changes, nor which keys they have; a node that leaves is replaced
//! partition by partition.

use super::levelling;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::{CatalogRefusal, Keyspace, Settings};
use quorate_kernel::mutant;
use quorate_kernel::ring::{Ring, RingHost, Standing};

/// The partitions that have keys in common with one, itself not among them.
pub fn near(count: usize, replicas: usize, partition: usize) -> impl Iterator<Item = usize> {
    let apart = 1..replicas.min(count);
    let both = |apart: usize| [(partition + apart) % count, (partition + count - apart) % count];
    let mut near: Vec<usize> = apart.flat_map(both).filter(|other| *other != partition).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter()
}

/// Whether a node has no partition near one. It may have that one itself.
pub(crate) fn is_free(places: &[NodeId], replicas: usize, partition: usize, node: NodeId) -> bool {
    let count = places.len();
    (1..replicas.min(count)).all(|apart| {
        let both = [(partition + apart) % count, (partition + count - apart) % count];
        both.iter().all(|other| *other == partition || places[*other] != node)
    })
}

/// Checks that partitions with keys in common are of distinct nodes.
pub(crate) fn check(places: &[NodeId], replicas: usize) -> Result<(), CatalogRefusal> {
    let meets = |partition: &usize| !is_free(places, replicas, *partition, places[*partition]);
    match (0..places.len()).find(meets) {
        None if places.is_empty() || places.len() >= replicas => Ok(()),
        None => Err(wrong(format!("{} partitions cannot hold {replicas} replicas", places.len()))),
        Some(partition) => Err(wrong(format!(
            "partition {partition} has keys in common with another one of its node"
        ))),
    }
}

/// Checks that a node can have a partition: it has none near it, and all those near it are settled,
/// so that of the replicas of a key one at most is copied at a time.
pub(crate) fn check_replacement(
    keyspace: &Keyspace,
    partition: usize,
    to: NodeId,
) -> Result<(), CatalogRefusal> {
    let places = &keyspace.partitions;
    if keyspace.gone.contains(&to) {
        return Err(wrong(format!("node {to} is gone for good")));
    }
    for other in near(places.len(), keyspace.replicas(), partition) {
        if places[other].node == to {
            let why = format!("node {to} has partition {other}, which has keys of {partition}");
            return Err(wrong(why));
        }
        if !places[other].is_settled && !mutant!("catalog_moves_near") {
            let why = format!("partition {other} has keys of {partition} and still fetches them");
            return Err(wrong(why));
        }
    }
    Ok(())
}

/// The hosts that may be given partitions, in the order of their nodes.
pub(crate) fn takers(ring: &Ring) -> impl Iterator<Item = &RingHost> {
    ring.hosts().iter().filter(|host| host.standing == Standing::Up && !host.is_suspected)
}

/// Spreads partitions over the hosts that take part, as evenly as may be, and in
/// [columns](super::columns) where that can be.
pub(crate) fn spread(
    ring: &Ring,
    count: usize,
    replicas: usize,
) -> Result<Vec<NodeId>, CatalogRefusal> {
    let nodes: Vec<NodeId> = takers(ring).map(|host| host.who.node).collect();
    if nodes.len() < replicas {
        return Err(CatalogRefusal::Hosts { needed: replicas, there: nodes.len() });
    }
    let places = in_columns(&nodes, count, replicas)
        .or_else(|| evenly(&nodes, count, replicas))
        .or_else(|| in_runs(&nodes, count, replicas));
    let places = places.ok_or_else(|| {
        wrong(format!(
            "{count} partitions cannot be spread over {} hosts with {replicas} replicas each, \
             since the last partitions meet the first; use a multiple of {replicas}",
            nodes.len()
        ))
    })?;
    check(&places, replicas)?;
    Ok(places)
}

/// How many partitions a keyspace has that does not say: with as many hosts as replicas only a
/// multiple goes round.
#[must_use]
pub fn usual_count(count: usize, replicas: usize) -> usize {
    count.next_multiple_of(replicas.max(1))
}

/// The nodes of a keyspace's partitions that is born with its cluster.
///
/// # Errors
/// They cannot be spread over the founding hosts.
pub fn founding(ring: &Ring, settings: &Settings) -> Result<Vec<NodeId>, CatalogRefusal> {
    let number = |name: &str| settings.get(name).and_then(|text| text.parse().ok()).unwrap_or(1);
    spread(ring, number("partitions"), number("replicas"))
}

/// A node for each column; then the others take their shares.
fn in_columns(nodes: &[NodeId], count: usize, replicas: usize) -> Option<Vec<NodeId>> {
    if !count.is_multiple_of(replicas) {
        return None;
    }
    let mut places: Vec<NodeId> = (0..count).map(|partition| nodes[partition % replicas]).collect();
    while let Some((partition, to)) = levelling::step(&places, replicas, nodes, nodes) {
        places[partition] = to;
    }
    Some(places)
}

/// The least loaded node for each partition, of those that have none near it.
fn evenly(nodes: &[NodeId], count: usize, replicas: usize) -> Option<Vec<NodeId>> {
    let mut loads: BTreeMap<NodeId, usize> = nodes.iter().map(|node| (*node, 0)).collect();
    let mut places: Vec<NodeId> = Vec::with_capacity(count);
    for partition in 0..count {
        let taken = |node: &NodeId| {
            let mut given = near(count, replicas, partition).filter(|other| *other < partition);
            given.any(|other| places[other] == *node)
        };
        let free = loads.iter().filter(|(node, _)| !taken(node));
        let (node, _) = free.min_by_key(|(node, load)| (**load, **node))?;
        let node = *node;
        *loads.get_mut(&node).expect("it is one of them") += 1;
        places.push(node);
    }
    Some(places)
}

/// Runs of all nodes in order, each at least as long as a key has replicas: where one run ends and
/// the next begins, no node meets itself. Less even, but found whenever there is a way.
fn in_runs(nodes: &[NodeId], count: usize, replicas: usize) -> Option<Vec<NodeId>> {
    let runs = count.div_ceil(nodes.len());
    if runs * replicas > count {
        return None;
    }
    let length = |run: usize| count / runs + usize::from(run < count % runs);
    Some((0..runs).flat_map(|run| nodes[..length(run)].iter().copied()).collect())
}

fn wrong(why: alloc::string::String) -> CatalogRefusal {
    CatalogRefusal::Partitions { why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::tests::maps::ring;
    use alloc::string::ToString;

    #[test]
    fn partitions_are_even_and_no_node_meets_itself_also_at_the_wrap() {
        for replicas in [1, 2, 3, 5, 6, 7] {
            for hosts in replicas..16 {
                for count in [64_usize, 66, 97] {
                    let count = count.next_multiple_of(replicas);
                    let places = spread(&ring(hosts as u64), count, replicas)
                        .unwrap_or_else(|why| panic!("{count} over {hosts} by {replicas}: {why}"));
                    assert_eq!(places.len(), count);
                    for start in 0..count {
                        let window: alloc::collections::BTreeSet<NodeId> =
                            (start..start + replicas).map(|at| places[at % count]).collect();
                        assert_eq!(window.len(), replicas, "{count} over {hosts} at {start}");
                    }
                    let load = |node| places.iter().filter(|place| **place == node).count();
                    let loads: Vec<usize> = (1..=hosts as u64).map(|n| load(NodeId(n))).collect();
                    let (least, most) = (loads.iter().min(), loads.iter().max());
                    let apart = most.zip(least).map(|(most, least)| most - least);
                    let most =
                        if count.is_multiple_of(replicas) { 1 } else { count.div_ceil(hosts) };
                    assert!(apart <= Some(most), "{hosts} hosts: {loads:?}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_spread_is_refused() {
        let few = spread(&ring(2), 64, 3);
        assert_eq!(few, Err(CatalogRefusal::Hosts { needed: 3, there: 2 }));
        let text = spread(&ring(3), 64, 3).expect_err("no way").to_string();
        assert!(text.contains("since the last partitions meet the first; use a multiple of 3"));
        assert!(spread(&ring(4), 64, 3).is_ok());
        assert!(check(&[1, 2, 1].map(NodeId), 2).is_err(), "the last meets the first");
        assert!(check(&[1, 2].map(NodeId), 3).is_err());
    }
}
