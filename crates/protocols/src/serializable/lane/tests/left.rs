//! Hosts that have left the cluster: nobody waits for them. And those that the membership removes.

use super::promises::{SOON, bytes, led};
use super::seats::{LONG, fill, founded, has_all};
use super::traps::leader_and_other;
use super::world::{World, settings};
use crate::serializable::lane::Settings;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::news::News;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::Process as _;
use quorate_kernel::ring::Standing;
use quorate_kernel::roll::Roll;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use std::sync::Arc;
use std::vec::Vec;

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

/// One of three is dead, another one leaves, and nobody can take a seat: without the one that
/// leaves the group would be the dead one and one other, so the dead one goes first.
#[test]
fn who_is_dead_goes_before_who_leaves() {
    for (dead, leaver) in [(0, 1), (1, 0), (2, 0), (2, 1)] {
        for standing in [Standing::Left, Standing::Leaving] {
            let mut world = founded(3, 1);
            let keys = fill(&mut world);
            world.crash(dead);
            world.suspect(dead, standing != Standing::Left);
            world.run(SOON);
            // The one that leaves says so first.
            world.stand(leaver, Standing::Leaving);
            world.run(Span::secs(1));
            world.stand(dead, standing);
            let last = 3 - dead - leaver;
            let is_alone = |world: &mut World| {
                world.seats().values().all(|(_, members)| *members == [NodeId(last as u64 + 1)])
                    && world.leader(ONE) == Some(last)
            };
            assert!(world.run_until(LONG, is_alone), "{dead} {leaver}: {:?}", world.seats());
            assert!(world.run_until(SOON, |world| world.holds(leaver) == 0), "it may stop");
            has_all(&mut world, last, &keys);
        }
    }
}

/// A member has failed and keeps its seat, as nobody can take it: others leave all the same.
#[test]
fn who_has_failed_keeps_nobody_from_leaving() {
    let mut world = World::new(7, 5, settings(5, 5, 1, Durability::Sync));
    assert!(world.run_until(SOON, |world| world.leader(ONE).is_some()));
    world.gather(1..6);
    let keys = fill(&mut world);
    world.crash(0);
    world.suspect(0, true);
    world.run(Span::secs(61));
    assert!(world.seats().values().all(|(_, members)| members.len() == 5), "it may come back");
    world.stand(4, Standing::Leaving);
    let is_done = |world: &mut World| {
        world.seats().values().all(|(_, members)| *members == [1, 2, 3, 4].map(NodeId))
    };
    assert!(world.run_until(LONG, is_done), "{:?}", world.seats());
    has_all(&mut world, 1, &keys);
}

/// All hosts that are up are told of a roll.
fn tell_roll(world: &mut World, number: u64, nodes: &[NodeId]) {
    let roll = Arc::new(Roll { number, nodes: nodes.into(), goes_on: true, ..Roll::default() });
    for at in 0..world.hosts.len() {
        if world.is_up(at) {
            world.turn(at, |lane, cx| lane.on_news(News::Roll(&roll), cx));
        }
    }
}

/// Where groups go by the membership, as the lab measures them.
#[test]
fn another_host_leads_when_the_roll_has_removed_the_primary() {
    let usual = settings(3, 3, 1, Durability::Sync);
    let mut world = led(Settings { by_membership: true, ..usual });
    let all: Vec<NodeId> = world.hosts.iter().map(|host| host.me.node).collect();
    tell_roll(&mut world, 1, &all);
    let primary = world.leader(ONE).expect("it is led");
    world.crash(primary);
    world.unlink(primary);
    world.run(Span::secs(5));
    assert_eq!(world.leader(ONE), None, "the roll has it still");
    let gone = all[primary];
    let left: Vec<NodeId> = all.into_iter().filter(|node| *node != gone).collect();
    tell_roll(&mut world, 2, &left);
    let put = Operation::put(bytes("k"), bytes("v"));
    let told = world.ask((primary + 1) % 3, put, SOON);
    assert!(matches!(told, Outcome::Written { .. }), "{told:?}");
}
