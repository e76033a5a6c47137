//! Which nodes should hold a range, and the next single step from those that do.
//!
//! A range belongs to the first hosts on the ring from its end on, clockwise: successor-list
//! replication (CATS §2, §3). Hosts of different zones are preferred; hosts that leave or are
//! suspected hold nothing new. Everything here is a wish: the members of a group decide.

use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::rng::mix;
use quorate_kernel::view::{Change, Range, View, ViewId};

/// The nodes that should hold the range that ends at `high`, in ring order: at most `replicas`, as
/// many as there are.
#[must_use]
pub fn desired(ring: &Ring, high: u64, replicas: usize) -> Vec<NodeId> {
    let may_hold = |host: &&RingHost| host.standing == Standing::Up && !host.is_suspected;
    let (mut chosen, mut spare): (Vec<&RingHost>, Vec<&RingHost>) = Default::default();
    for host in ring.walk(high).filter(may_hold) {
        if chosen.len() == replicas {
            break;
        }
        let is_new_zone = || chosen.iter().all(|other| other.zone != host.zone);
        let first = if host.zone.is_empty() || is_new_zone() { &mut chosen } else { &mut spare };
        first.push(host);
    }
    // There are fewer zones than replicas: the nearest of the others follow.
    let lacking = replicas.saturating_sub(chosen.len());
    chosen.extend(spare.into_iter().take(lacking));
    chosen.into_iter().map(|host| host.who.node).collect()
}

/// The next step from a view towards what the ring asks for; `None` if nothing is to be done.
///
/// One member changes at a time. A suspicion alone never makes a group smaller: without a spare
/// host the view stays. Who leaves makes room only when the group is over its size, or has nobody
/// to take the place and an operator asked for it.
#[must_use]
pub fn next_change(view: &View, ring: &Ring, replicas: usize) -> Option<Change> {
    if let Some(at) = ring.token_inside(&view.range) {
        return Some(Change::Split { at });
    }
    next_member(view, ring, replicas)
}

/// The next change of members towards what the ring asks for; the range stays whole.
#[must_use]
pub fn next_member(view: &View, ring: &Ring, replicas: usize) -> Option<Change> {
    let desired = desired(ring, view.range.high, replicas);
    let is_member = |node: &NodeId| view.index_of(*node).is_some();
    let missing = desired.iter().copied().find(|node| !is_member(node));
    let surplus = surplus(view, ring, &desired);
    match (missing, surplus) {
        // While the group is too small, a suspected member is replaced before the group grows:
        // growing would make the majority larger, and it is not there.
        (Some(into), Some(out)) => Some(Change::Replace { out, into }),
        (Some(into), None) if view.members().len() < replicas => Some(Change::Grow { into }),
        (None, Some(out)) => {
            let standing = ring.host(out).map(|host| host.standing);
            let is_asked = matches!(standing, Some(Standing::Leaving | Standing::Left));
            let is_over = view.members().len() > replicas;
            let may_shrink = (is_asked || is_over) && view.members().len() > 1;
            may_shrink.then_some(Change::Shrink { out })
        }
        _ => None,
    }
}

/// The member that should leave first: one that has left, then a suspected one, then a leaving one,
/// then the one furthest along the ring. A host of which the ring says nothing is a stranger, and
/// strangers stay: the ring may not have heard of them yet.
fn surplus(view: &View, ring: &Ring, desired: &[NodeId]) -> Option<NodeId> {
    let distance = |node: NodeId| {
        ring.walk(view.range.high).position(|host| host.who.node == node).unwrap_or(usize::MAX)
    };
    let rank = |node: &NodeId| {
        let host = ring.host(*node)?;
        let urgency = match (host.standing, host.is_suspected) {
            (Standing::Left, _) => 3,
            (_, true) => 2,
            (Standing::Leaving, false) => 1,
            (Standing::Up, false) => 0,
        };
        Some((urgency, distance(*node), *node))
    };
    let members = view.members().iter().filter(|node| !desired.contains(node));
    members.filter_map(rank).max().map(|(_, _, node)| node)
}

/// Who should propose a group's changes: its first member on the ring that is not suspected. The
/// paper lets the node propose that the ring makes responsible (CATS §5, "selfish"); a newcomer has
/// no view to propose for, so the member that is closest to it does. Two nodes that both take
/// themselves for it are harmless: consensus decides.
#[must_use]
pub fn proposer(view: &View, ring: &Ring) -> Option<NodeId> {
    let is_candidate =
        |host: &&RingHost| view.index_of(host.who.node).is_some() && !host.is_suspected;
    let has_not_left = |host: &&RingHost| host.standing != Standing::Left;
    let found = ring.walk(view.range.high).filter(is_candidate).find(has_not_left);
    found.map(|host| host.who.node)
}

/// The views that a keyspace begins with: one group for each token, or on a larger ring for each of
/// a few, evenly chosen; splits make the others. None if nobody takes part.
#[must_use]
pub fn first_views(ring: &Ring, replicas: usize, groups_max: usize) -> Vec<View> {
    let up = |node: &NodeId| ring.host(*node).is_some_and(|host| host.standing == Standing::Up);
    let tokens = ring.tokens().filter(|(_, node)| up(node)).map(|(token, _)| token);
    let tokens: Vec<u64> = tokens.collect();
    let every = tokens.len().div_ceil(groups_max).max(1);
    let tokens: Vec<u64> = tokens.into_iter().step_by(every).collect();
    if desired(ring, 0, replicas).is_empty() {
        return Vec::new();
    }
    views_at(&tokens, ring, replicas)
}

fn views_at(tokens: &[u64], ring: &Ring, replicas: usize) -> Vec<View> {
    let before = |place: usize| tokens[(place + tokens.len() - 1) % tokens.len()];
    let view = |(place, &high): (usize, &u64)| {
        let id = ViewId { group: GroupId(mix(high)), version: 0 };
        View::new(id, Range { low: before(place), high }, desired(ring, high, replicas))
    };
    tokens.iter().enumerate().map(view).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::string::{String, ToString};
    use alloc::vec;
    use quorate_kernel::ids::{Incarnation, Start};

    fn host(node: u64, tokens: &[u64]) -> RingHost {
        RingHost {
            who: Incarnation { node: NodeId(node), start: Start(1) },
            address: String::new(),
            zone: String::new(),
            tokens: tokens.to_vec(),
            standing: Standing::Up,
            is_suspected: false,
            doors: Vec::new(),
        }
    }

    fn ring(hosts: u64) -> Vec<RingHost> {
        (1..=hosts).map(|node| host(node, &[node * 10])).collect()
    }

    fn view(members: &[u64], range: Range) -> View {
        View::new(ViewId::default(), range, members.iter().copied().map(NodeId).collect())
    }

    const RANGE: Range = Range { low: 10, high: 20 };

    #[test]
    fn the_successors_of_a_range_hold_it_and_zones_are_kept_apart() {
        let nodes = |list: Vec<NodeId>| list.into_iter().map(|node| node.0).collect::<Vec<_>>();
        let mut hosts = ring(6);
        assert_eq!(nodes(desired(&Ring::new(1, hosts.clone()), 45, 3)), [5, 6, 1]);
        for (host, zone) in hosts.iter_mut().zip(["a", "a", "b", "b", "c", "c"]) {
            host.zone = zone.to_string();
        }
        assert_eq!(nodes(desired(&Ring::new(1, hosts.clone()), 10, 3)), [1, 3, 5]);
        hosts[2].is_suspected = true;
        hosts[3].standing = Standing::Leaving;
        assert_eq!(nodes(desired(&Ring::new(1, hosts), 10, 3)), [1, 5, 2], "one zone is left out");
        assert_eq!(nodes(desired(&Ring::new(1, ring(2)), 10, 3)), [1, 2], "as many as there are");
    }

    #[test]
    fn replicas_are_on_different_hosts_and_in_different_zones_whatever_the_tokens_are() {
        let mut rng = quorate_kernel::rng::Rng::new(3);
        for zones in [0, 2, 3, 4] {
            let mut hosts: Vec<RingHost> = Vec::new();
            for node in 1..=8 {
                let tokens: Vec<u64> = (0..rng.between(1, 5)).map(|_| rng.next()).collect();
                let zone = if zones == 0 { String::new() } else { (node % zones).to_string() };
                hosts.push(RingHost { zone, ..host(node, &tokens) });
            }
            let ring = Ring::new(1, hosts);
            for _ in 0..100 {
                let chosen = desired(&ring, rng.next(), 3);
                let nodes: BTreeSet<NodeId> = chosen.iter().copied().collect();
                assert_eq!(
                    (chosen.len(), nodes.len()),
                    (3, 3),
                    "virtual nodes of one host are one"
                );
                let zone = |node: &NodeId| &ring.host(*node).expect("it is there").zone;
                let found: BTreeSet<&String> = chosen.iter().map(zone).collect();
                assert_eq!(found.len() as u64, zones.clamp(1, 3), "as many zones as can be");
            }
        }
    }

    /// CATS, the table of joins and departures: r Replace instances, and a Split at a join.
    #[test]
    fn a_join_splits_one_group_and_replaces_a_member_in_the_others() {
        // Tokens 10..60; a host joins at 15, between P = 1 and S = 2.
        let mut hosts = ring(6);
        hosts.push(host(7, &[15]));
        let ring = Ring::new(1, hosts);
        let step = |members: &[u64], range| next_change(&view(members, range), &ring, 3);
        let (s2, n, s) = (NodeId(3), NodeId(7), NodeId(2));
        let before_p = Range { low: 60, high: 10 };
        assert_eq!(step(&[1, 2, 3], before_p), Some(Change::Replace { out: s2, into: n }));
        assert_eq!(step(&[2, 3, 4], RANGE), Some(Change::Split { at: 15 }));
        let left = Range { low: 10, high: 15 };
        assert_eq!(step(&[2, 3, 4], left), Some(Change::Replace { out: NodeId(4), into: n }));
        assert_eq!(step(&[2, 3, 4], Range { low: 15, high: 20 }), None);
        let of_pp = Range { low: 50, high: 60 };
        assert_eq!(step(&[6, 1, 2], of_pp), Some(Change::Replace { out: s, into: n }));
    }

    #[test]
    fn a_suspicion_replaces_but_never_shrinks() {
        let mut hosts = ring(4);
        hosts[1].is_suspected = true;
        let with_spare = Ring::new(1, hosts);
        let change = next_change(&view(&[2, 3, 4], RANGE), &with_spare, 3);
        assert_eq!(change, Some(Change::Replace { out: NodeId(2), into: NodeId(1) }));
        let mut hosts = ring(3);
        hosts[1].is_suspected = true;
        let without = Ring::new(1, hosts.clone());
        assert_eq!(next_change(&view(&[1, 2, 3], RANGE), &without, 3), None, "the view stays");
        hosts[1].standing = Standing::Leaving;
        let asked = Ring::new(1, hosts);
        let change = next_change(&view(&[1, 2, 3], RANGE), &asked, 3);
        assert_eq!(change, Some(Change::Shrink { out: NodeId(2) }));
    }

    #[test]
    fn a_small_group_grows_and_a_stranger_stays() {
        let three = Ring::new(1, ring(3));
        let change = next_change(&view(&[2], RANGE), &three, 3);
        assert_eq!(change, Some(Change::Grow { into: NodeId(3) }));
        assert_eq!(next_change(&view(&[2, 3, 9], RANGE), &three, 3), None, "of 9 nothing is known");
        assert_eq!(proposer(&view(&[1, 3], RANGE), &three), Some(NodeId(3)));
        assert_eq!(proposer(&view(&[9], RANGE), &three), None);
    }

    #[test]
    fn a_group_that_is_too_large_shrinks_to_its_size() {
        let ring = Ring::new(1, ring(5));
        let change = next_change(&view(&[2, 3, 4, 5], RANGE), &ring, 3);
        assert_eq!(change, Some(Change::Shrink { out: NodeId(5) }));
    }

    #[test]
    fn a_keyspace_is_born_with_a_group_for_each_token() {
        let views = first_views(&Ring::new(1, ring(4)), 3, 4);
        assert_eq!(views.len(), 4);
        for token in [0, 10, 11, 25, 40, 41, u64::MAX] {
            let count = views.iter().filter(|view| view.range.contains(token)).count();
            assert_eq!(count, 1, "the ranges cover the ring without overlap");
        }
        let one = Ring::new(1, vec![host(1, &[7])]);
        let views = first_views(&one, 3, 4);
        assert!(views.len() == 1 && views[0].range.contains(7) && views[0].range.contains(8));
        let ring = Ring::new(1, ring(4));
        let settled = |view: &View| next_change(view, &ring, 3).is_none();
        assert!(first_views(&ring, 3, 4).iter().all(settled), "nothing is left to wish for");
    }
}
