//! Groups of two, where one of the two is gone or goes.

use crate::linearizable::Linearizable;
use crate::linearizable::tests::random::rings::up;
use crate::linearizable::tests::traps::schedule;
use crate::testing::world::{Setup, World};
use quorate_kernel::ring::Closing;
use quorate_kernel::time::Span;
use std::format;
use std::string::ToString;
use std::vec::Vec;

/// One of two members dies as soon as both have voted for a newcomer. The other has left their
/// view, so nothing can be completed there any more, and has everything: the newcomer comes.
#[test]
fn a_newcomer_of_a_group_of_two_is_invited_by_one_of_them() {
    for change in ["1 3", "1 2 3"] {
        schedule(&format!(
            "nodes 2 spare 1 first 100 brisk
             given put 1 k a
             # told put k a: written
             view 1 2 {change}
             crash 2
             run 3s
             show 3 groups
             # last 3: groups 1
             given get 1 k
             # told get k: value a"
        ));
    }
}

/// A group of one takes in a second member, which is removed from the cluster before it comes. The
/// first has everything, and goes on alone.
#[test]
fn a_group_goes_on_without_a_second_member_that_is_gone() {
    schedule(
        "nodes 1 spare 1 first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2
         drop all
         ring all 1:1 2:2:left
         crash 2
         run 3s
         show 1 members
         # last 1: members 1
         given get 1 k
         # told get k: value a
         given put 1 k b
         # told put k b: written",
    );
}

/// Two seconds pass; messages of this name are lost.
fn run_without(world: &mut World<Linearizable>, lost: &str) {
    for _ in 0..100 {
        world.tick(Span::millis(20));
        while let Some(flight) = world.flights.first() {
            if flight.name == lost {
                world.flights.remove(0);
            } else {
                world.deliver(0);
            }
        }
    }
}

/// One of two was replaced. Its successor is suspected, and gets no data meanwhile; the ring wants
/// the former one back. It is not chosen again: it would begin anew, without what it still holds
/// for its successor, and each of them would wait for the other.
#[test]
fn a_group_of_two_does_not_change_before_both_have_had_everything() {
    let options = Vec::from(["brisk".to_string()]);
    let setup = Setup { members: 2, spares: 1, first: Some(0x100), options, ..Setup::default() };
    let mut world: World<Linearizable> = World::new(&setup);
    let second = world.view(2, &[1, 3]);
    world.decide(1, &second);
    world.decide(2, &second);
    let mut hosts = up(&[(1, 1), (2, 2), (0xa3, 3)]);
    hosts[2].is_suspected = true;
    (1..=3).for_each(|node| world.announce(node, &hosts, Closing::No));
    run_without(&mut world, "ListA");
    assert_eq!(world.field(3, "groups_lacking_data"), "1", "it has come, and has nothing");
    assert_eq!([1, 3].map(|node| world.field(node, "view")), ["2", "2"]);
    run_without(&mut world, "");
    assert_eq!(world.field(1, "view"), "3", "both have everything, and the ring is followed");
    assert_eq!(world.field(2, "groups_lacking_data"), "0");
}
