//! Copies under way in an election: the view starts with the log that was chosen.

use super::super::node::Level;
use super::super::world::World;
use crate::vsr::state::Install;
use crate::vsr::{Message, Status};
use quorate_kernel::ids::NodeId;

fn name(node: usize) -> NodeId {
    NodeId(node as u64 + 1)
}

/// Five members. The second to lead lags, and copies the state from a third that lacks what was
/// committed last; the first dies. The copy ends while the second gathers votes, and whoever it has
/// copied from would tell its whole log.
#[test]
fn a_primary_that_was_copying_leads_with_the_chosen_log() {
    let mut world = World::calm(5, 0, Level::Sync);
    let [first, second, source, other, last] = world.order()[..] else { panic!("five in turn") };
    world.run_ms(60);
    world.cut(&[second]);
    world.put_many(first, 30);
    world.run_ms(500);
    // After a restart amid a copy any member may be its source.
    world.turn(second, |replica, cx| {
        let nonce = replica.next_nonce(cx);
        replica.install = Some(Install::new(nonce));
        replica.install_from(name(source), cx);
    });
    let is_page = |message: &Message| matches!(message, Message::Checkpoint { .. });
    world.lose(move |_, to, message| {
        to == second && matches!(message, Message::Checkpoint { page: 1.., .. })
    });
    world.run_until("the head has come", |world| world.replica(second).head.is_installing);
    // What is committed next, the source does not get, nor does anybody hear that it is committed.
    world.lose(move |from, to, message| {
        (from, to) == (first, source) || (to == second && is_page(message))
    });
    let request = world.put(first, 9);
    world.run_until("it is committed", |world| world.is_told(request));
    world.crash(first);
    let end = world.replica(other).log().end();
    assert!(world.replica(source).log().end() < end && world.replica(last).log().end() == end);
    assert!(world.replica(other).commit() < end && world.replica(last).commit() < end);
    world.lose(move |_, to, message| to == second && is_page(message));
    world.run_until("a log is chosen", |world| world.replica(second).election.chosen.is_some());
    let chosen = world.replica(second).election.chosen;
    assert!(chosen == Some(name(other)) || chosen == Some(name(last)), "{chosen:?}");
    assert_eq!(world.replica(second).install.as_ref().and_then(|it| it.source), Some(name(source)));
    world.mend();
    world.run_until("it leads", |world| world.replica(second).status() == Status::Normal);
    assert!(world.replica(second).log().end() >= end, "it has what was committed");
    world.settle();
}
