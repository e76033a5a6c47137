//! Bytes of entries and messages, limits, and pages.

use super::world::{Disk, World, key, put, tx};
use crate::serializable::{
    Act, Cause, Change, Commit, Effect, Entry, Message, Prepared, Rank, Raw, Refused, Reply,
    Request, Said, Share, State, Transaction, Version, VoteSeq, rules,
};
use crate::vsr::{Machine, Op};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use quorate_kernel::ids::GroupId;
use quorate_kernel::wire::{Body, Wire};
use std::collections::BTreeMap;
use std::vec::Vec;
use std::{format, vec};

fn prepared() -> Entry {
    let change = Change {
        key: key("1x"),
        version: Version(3),
        effect: Effect::Put { value: key("v"), expires: Some(9) },
    };
    let share = Share {
        shared: vec![key("1r")],
        exclusive: vec![key("1x")],
        changes: vec![change],
        results: Vec::new(),
    };
    Entry::Prepared(Prepared {
        rank: Rank { priority: 2, tx: tx(3, 4) },
        groups: vec![GroupId(1), GroupId(2)],
        seq: VoteSeq(1),
        vote: Ok(share),
        digest: 7,
        mark: 1,
        clock: 5,
    })
}

#[test]
fn entries_come_back() {
    let entry = prepared();
    let bytes = entry.bytes();
    assert_eq!(Entry::of(&bytes), Ok(entry));
    assert!(Entry::of(&bytes[..bytes.len() - 1]).is_err(), "not if they are cut");
    let longer: Vec<u8> = bytes.iter().copied().chain([0]).collect();
    assert!(Entry::of(&longer).is_err(), "nor if something follows");
    let other: Vec<u8> = [99].into_iter().chain(bytes[1..].iter().copied()).collect();
    assert!(Entry::of(&other).is_err(), "nor of another version");
}

/// A message as it crosses the network.
fn crosses<T: Wire>(message: &T) -> Result<T, quorate_kernel::error::WireError> {
    Body::encode(message, &mut BytesMut::new())?.decode()
}

#[test]
fn messages_come_back_and_nonsense_does_not() {
    let (one, groups) = (tx(3, 4), vec![GroupId(1), GroupId(2)]);
    let vote = |group, groups: &[GroupId]| Message::Vote {
        tx: one,
        group: GroupId(group),
        groups: groups.to_vec(),
        seq: VoteSeq(1),
        vote: Err(Cause::Timeout),
    };
    let of_bucket = |said| Message::Move { group: GroupId(1), bucket: b'1', said };
    let all = [
        vote(2, &groups),
        Message::Decision { tx: one, group: GroupId(1), outcome: Ok(()) },
        Message::Applied { tx: one, group: GroupId(2) },
        Message::RevokeVote { tx: one, group: GroupId(2), groups: groups.clone(), seq: VoteSeq(0) },
        Message::RevokeGranted { tx: one, group: GroupId(1), seq: VoteSeq(0) },
        of_bucket(Said::Gone { version: 1 }),
        of_bucket(Said::Elsewhere { home: GroupId(3), version: 0 }),
        of_bucket(Said::Stays { id: 7 }),
        of_bucket(Said::Pull { id: 7, since: 8, cursor: key("1"), stay: 0, releases: Some(1) }),
    ];
    for wrong in [
        Said::Took { version: 0 },
        Said::Pull { id: 7, since: 8, cursor: key("2"), stay: 0, releases: Some(1) },
    ] {
        assert!(crosses(&of_bucket(wrong)).is_err(), "of no bucket, or no version");
    }
    for message in all {
        assert_eq!(crosses(&message).as_ref(), Ok(&message));
    }
    assert!(crosses(&vote(3, &groups)).is_err(), "of a group that is not in it");
    let descending = [GroupId(2), GroupId(1)];
    assert!(crosses(&vote(2, &descending)).is_err(), "of groups out of order");
    let mut last = vote(2, &groups);
    let Message::Vote { seq, .. } = &mut last else { panic!("it is a vote") };
    *seq = VoteSeq(u64::MAX);
    assert!(crosses(&last).is_err(), "of a number that no vote can follow");
    let (_, commit) = World::shares(one, &[("1r", 2)], &[("1x", put("v"))]).remove(0);
    let request = Request::Commit(commit);
    assert_eq!(crosses(&request).as_ref(), Ok(&request));
    let reply = Reply::Changed { key: key("1x") };
    assert_eq!(crosses(&reply).as_ref(), Ok(&reply));
}

/// What would stop a replica that executes it, or that takes a head over, is read from no peer.
#[test]
fn what_stops_a_replica_is_read_from_nobody() {
    let (one, groups) = (tx(3, 4), vec![GroupId(1), GroupId(2)]);
    for seq in [VoteSeq(u64::MAX - 1), VoteSeq(u64::MAX)] {
        let (group, groups) = (GroupId(2), groups.clone());
        let message = Message::RevokeVote { tx: one, group, groups, seq };
        let mut world = World::new(2);
        if let Ok(message) = crosses(&message) {
            world.handle_primary(0, crate::serializable::Input::Message(message));
        }
        world.settle();
        world.check_equal();
    }
    let Entry::Prepared(prepared) = prepared() else { panic!("it is a vote") };
    let with = |change: &dyn Fn(&mut Prepared, &mut Share)| {
        let mut prepared = prepared.clone();
        let mut share = prepared.vote.clone().expect("it is ready");
        change(&mut prepared, &mut share);
        Prepared { vote: Ok(share), ..prepared }
    };
    let twice = |keys: &mut Vec<Raw>| keys.push(keys[0].clone());
    let wrong = [
        with(&|_, share| twice(&mut share.shared)),
        with(&|_, share| twice(&mut share.exclusive)),
        with(&|_, share| share.shared = share.exclusive.clone()),
        with(&|_, share| share.exclusive.clear()),
        with(&|_, share| share.changes.push(share.changes[0].clone())),
        with(&|prepared, _| prepared.groups.push(GroupId(2))),
        with(&|prepared, _| prepared.groups.reverse()),
        with(&|prepared, _| prepared.seq = VoteSeq(u64::MAX)),
    ];
    let may_install = |prepared: Prepared, recorded: bool| {
        let mut head = crate::serializable::Head::default();
        head.pending.insert(one, prepared);
        if recorded {
            let (outcome, groups) = (Err(Cause::Timeout), Vec::new());
            let recorded = crate::serializable::Recorded { outcome, groups };
            head.outcomes.insert((one.client, one.counter), recorded);
        }
        let (mut state, mut disk) = (State::new(GroupId(1)), Disk::default());
        let bytes = crate::serializable::keys::encode(&head);
        disk.call(|store| state.begin_install(Op(1), &bytes, store))
    };
    assert!(may_install(with(&|_, _| ()), false), "it is right as it was");
    assert!(!may_install(with(&|_, _| ()), true), "it has ended already");
    for prepared in wrong {
        assert!(Entry::of(&Entry::Prepared(prepared.clone()).bytes()).is_err(), "{prepared:?}");
        assert!(!may_install(prepared.clone(), false), "{prepared:?}");
    }
}

proptest! {
    #[test]
    fn entries_survive_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(entry) = Entry::of(&bytes) {
            prop_assert_eq!(Entry::of(&entry.bytes()), Ok(entry));
        }
    }
}

fn whole(reads: BTreeMap<Raw, Version>, acts: Vec<(Raw, Act)>) -> Transaction {
    let rank = Rank { priority: 1, tx: tx(1, 1) };
    Transaction { rank, mark: 0, reads, acts, goes_on: false, value_max: 9 }
}

#[test]
fn what_is_too_much_is_refused_before_anything_is_done() {
    let refused =
        |transaction: &Transaction| transaction.split(World::group_of).expect_err("it is too much");
    let many: Vec<(Raw, Act)> =
        (0..=rules::KEYS_MAX).map(|number| (key(&format!("1k{number}")), put(""))).collect();
    let keys_max = rules::KEYS_MAX;
    let too_many = Refused::TooManyKeys { keys: keys_max + 1, keys_max };
    assert_eq!(refused(&whole(BTreeMap::new(), many.clone())), too_many);
    assert!(whole(BTreeMap::new(), many[1..].to_vec()).split(World::group_of).is_ok());
    let half = Raw(Bytes::from(vec![0; rules::BYTES_MAX / 2]));
    let big = |name: &str| (key(name), Act::Append(half.clone()));
    let large = whole(BTreeMap::new(), vec![big("1x"), big("2x")]);
    let bytes = rules::BYTES_MAX + 4;
    assert_eq!(refused(&large), Refused::TooLarge { bytes, bytes_max: rules::BYTES_MAX });
    assert_eq!(refused(&whole(BTreeMap::new(), Vec::new())), Refused::Empty);
    let long = Raw(Bytes::from(vec![b'1'; rules::ITEM_KEY_BYTES_MAX + 1]));
    let reads = BTreeMap::from([(long, Version(0))]);
    assert!(matches!(refused(&whole(reads, Vec::new())), Refused::KeyLength { .. }));
    // A primary does not rest on what a client has looked at.
    let mut world = World::new(1);
    let groups = vec![GroupId(1)];
    let rank = Rank { priority: 1, tx: tx(1, 1) };
    let reads = BTreeMap::new();
    let commit = Commit { rank, mark: 0, groups, reads, acts: many, goes_on: false, value_max: 9 };
    let ticket = world.ask(0, Request::Commit(commit.clone()));
    assert_eq!(world.answer(ticket), Some(&Reply::Refused(too_many)));
    let acts = vec![(key("1x"), put("v"))];
    let elsewhere = Commit { groups: vec![GroupId(2)], acts, ..commit };
    let ticket = world.ask(0, Request::Commit(elsewhere));
    assert_eq!(world.answer(ticket), Some(&Reply::Refused(Refused::Groups)));
    assert!(world.groups[0].tail.is_empty(), "nothing was done");
}

#[test]
fn values_that_grow_too_much_together_are_refused() {
    let mut world = World::new(1);
    let third = Raw(Bytes::from(vec![b'x'; rules::BYTES_MAX / 3]));
    let names = ["1a", "1b", "1c", "1d"];
    for (counter, name) in names.iter().enumerate() {
        world.commit_tx(tx(counter as u64 + 1, 1), &[], &[(name, Act::Append(third.clone()))]);
    }
    world.settle();
    let acts: Vec<(&str, Act)> = names.iter().map(|name| (*name, Act::Append(key("y")))).collect();
    let ticket = world.commit_tx(tx(9, 1), &[], &acts);
    world.settle();
    let outcome = crate::serializable::Outcome::Aborted(Cause::TooLarge);
    assert_eq!(world.told(ticket), Some(&outcome));
    assert_eq!(world.value("1a").0, 1);
}

/// A state with so many keys, and the disk that has some of them.
fn filled(count: u64) -> (State, Disk, u64) {
    let mut world = World::new(1);
    for counter in 1..=count {
        let name = format!("1k{counter:03}");
        world.commit_tx(tx(counter, 1), &[], &[(&name, put("value"))]);
    }
    world.settle();
    let group = world.groups.remove(0);
    let its = group.replicas.into_iter().next().expect("it has one");
    (its.state, its.disk, its.applied as u64)
}

#[test]
fn a_pass_stores_all_and_pages_show_all() {
    let (mut state, mut disk, applied) = filled(40);
    let mut steps = 0;
    while state.stored() < Op(applied) {
        disk.call(|store| state.store(Op(applied), 100, store));
        steps += 1;
        let (items, next) = state.items.range(b"", (usize::MAX, usize::MAX), &disk);
        assert_eq!((items.len(), next), (40, None), "all are there while they are written");
        assert!(steps < 100, "it ends");
    }
    assert!(steps > 3, "bit by bit");
    assert_eq!(state.items.dirty_count(), 0);
    let (mut seen, mut cursor) = (Vec::new(), Bytes::new());
    loop {
        let page = state.page(Op(applied), &cursor, 200, &disk).expect("of any time");
        let items = crate::serializable::execute::items::take_page(&page.items);
        seen.extend(items.expect("it was just made"));
        let Some(next) = page.next else { break };
        assert!(next > cursor, "pages go on");
        cursor = next;
    }
    assert_eq!(seen.len(), 40);
    let mut again = State::new(GroupId(1));
    let stored = disk.call(|store| again.load(store));
    assert_eq!((stored.whole, stored.newest), (Op(applied), Op(applied)));
    assert_eq!(again.head, state.head);
    assert_eq!(again.items.range(b"", (usize::MAX, usize::MAX), &disk).0.len(), 40);
}

#[test]
fn an_empty_copy_is_the_empty_machine_at_once() {
    let (mut state, mut disk, applied) = filled(5);
    disk.call(|store| state.store(Op(applied), usize::MAX, store));
    disk.call(|store| {
        assert!(state.begin_install(Op(0), &Bytes::new(), store), "every machine can be empty");
        state.end_install(Op(0), store);
        let found = state.item(&key("1k001"), store.table);
        assert_eq!(found.version, Version(0), "the table still shows it in this call");
    });
    assert!(disk.0.len() <= 2, "nothing but the head and the newest place stays");
}

#[test]
fn what_a_peer_sends_that_is_no_head_page_or_entry_changes_nothing() {
    let (mut state, mut disk, _) = filled(5);
    disk.call(|store| {
        let shown = |state: &mut State, table| {
            (state.head(Op(5)), state.page(Op(5), &Bytes::new(), usize::MAX, table))
        };
        let before = shown(&mut state, store.table);
        for wrong in [&b"\0"[..], b"\xff\xff", b"\x02\xff\xff\xff\xff\xff\xff"] {
            let wrong = Bytes::from_static(wrong);
            assert!(!state.begin_install(Op(9), &wrong, store) && !state.install(&wrong, store));
            assert!(!state.is_command(&wrong), "it is put into no log");
        }
        assert!(!state.install(&Bytes::new(), store));
        assert_eq!(before, shown(&mut state, store.table));
    });
}
