//! What a peer says that no correct one does: it is refused, and stops nobody.

use super::world::{Disk, World, key, put, tx};
use crate::serializable::execute::head;
use crate::serializable::primary::in_hand::Primary;
use crate::serializable::{
    Cause, Change, Context, Counted, Dropped, Effect, Entry, Head, Input, Message, Optimizations,
    Outcome, Prepared, Rank, Raw, Recorded, Request, Share, State, Stored, TakenBack, TxId,
    Version, VoteSeq, keys, rules,
};
use crate::vsr::{Machine, Op};
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::GroupId;
use quorate_kernel::wire::Body;
use std::vec;
use std::vec::Vec;

const ONE: usize = 0;
const TWO: usize = 1;

pub fn groups(ids: &[u64]) -> Vec<GroupId> {
    ids.iter().copied().map(GroupId).collect()
}

pub fn change(version: u64) -> Change {
    let effect = Effect::Put { value: key("v"), expires: None };
    Change { key: key("1x"), version: Version(version), effect }
}

pub fn alone(id: TxId, change: Change) -> Entry {
    let outcome = Ok((vec![change], Vec::new()));
    Entry::DecidedApplied { tx: id, outcome, mark: 0, clock: 5 }
}

pub fn vote(ids: &[u64], version: u64) -> Prepared {
    let (shared, exclusive) = (Vec::new(), vec![key("1x")]);
    let share = Share { shared, exclusive, changes: vec![change(version)], results: Vec::new() };
    Prepared {
        rank: Rank { priority: 2, tx: tx(3, 4) },
        groups: groups(ids),
        seq: VoteSeq(0),
        vote: Ok(share),
        digest: 7,
        mark: 1,
        clock: 5,
    }
}

pub fn decided(ids: &[u64], counted: &[u64], seq: u64) -> Entry {
    let results = Vec::new();
    let vote = |id| Counted { group: GroupId(id), seq: VoteSeq(seq), results: results.clone() };
    let outcome = Ok(counted.iter().copied().map(vote).collect());
    Entry::Decided { tx: tx(3, 4), groups: groups(ids), outcome }
}

pub fn revoked(ids: &[u64], group: u64) -> Entry {
    let (tx, group, seq) = (tx(3, 4), GroupId(group), VoteSeq(0));
    Entry::Revoked { tx, groups: groups(ids), group, seq }
}

fn long() -> Raw {
    Raw(Bytes::from(vec![b'1'; rules::ITEM_KEY_BYTES_MAX + 1]))
}

fn long_cause() -> Cause {
    let error = crate::serializable::ActError::Condition;
    Cause::Act { key: key(&"k".repeat(60_000)), error, by: tx(1, 1) }
}

pub fn dropped(version: u64) -> Entry {
    let keys = vec![Dropped { key: key("1x"), version: Version(version), removed_at: 1 }];
    Entry::Purge { keys }
}

#[test]
fn entries_that_no_primary_makes_come_into_no_log() {
    let mut state = State::new(GroupId(1));
    let mut is_command = |entry: &Entry| state.is_command(&entry.bytes());
    let last = u64::MAX - 1;
    let cause = |outcome| Entry::Applied { tx: tx(3, 4), outcome: Err(outcome) };
    let expire = |version| Entry::Expire { clock: 1, keys: vec![(key("1x"), Version(version))] };
    let asked = Entry::Decided { tx: tx(3, 4), groups: Vec::new(), outcome: Err(Cause::Asked) };
    let right = [
        alone(tx(3, 4), change(1)),
        alone(tx(last, 4), change(last)),
        Entry::Prepared(vote(&[1, 2], 1)),
        decided(&[1, 2], &[1, 2], 0),
        asked,
        revoked(&[1, 2], 2),
        dropped(last - 1),
        expire(last),
        cause(Cause::Timeout),
    ];
    for entry in &right {
        assert!(is_command(entry), "{entry:?}");
    }
    let named = |key: Raw| alone(tx(3, 4), Change { key, ..change(1) });
    let marked =
        Entry::DecidedApplied { tx: tx(3, 4), outcome: Err(Cause::Timeout), mark: 4, clock: 5 };
    let wrong = [
        alone(tx(3, 4), change(u64::MAX)),
        alone(tx(3, 4), change(0)),
        alone(tx(0, 4), change(1)),
        alone(tx(u64::MAX, 4), change(1)),
        named(key("")),
        named(long()),
        marked,
        Entry::Prepared(vote(&[1, 2], u64::MAX)),
        Entry::Prepared(vote(&[1], 1)),
        Entry::Prepared(vote(&[2, 3], 1)),
        decided(&[1, 2], &[1], 0),
        decided(&[1, 2], &[1, 3], 0),
        decided(&[1, 2], &[1, 2], u64::MAX),
        decided(&[2, 3], &[2, 3], 0),
        decided(&[], &[], 0),
        revoked(&[2, 3], 3),
        revoked(&[1, 2], 1),
        revoked(&[1, 2], 3),
        dropped(last),
        dropped(u64::MAX),
        expire(u64::MAX),
        cause(long_cause()),
        Entry::Forget { txs: vec![tx(u64::MAX, 1)] },
        Entry::Horizon { counter: u64::MAX },
    ];
    for entry in &wrong {
        assert!(!is_command(entry), "{entry:?}");
    }
}

#[test]
fn copies_that_no_replica_makes_are_not_taken_over() {
    let (mut state, mut disk) = (State::new(GroupId(1)), Disk::default());
    let mut installs = |change: &dyn Fn(&mut Head)| {
        let mut head = Head::default();
        change(&mut head);
        let bytes = keys::encode(&head);
        disk.call(|store| state.begin_install(Op(1), &bytes, store))
    };
    let one = tx(3, 4);
    let taken = |ids: &[u64]| TakenBack { next: VoteSeq(1), groups: groups(ids), digest: 7 };
    let recorded = || Recorded { outcome: Err(Cause::Timeout), groups: Vec::new() };
    assert!(installs(&|head| head.floor = Version(u64::MAX - 2)));
    assert!(installs(&|head| _ = head.pending.insert(one, vote(&[1, 2], 1))));
    assert!(installs(&|head| _ = head.taken_back.insert(one, taken(&[1, 2]))));
    for floor in [u64::MAX - 1, u64::MAX] {
        assert!(!installs(&|head| head.floor = Version(floor)), "nothing would follow it");
    }
    assert!(!installs(&|head| _ = head.pending.insert(one, vote(&[1, 2], u64::MAX))));
    assert!(!installs(&|head| _ = head.pending.insert(one, vote(&[2, 3], 1))));
    assert!(!installs(&|head| _ = head.taken_back.insert(one, taken(&[]))));
    assert!(!installs(&|head| _ = head.taken_back.insert(one, taken(&[2, 3]))));
    assert!(installs(&|head| head.horizon = u64::MAX - 1));
    assert!(!installs(&|head| head.horizon = u64::MAX), "nobody could begin anything");
    // Whoever goes on from there would come to votes that have no number.
    for seq in [u64::MAX - 1, u64::MAX - 2] {
        let (next, far) = (VoteSeq(seq), VoteSeq(seq));
        assert!(!installs(&|head| {
            head.taken_back.insert(one, TakenBack { next, ..taken(&[1, 2]) });
        }));
        assert!(!installs(&|head| {
            head.pending.insert(one, Prepared { seq: far, ..vote(&[1, 2], 1) });
        }));
    }
    let last = (crate::serializable::Client(1), u64::MAX);
    assert!(!installs(&|head| _ = head.outcomes.insert(last, recorded())));
    let page = |name: Raw, version| {
        let item = Stored { version: Version(version), op: 1, writer: one, content: None };
        keys::encode(&vec![(name, item)])
    };
    disk.call(|store| {
        assert!(state.install(&page(key("1x"), u64::MAX - 1), store));
        assert!(!state.install(&page(key("1y"), u64::MAX), store), "no key has such a version");
        assert!(!state.install(&page(long(), 1), store), "there is no such key");
        assert_eq!(state.item(&key("1y"), store.table).version, Version(0));
    });
}

#[test]
fn messages_that_no_group_sends_are_not_read() {
    let crosses = |message: &Message| {
        let body = Body::encode(message, &mut BytesMut::new()).expect("it is short enough");
        body.decode::<Message>()
    };
    for (counter, is_read) in [(0, false), (1, true), (u64::MAX - 1, true), (u64::MAX, false)] {
        let (tx, group, seq, groups) = (tx(counter, 4), GroupId(2), VoteSeq(0), groups(&[1, 2]));
        let all = [
            Message::Vote { tx, group, groups: groups.clone(), seq, vote: Ok(Vec::new()) },
            Message::Decision { tx, group: GroupId(1), outcome: Ok(()) },
            Message::Applied { tx, group },
            Message::RevokeVote { tx, group, groups, seq },
            Message::RevokeGranted { tx, group: GroupId(1), seq },
        ];
        for message in all {
            assert_eq!(crosses(&message).is_ok(), is_read, "{message:?}");
        }
    }
    let error = crate::serializable::ActError::Condition;
    let outcome = Err(Cause::Act { key: long(), error, by: tx(1, 1) });
    let decision = Message::Decision { tx: tx(3, 4), group: GroupId(1), outcome };
    assert!(crosses(&decision).is_err(), "no key is so long");
    let digits = Raw(Bytes::from(vec![b'1'; rules::ANSWER_BYTES_MAX + 1]));
    let vote = Ok(vec![Ok(crate::serializable::Done::Float(digits))]);
    let (group, groups, seq) = (GroupId(2), groups(&[1, 2]), VoteSeq(0));
    let vote = Message::Vote { tx: tx(3, 4), group, groups, seq, vote };
    assert!(crosses(&vote).is_err(), "no number has so many digits");
}

/// A member of another group, or of this one, says what its group has no part in.
#[test]
fn messages_of_no_other_group_that_says_so_do_nothing() {
    let mut world = World::new(3);
    let (tx, seq) = (tx(3, 4), VoteSeq(0));
    let vote = |group, ids: &[u64]| {
        let (group, groups) = (GroupId(group), groups(ids));
        Message::Vote { tx, group, groups, seq, vote: Ok(Vec::new()) }
    };
    let revoke = |group, ids: &[u64]| {
        let (group, groups) = (GroupId(group), groups(ids));
        Message::RevokeVote { tx, group, groups, seq }
    };
    let decision = |group| {
        let outcome = Err(Cause::Timeout);
        Message::Decision { tx, group: GroupId(group), outcome }
    };
    let applied = |group| Message::Applied { tx, group: GroupId(group) };
    let granted = |group| Message::RevokeGranted { tx, group: GroupId(group), seq };
    let wrong = [
        decision(2),
        decision(3),
        applied(1),
        applied(2),
        granted(2),
        granted(3),
        vote(2, &[2, 3]),
        vote(3, &[1, 2, 3]),
        revoke(2, &[2, 3]),
        revoke(3, &[1, 3]),
    ];
    for message in wrong {
        assert!(!message.is_of(GroupId(2)), "{message:?}");
        world.handle_primary(TWO, Input::Message(message));
    }
    assert!(world.groups[TWO].tail.is_empty() && world.net.is_empty());
    world.check_quiet();
    for message in [decision(1), applied(3), vote(3, &[2, 3]), revoke(3, &[2, 3]), granted(1)] {
        assert!(message.is_of(GroupId(2)), "{message:?}");
    }
}

/// Only the group that decides can promise that a vote counts no more: it may have counted it.
#[test]
fn a_grant_of_another_group_takes_no_vote_back() {
    let mut world = World::new(3);
    let acts = [("1x", put("a")), ("3x", put("b"))];
    let ticket = world.commit_tx(tx(2, 1), &[], &acts);
    (0..3).for_each(|at| world.commit(at, usize::MAX));
    let granted = |group| {
        let (tx, group, seq) = (tx(2, 1), GroupId(group), VoteSeq(0));
        Input::Message(Message::RevokeGranted { tx, group, seq })
    };
    world.handle_primary(2, granted(2));
    assert!(world.groups[2].tail.is_empty(), "another group grants it");
    world.settle();
    assert!(world.is_committed(ticket));
    assert_eq!((world.value("1x").0, world.value("3x").0), (1, 1), "both halves are done");
    world.commit_at(2, tx(3, 1), &[], &acts);
    world.commit(2, usize::MAX);
    let (tx, group, seq) = (tx(3, 1), GroupId(1), VoteSeq(0));
    world.handle_primary(2, Input::Message(Message::RevokeGranted { tx, group, seq }));
    assert_eq!(world.groups[2].tail.len(), 1, "the one that decides may");
}

/// Should a primary come to an entry that no member would take, it stops before that is in a log.
#[test]
#[should_panic(expected = "members would not take")]
fn what_no_member_would_take_is_not_proposed() {
    let (state, disk, mut out) = (State::new(GroupId(1)), Disk::default(), Vec::new());
    let now = quorate_kernel::time::Time(0);
    let (state, table, is_settled) = (&state, &disk, true);
    let mut cx = Context { state, is_settled, life: 0, table, now, wall: 5, out: &mut out };
    let mut primary = Primary::new(Optimizations::default(), &cx);
    primary.propose(Entry::Horizon { counter: u64::MAX - 1 }, &mut cx);
    assert_eq!(cx.out.len(), 1, "this one they take");
    primary.propose(Entry::Horizon { counter: u64::MAX }, &mut cx);
}

/// What is noted of an entry that is ahead of time is no less than what is remembered when it was
/// executed, and not much more; of a decision, what other groups are told first is noted when that
/// is over.
#[test]
fn what_is_noted_of_an_entry_is_what_it_leaves() {
    let (mut state, mut disk) = (State::new(GroupId(1)), Disk::default());
    let answers = vec![Ok(crate::serializable::Done::Integer(3)); 20];
    let whole = |id, mark| {
        let outcome = Ok((vec![change(1)], answers.clone()));
        Entry::DecidedApplied { tx: id, outcome, mark, clock: 5 }
    };
    let entries = [
        whole(tx(9, 1), 9),
        whole(tx(9, 2), 0),
        Entry::Prepared(vote(&[1, 2], 1)),
        decided(&[1, 2], &[1, 2], 0),
        Entry::Decided { tx: tx(3, 5), groups: Vec::new(), outcome: Err(Cause::Asked) },
        Entry::Prepared(Prepared { rank: Rank { priority: 2, tx: tx(3, 6) }, ..vote(&[1, 2], 1) }),
        Entry::Applied { tx: tx(3, 7), outcome: Err(Cause::Timeout) },
    ];
    for (place, entry) in entries.iter().enumerate() {
        let before = state.head.bytes_ahead(0);
        let op = Op(place as u64 + 1);
        disk.call(|store| state.apply(op, &entry.bytes(), store));
        let (left, noted) = (state.head.bytes_ahead(0) - before, head::of_remembered(entry));
        assert!(noted >= left && noted <= left + 100, "{noted} for {left} bytes: {entry:?}");
    }
}

/// A key is said to have the last version of all. It is shown, and not changed any more; nor does a
/// purge make it that of others.
#[test]
fn a_key_with_the_last_version_stops_nobody() {
    let mut world = World::new(1);
    let last = u64::MAX - 1;
    let delete = Change { effect: Effect::Delete, key: key("1y"), ..change(last) };
    world.groups[ONE].log.push(alone(tx(1, 1), change(last)).bytes());
    world.groups[ONE].log.push(alone(tx(2, 1), delete).bytes());
    world.fail_over(ONE, 1, 0, true);
    assert_eq!(world.value("1x"), (last, Some("v".into())));
    for name in ["1x", "1y"] {
        let ticket = world.commit_tx(tx(3, name.len() as u64), &[], &[(name, put("w"))]);
        world.settle();
        assert_eq!(world.told(ticket), Some(&Outcome::Aborted(Cause::Exhausted)));
    }
    let rests = world.commit_tx(tx(4, 1), &[("1x", last)], &[("1z", put("z"))]);
    world.settle();
    assert!(world.is_committed(rests), "others go on");
    let purge = Op(world.groups[ONE].log.len() as u64);
    world.handle_primary(ONE, Input::Sweep { from: Bytes::new(), purge });
    world.settle();
    assert_eq!(world.state(ONE).head.floor, Version(0), "its tombstone stays");
    let ticket = world.ask(ONE, Request::Read { keys: vec![key("1x"), key("1y")] });
    world.settle();
    assert!(world.answer(ticket).is_some(), "it is shown");
    world.check_quiet();
    world.check_equal();
}

/// A group that does not decide tells nobody why a transaction has failed: it does not keep the
/// key that another group has named.
#[test]
fn what_another_group_names_is_not_remembered() {
    let mut world = World::new(2);
    let decision =
        Message::Decision { tx: tx(3, 4), group: GroupId(1), outcome: Err(long_cause()) };
    world.handle_primary(TWO, Input::Message(decision));
    let bytes: usize = world.groups[TWO].tail.iter().map(Bytes::len).sum();
    assert!(bytes < 100, "{bytes} bytes are logged");
    world.commit(TWO, usize::MAX);
    assert!(world.state(TWO).head.sizes.remembered < 1000);
    assert_eq!(world.state(TWO).outcome(tx(3, 4)), Some(Outcome::Aborted(Cause::Elsewhere)));
}
