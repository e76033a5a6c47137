//! Hosts that have left the cluster: nobody waits for them.

use super::promises::{SOON, bytes};
use super::seats::LONG;
use super::traps::leader_and_other;
use super::world::{World, settings};
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::ring::Standing;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;

const ONE: GroupId = GroupId(1);

/// Two of three have forgotten what they had in memory, and the third has left for good: the group
/// goes on with what is left, and another host takes the seat.
#[test]
fn a_group_that_forgot_does_not_wait_for_a_host_that_has_left() {
    let mut world = World::new(7, 4, settings(3, 3, 1, Durability::Memory));
    world.gather(1..5);
    assert!(world.run_until(SOON, |world| world.leader(ONE).is_some()));
    let (leader, other) = leader_and_other(&world, 1);
    let third = 3 - leader - other;
    for host in [leader, other, third] {
        world.crash(host);
    }
    world.restart(leader);
    world.restart(other);
    let put = || Operation::put(bytes("k"), bytes("v"));
    let told = world.ask(leader, put(), Span::secs(5));
    assert!(matches!(told, Outcome::Refused(_)), "the third may have what they lack: {told:?}");
    world.stand(third, Standing::Left);
    let is_led = |world: &mut World| world.leader(ONE).is_some();
    assert!(world.run_until(SOON, is_led), "nobody has what it had");
    assert_eq!(world.ask(other, put(), SOON), Outcome::written());
    let is_replaced = |world: &mut World| {
        let seats = world.seats();
        seats.values().all(|(_, members)| !members.contains(&NodeId(third as u64 + 1)))
    };
    assert!(world.run_until(LONG, is_replaced), "{:?}", world.seats());
}
