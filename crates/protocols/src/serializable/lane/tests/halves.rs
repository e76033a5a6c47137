//! Groups that have lost what they knew, below `sync`, beside others that have it.

use super::promises::{SOON, bytes, key_of, led, transact};
use super::world::{World, settings};
use bytes::Bytes;
use quorate_kernel::change::Change;
use quorate_kernel::ids::GroupId;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::transaction::Item;

fn has(world: &mut World, host: usize, key: &Bytes, value: &'static str) -> bool {
    let read = world.ask(host, Operation::get(key.clone()), SOON);
    read == Outcome::value(Some(bytes(value)))
}

/// The group that decides forgets that it has committed, when another one has done its share, and
/// before the client's host hears of it. Nobody knows any more whether all of it was done, so it is
/// not tried again: the other would do its share twice.
#[test]
fn what_one_group_has_done_and_the_other_has_lost_is_not_tried_again() {
    let mut world = led(settings(3, 1, 3, Durability::Memory));
    let at = |group| world.leader(GroupId(group)).expect("somebody leads");
    let (decides, does) = (at(1), at(2));
    let host = 3 - decides - does;
    let keys = [1, 2].map(|group| key_of(group, 3));
    let add = |key: &Bytes| Item::Change { key: key.clone(), change: Change::Add(1) };
    world.cut.insert((decides, host));
    let ticket = world.request(host, transact(keys.iter().map(add).collect()), Span::secs(8));
    let has_done = |world: &mut World| has(world, does, &keys[1], "1");
    assert!(world.run_until(SOON, has_done), "the other does its share");
    world.crash(decides);
    // What comes in its place is something else.
    world.logs.remove(&GroupId(1));
    world.cut.clear();
    world.restart(decides);
    let is_answered = |world: &mut World| world.answer(ticket).is_some();
    assert!(world.run_until(Span::secs(10), is_answered), "it is answered");
    assert_eq!(world.answer(ticket), Some(&Outcome::Refused(Refusal::OutcomeUnknown)));
    assert!(has(&mut world, does, &keys[1], "1"), "it is done once");
}
