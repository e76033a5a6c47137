//! The cluster of the Rapid measurements: what the paper promises holds in small, a seed repeats,
//! and what is asked for is written. Nothing is said of times.

use quorate_lab::rapid::cut;
use quorate_lab::rapid::faults::{self, Fault};
use quorate_lab::rapid::join;

const NODES: usize = 16;

#[test]
fn nodes_that_come_at_once_are_let_in_by_few_configurations() {
    let found = join::measure(NODES, 1);
    assert!(found.time.is_some(), "all count all");
    assert!((1..=4).contains(&found.configurations), "{found:?}");
    assert!((2..=found.configurations + 1).contains(&found.sizes), "{found:?}");
    assert_eq!(found.steps.last().map(|(_, members)| *members), Some(NODES));
    assert_eq!(found.latencies.len(), NODES);
}

#[test]
fn who_fails_is_removed_by_one_change_and_nobody_else() {
    let found = faults::measure(NODES, 2, Fault::Crash, 1);
    assert!(found.first.is_some() && found.first <= found.last, "{found:?}");
    assert_eq!((found.configurations, found.kept, found.wronged), (1, 0, 0), "{found:?}");
    assert!(found.traffic.iter().all(|bytes| bytes.last().is_some_and(|most| *most > 0)));
    let counted = found.seconds.last().expect("they were asked");
    assert_eq!((counted.fewest, counted.most), (NODES - 2, NODES - 2));
}

#[test]
fn one_way_loss_removes_those_that_have_it_alone() {
    for fault in [Fault::Ingress, Fault::Egress, Fault::Flips] {
        let found = faults::measure(NODES, 1, fault, 2);
        assert_eq!((found.kept, found.wronged), (0, 0), "{fault:?}: {found:?}");
        assert!(found.last.is_some(), "{fault:?}: {found:?}");
    }
}

#[test]
fn a_seed_repeats_and_another_one_does_not() {
    let of = |seed| faults::measure(NODES, 2, Fault::Crash, seed);
    assert_eq!(of(3), of(3));
    assert_ne!(of(3), of(4));
}

#[test]
fn members_cut_differently_where_h_and_l_are_near() {
    let found = cut::measure(40, 2, 20, 1);
    // H = 6 with L = 1 to 4, and then 7, 8 and 9.
    let [near, far] = [found[3], found[12]];
    assert_eq!((found.len(), near.of, far.of), (16, 20, 20));
    assert!(near.hits > far.hits, "{near:?} {far:?}");
}
