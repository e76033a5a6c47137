//! Reads without an entry.

use super::super::node::Level;
use super::super::world::World;
use crate::vsr::Message;

/// A primary that was deposed and does not know shows nothing.
#[test]
fn a_deposed_primary_answers_no_read() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, _] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[a]);
    world.run_until("the second leads", |world| world.serving() == Some(b));
    let request = world.put(b, 1);
    world.run_ms(20);
    assert!(world.is_told(request) && world.replica(a).is_serving(), "the first does not know");
    let client = usize::MAX;
    assert!(world.read(client, a, 1), "it takes the read");
    world.run_ms(100);
    assert_eq!(world.judge.reads, 0, "nobody confirms that it leads");
    assert!(world.read(client, b, 1));
    world.run_ms(20);
    assert_eq!(world.judge.reads, 1, "the second is confirmed");
    world.settle();
}

/// A new primary has entries that were acknowledged to clients, and does not know that they are
/// committed: it serves when it has executed them.
#[test]
fn a_new_primary_serves_when_it_has_executed_what_it_took_over() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, b, _] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    let request = world.put(a, 1);
    world.run_ms(3);
    assert!(world.is_told(request), "a majority has it");
    world.crash(a);
    world.lose(|_, _, message| matches!(message, Message::PrepareOk { .. }));
    world.run_until("the second leads", |world| world.replica(b).primary.is_some());
    world.run_ms(20);
    assert!(world.replica(b).applied() < world.replica(b).log().end(), "not yet committed again");
    assert!(!world.replica(b).is_serving() && !world.read(usize::MAX, b, 1), "it does not serve");
    world.mend();
    world.run_until("it serves", |world| world.serving() == Some(b));
    assert!(world.read(usize::MAX, b, 1));
    world.run_ms(20);
    assert_eq!(world.judge.reads, 1);
    world.settle();
}
