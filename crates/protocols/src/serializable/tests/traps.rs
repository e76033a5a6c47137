//! What goes wrong with transactions over replicated groups where one is careless, each by name.

mod ahead;
mod bounds;
mod copied;
mod gone;
mod groups;
mod handed;
mod losses;
mod moves;
mod names;
mod one_group;
mod optimizations;
mod reads;
mod stays;
mod taken_back;
mod told;

use super::node::Group;
use super::world::{World, key, put, tx};
use crate::serializable::{Input, Member, Message, Optimizations, Reply};
use quorate_kernel::ids::GroupId;

const ONE: usize = 0;
const TWO: usize = 1;

/// A world of two groups with `1x` and `2x` put once.
fn two() -> World {
    two_with(Optimizations::default())
}

fn two_with(optimizations: Optimizations) -> World {
    let mut world = World::new(2);
    for its in world.groups.iter_mut().flat_map(|group| &mut group.replicas) {
        its.member = Member::new(optimizations);
    }
    [ONE, TWO].iter().for_each(|group| world.handle_primary(*group, Input::Serving));
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

/// A world where the second group has taken back its vote on `7.1`, for an older transaction that
/// changes the same key.
fn two_with_a_vote_taken_back() -> World {
    let mut world = two();
    world.commit_at(TWO, tx(7, 1), &[], &[("1y", put("y")), ("2x", put("y"))]);
    commit_all(&mut world);
    world.commit_at(TWO, tx(6, 2), &[], &[("1z", put("o")), ("2x", put("o"))]);
    grant_back(&mut world);
    world.commit(TWO, 1);
    world
}

/// All replicas of a group begin empty.
fn lose_all(world: &mut World, at: usize) {
    world.groups[at] = Group::new(world.groups[at].id);
    world.handle(at, 0, Input::Serving);
}
