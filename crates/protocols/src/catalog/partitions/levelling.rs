//! Evening out: hosts that join take their share of a keyspace's partitions, one at a time.
//!
//! A step takes a partition from a node that has at least two more than the one that gets it, the
//! pair that differs most first. So the sum of the squares of all counts falls with each step, and
//! an end is reached, whatever happens in between. [Columns](super::columns) are kept, so that a
//! map which came about like this is never a dead end for a drain. Where no such step is allowed a
//! guest may first give a partition back to the keeper of its column, if that opens the way for a
//! step between two others that differ by two: both together make the sum fall.
//!
//! Only counts are looked at, and they are the map's: that a host is down changes none of them.

use super::columns::Columns;
use super::seats::{is_free, near, takers};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::cmp::Reverse;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::ring::{Closing, Ring, Standing};

/// How many ways round are looked at.
const DETOURS_MAX: usize = 16;

/// The next partition that should go to a host that has fewer, and that host. Nothing while
/// anything of the keyspace is on the move, while somebody who has partitions leaves, or while the
/// cluster ends.
pub(crate) fn next_levelling(keyspace: &Keyspace, ring: &Ring) -> Option<(usize, NodeId)> {
    let is_up = |node: NodeId| ring.host(node).is_some_and(|h| h.standing == Standing::Up);
    let is_quiet = keyspace.partitions.iter().all(|place| place.is_settled && is_up(place.node));
    if !is_quiet || !keyspace.former.is_empty() || ring.closing != Closing::No {
        return None;
    }
    let places: Vec<NodeId> = keyspace.partitions.iter().map(|place| place.node).collect();
    let hosts = ring.hosts().iter().map(|host| host.who.node);
    let hosts: Vec<NodeId> =
        hosts.filter(|node| is_up(*node) && !keyspace.gone.contains(node)).collect();
    let there = takers(ring).map(|host| host.who.node);
    let there: Vec<NodeId> = there.filter(|node| hosts.binary_search(node).is_ok()).collect();
    step(&places, keyspace.replicas(), &hosts, &there)
}

/// The next step towards even counts over the hosts that are there, some of all; both ascending.
pub(crate) fn step(
    places: &[NodeId],
    replicas: usize,
    hosts: &[NodeId],
    there: &[NodeId],
) -> Option<(usize, NodeId)> {
    let scales = Scales::of(places, replicas, hosts, there);
    let (least, most) = (scales.counts.values().min()?, scales.counts.values().max()?);
    if *most < least + 2 {
        return None;
    }
    let levels = |(partition, to): &(usize, NodeId)| {
        let mut after = places.to_vec();
        after[*partition] = *to;
        let then = Scales::of(&after, replicas, hosts, there);
        let next = then.direct().map(|(next, gainer)| (after[next], gainer));
        let gain = next.and_then(|(from, gainer)| then.gain(from, gainer));
        // What it takes from how even they are.
        let loss = (scales.counts[to] + 2).saturating_sub(scales.counts[&places[*partition]]);
        gain.is_some_and(|gain| gain > loss)
    };
    scales.direct().or_else(|| scales.detours().into_iter().take(DETOURS_MAX).find(levels))
}

struct Scales<'a> {
    places: &'a [NodeId],
    replicas: usize,
    columns: Columns,
    /// How many partitions each has that is there. Who is not gives nothing and gets nothing.
    counts: BTreeMap<NodeId, usize>,
}

impl<'a> Scales<'a> {
    fn of(places: &'a [NodeId], replicas: usize, hosts: &[NodeId], there: &[NodeId]) -> Scales<'a> {
        let mut counts: BTreeMap<NodeId, usize> = there.iter().map(|node| (*node, 0)).collect();
        for node in places {
            counts.entry(*node).and_modify(|count| *count += 1);
        }
        let columns = Columns::of(places, replicas, hosts);
        Scales { places, replicas, columns, counts }
    }

    /// Whether those are there that have a partition and all near it: what is taken must be copied
    /// from all of them.
    fn is_calm(&self, partition: usize) -> bool {
        let mut near = near(self.places.len(), self.replicas, partition);
        self.counts.contains_key(&self.places[partition])
            && near.all(|other| self.counts.contains_key(&self.places[other]))
    }

    fn gain(&self, from: NodeId, to: NodeId) -> Option<usize> {
        gain(*self.counts.get(&from)?, *self.counts.get(&to)?)
    }

    /// The best step that levels two counts. Of equal ones that where the partitions of the node
    /// that gains stand closest: the room between them is what there is least of.
    fn direct(&self) -> Option<(usize, NodeId)> {
        let mut best: Option<(Reverse<usize>, usize, usize, NodeId)> = None;
        let mut gainers: Vec<(usize, NodeId)> =
            self.counts.iter().map(|(node, count)| (*count, *node)).collect();
        gainers.sort_unstable();
        for (partition, from) in self.places.iter().enumerate() {
            let Some(more) = self.counts.get(from) else { continue };
            let gains = gainers.iter().map_while(|(fewer, to)| Some((gain(*more, *fewer)?, *to)));
            for (gain, to) in gains {
                if best.is_some_and(|(Reverse(most), ..)| gain < most) {
                    break;
                }
                if self.columns.admits(partition, to)
                    && is_free(self.places, self.replicas, partition, to)
                    && self.is_calm(partition)
                {
                    let step = (Reverse(gain), self.room(partition, to), partition, to);
                    best = Some(best.map_or(step, |best| best.min(step)));
                }
            }
        }
        best.map(|(_, _, partition, to)| (partition, to))
    }

    /// How far a partition is from the next one of a node, in either direction.
    fn room(&self, partition: usize, node: NodeId) -> usize {
        let count = self.places.len();
        let is_its = |apart: &usize| {
            let both = [(partition + apart) % count, (partition + count - apart) % count];
            both.iter().any(|other| self.places[*other] == node)
        };
        (1..count).find(is_its).unwrap_or(count)
    }

    /// What a guest may give back to a keeper, so that it can take a partition near it from a node
    /// that has at least two more than the keeper; the best first.
    fn detours(&self) -> Vec<(usize, NodeId)> {
        let count = self.places.len();
        let mut all: Vec<(Reverse<usize>, usize, NodeId)> = Vec::new();
        for (partition, guest) in self.places.iter().enumerate() {
            let Some(keeper) = self.columns.keeper(partition) else { continue };
            let may_give = !self.columns.is_keeper(*guest)
                && self.counts.contains_key(&keeper)
                && is_free(self.places, self.replicas, partition, keeper)
                && self.is_calm(partition);
            let gains = |other: usize| {
                let mut near = near(count, self.replicas, other);
                let is_free = near.all(|near| near == partition || self.places[near] != *guest);
                let gain = self.gain(self.places[other], keeper).filter(|_| is_free);
                gain.filter(|_| self.is_calm(other))
            };
            let gain = near(count, self.replicas, partition).filter_map(gains).max();
            if let Some(gain) = gain.filter(|_| may_give) {
                all.push((Reverse(gain), partition, keeper));
            }
        }
        all.sort_unstable();
        all.into_iter().map(|(_, partition, to)| (partition, to)).collect()
    }
}

/// By how much two counts differ, if a step from one to the other levels them.
fn gain(more: usize, fewer: usize) -> Option<usize> {
    more.checked_sub(fewer).filter(|gain| *gain >= 2)
}
