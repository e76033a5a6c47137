//! What waits while the only replica of a key goes to another host, and the node that was asked
//! does not know it yet.

use super::losses::closing::run;
use super::retries::{expect, is_stored, send};
use super::traps::{CausalWorld, bytes, calm, get, put};
use crate::testing::siblings::Move;
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::operation::{Cursor, Operation, Outcome, Refusal};
use quorate_kernel::time::Span;
use quorate_kernel::write::{WriteId, WriteName};
use std::string::ToString;

const AWAY: Move = Move { out: 1, into: 2, gone: false };
const BACK: Move = Move { out: 2, into: 1, gone: false };

/// The first holds all keys; the third knows it as at hand.
fn one_holder() -> CausalWorld {
    let options = ["replicas=1", "partitions=1"].map(|option| option.to_string()).into();
    let mut world: CausalWorld =
        World::new(&Setup { members: 1, spares: 2, options, ..Setup::default() });
    calm(&mut world, Span::secs(1));
    assert!(is_stored(&put(&mut world, 3, "j", "w", Bytes::new())), "the first is at hand");
    world
}

/// Moves the partition, and writes through the third, which hears nothing of what is lost.
fn written_while_it_moves(is_lost: impl Fn(&str, u64, u64) -> bool) -> (CausalWorld, usize) {
    let mut world = one_holder();
    (1..=2).for_each(|node| world.place(node, &[AWAY]));
    let write = Operation::put_over(bytes("k"), bytes("x"), Bytes::new(), None);
    let number = world.request(3, write, Span::secs(9));
    run(&mut world, Span::millis(200), is_lost);
    assert_eq!(world.answers[number].1, None, "it is elsewhere");
    (world, number)
}

fn is_map(name: &str, _: u64, _: u64) -> bool {
    name == "MapB"
}

/// The second and the third hear nothing of each other.
fn is_cut(_: &str, from: u64, to: u64) -> bool {
    matches!((from, to), (2, 3) | (3, 2))
}

fn expect_stored(world: &CausalWorld, number: usize) {
    let answer = &world.answers[number].1;
    assert!(answer.as_ref().is_some_and(is_stored), "{answer:?}");
}

#[test]
fn a_write_waits_for_the_map_that_says_where_its_key_went() {
    let (mut world, number) = written_while_it_moves(is_map);
    calm(&mut world, Span::secs(2));
    expect_stored(&world, number);
    expect(&mut world, &[2, 3], &["x"]);
}

/// What it has said it remembers.
#[test]
fn a_write_is_done_by_a_replica_that_was_none_when_it_was_asked_first() {
    for is_lost in [is_map, is_cut] {
        let (mut world, number) = written_while_it_moves(is_lost);
        assert_eq!(world.field(1, "leaving"), "0", "it has handed over");
        let mut record = world.record(&[AWAY, BACK]);
        record.former.retain(|tenure| tenure.node.0 != 1);
        (1..=3).for_each(|node| world.tell(node, &record));
        run(&mut world, Span::secs(2), is_cut);
        expect_stored(&world, number);
        calm(&mut world, Span::secs(2));
        expect(&mut world, &[1, 3], &["x"]);
    }
}

/// Nobody was sent it.
#[test]
fn a_write_that_finds_no_replica_has_changed_nothing() {
    let mut world = one_holder();
    let all = |_: &str, from, to| from == 3 || to == 3;
    run(&mut world, Span::secs(2), all);
    let write = Operation::put_over(bytes("k"), bytes("x"), Bytes::new(), None);
    let number = world.request(3, write, Span::secs(2));
    run(&mut world, Span::secs(3), all);
    let refused = Refusal::NoQuorum { reached: 0, needed: 1 };
    assert_eq!(world.answers[number].1, Some(Outcome::Refused(refused)));
    calm(&mut world, Span::secs(1));
    expect(&mut world, &[1, 3], &[]);
}

/// Its client has sent it to another host meanwhile, what it wrote was replaced, and the replica
/// has restarted and knows no names.
#[test]
fn a_write_that_has_waited_is_none_that_is_sent_first() {
    let mut world = one_holder();
    (1..=2).for_each(|node| world.place(node, &[AWAY]));
    run(&mut world, Span::secs(3), is_cut);
    let name = Some(WriteName { id: WriteId(7), age: Span(0) });
    let write = Operation::put_over(bytes("k"), bytes("x"), Bytes::new(), name);
    let number = world.request(3, write, Span::secs(9));
    run(&mut world, Span::millis(300), is_cut);
    assert!(is_stored(&send(&mut world, 2, Span::millis(300))));
    let (_, context) = get(&mut world, 2, "k");
    assert!(is_stored(&put(&mut world, 2, "k", "y", context)));
    run(&mut world, Span::secs(2), is_cut);
    world.crash(2);
    world.restart(2, false);
    calm(&mut world, Span::secs(2));
    let unknown = Outcome::Refused(Refusal::OutcomeUnknown);
    assert_eq!(world.answers[number].1, Some(unknown));
    expect(&mut world, &[2, 3], &["y"]);
}

/// Nobody can have sent it elsewhere: its client gave it no name.
#[test]
fn a_write_without_a_name_may_wait_for_a_replica_that_restarts() {
    let (mut world, number) = written_while_it_moves(is_cut);
    run(&mut world, Span::secs(3), is_cut);
    world.crash(2);
    world.restart(2, false);
    calm(&mut world, Span::secs(2));
    expect_stored(&world, number);
    expect(&mut world, &[2, 3], &["x"]);
}

/// However old its client says it is, it does not become young by waiting.
#[test]
fn a_write_that_is_as_old_as_can_be_is_not_done() {
    let mut world = one_holder();
    world.crash(1);
    world.restart(1, false);
    calm(&mut world, Span::secs(3));
    let unknown = Outcome::Refused(Refusal::OutcomeUnknown);
    let name = Some(WriteName { id: WriteId(7), age: Span(u64::MAX) });
    let write = Operation::put_over(bytes("k"), bytes("x"), Bytes::new(), name);
    let number = world.request(3, write, Span::secs(9));
    run(&mut world, Span::millis(500), |name, _, _| name == "ReadB");
    calm(&mut world, Span::secs(1));
    assert_eq!(world.answers[number].1, Some(unknown));
    expect(&mut world, &[1, 3], &[]);
}

/// When the list began, this one was still copying.
#[test]
fn a_list_is_made_by_the_node_that_was_asked_once_it_may() {
    let mut world = one_holder();
    (1..=2).for_each(|node| world.place(node, &[AWAY]));
    let is_page = |name: &str, _, _| name == "ScanB";
    run(&mut world, Span::millis(100), is_page);
    let list = Operation::Scan { from: Cursor::at(0), limit: 9 };
    let number = world.request(2, list, Span::secs(3));
    run(&mut world, Span::millis(100), is_page);
    assert_eq!(world.answers[number].1, None, "it is copying");
    calm(&mut world, Span::secs(1));
    let page = Outcome::Page { keys: [bytes("j")].into(), next: None };
    assert_eq!(world.answers[number].1, Some(page));
}
