//! Transactions that only read.

use super::promises::{SOON, led, put_of, three, transact};
use super::world::{World, settings};
use crate::serializable::lane::Settings;
use bytes::Bytes;
use quorate_kernel::ids::GroupId;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::transaction::{Condition, Item, ItemOutcome};
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
