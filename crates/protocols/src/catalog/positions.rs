//! Who holds the fixed positions of a keyspace.
//!
//! The keys of a position are held by it and the `replicas - 1` positions that follow, round the
//! end. So positions that are less than `replicas` apart have keys in common, and are of distinct
//! nodes, also where the last ones meet the first: that is what everything here is about. The
//! number of positions never changes, nor which keys they have; a node that leaves is replaced
//! position by position.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::{CatalogRefusal, Keyspace, Settings};
use quorate_kernel::mutant;
use quorate_kernel::ring::{Ring, RingHost, Standing};

/// The positions that have keys in common with one, itself not among them.
pub fn near(count: usize, replicas: usize, position: usize) -> impl Iterator<Item = usize> {
    let apart = 1..replicas.min(count);
    let both = |apart: usize| [(position + apart) % count, (position + count - apart) % count];
    let mut near: Vec<usize> = apart.flat_map(both).filter(|other| *other != position).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter()
}

/// Checks that positions with keys in common are of distinct nodes.
pub(super) fn check(places: &[NodeId], replicas: usize) -> Result<(), CatalogRefusal> {
    let meets = |position: usize| {
        let mut near = near(places.len(), replicas, position);
        near.any(|other| places[other] == places[position])
    };
    match (0..places.len()).find(|position| meets(*position)) {
        None if places.is_empty() || places.len() >= replicas => Ok(()),
        None => Err(wrong(format!("{} positions cannot hold {replicas} replicas", places.len()))),
        Some(position) => Err(wrong(format!(
            "position {position} has keys in common with another one of its node"
        ))),
    }
}

/// Checks that a node can have a position: it has none near it, and all those near it are settled,
/// for what they hold is all there is of the keys.
pub(super) fn check_replacement(
    keyspace: &Keyspace,
    position: usize,
    to: NodeId,
) -> Result<(), CatalogRefusal> {
    let places = &keyspace.positions;
    if keyspace.gone.contains(&to) {
        return Err(wrong(format!("node {to} is gone for good")));
    }
    for other in near(places.len(), keyspace.replicas(), position) {
        if places[other].node == to {
            let why = format!("node {to} has position {other}, which has keys of {position}");
            return Err(wrong(why));
        }
        if !places[other].is_settled && !mutant!("catalog_moves_near") {
            let why = format!("position {other} has keys of {position} and still fetches them");
            return Err(wrong(why));
        }
    }
    Ok(())
}

/// The hosts that may be given positions, in the order of their nodes.
pub(super) fn takers(ring: &Ring) -> impl Iterator<Item = &RingHost> {
    ring.hosts().iter().filter(|host| host.standing == Standing::Up && !host.is_suspected)
}

/// Spreads positions over the hosts that take part, as evenly as may be.
pub(super) fn spread(
    ring: &Ring,
    count: usize,
    replicas: usize,
) -> Result<Vec<NodeId>, CatalogRefusal> {
    let nodes: Vec<NodeId> = takers(ring).map(|host| host.who.node).collect();
    if nodes.len() < replicas {
        return Err(CatalogRefusal::Hosts { needed: replicas, there: nodes.len() });
    }
    let places = evenly(&nodes, count, replicas).or_else(|| in_runs(&nodes, count, replicas));
    let places = places.ok_or_else(|| {
        wrong(format!(
            "{count} positions cannot be spread over {} hosts with {replicas} replicas each, \
             since the last positions meet the first; use a multiple of {replicas}",
            nodes.len()
        ))
    })?;
    check(&places, replicas)?;
    Ok(places)
}

/// How many positions a keyspace has that does not say: with as many hosts as replicas only a
/// multiple goes round.
#[must_use]
pub fn usual_count(count: usize, replicas: usize) -> usize {
    count.next_multiple_of(replicas.max(1))
}

/// The nodes of a keyspace's positions that is born with its cluster.
///
/// # Errors
/// They cannot be spread over the founding hosts.
pub fn founding(ring: &Ring, settings: &Settings) -> Result<Vec<NodeId>, CatalogRefusal> {
    let number = |name: &str| settings.get(name).and_then(|text| text.parse().ok()).unwrap_or(1);
    spread(ring, number("positions"), number("replicas"))
}

/// The least loaded node for each position, of those that have none near it.
fn evenly(nodes: &[NodeId], count: usize, replicas: usize) -> Option<Vec<NodeId>> {
    let mut loads: BTreeMap<NodeId, usize> = nodes.iter().map(|node| (*node, 0)).collect();
    let mut places: Vec<NodeId> = Vec::with_capacity(count);
    for position in 0..count {
        let taken = |node: &NodeId| {
            let mut given = near(count, replicas, position).filter(|other| *other < position);
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

/// The next position that should have another node, because its own has left or leaves, and the
/// node that should have it. Where every other node has keys of the position already, one of them
/// first gives another position away. With one host fewer than twice the replicas there is always
/// a way; with fewer there may be none, and a position waits for a host that joins.
pub(super) fn next_replacement(keyspace: &Keyspace, ring: &Ring) -> Option<(usize, NodeId)> {
    let places = &keyspace.positions;
    let is_going = |node: NodeId| ring.host(node).is_some_and(|h| h.standing != Standing::Up);
    let mut loads: BTreeMap<NodeId, usize> = takers(ring).map(|host| (host.who.node, 0)).collect();
    for place in places {
        loads.entry(place.node).and_modify(|load| *load += 1);
    }
    let taker = |position: usize| {
        let may_have = |node: NodeId| check_replacement(keyspace, position, node).is_ok();
        let free = loads.iter().filter(|(node, _)| may_have(**node));
        let (node, _) = free.min_by_key(|(node, load)| (**load, **node))?;
        Some((position, *node))
    };
    let going: Vec<usize> =
        (0..places.len()).filter(|position| is_going(places[*position].node)).collect();
    let direct = going.iter().find_map(|position| taker(*position));
    let is_quiet = places.iter().all(|place| place.is_settled);
    direct.or_else(|| {
        let mut stuck = going.iter().filter(|_| is_quiet);
        stuck.find_map(|position| {
            let near: Vec<usize> = near(places.len(), keyspace.replicas(), *position).collect();
            let is_once = |other: &usize| {
                let node = places[*other].node;
                let count = near.iter().filter(|one| places[**one].node == node).count();
                count == 1 && loads.contains_key(&node)
            };
            near.iter()
                .filter(|other| is_once(other))
                .find_map(|other| taker(*other).filter(|(_, node)| *node != places[*other].node))
        })
    })
}

/// The next positions that should have other nodes, none of which stands in another's way.
pub(super) fn replacements(keyspace: &Keyspace, ring: &Ring, most: usize) -> Vec<(usize, NodeId)> {
    let (mut after, mut all) = (keyspace.clone(), Vec::new());
    while all.len() < most
        && let Some((position, to)) = next_replacement(&after, ring)
    {
        let place = &mut after.positions[position];
        (place.node, place.is_settled) = (to, false);
        all.push((position, to));
    }
    all
}

/// A position of a node that nobody could take if the node left now, were all others moved and
/// settled one after the other.
#[must_use]
pub fn stuck(keyspace: &Keyspace, ring: &Ring, node: NodeId) -> Option<usize> {
    let mut hosts = ring.hosts().to_vec();
    for host in hosts.iter_mut().filter(|host| host.who.node == node) {
        host.standing = Standing::Leaving;
    }
    let (ring, mut after) = (Ring::new(ring.version, hosts), keyspace.clone());
    after.positions.iter_mut().for_each(|place| place.is_settled = true);
    // Where one must make room for another it may take more moves than positions.
    for _ in 0..4 * after.positions.len() {
        let Some((position, to)) = next_replacement(&after, &ring) else { break };
        after.positions[position].node = to;
    }
    after.positions.iter().position(|place| place.node == node)
}

/// The next node that has left for good, and still has positions or has not handed over all it had.
/// That comes before its positions are given away: whoever fetches a position near one of them must
/// know that nothing is to be had there, or it would never settle, and they never be given away.
pub(super) fn next_gone(keyspace: &Keyspace, ring: &Ring) -> Option<NodeId> {
    let has_left = |node: NodeId| ring.host(node).is_some_and(|h| h.standing == Standing::Left);
    let holders = keyspace.positions.iter().map(|place| place.node);
    let may_be = |node: &NodeId| {
        let has = || keyspace.positions.iter().any(|place| place.node == *node);
        has_left(*node) && !keyspace.gone.contains(node) && !(mutant!("catalog_gone_late") && has())
    };
    let mut all = keyspace.former.iter().map(|one| one.node).chain(holders);
    all.find(may_be)
}

fn wrong(why: alloc::string::String) -> CatalogRefusal {
    CatalogRefusal::Positions { why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::{String, ToString};
    use alloc::vec;
    use quorate_kernel::ids::{Incarnation, LaneId, Start};
    use quorate_kernel::keyspace::{Position, Tenure};

    fn ring(hosts: u64) -> Ring {
        let host = |node| RingHost {
            who: Incarnation { node: NodeId(node), start: Start(1) },
            address: String::new(),
            zone: String::new(),
            tokens: vec![node << 40],
            standing: Standing::Up,
            is_suspected: false,
        };
        Ring::new(1, (1..=hosts).map(host).collect())
    }

    #[test]
    fn positions_are_even_and_no_node_meets_itself_also_at_the_wrap() {
        for replicas in [1, 2, 3, 5, 6, 7] {
            for hosts in replicas..20 {
                for count in [64_usize, 65, 66, 70, 97] {
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
                    assert!(apart <= Some(count.div_ceil(hosts)), "{hosts} hosts: {loads:?}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_spread_is_refused() {
        let few = spread(&ring(2), 64, 3);
        assert_eq!(few, Err(CatalogRefusal::Hosts { needed: 3, there: 2 }));
        let text = spread(&ring(3), 64, 3).expect_err("no way").to_string();
        assert!(text.contains("since the last positions meet the first; use a multiple of 3"));
        assert!(spread(&ring(4), 64, 3).is_ok());
        assert!(check(&[1, 2, 1].map(NodeId), 2).is_err(), "the last meets the first");
        assert!(check(&[1, 2].map(NodeId), 3).is_err());
    }

    #[test]
    fn who_may_not_leave_is_known_before() {
        let keyspace = |hosts: u64| {
            let places = spread(&ring(hosts), 66, 3).expect("it can be done");
            let place = |node: &NodeId| Position { node: *node, since: 1, is_settled: true };
            let settings = Settings::from([(String::from("replicas"), String::from("3"))]);
            let mut keyspace = Keyspace::new("k", LaneId(16), "e", settings, 1);
            keyspace.positions = places.iter().map(place).collect();
            keyspace
        };
        assert_eq!(stuck(&keyspace(3), &ring(4), NodeId(2)), None, "the fourth has none yet");
        assert_eq!(stuck(&keyspace(3), &ring(3), NodeId(2)), Some(1));
        assert!(stuck(&keyspace(4), &ring(4), NodeId(2)).is_some(), "all others are near");
        for hosts in 6..9 {
            for node in 1..=hosts {
                assert_eq!(stuck(&keyspace(hosts), &ring(hosts), NodeId(node)), None);
            }
        }
    }

    #[test]
    fn who_leaves_is_replaced_where_nothing_near_is_fetched() {
        let mut hosts = ring(5).hosts().to_vec();
        let places = spread(&ring(4), 8, 3).expect("it can be done");
        let place = |node: &NodeId| Position { node: *node, since: 1, is_settled: true };
        let settings = Settings::from([(String::from("replicas"), String::from("3"))]);
        let mut keyspace = Keyspace::new("k", LaneId(16), "e", settings, 1);
        keyspace.positions = places.iter().map(place).collect();
        assert_eq!(next_replacement(&keyspace, &ring(5)), None);
        hosts[0].standing = Standing::Left;
        let ring = Ring::new(2, hosts);
        let (first, to) = next_replacement(&keyspace, &ring).expect("node 1 has left");
        assert_eq!((first, to), (0, NodeId(5)), "it has the least");
        let several = replacements(&keyspace, &ring, 16);
        assert!(several.len() > 1 && several[0] == (first, to), "{several:?}");
        for (index, (one, _)) in several.iter().enumerate() {
            let rest = &several[index + 1..];
            assert!(rest.iter().all(|(other, _)| near(8, 3, *one).all(|at| at != *other)));
        }
        keyspace.positions[first] = Position { node: to, since: 2, is_settled: false };
        let (second, _) = next_replacement(&keyspace, &ring).expect("another one");
        let far = near(8, 3, first).all(|position| position != second);
        assert!(far && keyspace.positions[second].node == NodeId(1));
        for other in [1, 2, 6, 7] {
            assert!(check_replacement(&keyspace, other, NodeId(9)).is_err(), "{other} is near");
        }
        assert!(check_replacement(&keyspace, first, NodeId(9)).is_ok(), "it may be replaced again");
        keyspace.former.push(Tenure { position: 0, since: 1, node: NodeId(1) });
        assert_eq!(next_gone(&keyspace, &ring), Some(NodeId(1)), "it has positions yet");
        for place in keyspace.positions.iter_mut().filter(|place| place.node == NodeId(1)) {
            place.node = NodeId(9);
        }
        assert_eq!(next_gone(&keyspace, &ring), Some(NodeId(1)));
        keyspace.gone.extend([NodeId(1), NodeId(9)]);
        assert_eq!(next_gone(&keyspace, &ring), None, "that is known");
        assert!(check_replacement(&keyspace, first, NodeId(9)).is_err(), "it is gone for good");
    }
}
