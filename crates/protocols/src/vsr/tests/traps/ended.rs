//! An entry that ends the epoch, and is forgotten one member after the other.

use super::super::node::Level;
use super::super::world::{World, ids};
use crate::vsr::Epoch;
use quorate_kernel::ids::NodeId;

/// Six members commit that three others take their place; only the primary hears that, and leaves.
/// Of the five that stay three had the entry. Two of these forget while three are whole: nothing is
/// lost as long as those vote. The third leaves, and the last two forget, who had never heard of
/// the entry. Nobody has it any more, and yet the five begin no epoch of their own.
#[test]
fn who_has_lost_the_end_of_its_epoch_begins_no_other() {
    let mut world = World::calm(6, 3, Level::Memory);
    let [a, b, c, d, e, f] = world.order()[..] else { panic!("six lead in turn") };
    world.run_ms(60);
    let next = [6, 7, 8];
    let are_old = |node: usize| node < 6;
    let wish = ids(&[7, 8, 9]);
    world.put_many(a, 3);
    world.run_ms(100);
    let is_far = move |from, to| [e, f].contains(&to) && from == a;
    world.lose(move |from, to, _| is_far(from, to));
    world.turn(a, |replica, _| replica.wish(&wish).expect("it leads"));
    world.run_until("four have it", |world| {
        [b, c, d].iter().all(|node| world.replica(*node).closing().is_some())
    });
    // What is said from now on within the old members, nobody hears, but for the acknowledgements.
    world.lose(move |from, to, _| are_old(to) && to != a || from == a && are_old(to));
    world.run_until("they go on", |world| world.serving_of(&next).is_some());
    world.run_ms(100);
    let name = |node: usize| NodeId(node as u64 + 1);
    let leaves = |world: &mut World, gone: usize| {
        world.crash(gone);
        world.nodes[gone].is_wiped = true;
        for node in [b, c, d, e, f] {
            if world.is_up(node) {
                let left = [a, gone].map(name);
                world.turn(node, |replica, _| replica.note_left(|node| left.contains(&node)));
            }
        }
    };
    leaves(&mut world, a);
    // The old ones hear each other, and no vote.
    let is_vote = |message: &crate::vsr::Message| {
        use crate::vsr::Message::{DoViewChange, DoViewChangeWithoutEnd};
        matches!(message, DoViewChange { .. } | DoViewChangeWithoutEnd { .. })
    };
    let are_apart = move |from, to| are_old(from) != are_old(to);
    world.lose(move |from, to, message| are_apart(from, to) || is_vote(message));
    for node in [b, c] {
        world.crash(node);
        world.start(node);
    }
    leaves(&mut world, a);
    world.run_until("they would go on beside the others", |world| {
        [b, c].iter().all(|node| world.replica(*node).head.lost.is_some())
    });
    leaves(&mut world, d);
    for node in [e, f] {
        world.crash(node);
        world.start(node);
    }
    leaves(&mut world, d);
    world.lose(move |from, to, _| are_apart(from, to));
    world.run_ms(5000);
    for node in [b, c, e, f] {
        assert_eq!(world.replica(node).configuration().epoch, Epoch(1), "{} waits", node + 1);
    }
    // Whoever is told of the next epoch is let go of.
    world.mend();
    let serving = world.serving_of(&next).expect("the next ones serve");
    for node in [b, c, e, f] {
        world.turn(node, |replica, cx| replica.catch_up(name(serving), cx));
    }
    world.run_ms(500);
    for node in [b, c, e, f] {
        assert_eq!(world.replica(node).configuration().epoch, Epoch(2), "{}", node + 1);
    }
    world.settle();
}
