//! What only reads: transactions, and listings.

use super::promises::{SOON, bytes, key_of, led, put_of, three, transact};
use super::world::{World, settings};
use crate::serializable::lane::places::place::{self, BUCKETS, Shape};
use crate::serializable::lane::{Message, Settings};
use bytes::Bytes;
use quorate_kernel::expiry::Expiry;
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

/// Three hosts with one group, whose reads are of any replica; where it is led, and another member,
/// which has a key's first value.
fn any() -> (World, usize, usize) {
    let usual = settings(3, 3, 1, Durability::Sync);
    let mut world = led(Settings { reads_any: true, ..usual });
    let primary = world.leader(GroupId(1)).expect("it is led");
    let put = Operation::put(bytes("k"), bytes("old"));
    assert_eq!(world.ask(primary, put, SOON), Outcome::written());
    world.run(Span::secs(1));
    (world, primary, (primary + 1) % 3)
}

/// A member hears of the log no more, and another value is put.
fn behind() -> (World, usize) {
    let (mut world, primary, member) = any();
    world.take(move |from, to, message| {
        (from, to) == (primary, member) && matches!(message, Message::Log(_))
    });
    let put = Operation::put(bytes("k"), bytes("new"));
    assert_eq!(world.ask(primary, put, SOON), Outcome::written());
    (world, member)
}

#[test]
fn a_read_of_any_replica_asks_no_other_host_where_there_is_one() {
    let (mut world, _, member) = any();
    let asked = |world: &World| world.sent.get("Ask").copied();
    let before = asked(&world);
    let get = Operation::get(bytes("k"));
    assert_eq!(world.ask(member, get, SOON), Outcome::value(Some(bytes("old"))));
    assert_eq!(asked(&world), before);
}

/// Such a read may be old; what is written rests on it, and finds out.
#[test]
fn what_rests_on_an_old_read_is_not_done() {
    let (mut world, member) = behind();
    let get = || Operation::get(bytes("k"));
    assert_eq!(world.ask(member, get(), SOON), Outcome::value(Some(bytes("old"))), "it is behind");
    let check = Item::Check { key: bytes("k"), holds: Condition::Value(bytes("old")) };
    let put = Item::Put { key: bytes("k"), value: bytes("wrong"), expiry: Expiry::Never };
    let told = world.ask(member, transact(Vec::from([check, put])), SOON);
    assert_eq!(told, Outcome::Refused(Refusal::Unmet { item: 0 }));
    let process = world.hosts[member].process.as_ref().expect("it is up");
    assert_eq!(process.counters.conflicts, 1, "what is read again is current");
    let primary = world.leader(GroupId(1)).expect("it is led");
    assert_eq!(world.ask(primary, get(), SOON), Outcome::value(Some(bytes("new"))));
}

#[test]
fn nothing_is_refused_because_of_an_old_read() {
    let (mut world, member) = behind();
    let check = Item::Check { key: bytes("k"), holds: Condition::Value(bytes("new")) };
    let put = Item::Put { key: bytes("k"), value: bytes("newer"), expiry: Expiry::Never };
    let told = world.ask(member, transact(Vec::from([check, put])), SOON);
    assert!(matches!(told, Outcome::Transacted(_)), "{told:?}");
}

#[test]
fn who_hears_of_no_primary_shows_nothing_of_its_own() {
    let (mut world, member) = behind();
    world.run(Span::millis(500));
    let told = world.ask(member, Operation::get(bytes("k")), SOON);
    assert_eq!(told, Outcome::value(Some(bytes("new"))), "the primary is asked");
}

/// A replica answers late, when the primary was asked: that is another question.
#[test]
fn a_late_answer_of_a_replica_is_not_taken_for_the_primarys() {
    let usual = settings(4, 3, 1, Durability::Sync);
    let mut world = World::new(7, 4, Settings { reads_any: true, ..usual });
    assert!(world.run_until(SOON, |world| world.leader(GroupId(1)).is_some()));
    let has_none =
        |at: &usize| world.hosts[*at].process.as_ref().is_some_and(|it| it.groups.is_empty());
    let host = (0..4).find(has_none).expect("one is no member");
    assert_eq!(world.ask(host, Operation::put(bytes("k"), bytes("v")), SOON), Outcome::written());
    world.take(move |_, to, message| to == host && matches!(message, Message::Told { .. }));
    let ticket = world.request(host, Operation::get(bytes("k")), SOON);
    world.run_to_taken(2, Span::secs(1));
    let taken = world.taken();
    let is_told = |world: &World| world.answers.iter().any(|(_, of, _)| *of == ticket);
    world.let_come(&taken[0]);
    assert!(!is_told(&world), "it was of any replica");
    world.let_come(&taken[1]);
    assert!(is_told(&world), "it is of the primary");
}
