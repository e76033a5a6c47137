//! Nodes come and go, and messages get lost: all members end in one view, of those who are there.

use super::world::World;
use quorate_kernel::time::Span;
use std::vec::Vec;

/// Until what happened is in a view: probes, reports, and time for a few more.
const SETTLED_S: u64 = 40;

#[test]
fn who_stops_is_removed_and_nobody_else() {
    for seed in 0..3 {
        let mut world = World::new(12, seed);
        world.lost_ppm = 20_000;
        world.run(20);
        assert_eq!(world.one_view().0.0, 1, "nothing has changed");
        world.node(3).is_stopped = true;
        world.run(SETTLED_S);
        world.histories_agree();
        let (number, members) = world.one_view();
        assert_eq!((number.0, members), (2, (1..=12).filter(|id| *id != 3).collect()));
    }
}

#[test]
fn a_third_that_stops_at_once_is_removed_one_by_one() {
    for seed in 0..2 {
        let mut world = World::new(12, seed);
        world.run(5);
        (1..=4).for_each(|id| world.node(id).is_stopped = true);
        world.run(2 * SETTLED_S);
        world.histories_agree();
        let (number, members) = world.one_view();
        assert_eq!((number.0, members), (5, (5..=12).collect()));
    }
}

#[test]
fn who_joins_is_let_in_and_who_leaves_is_let_go() {
    for seed in 0..3 {
        let mut world = World::new(8, seed);
        world.lost_ppm = 20_000;
        world.run(3);
        world.join(20, 1, &[1, 2, 3]);
        world.run(SETTLED_S);
        assert_eq!(world.one_view().1, [1, 2, 3, 4, 5, 6, 7, 8, 20]);
        assert!(!world.node(20).views.is_empty(), "it is told");
        world.node(5).prime.leave();
        world.run(SETTLED_S);
        assert!(world.node(5).is_out);
        assert_eq!(world.one_view().1, [1, 2, 3, 4, 6, 7, 8, 20]);
        world.join(5, 2, &[1, 2]);
        world.run(SETTLED_S);
        assert!(world.node(5).is_out, "not under this id");
        world.histories_agree();
        assert_eq!(world.one_view().1, [1, 2, 3, 4, 6, 7, 8, 20]);
    }
}

#[test]
fn who_starts_again_soon_stays_a_member() {
    for seed in 0..3 {
        let mut world = World::new(8, seed);
        world.run(3);
        world.join(4, 2, &[1, 2]);
        world.run(SETTLED_S);
        assert_eq!(world.one_view().1, [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(world.node(4).prime.view().is_some());
    }
}

/// It misses what is ordered meanwhile. It finds out by the names of others' views, and goes on
/// from the state of a majority.
#[test]
fn who_has_a_hole_finds_out_and_ends_in_the_same_view() {
    for seed in 0..4 {
        let mut world = World::new(12, seed);
        world.run(3);
        let until = world.now + Span::secs(90);
        world.node(7).deaf_until = until;
        world.node(3).is_stopped = true;
        world.run(80);
        assert_eq!(world.one_view().1, (1..=12).filter(|id| *id != 3).collect::<Vec<_>>());
        assert_eq!(world.node(7).views.len(), 1, "it is told, though it hears no report");
        world.run(SETTLED_S);
        world.one_view();
    }
}

#[test]
fn nodes_come_and_go_while_messages_get_lost() {
    for seed in 0..3 {
        let mut world = World::new(10, seed);
        world.lost_ppm = 50_000;
        for step in 0..4 {
            world.join(20 + step, 1, &[9, 10]);
            world.node(1 + step).is_stopped = true;
            let until = world.now + Span::secs(8);
            world.node(9 - step % 2).deaf_until = until;
            world.run(15);
        }
        world.run(3 * SETTLED_S);
        let (_, members) = world.one_view();
        assert_eq!(members, [5, 6, 7, 8, 9, 10, 20, 21, 22, 23], "seed {seed}");
    }
}
