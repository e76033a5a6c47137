//! What hosts say that is not theirs to say: it is not believed, and stops nobody.

use super::promises::{SOON, bytes, key_of, transact};
use super::world::{World, settings};
use crate::serializable::lane::Message;
use crate::serializable::{self, Cause, TxId, VoteSeq};
use quorate_kernel::ids::{GroupId, Ticket};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::Process;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::transaction::{Item, ItemOutcome};
use std::vec::Vec;

const ONE: GroupId = GroupId(1);
const TWO: GroupId = GroupId(2);
/// A host that is a member of no group.
const OUTSIDER: usize = 6;

/// Two groups of three hosts each, and one host that is in neither.
fn apart() -> World {
    let mut world = World::new(7, 7, settings(6, 3, 2, Durability::Sync));
    let are_led = |world: &mut World| [ONE, TWO].iter().all(|it| world.leader(*it).is_some());
    assert!(world.run_until(SOON, are_led), "every group has a primary");
    // All have heard who leads.
    world.run(Span::millis(100));
    world
}

fn leaders(world: &World) -> (usize, usize) {
    let leader = |group| world.leader(group).expect("somebody leads");
    (leader(ONE), leader(TWO))
}

/// The outsider says something to whoever leads a group.
fn say(world: &mut World, to: GroupId, message: serializable::Message) {
    let (from, leader) = (world.hosts[OUTSIDER].me, world.leader(to).expect("somebody leads"));
    let message = Message::Between { to, message };
    world.turn(leader, |process, cx| process.on_message(from, message, cx));
}

/// A transaction over both groups whose votes do not come to the first, which decides.
fn undecided(world: &mut World) -> (Ticket, TxId) {
    let (one, two) = leaders(world);
    world.part(one, two);
    let put = |group| Item::Put { key: key_of(group, 2), value: bytes("v") };
    let ticket = world.request(OUTSIDER, transact([put(1), put(2)].into()), SOON);
    let process = world.hosts[OUTSIDER].process.as_ref().expect("it is up");
    let (_, tx) = process.clients.committing().expect("it commits");
    world.run(Span::millis(100));
    assert!(is_pending(world, ONE, tx) && is_pending(world, TWO, tx), "both have voted");
    (ticket, tx)
}

fn is_pending(world: &World, group: GroupId, tx: TxId) -> bool {
    let leader = world.leader(group).expect("somebody leads");
    let process = world.hosts[leader].process.as_ref().expect("it is up");
    process.groups[&group].state.head.pending.contains_key(&tx)
}

/// The links are whole again: the transaction is done in both groups.
fn is_done_in_both(world: &mut World, ticket: Ticket) {
    world.cut.clear();
    let is_told = |world: &mut World| world.answers.iter().any(|(_, of, _)| *of == ticket);
    assert!(world.run_until(SOON, is_told), "it is answered");
    let written = Outcome::Transacted([ItemOutcome::Written, ItemOutcome::Written].into());
    assert!(world.answers.iter().any(|(_, of, told)| *of == ticket && *told == written));
    for group in [1, 2] {
        let told = world.ask(OUTSIDER, Operation::get(key_of(group, 2)), SOON);
        assert_eq!(told, Outcome::value(Some(bytes("v"))), "group {group} has done its half");
    }
}

#[test]
fn who_is_no_member_of_a_group_does_not_vote_for_it() {
    let mut world = apart();
    let (ticket, tx) = undecided(&mut world);
    let (groups, seq) = (Vec::from([ONE, TWO]), VoteSeq(0));
    let vote = serializable::Message::Vote { tx, group: TWO, groups, seq, vote: Ok(Vec::new()) };
    say(&mut world, ONE, vote);
    world.run(Span::millis(100));
    assert!(is_pending(&world, ONE, tx), "nothing is decided without the vote");
    is_done_in_both(&mut world, ticket);
}

#[test]
fn who_is_no_member_of_a_group_does_not_decide_for_it() {
    let mut world = apart();
    let (ticket, tx) = undecided(&mut world);
    let (group, outcome) = (ONE, Err(Cause::Timeout));
    say(&mut world, TWO, serializable::Message::Decision { tx, group, outcome });
    world.run(Span::millis(100));
    assert!(is_pending(&world, TWO, tx), "it waits for who decides");
    is_done_in_both(&mut world, ticket);
}

#[test]
fn who_is_no_member_of_a_group_has_applied_nothing_for_it() {
    let mut world = apart();
    let (one, two) = leaders(&world);
    // The votes come, and the decision does not go back.
    let (ticket, tx) = undecided(&mut world);
    world.cut.remove(&(two, one));
    let is_decided = |world: &World| !is_pending(world, ONE, tx);
    assert!(world.run_to(SOON, is_decided), "it is decided");
    say(&mut world, ONE, serializable::Message::Applied { tx, group: TWO });
    world.run(Span::millis(200));
    // Its client knows how it ended, and says so with the next one.
    let next = Operation::put(key_of(1, 2), bytes("v"));
    assert_eq!(world.ask(OUTSIDER, next, SOON), Outcome::written());
    world.run(Span::secs(3));
    assert!(is_pending(&world, TWO, tx), "it was told nothing else");
    is_done_in_both(&mut world, ticket);
}
