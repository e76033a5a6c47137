//! What clients are promised, each in the smallest schedule that shows it.

use super::world::{Host, World, settings};
use crate::serializable::lane::clients::in_hand::Phase;
use crate::serializable::lane::places::place::{self, Shape};
use crate::serializable::lane::{Message, Settings};
use crate::serializable::{self, Reply, TxId, Version};
use bytes::Bytes;
use quorate_kernel::expiry::Expiry;
use quorate_kernel::ids::GroupId;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::process::{Inspect, Process};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::transaction::{Condition, Item, ItemOutcome};
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

pub const SOON: Span = Span::secs(5);

impl World {
    /// The host that leads a group.
    pub fn leader(&self, group: GroupId) -> Option<usize> {
        let leads = |host: &Host| {
            let hosted = host.process.as_ref().and_then(|process| process.groups.get(&group));
            hosted.is_some_and(|hosted| hosted.member.leads())
        };
        self.hosts.iter().position(leads)
    }
}

/// Three hosts with some groups, after they have chosen primaries.
pub fn three(groups: u64) -> World {
    led(settings(3, 3, groups, Durability::Sync))
}

/// Three hosts, after their groups have chosen primaries.
pub fn led(settings: Settings) -> World {
    let groups = settings.founders.len() as u64;
    let mut world = World::new(7, 3, settings);
    let led = |world: &mut World| (1..=groups).all(|group| world.leader(GroupId(group)).is_some());
    assert!(world.run_until(SOON, led), "every group has a primary");
    world
}

/// A key of a group.
pub fn key_of(group: u64, groups: u64) -> Bytes {
    let shape = Shape::new(groups);
    let is_its = |key: &Bytes| shape.group_of(&place::stored(key)) == GroupId(group);
    (0..).map(|number| Bytes::from(format!("k{number}"))).find(is_its).expect("there is one")
}

pub fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// A put of some value to a key of a group.
pub fn put_of(group: u64, groups: u64) -> Item {
    Item::Put { key: key_of(group, groups), value: bytes("v"), expiry: Expiry::Never }
}

pub fn transact(items: Vec<Item>) -> Operation {
    Operation::Transact { items, name: None }
}

#[test]
fn single_keys_are_put_read_and_removed_at_any_host() {
    let mut world = three(3);
    for (host, number) in (0..3).cycle().zip(0..9) {
        let key: Bytes = format!("name{number}").into();
        let ask = |world: &mut World, operation| world.ask((host + 1) % 3, operation, SOON);
        assert_eq!(ask(&mut world, Operation::get(key.clone())), Outcome::value(None));
        assert_eq!(ask(&mut world, Operation::delete(key.clone())), Outcome::deleted(false));
        let put = Operation::put(key.clone(), bytes("v"));
        assert_eq!(world.ask(host, put, SOON), Outcome::written());
        let value = Outcome::value(Some(bytes("v")));
        assert_eq!(world.ask((host + 1) % 3, Operation::get(key.clone()), SOON), value);
        let deleted = world.ask((host + 2) % 3, Operation::delete(key.clone()), SOON);
        assert_eq!(deleted, Outcome::deleted(true));
    }
}

#[test]
fn several_items_over_several_groups_are_done_in_their_order_or_not_at_all() {
    let mut world = three(3);
    let [one, two, three] = [1, 2, 3].map(|group| key_of(group, 3));
    let put = |key: &Bytes, value| Item::Put {
        key: key.clone(),
        value: bytes(value),
        expiry: Expiry::Never,
    };
    let get = |key: &Bytes| Item::Get { key: key.clone() };
    let told = world.ask(
        0,
        transact(Vec::from([
            get(&one),
            put(&one, "a"),
            get(&one),
            put(&two, "b"),
            put(&three, "c"),
        ])),
        SOON,
    );
    let value = |text: Option<&'static str>| ItemOutcome::Value(text.map(bytes));
    let written = || ItemOutcome::Written;
    let wanted = [value(None), written(), value(Some("a")), written(), written()];
    assert_eq!(told, Outcome::Transacted(wanted.into()));
    let check = |key: &Bytes, value| Item::Check {
        key: key.clone(),
        holds: Condition::Value(bytes(value)),
    };
    let items = [check(&two, "b"), Item::Delete { key: three.clone() }, check(&one, "x")];
    let told = world.ask(1, transact(items.into()), SOON);
    assert_eq!(told, Outcome::Refused(Refusal::Unmet { item: 2 }));
    let items = [check(&one, "a"), Item::Delete { key: three.clone() }, put(&one, "d")];
    let told = world.ask(1, transact(items.into()), SOON);
    let wanted = [ItemOutcome::Checked, ItemOutcome::Deleted { existed: true }, written()];
    assert_eq!(told, Outcome::Transacted(wanted.into()));
    let told = world.ask(2, transact([get(&one), get(&two), get(&three)].into()), SOON);
    let wanted = [value(Some("d")), value(Some("b")), value(None)];
    assert_eq!(told, Outcome::Transacted(wanted.into()));
}

#[test]
fn a_listing_goes_through_all_groups_in_the_order_of_tokens() {
    let mut world = three(3);
    let mut put: Vec<Bytes> = (0..30).map(|number| format!("k{number}").into()).collect();
    for key in &put {
        let operation = Operation::put(key.clone(), bytes("v"));
        assert_eq!(world.ask(0, operation, SOON), Outcome::written());
    }
    put.sort_by_key(|key| place::stored(key));
    let mut listed = Vec::new();
    let mut from = Some(quorate_kernel::operation::Cursor::at(0));
    while let Some(cursor) = from {
        match world.ask(1, Operation::Scan { from: cursor, limit: 4 }, SOON) {
            Outcome::Page { keys, next } => {
                assert!(keys.len() <= 4);
                listed.extend(keys);
                from = next;
            }
            other => panic!("{other:?} is no page"),
        }
    }
    assert_eq!(listed, put);
}

#[test]
fn a_primary_that_stops_is_followed_in_less_than_half_a_second_and_loses_nothing() {
    let mut world = three(1);
    let put = |value| Operation::put(bytes("k"), bytes(value));
    assert_eq!(world.ask(0, put("a"), SOON), Outcome::written());
    let leader = world.leader(GroupId(1)).expect("somebody leads");
    world.crash(leader);
    let (host, before) = ((leader + 1) % 3, world.now);
    assert_eq!(world.ask(host, put("b"), SOON), Outcome::written());
    assert!(world.now - before < Span::millis(600), "{:?}", world.now - before);
    world.restart(leader);
    let told = world.ask(leader, Operation::get(bytes("k")), SOON);
    assert_eq!(told, Outcome::value(Some(bytes("b"))));
}

#[test]
fn who_reaches_no_majority_is_told_so_and_a_write_that_was_sent_is_unknown() {
    let mut world = three(1);
    let host = world.leader(GroupId(1)).expect("somebody leads");
    for other in (0..3).filter(|other| *other != host) {
        world.cut.extend([(host, other), (other, host)]);
    }
    let told = world.ask(host, Operation::get(bytes("k")), Span::millis(700));
    assert_eq!(told, Outcome::Refused(Refusal::NoQuorum { reached: 0, needed: 2 }));
    let put = Operation::put(bytes("k"), bytes("v"));
    let told = world.ask(host, put, Span::millis(700));
    assert!(matches!(told, Outcome::Refused(Refusal::OutcomeOpen { .. })), "{told:?}");
    world.cut.clear();
    let is_known =
        |world: &mut World| world.hosts[host].process.as_ref().unwrap().clients.len() == 0;
    assert!(world.run_until(SOON, is_known), "the host asks how it ended");
}

#[test]
fn what_is_too_large_is_refused_by_name() {
    let mut world = three(1);
    let long = |length: usize| Bytes::from(std::vec![b'x'; length]);
    let limit = place::KEY_BYTES_MAX;
    let told = world.ask(0, Operation::get(long(limit + 1)), SOON);
    let refusal = Refusal::TooLarge { what: "key", length: limit + 1, limit };
    assert_eq!(told, Outcome::Refused(refusal));
    let told = world.ask(0, Operation::put(long(limit), long(1001)), SOON);
    let refusal = Refusal::TooLarge { what: "value", length: 1001, limit: 1000 };
    assert_eq!(told, Outcome::Refused(refusal));
    assert_eq!(world.ask(0, Operation::put(long(limit), long(9)), SOON), Outcome::written());
}

#[test]
fn a_transaction_rests_on_what_it_has_read() {
    let mut world = three(1);
    let put = |value: u64| Item::Put {
        key: bytes("n"),
        value: value.to_string().into(),
        expiry: Expiry::Never,
    };
    let absent = Item::Check { key: bytes("n"), holds: Condition::Absent };
    // All see that it is absent, and one of them may put it.
    let tickets: Vec<_> = (0..9)
        .map(|number| {
            let items = Vec::from([absent.clone(), put(number)]);
            world.request(number as usize % 3, transact(items), SOON)
        })
        .collect();
    assert!(world.run_until(SOON, |world| world.answers.len() == tickets.len()));
    let is_done = |outcome: &Outcome| matches!(outcome, Outcome::Transacted(_));
    let done = world.answers.iter().filter(|(_, _, outcome)| is_done(outcome)).count();
    assert_eq!(done, 1, "{:?}", world.answers);
}

#[test]
fn what_is_read_in_several_groups_is_of_one_moment() {
    // A schedule in which reads of several groups meet transactions over them.
    let mut world = three(2);
    let [one, two] = [1, 2].map(|group| key_of(group, 2));
    let mut torn = 0;
    for round in 0..80_u64 {
        let value: Bytes = round.to_string().into();
        let put = |key: &Bytes| Item::Put {
            key: key.clone(),
            value: value.clone(),
            expiry: Expiry::Never,
        };
        let get = |key: &Bytes| Item::Get { key: key.clone() };
        world.request(0, transact([put(&one), put(&two)].into()), SOON);
        let wait = Span::micros(world.rng.below(9000));
        world.run(wait);
        world.request(1, transact([get(&one), get(&two)].into()), SOON);
        let wait = Span::micros(world.rng.below(3000));
        world.run(wait);
    }
    let all = |world: &mut World| world.answers.len() == 160;
    assert!(world.run_until(Span::secs(10), all), "{}", world.answers.len());
    for (_, _, outcome) in &world.answers {
        if let Outcome::Transacted(told) = outcome
            && let [ItemOutcome::Value(one), ItemOutcome::Value(two)] = &told[..]
        {
            torn += usize::from(one != two);
        }
    }
    assert_eq!(torn, 0, "both have always the same value");
}

#[test]
fn what_changes_while_it_is_read_is_committed_as_it_was_read_last() {
    let get = |group| Item::Get { key: key_of(group, 2) };
    let absent = || ItemOutcome::Value(None);
    let told = Outcome::Transacted([absent(), absent()].into());
    read_while_it_changes([get(1), get(2)].into(), &told);
    // So is that nothing is done, because of what was read.
    let check = Item::Check { key: key_of(1, 2), holds: Condition::Present };
    let put = Item::Put { key: key_of(2, 2), value: bytes("v"), expiry: Expiry::Never };
    let told = Outcome::Refused(Refusal::Unmet { item: 0 });
    let mut world = read_while_it_changes([check, get(2), put].into(), &told);
    let value = world.ask(0, Operation::get(key_of(2, 2)), SOON);
    assert_eq!(value, Outcome::value(None), "nothing was put");
}

#[test]
fn who_only_reads_is_never_told_that_something_may_have_changed() {
    let get = |group| Item::Get { key: key_of(group, 2) };
    let no_quorum = Outcome::Refused(Refusal::NoQuorum { reached: 0, needed: 2 });
    read_while_it_changes([get(1), get(2)].into(), &no_quorum);
}

/// What these items are told that read a key of each of two groups, of which the first has changed
/// three times before they were committed; or if no group hears of that.
fn read_while_it_changes(items: Vec<Item>, told: &Outcome) -> World {
    let mut world = three(2);
    let leaders = [1, 2].map(|group| world.leader(GroupId(group)).expect("somebody leads"));
    let host = (0..3).find(|at| !leaders.contains(at)).expect("two lead");
    leaders.iter().for_each(|leader| world.part(host, *leader));
    world.request(host, transact(items), SOON);
    let mut answer = |group: u64, reply: &dyn Fn(&Phase) -> Option<Reply>| {
        let from = world.hosts[leaders[group as usize - 1]].me;
        world.turn(host, |process, cx| {
            let mut all = (1..99).rev();
            let question = all.find(|it| process.clients.get(*it).is_some()).expect("it is asked");
            let doing = process.clients.get(question).expect("it is there");
            let reply = reply(&doing.phase).expect("it waits for that");
            let told = Message::Told { question, group: GroupId(group), reply };
            process.on_message(from, told, cx);
        });
    };
    let of_version = |version| {
        move |phase: &Phase| {
            let item = serializable::Item { version: Version(version), content: None };
            matches!(phase, Phase::Reading(_)).then(|| Reply::Items([item].into()))
        }
    };
    let key = place::stored(&key_of(1, 2));
    let changed = |phase: &Phase| {
        matches!(phase, Phase::Checking(_)).then(|| Reply::Changed { key: key.clone() })
    };
    for version in [7, 8, 9] {
        answer(1, &of_version(version));
        answer(2, &of_version(version));
        answer(1, &changed);
    }
    // It is read once more, and rests on that.
    answer(1, &of_version(0));
    answer(2, &of_version(0));
    if !matches!(told, Outcome::Refused(Refusal::NoQuorum { .. })) {
        world.cut.clear();
    }
    assert!(world.run_until(Span::secs(10), |world| !world.answers.is_empty()));
    assert_eq!(world.answers[0].2, *told);
    let process = world.hosts[host].process.as_ref().expect("it is up");
    assert_eq!(process.counters.conflicts, 3, "no group has refused it");
    world
}

/// What is as old as all that is remembered is dropped, and taken for what has ended.
#[test]
fn names_are_no_older_than_their_transactions() {
    let mut world = three(1);
    world.run(Span::secs(60));
    for host in 0..3 {
        let ticket = world.request(host, Operation::put(bytes("k"), bytes("v")), SOON);
        let process = world.hosts[host].process.as_ref().expect("it is up");
        let (_, tx) = process.clients.committing().expect("it commits");
        assert!(tx >= TxId::first(tx.client, world.now.0 / 1_000_000), "{tx:?}");
        let is_told = |world: &mut World| world.answers.iter().any(|it| it.1 == ticket);
        assert!(world.run_until(SOON, is_told));
    }
}

/// A read that waits for a key had others ask a host that does not lead.
#[test]
fn a_question_that_waits_turns_no_other_away() {
    let groups = 4;
    let mut world = three(groups);
    let decides = world.leader(GroupId(1)).expect("somebody leads");
    let other = (2..=groups).find(|group| world.leader(GroupId(*group)) != Some(decides));
    let other = other.expect("the primaries are spread");
    let applies = world.leader(GroupId(other)).expect("somebody leads");
    let host = 3 - decides - applies;
    // The client is told that it is done, and one group holds the key until it hears that.
    world.cut.insert((decides, applies));
    let put = |group| put_of(group, groups);
    let told = world.ask(host, transact([put(1), put(other)].into()), SOON);
    assert!(matches!(told, Outcome::Transacted(_)), "{told:?}");
    world.request(host, Operation::get(key_of(other, groups)), SOON);
    let is_its = |key: &Bytes| {
        let group = Shape::new(groups).group_of(&place::stored(key));
        group == GroupId(other) && *key != key_of(other, groups)
    };
    let mut names = (0..).map(|number| Bytes::from(format!("k{number}")));
    let free = names.find(is_its).expect("there is one");
    for _ in 0..30 {
        let began = world.now;
        let told = world.ask(host, Operation::get(free.clone()), SOON);
        assert_eq!(told, Outcome::value(None));
        assert!(world.now - began < Span::millis(20), "{:?}", world.now - began);
        world.run(Span::millis(50));
    }
    assert!(world.answers.is_empty(), "the other one waits");
    world.cut.clear();
    let is_told = |world: &mut World| !world.answers.is_empty();
    assert!(world.run_until(SOON, is_told), "and is answered");
    assert_eq!(world.answers[0].2, Outcome::value(Some(bytes("v"))));
}

#[test]
fn parts_and_fields_say_who_holds_what() {
    struct Seen(BTreeMap<&'static str, String>, usize);
    impl Inspect for Seen {
        fn field(&mut self, name: &'static str, value: &dyn std::fmt::Display) {
            self.0.insert(name, value.to_string());
        }
        fn row(&mut self, _: &'static str, _: &[(&'static str, &dyn std::fmt::Display)]) {
            self.1 += 1;
        }
    }
    let world = three(4);
    for host in &world.hosts {
        let process = host.process.as_ref().expect("it is up");
        let parts = process.parts();
        assert_eq!(parts.len(), 4);
        assert!(parts.iter().all(|part| !part.owes && part.quorum == 2 && part.holders.len() == 3));
        let mut seen = Seen(BTreeMap::new(), 0);
        process.inspect(&mut seen);
        assert_eq!((seen.0["ready"].as_str(), seen.0["groups"].as_str(), seen.1), ("true", "4", 4));
    }
}
