//! Which partition holds what, and that replicas are on distinct hosts.

use crate::causal::map::{Map, Shape};
use crate::dots::dot::Partition;
use crate::testing::siblings::{Move, first, moved};
use proptest::prelude::*;
use quorate_kernel::ids::NodeId;
use std::vec::Vec;

fn any_shape() -> impl Strategy<Value = Shape> {
    (1u16..=7).prop_flat_map(|replicas| {
        (replicas..=130).prop_map(move |partitions| Shape::new(partitions, replicas))
    })
}

fn hosts(count: u64) -> Vec<NodeId> {
    (1..=count).map(NodeId).collect()
}

proptest! {
    #[test]
    fn homes_cut_the_hashes_and_replicas_hold_them(shape in any_shape(), hash: u64) {
        let home = shape.home(hash);
        prop_assert!(home < shape.partitions);
        prop_assert!(shape.hashes(&(home..=home)).contains(&hash));
        let replicas: Vec<u16> = shape.replicas_of(home).collect();
        prop_assert_eq!(replicas.len(), usize::from(shape.replicas));
        for partition in (0..shape.partitions).map(Partition) {
            let holds = shape.holds(partition, home);
            prop_assert_eq!(holds, replicas.contains(&partition.0));
            prop_assert_eq!(holds, shape.homes(partition).contains(&home));
            let hashes = shape.hashes(&shape.homes(partition));
            prop_assert_eq!(holds, hashes.contains(&hash));
        }
    }

    #[test]
    fn peers_share_keys_and_replicas_of_a_key_are_peers(shape in any_shape(), home: u16) {
        let home = home % shape.partitions;
        for one in shape.replicas_of(home).map(Partition) {
            for other in shape.replicas_of(home).map(Partition).filter(|other| *other != one) {
                prop_assert!(shape.peers(one).any(|peer| peer == other));
                prop_assert!(shape.shared(one, other).contains(&home));
            }
            prop_assert!(shape.peers(one).all(|peer| peer != one && shape.are_peers(peer, one)));
        }
    }

    #[test]
    fn replicas_are_on_distinct_hosts_whatever_is_replaced(
        shape in any_shape(), extra in 0u64..5,
        moves in proptest::collection::vec(any::<(u8, bool)>(), 0..8)
    ) {
        let mut record = first(shape, &hosts(u64::from(shape.replicas) + extra));
        prop_assert!(Map::of(&record).fits(shape));
        for (number, (out, gone)) in moves.into_iter().enumerate() {
            let known: Vec<NodeId> = Map::of(&record).hosts().into_iter().collect();
            let out = known[usize::from(out) % known.len()];
            record = moved(record, &Move { out: out.0, into: 1000 + number as u64, gone });
            let next = Map::of(&record);
            prop_assert!(next.fits(shape) && next.version == record.changed);
            prop_assert!(next.partitions_of(out).next().is_none());
            prop_assert_eq!(next.is_gone(out), gone);
        }
    }
}

#[test]
fn what_is_no_map_of_this_keyspace_does_not_fit() {
    let shape = Shape::new(64, 3);
    let mut record = first(shape, &hosts(3));
    let map = Map::of(&record);
    assert!(map.fits(shape), "64 partitions on 3 hosts: nothing wraps around");
    assert!(!map.fits(Shape::new(63, 3)) && !map.fits(Shape::new(64, 4)));
    record.partitions[5].node = NodeId(1);
    assert!(!Map::of(&record).fits(shape), "two replicas on one host");
    record.partitions[5].node = NodeId(9);
    assert!(Map::of(&record).fits(shape));
}

#[test]
fn a_partition_that_there_is_not_has_no_peers() {
    let shape = Shape::new(9, 3);
    let strangers = [9, 11, 12, u16::MAX].map(Partition);
    assert!(strangers.iter().all(|stranger| shape.homes(*stranger).is_empty()));
    assert!(!strangers.iter().any(|stranger| shape.are_peers(Partition(8), *stranger)));
}
