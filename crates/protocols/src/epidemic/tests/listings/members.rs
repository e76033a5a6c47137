//! Whom an entry asks, and whom it believes.

use super::{list, list_for, page};
use crate::epidemic::Level;
use crate::epidemic::listings::{ListB, Listed};
use crate::epidemic::message::Message;
use crate::epidemic::tests::joining::begin_anew;
use crate::epidemic::tests::world::{World, put};
use bytes::Bytes;
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::operation::{Cursor, Outcome, Refusal};
use std::boxed::Box;
use std::cell::RefCell;
use std::format;
use std::rc::Rc;
use std::vec::Vec;

/// A world of several slices with some keys, a node, where another slice begins, and its members.
struct Far {
    world: World,
    entry: NodeId,
    from: Cursor,
    members: Vec<NodeId>,
    keys: Vec<Bytes>,
}

fn far(seed: u64) -> Far {
    let mut world = World::new(24, Level::Strong, seed);
    world.settle();
    for number in 0..30 {
        let node = world.any();
        world.ask(node, &format!("k{number}"), put("v"));
    }
    world.run(60);
    let entry = world.up()[0];
    let own = world.state(entry).range().expect("it has a slice");
    let is_other = |node: &NodeId| world.state(*node).range() != Some(own);
    let other = world.up().into_iter().find(is_other).expect("there are several slices");
    let range = world.state(other).range().expect("it has a slice");
    let is_member = |node: &NodeId| world.state(*node).range() == Some(range);
    let members = world.up().into_iter().filter(is_member).collect();
    let from = Cursor::at(range.first.0);
    let (keys, _) = page(&mut world, other, &from, 1000);
    assert!(!keys.is_empty());
    Far { world, entry, from, members, keys }
}

/// Who was asked for a page by whom, from now on; what `is_cut` says is lost.
fn asked_of(
    world: &mut World,
    is_cut: impl Fn(NodeId) -> bool + 'static,
) -> Rc<RefCell<Vec<NodeId>>> {
    let asked = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&asked);
    world.cut = Some(Box::new(move |_, to, message| {
        let is_it = matches!(message, Message::ListA(_));
        if is_it {
            seen.borrow_mut().push(to);
        }
        is_it && is_cut(to)
    }));
    asked
}

#[test]
fn one_member_of_a_slice_is_asked_and_another_one_if_that_is_silent() {
    let Far { mut world, entry, from, members, keys } = far(511);
    let asked = asked_of(&mut world, |_| false);
    assert_eq!(page(&mut world, entry, &from, 1000).0, keys);
    assert_eq!(asked.borrow().len(), 1, "one has all of it");
    // All but one hear nothing of it: that one is asked before anybody is asked twice.
    let (alone, count) = (members[members.len() - 1], members.len());
    let asked = asked_of(&mut world, move |to| to != alone);
    assert_eq!(page(&mut world, entry, &from, 1000).0, keys);
    assert!(asked.borrow().len() <= count, "{:?} of {count}", asked.borrow());
    asked_of(&mut world, |_| true);
    let ticket = list(&mut world, entry, &from, 1000);
    let none = Outcome::Refused(Refusal::NoQuorum { reached: 0, needed: 1 });
    assert_eq!(world.wait(ticket), none);
    assert_eq!(world.state(entry).listings.open(), 0, "nothing is left of it");
}

#[test]
fn who_knows_nobody_says_so() {
    let mut world = World::new(3, Level::Strong, 512);
    let node = world.up()[0];
    world.hosts.get_mut(&node).expect("it is there").engine.hint(Vec::new());
    world.cut = Some(Box::new(|_, _, _| true));
    // Before it takes itself for the only one.
    let ticket = list_for(&mut world, node, (&Cursor::default(), 9), 8);
    assert_eq!(world.wait(ticket), Outcome::Refused(Refusal::NoRoute));
}

#[test]
fn who_takes_over_what_it_shall_have_lists_nothing_of_it() {
    let Far { mut world, entry, from, members, keys } = far(513);
    // What it takes over does not come.
    let (joiners, last) = (members[1..].to_vec(), members[0]);
    for joiner in &joiners {
        begin_anew(&mut world, *joiner);
    }
    let asked = asked_of(&mut world, |_| false);
    let cut = world.cut.take().expect("it is there");
    world.cut = Some(Box::new(move |from, to, message| {
        cut(from, to, message) || matches!(message, Message::SnapshotA { .. })
    }));
    for _ in 0..10 {
        assert_eq!(
            page(&mut world, entry, &from, 1000).0,
            keys,
            "all of it, from one that is ready"
        );
        assert_eq!(page(&mut world, joiners[0], &from, 1000).0, keys, "it asks others, too");
    }
    assert!(asked.borrow().iter().any(|node| joiners.contains(node)), "some were asked in vain");
    assert!(asked.borrow().contains(&last));
}

#[test]
fn who_is_in_doubt_is_believed_only_where_nobody_else_answers() {
    let Far { mut world, entry, from, members, keys } = far(514);
    let lacks = |world: &mut World, node: NodeId| {
        world.with_host(node, |engine, cx| {
            let range = engine.state.range().expect("it has a slice");
            engine.state.drop_part(&range);
            engine.state.behind.end(&range, &mut engine.state.writes);
            engine.state.doubt.begin(&range);
            engine.flush(cx);
        });
    };
    // Nobody compares, so nobody's doubt ends.
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::Compare { .. })));
    for node in &members[1..] {
        lacks(&mut world, *node);
    }
    for _ in 0..10 {
        assert_eq!(page(&mut world, entry, &from, 1000).0, keys);
        assert_eq!(page(&mut world, members[1], &from, 1000).0, keys, "though it is ready itself");
    }
    world.stop(members[0]);
    assert_eq!(page(&mut world, entry, &from, 1000).0, [] as [Bytes; 0], "that is all there is");
}

#[test]
fn a_page_of_who_was_not_asked_or_from_before_the_place_is_none() {
    let Far { mut world, entry, from, members, .. } = far(515);
    let strange = Listed { keys: Vec::new(), next: None };
    let asked = asked_of(&mut world, |_| true);
    let mut tickets = Vec::new();
    let sent = world.heard(|world| tickets.push(list(world, entry, &from, 1000)));
    assert!(sent.is_empty(), "that is lost");
    let (ticket, number) = (tickets[0], 1);
    let of = asked.borrow()[0];
    let other = *members.iter().find(|node| **node != of && **node != entry).expect("another one");
    let tell = |world: &mut World, who: NodeId, number: u64, listed: Option<Listed>| {
        world.say(who, entry, Message::ListB(ListB { number, listed }));
    };
    let is_open = |world: &World, ticket: Ticket| !world.answers.contains_key(&ticket);
    tell(&mut world, other, number, Some(strange.clone()));
    tell(&mut world, of, number + 7, Some(strange.clone()));
    let back = Bytes::copy_from_slice(&from.token.to_be_bytes());
    let stays = Listed { keys: Vec::new(), next: Some(back) };
    tell(&mut world, of, number, Some(stays));
    assert!(is_open(&world, ticket), "nothing of that is its page");
    tell(&mut world, of, number, Some(strange));
    assert_eq!(world.answers[&ticket], Outcome::Page { keys: Vec::new(), next: None });
}
