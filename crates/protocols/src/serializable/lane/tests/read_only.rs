//! What only reads: transactions, and listings.

use super::promises::{SOON, bytes, key_of, led, put_of, three, transact};
use super::world::{World, settings};
use crate::serializable::lane::Settings;
use crate::serializable::lane::places::place::{self, BUCKETS, Shape};
use bytes::Bytes;
use quorate_kernel::ids::GroupId;
use quorate_kernel::operation::{Cursor, Operation, Outcome, Refusal};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::transaction::{Condition, Item, ItemOutcome};
use std::collections::BTreeSet;
use std::format;
use std::vec::Vec;

const GROUPS: u64 = 2;

/// Where the logs of all groups end, together.
fn logged(world: &World) -> u64 {
    let groups = (1..=GROUPS).map(GroupId);
    let end = |group| {
        let leader = world.leader(group).expect("it is led");
        let process = world.hosts[leader].process.as_ref().expect("it is up");
        process.groups[&group].replica.log().end().0
    };
    groups.map(end).sum()
}

/// What is read of both groups, and how many entries that has made.
fn read(mut world: World) -> u64 {
    let puts: Vec<Item> = (1..=GROUPS).map(|group| put_of(group, GROUPS)).collect();
    let keys: Vec<Bytes> = puts.iter().flat_map(Item::keys).cloned().collect();
    world.ask(0, transact(puts), SOON);
    // Both shares are done everywhere, and nothing of the put is to come.
    world.run(Span::secs(1));
    let before = logged(&world);
    let get = |key: &Bytes| Item::Get { key: key.clone() };
    let value = ItemOutcome::Value(Some(Bytes::from_static(b"v")));
    let told = world.ask(1, transact(keys.iter().map(get).collect()), SOON);
    assert_eq!(told, Outcome::Transacted(Vec::from([value.clone(), value])));
    // A read of one key is none.
    let told = world.ask(2, Operation::get(keys[0].clone()), SOON);
    assert_eq!(told, Outcome::value(Some(Bytes::from_static(b"v"))));
    world.run(Span::secs(1));
    let entries = logged(&world) - before;
    let holds = Condition::Absent;
    let unmet = transact(Vec::from([Item::Check { key: keys[1].clone(), holds }, get(&keys[0])]));
    assert_eq!(world.ask(1, unmet, SOON), Outcome::Refused(Refusal::Unmet { item: 0 }));
    entries
}

#[test]
fn what_only_reads_logs_nothing_unless_it_is_set_so() {
    assert_eq!(read(three(GROUPS)), 0);
    let usual = settings(3, 3, GROUPS, Durability::Sync);
    // Each group votes, and then learns what was decided.
    assert!(read(led(Settings { commits_reads: true, ..usual })) >= GROUPS);
}

#[test]
fn a_listing_has_the_keys_at_the_borders_of_groups() {
    let shape = Shape::new(3);
    let bucket_of = |key: &Bytes| u64::from(place::stored(key)[0]);
    let is_border = |bucket: u64| {
        let group = |bucket: u64| shape.group_of(&[bucket as u8]);
        bucket == 0
            || bucket == BUCKETS - 1
            || group(bucket) != group(bucket - 1)
            || group(bucket) != group(bucket + 1)
    };
    let names = (0..).map(|number| Bytes::from(format!("k{number}")));
    let mut keys: Vec<Bytes> = Vec::new();
    for name in names {
        let is_new = keys.iter().all(|key| bucket_of(key) != bucket_of(&name));
        if is_new && is_border(bucket_of(&name)) {
            keys.push(name);
        }
        if keys.len() == 6 {
            break;
        }
    }
    let mut world = three(3);
    for key in &keys {
        let put = Operation::put(key.clone(), bytes("v"));
        assert_eq!(world.ask(0, put, SOON), Outcome::written());
    }
    for limit in [1, 100] {
        let (mut listed, mut from) = (BTreeSet::new(), Some(Cursor::at(0)));
        while let Some(cursor) = from {
            match world.ask(1, Operation::Scan { from: cursor, limit }, SOON) {
                Outcome::Page { keys, next } => {
                    listed.extend(keys);
                    from = next;
                }
                other => panic!("{other:?} is no page"),
            }
        }
        assert_eq!(listed, keys.iter().cloned().collect());
    }
}

#[test]
fn a_listing_waits_for_what_its_client_may_know() {
    let groups = 4;
    let mut world = three(groups);
    let decides = world.leader(GroupId(1)).expect("somebody leads");
    let other = (2..=groups).find(|group| world.leader(GroupId(*group)) != Some(decides));
    let other = other.expect("the primaries are spread");
    let applies = world.leader(GroupId(other)).expect("somebody leads");
    let host = 3 - decides - applies;
    let put = |group| put_of(group, groups);
    // Both groups vote, and one does not hear the decision; the client does.
    world.cut.insert((decides, applies));
    let items = Vec::from([put(1), put(other)]);
    let ticket = world.request(host, transact(items), SOON);
    let is_done = |world: &mut World| world.answer(ticket).is_some();
    assert!(world.run_until(SOON, is_done), "the client is told");
    assert!(matches!(world.answer(ticket), Some(Outcome::Transacted(_))));
    let range = Shape::new(groups).range(GroupId(other));
    let mut from = Cursor::at(range.low.wrapping_add(1));
    // It comes as far as that key.
    let ticket = loop {
        let ticket = world.request(host, Operation::Scan { from, limit: 9 }, SOON);
        world.run(Span::millis(300));
        match world.answer(ticket) {
            None => break ticket,
            Some(Outcome::Page { keys, next: Some(next) }) if keys.is_empty() => {
                from = next.clone();
            }
            other => panic!("{other:?} is no page of what is before it"),
        }
    };
    world.cut.clear();
    match world.await_answer(ticket) {
        Outcome::Page { keys, .. } => assert_eq!(keys, [key_of(other, groups)]),
        other => panic!("{other:?} is no page"),
    }
}
