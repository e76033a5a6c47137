//! Copies between keys: what one key has is put to another one, at one moment.

use super::promises::{SOON, bytes, key_of, three, transact};
use super::traps::leader_and_other;
use super::world::World;
use bytes::Bytes;
use quorate_kernel::expiry::{Expiry, Lifetime, When};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::time::{Span, WallTime};
use quorate_kernel::transaction::{Copied, Item, ItemOutcome};
use std::vec::Vec;

fn copy(key: &Bytes, to: &Bytes, replaces: bool, removes: bool) -> Item {
    Item::Copy { key: key.clone(), to: to.clone(), replaces, removes }
}

fn put(key: &Bytes, value: &'static str, expiry: Expiry) -> Item {
    Item::Put { key: key.clone(), value: bytes(value), expiry }
}

fn told(world: &mut World, host: usize, items: &[Item]) -> Vec<ItemOutcome> {
    match world.ask(host, transact(items.to_vec()), SOON) {
        Outcome::Transacted(told) => told,
        other => panic!("{items:?}: {other:?}"),
    }
}

/// What a key has, and until when.
fn has(world: &mut World, host: usize, key: &Bytes) -> (Option<Bytes>, Lifetime) {
    let items = [Item::Get { key: key.clone() }, Item::Lifetime { key: key.clone() }];
    match &told(world, host, &items)[..] {
        [ItemOutcome::Value(value), ItemOutcome::Lifetime(lifetime)] => (value.clone(), *lifetime),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_copy_has_the_value_and_the_end_in_whatever_group_it_is() {
    for groups in [1, 3] {
        let mut world = three(groups);
        let [one, two] = [1, groups].map(|group| key_of(group, groups));
        let third = Bytes::from(std::format!("third of {groups}"));
        let later = WallTime(i64::MAX / 4);
        let put_all = [put(&one, "a", Expiry::At(later)), put(&third, "b", Expiry::Never)];
        told(&mut world, 0, &put_all);
        let two = if one == two { bytes("other") } else { two };
        let copied = |copied| Vec::from([ItemOutcome::Copied(copied)]);
        assert_eq!(told(&mut world, 1, &[copy(&two, &one, true, true)]), copied(Copied::NoSource));
        let occupied = [copy(&third, &one, false, true)];
        assert_eq!(told(&mut world, 2, &occupied), copied(Copied::Occupied));
        assert_eq!(told(&mut world, 0, &[copy(&one, &two, false, false)]), copied(Copied::Done));
        let until = |value| (Some(bytes(value)), Lifetime::Until(later));
        assert_eq!(has(&mut world, 1, &one), until("a"));
        assert_eq!(has(&mut world, 2, &two), until("a"));
        // What is replaced keeps nothing, its end neither.
        assert_eq!(told(&mut world, 1, &[copy(&third, &two, true, true)]), copied(Copied::Done));
        assert_eq!(has(&mut world, 0, &two), (Some(bytes("b")), Lifetime::Endless));
        assert_eq!(has(&mut world, 0, &third), (None, Lifetime::Absent));
        assert_eq!(told(&mut world, 2, &[copy(&two, &two, true, true)]), copied(Copied::Done));
        assert_eq!(has(&mut world, 0, &two), (Some(bytes("b")), Lifetime::Endless));
    }
}

#[test]
fn a_copy_among_other_items_takes_what_those_before_it_left() {
    let mut world = three(2);
    let [one, two] = [1, 2].map(|group| key_of(group, 2));
    let later = WallTime(i64::MAX / 4);
    let expire = Item::Expire { key: two.clone(), at: Some(later), when: When::Always };
    let items = [
        put(&one, "a", Expiry::Never),
        copy(&one, &two, true, true),
        expire,
        Item::Delete { key: one.clone() },
        Item::Get { key: two.clone() },
        copy(&two, &one, false, false),
    ];
    let done = ItemOutcome::Copied(Copied::Done);
    let wanted = [
        ItemOutcome::Written,
        done.clone(),
        ItemOutcome::Expiry { changed: true },
        ItemOutcome::Deleted { existed: false },
        ItemOutcome::Value(Some(bytes("a"))),
        done,
    ];
    assert_eq!(told(&mut world, 0, &items), wanted);
    for key in [&one, &two] {
        assert_eq!(has(&mut world, 1, key), (Some(bytes("a")), Lifetime::Until(later)));
    }
}

#[test]
fn a_copy_is_of_what_the_key_has_when_it_is_done() {
    let mut orders = [0, 0];
    for ms in 0..40 {
        let mut world = three(2);
        let [one, two] = [1, 2].map(|group| key_of(group, 2));
        let (leader, host) = leader_and_other(&world, 1);
        told(&mut world, leader, &[put(&one, "old", Expiry::Never)]);
        // Another client changes it at some moment of the copy.
        let moved = world.request(host, transact(Vec::from([copy(&one, &two, true, true)])), SOON);
        world.run(Span::millis(ms));
        let put = Operation::put(one.clone(), bytes("new"));
        let changed = world.request(leader, put, SOON);
        let has_ended = |world: &mut World| {
            [moved, changed].into_iter().all(|ticket| world.answer(ticket).is_some())
        };
        assert!(world.run_until(SOON, has_ended), "both are answered");
        let done = Outcome::Transacted(Vec::from([ItemOutcome::Copied(Copied::Done)]));
        assert_eq!(world.answer(moved), Some(&done));
        let left = [&one, &two].map(|key| has(&mut world, leader, key).0);
        match left {
            [None, Some(value)] if value == "new" => orders[0] += 1,
            [Some(value), Some(copied)] if value == "new" && copied == "old" => orders[1] += 1,
            other => panic!("after {ms} ms: {other:?}"),
        }
    }
    assert!(orders.iter().all(|count| *count > 0), "either comes first: {orders:?}");
}
