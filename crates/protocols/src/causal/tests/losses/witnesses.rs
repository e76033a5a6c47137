//! What was replaced, and is known as seen by the word of others alone.

use super::closing::run;
use crate::causal::tests::traps::{CausalWorld, calm, delete, get, put};
use crate::testing::siblings::Move;
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::time::Span;

const MOVED: Move = Move { out: 3, into: 4, gone: false };

/// Time passes until a node has joined, and has again what it had; the third hears nothing.
fn refill(world: &mut CausalWorld, node: u64) {
    world.crash(node);
    world.restart(node, true);
    world.place(node, &[MOVED]);
    let end = world.now + Span::secs(20);
    while !world.is_ready(node) {
        assert!(world.now < end, "{node} is never ready");
        run(world, Span::millis(20), |_, from, to| from == 3 || to == 3);
    }
}

/// The third has a value that the others have deleted, and its partition is the fourth's, which has
/// copied it. Then all three forget, one after the other: that the value was seen is what one tells
/// the next, and it does not tell it on. The fourth begins anew and copies the value.
#[test]
fn what_a_witness_alone_has_seen_replaced_is_removed_everywhere() {
    let setup = Setup { members: 3, spares: 1, is_memory: true, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    put(&mut world, 3, "k", "old", Bytes::new());
    calm(&mut world, Span::secs(3));
    world.cut.insert(3);
    delete(&mut world, 1, "k");
    calm(&mut world, Span::secs(1));
    world.cut.clear();
    (1..=4).for_each(|node| world.place(node, &[MOVED]));
    let end = world.now + Span::secs(20);
    while world.field(4, "joining") != "0" {
        assert!(world.now < end, "the fourth copies");
        run(&mut world, Span::millis(20), |name, from, to| {
            let is_scan = name.starts_with("Scan") && matches!((from, to), (3, 4) | (4, 3));
            (from == 3 || to == 3) && !is_scan
        });
    }
    // All that hold it have seen the delete: nothing is left of the key.
    let end = world.now + Span::secs(20);
    while [1, 2, 4].iter().any(|node| world.field(*node, "dot_keys") != "0") {
        assert!(world.now < end, "dots that all have seen are dropped");
        run(&mut world, Span::millis(100), |_, from, to| from == 3 || to == 3);
    }
    refill(&mut world, 1);
    refill(&mut world, 2);
    world.crash(4);
    world.restart(4, true);
    world.place(4, &[MOVED]);
    run(&mut world, Span::secs(4), |_, from, to| from == 3 || to == 3);
    assert_eq!(world.field(4, "joining"), "1", "it waits for the third");
    calm(&mut world, Span::secs(9));
    assert_eq!((world.field(4, "joining"), world.field(3, "leaving")), ("0".into(), "0".into()));
    for node in [1, 2, 4] {
        assert_eq!(get(&mut world, node, "k").0, [] as [Bytes; 0], "at {node}");
    }
}
