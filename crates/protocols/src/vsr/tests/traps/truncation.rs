//! Nothing is cut off before what takes its place is here.

use super::super::node::Level;
use super::super::world::World;
use crate::vsr::Message;

/// A member that hears of a later view keeps its log until that view's is here (the paper's §5.2
/// cuts it back to the commit number). The view's primary loses power before its log is durable:
/// then this member has the only copy of what was acknowledged.
#[test]
fn a_log_stays_until_the_one_of_the_view_is_here() {
    let mut world = World::calm(3, 0, Level::Sync);
    let [a, c, b] = world.order()[..] else { panic!("three lead in turn") };
    world.run_ms(60);
    world.cut(&[c]);
    let request = world.put(a, 1);
    world.run_ms(4);
    assert!(world.is_told(request), "one other has it");
    assert!(world.replica(b).commit() < world.replica(b).log().end(), "and does not know more");
    world.crash(a);
    // The next primary gets the log, and beats, and its disk does not sync.
    world.lose(move |from, to, message| {
        from == c && to == b && matches!(message, Message::NewState { .. })
    });
    world.run_until("the log is chosen", |world| world.replica(c).election.chosen.is_some());
    world.holds.insert(c);
    world.run_until("it leads", |world| world.replica(c).primary.is_some());
    world.run_ms(120);
    world.crash(c);
    world.settle();
}
