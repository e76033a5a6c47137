//! What goes wrong with transactions over replicated groups where one is careless, each by name.

mod ahead;
mod bounds;
mod groups;
mod losses;
mod names;
mod one_group;
mod reads;
mod taken_back;

use super::world::{World, key, put, tx};
use crate::serializable::{Message, Reply};
use quorate_kernel::ids::GroupId;

const ONE: usize = 0;
const TWO: usize = 1;

/// A world of two groups with `1x` and `2x` put once.
fn two() -> World {
    let mut world = World::new(2);
    let ticket = world.commit_tx(tx(1, 9), &[], &[("1x", put("0")), ("2x", put("0"))]);
    world.settle();
    assert!(world.is_committed(ticket), "{:?}", world.trace);
    world.run_ms(1000);
    world
}

fn is_vote(message: &Message) -> bool {
    matches!(message, Message::Vote { .. })
}

fn is_decision(message: &Message) -> bool {
    matches!(message, Message::Decision { .. })
}

/// Commits all that the groups have proposed, and delivers nothing.
fn commit_all(world: &mut World) {
    (0..world.groups.len()).for_each(|at| world.commit(at, usize::MAX));
}

/// The second group asks to take a vote back, and the first, which decides, lets it.
fn grant_back(world: &mut World) {
    assert!(world.deliver(|it| matches!(it.message, Message::RevokeVote { .. })));
    world.commit(ONE, 1);
    assert!(world.deliver(|it| matches!(it.message, Message::RevokeGranted { .. })));
}
