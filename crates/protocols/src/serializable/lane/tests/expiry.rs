//! Keys that end by themselves, as clients see them.

use super::promises::{SOON, bytes, key_of, three, transact};
use super::world::World;
use bytes::Bytes;
use quorate_kernel::change::{Change, Changed, Unchanged};
use quorate_kernel::expiry::{Expiry, Lifetime, When};
use quorate_kernel::ids::GroupId;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::time::{Span, WallTime};
use quorate_kernel::transaction::{Item, ItemOutcome};
use std::vec::Vec;

const SET: ItemOutcome = ItemOutcome::Expiry { changed: true };
const STAYS: ItemOutcome = ItemOutcome::Expiry { changed: false };

/// A time from now on, by clocks that are right.
fn in_ms(world: &World, span: i64) -> WallTime {
    WallTime(i64::try_from(world.now.0 / 1_000_000).expect("it is early") + span)
}

fn put(key: &Bytes, value: &'static str, expiry: Expiry) -> Item {
    Item::Put { key: key.clone(), value: bytes(value), expiry }
}

fn get(key: &Bytes) -> Item {
    Item::Get { key: key.clone() }
}

fn lifetime(key: &Bytes) -> Item {
    Item::Lifetime { key: key.clone() }
}

/// How many keys a host has something of, and how many of them have a value.
fn kept(world: &World, at: usize) -> (usize, usize) {
    let process = world.hosts[at].process.as_ref().expect("it is up");
    let state = &process.groups[&GroupId(1)].state;
    let room = (usize::MAX, usize::MAX);
    let (items, _) = state.items.range(&[], room, &world.hosts[at].disk);
    (items.len(), items.iter().filter(|(_, item)| item.content.is_some()).count())
}

fn expire(key: &Bytes, at: WallTime, when: When) -> Item {
    Item::Expire { key: key.clone(), at: Some(at), when }
}

fn value(text: &'static str) -> ItemOutcome {
    ItemOutcome::Value(Some(bytes(text)))
}

fn is(lifetime: Lifetime) -> ItemOutcome {
    ItemOutcome::Lifetime(lifetime)
}

/// What a client is told of these items by some host.
fn told(world: &mut World, host: usize, items: &[Item]) -> Vec<ItemOutcome> {
    match world.ask(host, transact(items.to_vec()), SOON) {
        Outcome::Transacted(told) => told,
        other => panic!("{items:?}: {other:?}"),
    }
}

#[test]
fn keys_end_when_their_time_has_come_and_not_before() {
    let mut world = three(2);
    let [one, two] = [1, 2].map(|group| key_of(group, 2));
    let (soon, later) = (in_ms(&world, 1000), in_ms(&world, 60_000));
    let items = [
        put(&one, "a", Expiry::At(soon)),
        lifetime(&one),
        put(&two, "b", Expiry::At(later)),
        put(&two, "c", Expiry::Keep),
        get(&two),
        lifetime(&two),
    ];
    let [until_soon, until_later] = [soon, later].map(|at| is(Lifetime::Until(at)));
    let written = || ItemOutcome::Written;
    let wanted = [written(), until_soon.clone(), written(), written(), value("c"), until_later];
    assert_eq!(told(&mut world, 0, &items), wanted);
    // What is changed where it stands keeps its end; a plain put drops it.
    let append = Item::Change { key: one.clone(), change: Change::Append(bytes("x")) };
    let length = ItemOutcome::Changed(Changed::Length(2));
    let items = [append, lifetime(&one), put(&two, "d", Expiry::Never), lifetime(&two)];
    let wanted = [length, until_soon, written(), is(Lifetime::Endless)];
    assert_eq!(told(&mut world, 1, &items), wanted);
    assert_eq!(world.ask(2, Operation::get(one.clone()), SOON), Outcome::value(Some(bytes("ax"))));
    world.run(Span::secs(1));
    let wanted = [ItemOutcome::Value(None), is(Lifetime::Absent), value("d")];
    assert_eq!(told(&mut world, 2, &[get(&one), lifetime(&one), get(&two)]), wanted);
    let page = world.ask(2, Operation::Scan { from: Default::default(), limit: 9 }, SOON);
    assert!(matches!(page, Outcome::Page { keys, .. } if !keys.contains(&one)));
}

#[test]
fn ends_are_set_and_dropped_as_asked() {
    let mut world = three(1);
    let key = bytes("k");
    let put_if = |expiry| {
        let change = Change::PutIf { exists: false, value: bytes("v"), expiry };
        Item::Change { key: key.clone(), change }
    };
    let times = [10_000, 20_000, 30_000].map(|span| in_ms(&world, span));
    let [sooner, at, later] = times;
    let drop = Item::Expire { key: key.clone(), at: None, when: When::Always };
    let put = ItemOutcome::Changed(Changed::Put);
    let not = ItemOutcome::Unchanged(Unchanged::Condition);
    let until = |at| is(Lifetime::Until(at));
    let table = [
        (expire(&key, at, When::Always), STAYS, is(Lifetime::Absent)),
        (put_if(Expiry::At(at)), put, until(at)),
        (put_if(Expiry::At(later)), not, until(at)),
        (expire(&key, later, When::IfNone), STAYS, until(at)),
        (expire(&key, later, When::IfSooner), STAYS, until(at)),
        (expire(&key, sooner, When::IfLater), STAYS, until(at)),
        (expire(&key, later, When::IfLater), SET, until(later)),
        (expire(&key, at, When::IfSomeAndSooner), SET, until(at)),
        (expire(&key, sooner, When::IfSooner), SET, until(sooner)),
        (expire(&key, later, When::IfSome), SET, until(later)),
        (drop.clone(), SET, is(Lifetime::Endless)),
        (drop, STAYS, is(Lifetime::Endless)),
        (expire(&key, at, When::IfSome), STAYS, is(Lifetime::Endless)),
        (expire(&key, at, When::IfSomeAndSooner), STAYS, is(Lifetime::Endless)),
        (expire(&key, at, When::IfLater), STAYS, is(Lifetime::Endless)),
        (expire(&key, at, When::IfNone), SET, until(at)),
    ];
    for (host, (item, outcome, lives)) in (0..3).cycle().zip(table) {
        // Whether it stands alone, or beside a read of the key, the same is told.
        let read = [item.clone(), lifetime(&key)];
        assert_eq!(told(&mut world, host, &read), [outcome, lives.clone()], "{item:?}");
        assert_eq!(told(&mut world, (host + 1) % 3, &[lifetime(&key)]), [lives], "{item:?}");
    }
}

/// What had passed when it was asked removes the key at once, for the items behind it too.
#[test]
fn a_time_that_has_passed_removes_the_key() {
    let mut world = three(1);
    let key = bytes("k");
    let (written, none) = (ItemOutcome::Written, ItemOutcome::Value(None));
    for at in [in_ms(&world, -1), in_ms(&world, 0), WallTime(-5)] {
        for (item, outcome) in [
            (expire(&key, at, When::Always), SET),
            (put(&key, "w", Expiry::At(at)), written.clone()),
        ] {
            for behind in [None, Some((get(&key), none.clone()))] {
                world.ask(0, Operation::put(key.clone(), bytes("v")), SOON);
                let pair = (item.clone(), outcome.clone());
                let (items, wanted): (Vec<Item>, Vec<ItemOutcome>) =
                    [pair].into_iter().chain(behind).unzip();
                assert_eq!(told(&mut world, 1, &items), wanted);
                let found = world.ask(2, Operation::get(key.clone()), SOON);
                assert_eq!(found, Outcome::value(None), "{items:?}");
            }
        }
    }
}

/// It was asked before its time: all that it is told is of then, and the key ends after it.
#[test]
fn a_time_that_passes_on_the_way_ends_the_key_after_the_transaction() {
    let mut world = three(2);
    let [one, two] = [1, 2].map(|group| key_of(group, 2));
    let at = in_ms(&world, 200);
    // A question takes half a second.
    world.slow = Some("Ask");
    let host = (world.leader(GroupId(1)).expect("somebody leads") + 1) % 3;
    let items = [
        put(&one, "a", Expiry::At(at)),
        put(&two, "b", Expiry::Never),
        expire(&two, at, When::Always),
        get(&one),
        get(&two),
        lifetime(&two),
    ];
    let (written, until) = (ItemOutcome::Written, is(Lifetime::Until(at)));
    let wanted = [written.clone(), written, SET, value("a"), value("b"), until];
    assert_eq!(told(&mut world, host, &items), wanted);
    assert!(in_ms(&world, 0) > at, "its time has passed meanwhile");
    world.slow = None;
    let none = ItemOutcome::Value(None);
    assert_eq!(told(&mut world, host, &[get(&one), get(&two)]), [none.clone(), none]);
}

/// It was read before its time, and is gone when that is to be committed: it is read again.
#[test]
fn a_key_that_ends_between_read_and_commit_is_read_again() {
    let mut world = three(1);
    let key = bytes("k");
    let leader = world.leader(GroupId(1)).expect("somebody leads");
    let at = in_ms(&world, 750);
    assert_eq!(told(&mut world, leader, &[put(&key, "a", Expiry::At(at))]), [ItemOutcome::Written]);
    world.slow = Some("Ask");
    let items = [get(&key), put(&bytes("other"), "b", Expiry::Never)];
    let wanted = [ItemOutcome::Value(None), ItemOutcome::Written];
    assert_eq!(told(&mut world, (leader + 1) % 3, &items), wanted);
}

/// Who was told that a key is gone is not shown it again, also by a primary whose clock is behind.
#[test]
fn what_a_client_was_told_is_gone_stays_gone() {
    let mut world = three(1);
    let key = bytes("k");
    let at = in_ms(&world, 30_000);
    assert_eq!(told(&mut world, 0, &[put(&key, "a", Expiry::At(at))]), [ItemOutcome::Written]);
    let leader = world.leader(GroupId(1)).expect("somebody leads");
    let other = (leader + 1) % 3;
    world.hosts[leader].skew_ms = 40_000;
    let gone = [ItemOutcome::Value(None), is(Lifetime::Absent)];
    assert_eq!(told(&mut world, other, &[get(&key), lifetime(&key)]), gone);
    world.crash(leader);
    assert_eq!(told(&mut world, other, &[get(&key), lifetime(&key)]), gone);
    assert!(in_ms(&world, 0) < at, "by the clock of who leads now its time has not come");
}

/// More than one page of keys ends at once, and nobody asks for any of them.
#[test]
fn what_nobody_reads_is_removed_as_fast_as_it_comes_and_leaves_nothing() {
    let mut world = three(1);
    let soon = in_ms(&world, 4000);
    let long: &'static str = std::boxed::Box::leak("v".repeat(900).into_boxed_str());
    for batch in 0..20 {
        let keys = (0..100).map(|number| Bytes::from(std::format!("k{batch}-{number}")));
        let items: Vec<Item> = keys.map(|key| put(&key, long, Expiry::At(soon))).collect();
        told(&mut world, 0, &items);
    }
    world.run(Span::millis(200));
    assert_eq!(kept(&world, 0), (2000, 2000));
    while in_ms(&world, 0) < soon {
        world.run(Span::millis(50));
    }
    world.run(Span::millis(800));
    (0..3).for_each(|at| assert_eq!(kept(&world, at).1, 0, "host {at}"));
    world.run(Span::secs(2));
    (0..3).for_each(|at| assert_eq!(kept(&world, at).0, 0, "tombstones are dropped at host {at}"));
    assert_eq!(told(&mut world, 1, &[get(&bytes("k0-0"))]), [ItemOutcome::Value(None)]);
}

/// What waits to be committed is not proposed again.
#[test]
fn a_tombstone_is_dropped_by_one_entry_also_without_a_majority() {
    let mut world = three(1);
    let key = key_of(1, 1);
    told(&mut world, 0, &[put(&key, "a", Expiry::Never)]);
    let deleted = world.ask(0, Operation::delete(key), SOON);
    assert!(matches!(deleted, Outcome::Deleted { existed: true, .. }), "{deleted:?}");
    world.run(Span::millis(250));
    let leader = world.leader(GroupId(1)).expect("it is led");
    (0..3).filter(|at| *at != leader).for_each(|at| world.crash(at));
    world.run(Span::secs(5));
    let process = world.hosts[leader].process.as_ref().expect("it is up");
    let in_log = process.groups[&GroupId(1)].replica.log();
    let waiting = in_log.end().0 - process.groups[&GroupId(1)].replica.commit().0;
    assert!(waiting <= 1, "{waiting} entries wait");
    (0..3).filter(|at| *at != leader).for_each(|at| world.restart(at));
    let is_gone = |world: &mut World| (0..3).all(|at| kept(world, at).0 == 0);
    assert!(world.run_until(Span::secs(10), is_gone), "it is dropped everywhere");
}
