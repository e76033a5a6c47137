//! Whether replicas deliver in one order.

use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

/// Asserts that nothing is delivered twice, and that no cycle is in the union of the orders in
/// which replicas deliver: so any two deliver what both deliver in one order.
pub fn assert_one_order(orders: &[Vec<u64>]) {
    let mut after: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    let mut before: BTreeMap<u64, usize> = BTreeMap::new();
    for order in orders {
        let distinct: BTreeSet<u64> = order.iter().copied().collect();
        assert_eq!(distinct.len(), order.len(), "something is delivered twice: {order:?}");
        order.iter().for_each(|of| _ = before.entry(*of).or_default());
        for two in order.windows(2) {
            if after.entry(two[0]).or_default().insert(two[1]) {
                *before.entry(two[1]).or_default() += 1;
            }
        }
    }
    let mut free: Vec<u64> =
        before.iter().filter(|(_, count)| **count == 0).map(|(of, _)| *of).collect();
    let mut placed = 0;
    while let Some(of) = free.pop() {
        placed += 1;
        for next in after.get(&of).into_iter().flatten() {
            let count = before.get_mut(next).expect("all are counted");
            *count -= 1;
            if *count == 0 {
                free.push(*next);
            }
        }
    }
    assert_eq!(placed, before.len(), "the orders of delivery have a cycle: {orders:?}");
}

/// Asserts that of two replicas of the same rings one has delivered what the other has, and maybe
/// more.
pub fn assert_prefix(one: &[u64], other: &[u64]) {
    let common = one.len().min(other.len());
    assert_eq!(one[..common], other[..common], "two replicas of the same rings differ");
}

#[test]
#[should_panic(expected = "cycle")]
fn a_cycle_over_three_replicas_is_seen() {
    assert_one_order(&[Vec::from([1, 2]), Vec::from([2, 3]), Vec::from([3, 1])]);
}

#[test]
#[should_panic(expected = "twice")]
fn what_is_delivered_twice_is_seen() {
    assert_one_order(&[Vec::from([1, 2, 1])]);
}
