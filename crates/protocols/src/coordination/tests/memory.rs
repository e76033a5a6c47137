//! A keyspace that is in memory alone: who has restarted has forgotten, and says so.

use super::world::{SOON, World, led, settings};
use crate::coordination::tree::tests::world::{create, ephemeral};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;

/// Three hosts whose data is not on disk; who leads, another one, and the third.
fn three() -> (World, [usize; 3]) {
    let world = led(World::new(7, 3, settings(3, Durability::Memory)));
    let leader = world.leader().expect("somebody leads");
    let other = (leader + 1) % 3;
    (world, [leader, other, 3 - leader - other])
}

#[test]
fn who_has_forgotten_does_not_make_a_majority_with_who_never_had_it() {
    let (mut world, [leader, other, third]) = three();
    // The third has nothing of what the other two have acknowledged.
    world.isolate(third);
    assert!(world.anyone(leader, create("/a", "kept")).is_ok());
    world.crash(other);
    world.restart(other);
    // They would be a majority.
    world.mend();
    world.isolate(leader);
    world.run(Span::secs(3));
    assert_eq!(world.leader(), Some(leader), "the other two do not go on without it");
    world.mend();
    assert!(world.run_until(SOON, |world| world.has_node(other, "/a")), "it is given it back");
    for at in [leader, other, third] {
        assert_eq!(world.data(at, "/a"), Some("kept".into()));
    }
    world.agree();
}

#[test]
fn sessions_and_their_nodes_outlive_the_restart_of_any_one_host() {
    let (mut world, [leader, other, third]) = three();
    let one = world.open(third);
    assert!(world.one(&one, ephemeral("/one")).is_ok());
    for at in [other, leader] {
        world.crash(at);
        world.restart(at);
        let is_whole = |world: &mut World| world.has_node(at, "/one") && world.leader().is_some();
        assert!(world.run_until(SOON, is_whole), "host {at} is given all back");
        assert!(world.is_there(third, "/one"));
    }
    assert_eq!(world.ended(&one), None);
    world.agree();
}
