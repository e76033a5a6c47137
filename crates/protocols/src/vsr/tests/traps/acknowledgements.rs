//! Acknowledgements count in their view alone, once they are durable, and once each.

use super::super::node::Level;
use super::super::world::World;
use crate::vsr::{Epoch, Message, Op, ViewNumber};
use quorate_kernel::ids::{Incarnation, NodeId, Start};

fn of(world: &World, node: usize) -> Incarnation {
    world.nodes[node].me
}

/// A primary that leads again, three views later, does not count what was acknowledged of its
/// earlier log: that log was not chosen.
#[test]
fn an_acknowledgement_of_an_earlier_view_does_not_count() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    // The entries of the first view reach one member, and their primary forgets them.
    world.holds.insert(a);
    world.lose(move |_, to, message| to == b || matches!(message, Message::PrepareOk { .. }));
    for key in 0..4 {
        world.put(a, key);
    }
    world.run_ms(20);
    let end = world.replica(c).log().end();
    assert_eq!(end, Op(5), "they are acknowledged, and that is late");
    world.crash(a);
    world.cut(&[c]);
    world.holds.clear();
    world.start(a);
    world.run_until("the second leads", |world| world.serving() == Some(b));
    world.crash(b);
    world.start(b);
    world.run_until("the first leads again", |world| world.serving() == Some(a));
    assert_eq!(world.replica(a).view(), ViewNumber { epoch: Epoch(1), view: 3 });
    world.cut(&[a, b, c]);
    let requests = [4, 5, 6, 7].map(|key| world.put(a, key));
    world.run_ms(5);
    let late = Message::PrepareOk { view: ViewNumber::first(Epoch(1)), end };
    let from = of(&world, c);
    world.turn(a, |replica, cx| replica.on_message(from, late, cx));
    assert!(!requests.iter().any(|request| world.is_told(*request)), "nobody else has them");
    world.settle();
}

/// What is acknowledged survives a loss of power.
#[test]
fn an_acknowledgement_waits_for_the_sync() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, c] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.holds.insert(b);
    world.cut(&[c]);
    let request = world.put(a, 1);
    world.run_ms(100);
    assert!(!world.is_told(request), "one disk is no majority");
    world.holds.clear();
    world.put(a, 2);
    world.run_ms(20);
    assert!(world.is_told(request), "two are");
    world.crash(a);
    world.crash(b);
    world.settle();
}

/// A repeated acknowledgement is one: they are kept by sender.
#[test]
fn an_acknowledgement_counts_once() {
    let mut world = World::calm(5, 0, Level::Sync);
    let [a, b, c, d, e] = world.order()[..] else { panic!("five lead in turn") };
    world.run_ms(60);
    world.lose(move |from, to, _| [c, d, e].contains(&from) || [c, d, e].contains(&to));
    let request = world.put(a, 1);
    world.run_ms(20);
    let (view, end) = (world.replica(a).view(), world.replica(a).log().end());
    let from = of(&world, b);
    for _ in 0..3 {
        let again = Message::PrepareOk { view, end };
        world.turn(a, |replica, cx| replica.on_message(from, again, cx));
    }
    let stranger = Incarnation { node: NodeId(77), start: Start(1) };
    let false_one = Message::PrepareOk { view, end };
    world.turn(a, |replica, cx| replica.on_message(stranger, false_one, cx));
    assert!(!world.is_told(request), "two of five have it");
    world.settle();
}

/// A client that repeats its request at the next primary, while the first entry waits to be
/// committed, has it done once.
#[test]
fn a_repeated_request_is_done_once_over_a_view_change() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, _] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.lose(|_, _, message| matches!(message, Message::PrepareOk { .. }));
    let command = world.client_comes(3);
    assert!(world.write(a, command), "the primary takes it");
    world.run_ms(10);
    world.crash(a);
    world.mend();
    world.run_until("the second leads", |world| world.serving() == Some(b));
    assert!(world.write(b, command), "it is asked again");
    world.run_ms(20);
    assert_eq!(world.nodes[b].machine.items[&3].count, 1, "it was done once");
    world.settle();
}
