//! What pages hold, and that a listing leaves nothing out.

use super::{list, page, walk};
use crate::epidemic::Level;
use crate::epidemic::keys::wire_key;
use crate::epidemic::message::PAGE_BYTES;
use crate::epidemic::pending::What;
use crate::epidemic::tests::world::{World, put};
use bytes::Bytes;
use quorate_kernel::limits::KEY_BYTES_MAX;
use quorate_kernel::operation::{Cursor, Outcome, Refusal};
use std::format;
use std::vec::Vec;

/// The keys in the order in which they are listed.
fn in_order(keys: impl Iterator<Item = std::string::String>) -> Vec<Bytes> {
    let mut keys: Vec<Bytes> = keys.map(Bytes::from).collect();
    keys.sort_by_key(|key| wire_key(key));
    keys
}

fn write(world: &mut World, key: &str, level: Level) {
    let what = match level {
        Level::None => What::PutVersion(3, Bytes::from_static(b"v")),
        Level::Eventual | Level::Strong => put("v"),
    };
    let node = world.any();
    world.ask(node, key, what);
}

#[test]
fn every_host_lists_what_is_there_and_nothing_that_was_deleted() {
    for (level, seed) in [(Level::Strong, 501), (Level::Eventual, 502), (Level::None, 503)] {
        let mut world = World::new(24, level, seed);
        world.settle();
        (0..60).for_each(|number| write(&mut world, &format!("k{number}"), level));
        world.run(40);
        let is_deleted = |number: &u64| level != Level::None && number.is_multiple_of(3);
        for number in (0..60).filter(is_deleted) {
            let node = world.any();
            world.ask(node, &format!("k{number}"), What::Delete);
        }
        world.run(60);
        let there = (0..60).filter(|number| !is_deleted(number));
        let there = in_order(there.map(|number| format!("k{number}")));
        for limit in [1, 7, 1000] {
            assert_eq!(walk(&mut world, limit, |_| {}), there, "{level:?}, {limit} at a time");
        }
        let slices = world.state(world.up()[0]).slices.groups().map_or(0, |it| it.number());
        assert!(slices > 1, "it goes from slice to slice");
    }
}

#[test]
fn what_is_there_throughout_is_listed_while_slices_are_cut_and_joined() {
    let mut world = World::new(12, Level::Strong, 504);
    world.settle();
    (0..40).for_each(|number| write(&mut world, &format!("k{number}"), Level::Strong));
    world.run(60);
    let there = in_order((0..40).map(|number| format!("k{number}")));
    let slices = |world: &World| world.state(world.up()[0]).slices.groups();
    let before = slices(&world);
    for _ in 0..3 {
        let listed = walk(&mut world, 2, |world| {
            if world.hosts.len() < 34 {
                let node = world.add();
                world.start(node);
            }
            world.run(6);
        });
        assert_eq!(listed, there, "while hosts come");
    }
    world.settle();
    let many = slices(&world);
    assert!(many > before, "slices were cut");
    for _ in 0..3 {
        let listed = walk(&mut world, 2, |world| {
            let node = world.any();
            if world.hosts.len() > 10 && world.state(node).size() > 3 {
                world.kill(node);
            }
            world.run(10);
        });
        assert_eq!(listed, there, "while hosts go");
    }
    world.settle();
    assert!(slices(&world) < many, "slices were joined");
    assert_eq!(walk(&mut world, 9, |_| {}), there);
}

#[test]
fn a_page_has_few_keys_and_few_bytes() {
    let mut world = World::new(3, Level::Strong, 505);
    world.settle();
    let node = world.up()[0];
    for number in 0..16 {
        write(&mut world, &format!("{number:08000}"), Level::Strong);
    }
    world.run(40);
    let (keys, next) = page(&mut world, node, &Cursor::default(), 1000);
    let bytes: usize = keys.iter().map(Bytes::len).sum();
    assert!((PAGE_BYTES - 8000..PAGE_BYTES + 8000).contains(&bytes), "{bytes}");
    let next = next.expect("there are more");
    assert!(next.is_token(), "a number names where it goes on");
    let (rest, next) = page(&mut world, node, &next, 1000);
    assert_eq!((keys.len() + rest.len(), next.map(|next| next.token)), (16, None));
    let (none, next) = page(&mut world, node, &Cursor::at(0), 0);
    assert!(none.len() == 1 && next.is_some(), "it goes on by one key at least");
}

#[test]
fn a_listing_begins_where_its_cursor_says_and_strange_ones_are_refused() {
    let mut world = World::new(3, Level::Strong, 506);
    world.settle();
    (0..9).for_each(|number| write(&mut world, &format!("k{number}"), Level::Strong));
    world.run(40);
    let (node, all) = (world.up()[0], in_order((0..9).map(|number| format!("k{number}"))));
    let token = |key: &Bytes| crate::epidemic::replica::range::position(&wire_key(key)).0;
    let at = Cursor { token: token(&all[4]), key: all[4].clone() };
    assert_eq!(page(&mut world, node, &at, 100).0, all[4..], "that one too");
    assert_eq!(page(&mut world, node, &Cursor::at(token(&all[4]) + 1), 100).0, all[5..]);
    assert_eq!(page(&mut world, node, &Cursor::at(u64::MAX), 100), (Vec::new(), None));
    let long = Bytes::from(std::vec![b'k'; KEY_BYTES_MAX + 1]);
    let of_another = Cursor { token: token(&all[3]), key: all[4].clone() };
    for wrong in [of_another, Cursor { token: token(&long), key: long }] {
        let ticket = list(&mut world, node, &wrong, 9);
        let outcome = world.wait(ticket);
        let is_refused = matches!(outcome, Outcome::Refused(Refusal::Value { .. }));
        assert!(is_refused, "{outcome:?}");
    }
}
