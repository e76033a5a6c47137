//! Partitions of hosts that leave go to others, one by one.

use super::columns::Columns;
use super::seats::{check_replacement, is_free, near, takers};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::mutant;
use quorate_kernel::ring::{Ring, RingHost, Standing};

/// The next partition that should have another node, because its own has left or leaves, and the
/// node that should have it.
///
/// First the [columns](super::columns) of those that stay are put in order: who is to keep one
/// gives up what it has elsewhere. That never fails where the map came about by columns, and the
/// rest can always be taken then. What a host had that is gone for good is not kept waiting for
/// that. Any other map may be a dead end, unless at least `2 * replicas - 1` hosts stay.
pub(crate) fn next_replacement(keyspace: &Keyspace, ring: &Ring) -> Option<(usize, NodeId)> {
    let standing = |node: NodeId| ring.host(node).map(|host| host.standing);
    let is_going = |node: NodeId| standing(node).is_some_and(|standing| standing != Standing::Up);
    let places: Vec<NodeId> = keyspace.partitions.iter().map(|place| place.node).collect();
    let going: Vec<usize> =
        (0..places.len()).filter(|partition| is_going(places[*partition])).collect();
    if going.is_empty() {
        return None;
    }
    let up = ring.hosts().iter().filter(|host| host.standing == Standing::Up);
    let up: Vec<NodeId> = up.map(|host: &RingHost| host.who.node).collect();
    let mut counts: BTreeMap<NodeId, usize> = takers(ring).map(|host| (host.who.node, 0)).collect();
    for node in &places {
        counts.entry(*node).and_modify(|count| *count += 1);
    }
    let columns = Columns::of(&places, keyspace.replicas(), &up);
    let moves = Moves { keyspace, ring, places, going, columns, counts };
    let has_left = |partition: &usize| standing(moves.places[*partition]) == Some(Standing::Left);
    let is_urgent = moves.going.iter().any(has_left);
    match if is_urgent { Tidy::Done } else { moves.tidy() } {
        Tidy::Move(partition, to) => Some((partition, to)),
        Tidy::Wait => None,
        Tidy::Done => moves.direct().or_else(|| match moves.tidy() {
            Tidy::Move(partition, to) => Some((partition, to)),
            Tidy::Wait => None,
            Tidy::Done => moves.any().or_else(|| moves.make_room()),
        }),
    }
}

/// What there is to do before keepers have their columns.
enum Tidy {
    Move(usize, NodeId),
    /// Something is on the move that stands in the way.
    Wait,
    Done,
}

struct Moves<'a> {
    keyspace: &'a Keyspace,
    ring: &'a Ring,
    places: Vec<NodeId>,
    /// The partitions whose nodes leave.
    going: Vec<usize>,
    columns: Columns,
    /// How many partitions each has that may be given some.
    counts: BTreeMap<NodeId, usize>,
}

impl Moves<'_> {
    /// The next partition that a keeper has outside its column and that can go to its own keeper.
    fn tidy(&self) -> Tidy {
        let (places, replicas) = (&self.keyspace.partitions, self.keyspace.replicas());
        let mut waits = false;
        for (partition, place) in places.iter().enumerate() {
            let Some(keeper) = self.columns.keeper(partition) else { break };
            let is_astray = self.columns.is_keeper(place.node) && place.node != keeper;
            let can_be = [place.node, keeper].iter().all(|node| self.counts.contains_key(node))
                && is_free(&self.places, replicas, partition, keeper);
            if !is_astray || !can_be {
                continue;
            }
            if place.is_settled && check_replacement(self.keyspace, partition, keeper).is_ok() {
                return Tidy::Move(partition, keeper);
            }
            // What is away now may be away for long.
            let mut around = near(places.len(), replicas, partition).chain([partition]);
            waits |= around.all(|other| {
                places[other].is_settled || !self.ring.is_suspected(places[other].node)
            });
        }
        if waits { Tidy::Wait } else { Tidy::Done }
    }

    /// The node with the fewest partitions, of those that may have this one.
    fn taker(&self, partition: usize, may: impl Fn(NodeId) -> bool) -> Option<(usize, NodeId)> {
        let may_have =
            |node: NodeId| may(node) && check_replacement(self.keyspace, partition, node).is_ok();
        let free = self.counts.iter().filter(|(node, _)| may_have(**node));
        let (node, _) = free.min_by_key(|(node, count)| (**count, **node))?;
        Some((partition, *node))
    }

    /// A partition that another node can take where it belongs.
    fn direct(&self) -> Option<(usize, NodeId)> {
        let taker = |partition: &usize| {
            self.taker(*partition, |node| self.columns.admits(*partition, node))
        };
        self.going.iter().find_map(taker)
    }

    /// A partition that any other node can take.
    fn any(&self) -> Option<(usize, NodeId)> {
        self.going.iter().find_map(|partition| self.taker(*partition, |_| true))
    }

    /// Where every other node has keys of the partition already, one of them first gives another
    /// partition away. With one host fewer than twice the replicas there is always a way; with
    /// fewer there may be none, and a partition waits for a host that joins.
    fn make_room(&self) -> Option<(usize, NodeId)> {
        if !self.keyspace.partitions.iter().all(|place| place.is_settled) {
            return None;
        }
        self.going.iter().find_map(|partition| {
            let (count, replicas) = (self.places.len(), self.keyspace.replicas());
            let near: Vec<usize> = near(count, replicas, *partition).collect();
            let is_once = |other: &&usize| {
                let node = self.places[**other];
                let count = near.iter().filter(|one| self.places[**one] == node).count();
                count == 1 && self.counts.contains_key(&node)
            };
            near.iter().filter(is_once).find_map(|other| {
                let from = self.places[*other];
                self.taker(*other, |node| node != from && self.columns.admits(*other, node))
            })
        })
    }
}

/// The next partitions that should have other nodes, none of which stands in another's way.
pub(crate) fn replacements(keyspace: &Keyspace, ring: &Ring, most: usize) -> Vec<(usize, NodeId)> {
    let (mut after, mut all) = (keyspace.clone(), Vec::new());
    while all.len() < most
        && let Some((partition, to)) = next_replacement(&after, ring)
    {
        let place = &mut after.partitions[partition];
        (place.node, place.is_settled) = (to, false);
        all.push((partition, to));
    }
    all
}

/// A partition of a node that nobody could take if the node left now, were all others moved and
/// settled one after the other.
#[must_use]
pub fn stuck(keyspace: &Keyspace, ring: &Ring, node: NodeId) -> Option<usize> {
    let mut hosts = ring.hosts().to_vec();
    for host in hosts.iter_mut().filter(|host| host.who.node == node) {
        host.standing = Standing::Leaving;
    }
    let (ring, mut after) = (Ring::new(ring.version, hosts), keyspace.clone());
    after.partitions.iter_mut().for_each(|place| place.is_settled = true);
    // Where others must make room first it may take more moves than partitions.
    for _ in 0..4 * after.partitions.len() {
        let Some((partition, to)) = next_replacement(&after, &ring) else { break };
        after.partitions[partition].node = to;
    }
    after.partitions.iter().position(|place| place.node == node)
}

/// The next node that has left for good, and still has partitions or has not handed over all it
/// had. That comes before its partitions are given away: whoever fetches a partition near one of
/// them must know that nothing is to be had there, or it would never settle, and they never be
/// given away.
pub(crate) fn next_gone(keyspace: &Keyspace, ring: &Ring) -> Option<NodeId> {
    let has_left = |node: NodeId| ring.host(node).is_some_and(|h| h.standing == Standing::Left);
    let holders = keyspace.partitions.iter().map(|place| place.node);
    let may_be = |node: &NodeId| {
        let has = || keyspace.partitions.iter().any(|place| place.node == *node);
        has_left(*node) && !keyspace.gone.contains(node) && !(mutant!("catalog_gone_late") && has())
    };
    let mut all = keyspace.former.iter().map(|one| one.node).chain(holders);
    all.find(may_be)
}
