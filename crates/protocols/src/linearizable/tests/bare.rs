//! Keyspaces without consistent quorums: one change of a view is enough for the judge to condemn
//! them, and the same schedule is harmless with consistent quorums.

use super::super::Linearizable;
use super::chaos::{Act, Event, is_linearizable};
use super::traps::schedule;
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::operation::Operation;
use quorate_kernel::time::Span;
use std::format;
use std::string::ToString;

/// Node 1 writes at the majority {1, 4} of the new view; then node 3, which has not heard of it,
/// reads at the majority {2, 3} of the old one, or asks again.
fn schedule_of(options: &str, bare: &str, answer: &str) {
    let lines = [
        &format!("nodes 3 spare 1 {options}"),
        "view 1 2 1 2 4",
        "view 2 2 1 2 4",
        "deliver Invite",
        "deliver ListA",
        "deliver ListB",
        "put 1 k a",
        &format!("drop {bare}ReadA 1->2"),
        &format!("deliver {bare}ReadA 1->4"),
        &format!("deliver {bare}ReadB"),
        &format!("drop {bare}WriteA 1->2"),
        &format!("deliver {bare}WriteA"),
        &format!("deliver {bare}WriteB"),
        "# told put k a: written",
        "get 3 k",
        &format!("drop {bare}ReadA 3->1"),
        &format!("deliver {bare}ReadA"),
        &format!("deliver {bare}ReadB"),
        "tick 100ms",
        "deliver all",
        &format!("# told get k: {answer}"),
    ];
    schedule(&lines.join("\n"));
}

#[test]
fn majorities_of_two_views_need_not_meet() {
    schedule_of("static", "Bare", "nothing");
    let event = |invoked, act| Event { invoked, completed: Some(invoked + 1), act };
    let history = [event(0, Act::Write(Some(b'a'))), event(2, Act::Read(None))];
    assert!(!is_linearizable(&history), "the judge condemns what was told");
}

#[test]
fn consistent_quorums_meet() {
    schedule_of("", "", "value a");
}

/// No correct peer asks a keyspace with consistent quorums so; one that does learns nothing.
#[test]
fn a_keyspace_with_consistent_quorums_ignores_bare_questions() {
    let world = |option: &[&str]| {
        let options = option.iter().map(ToString::to_string).collect();
        World::<Linearizable>::new(&Setup { members: 3, options, ..Setup::default() })
    };
    let (mut bare, mut usual) = (world(&["static"]), world(&[]));
    let get = Operation::get(Bytes::from_static(b"k"));
    bare.request(1, get, Span::secs(1));
    usual.flights.clone_from(&bare.flights);
    let answers = |mut world: World<Linearizable>| {
        world.deliver(0);
        world.flights.iter().filter(|flight| flight.name == "BareReadB").count()
    };
    assert_eq!((answers(bare), answers(usual)), (1, 0));
}
