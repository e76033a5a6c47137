//! What is handed over is not given up before it is safe where it went.

use super::traps::{CausalWorld, bytes, calm, deliver_all, get, put};
use crate::testing::siblings::Move;
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::time::Span;

/// Under `periodic` a loss of power takes what was written last. The former holder has had this
/// for long, and is up: it may not let go of it before somebody has it on disk.
#[test]
fn what_was_handed_over_survives_a_loss_of_power_where_it_went() {
    let setup = Setup { members: 3, spares: 1, is_periodic: true, ..Setup::default() };
    let mut world: CausalWorld = World::new(&setup);
    calm(&mut world, Span::secs(1));
    world.cut.insert(1);
    put(&mut world, 1, "k", "v", Bytes::new());
    world.flights.clear();
    let moves = [Move { out: 1, into: 4, gone: false }];
    (1..=4).for_each(|node| world.place(node, &moves));
    // The fourth waits for nobody but those who share its keys.
    calm(&mut world, Span::secs(4));
    assert_eq!(
        (world.field(4, "joining"), world.field(1, "to_hand_over")),
        ("0".into(), "1".into())
    );
    (2..=4).for_each(|node| world.hold_sync(node));
    world.cut.clear();
    calm(&mut world, Span::millis(500));
    world.flights.clear();
    (2..=4).for_each(|node| world.crash(node));
    for node in 2..=4 {
        world.restart(node, true);
        world.place(node, &moves);
    }
    deliver_all(&mut world);
    calm(&mut world, Span::secs(8));
    assert_eq!(world.field(1, "leaving"), "0");
    for node in 2..=4 {
        assert_eq!(get(&mut world, node, "k").0, [bytes("v")], "node {node}");
    }
}
