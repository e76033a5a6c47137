//! What is in logs and stores: its bytes stay, and what was let in is read.

use super::lies::{alone, change, decided, dropped, groups, revoked, vote};
use super::world::{Disk, World, key, tx};
use crate::serializable::{
    ActError, Cause, Done, Effect, Entry, Head, Input, Message, Moved, Outcome, Prepared, Recorded,
    Results, State, Step, Stored, TakenBack, Version, VoteSeq, keys, rules,
};
use crate::vsr::{Machine, Op};
use bytes::Bytes;
use quorate_kernel::ids::{GroupId, NodeId};
use std::vec;
use std::vec::Vec;

fn hex(bytes: &[u8]) -> std::string::String {
    bytes.iter().map(|byte| std::format!("{byte:02x}")).collect()
}

/// Bytes as this version writes them. Where a change of the code changes these, the version of
/// entries, or of what is stored, goes up: `entry.rs` says when.
#[test]
fn the_bytes_of_a_version_stay() {
    let revert = Entry::Reverted { tx: tx(3, 4), seq: VoteSeq(1) };
    let refused = Prepared { vote: Err(Cause::Lost), ..vote(&[1, 2], 1) };
    let entries = [
        alone(tx(3, 4), change(1)),
        Entry::Prepared(vote(&[1, 2], 1)),
        Entry::Prepared(refused),
        revert,
        decided(&[1, 2], &[1, 2], 0),
        revoked(&[1, 2], 2),
        Entry::Applied { tx: tx(3, 4), outcome: Err(Cause::Elsewhere) },
        Entry::Forget { txs: vec![tx(3, 4)] },
        Entry::ClientGone { client: crate::serializable::Client(4) },
        dropped(1),
        Entry::Expire { clock: 9, keys: vec![(key("1x"), Version(1))] },
        Entry::Horizon { counter: 8 },
    ];
    for entry in &entries {
        let mut before = entry.bytes().to_vec();
        before[0] -= 1;
        assert!(Entry::of(&before).is_err(), "an earlier version is not taken for this one");
    }
    let mut all: Vec<Bytes> = entries.iter().map(Entry::bytes).collect();
    let mut head = Head { floor: Version(1), clock: 2, horizon: 3, ..Head::default() };
    head.pending.insert(tx(3, 4), vote(&[1, 2], 1));
    let taken = TakenBack { next: VoteSeq(1), groups: groups(&[1, 2]), digest: 7 };
    head.taken_back.insert(tx(5, 4), taken);
    let first = [(GroupId(2), VoteSeq(1))].into();
    head.revoked.insert(tx(6, 4), crate::serializable::Revoked { groups: groups(&[1, 2]), first });
    let recorded = Recorded { outcome: Ok(vec![(GroupId(1), Vec::new())]), groups: groups(&[2]) };
    head.outcomes.insert((crate::serializable::Client(4), 7), recorded);
    head.marks.insert(crate::serializable::Client(4), 4);
    all.push(keys::encode(&head));
    let content = Some((key("v"), Some(9)));
    let item = Stored { version: Version(1), op: 2, writer: tx(3, 4), content };
    all.push(keys::encode(&item));
    let expected = [
        "0200030400010231780100017600000005",
        "02010203040201020000000102317801023178010001760000070105",
        "0201020304020102000106070105",
        "0202030401",
        "020303040201020002010000020000",
        "020403040201020200",
        "020503040107",
        "0206010304",
        "020704",
        "0208010231780101",
        "0209090102317801",
        "020a08",
        concat!(
            "02010201030402030402010200000001023178010231780100017600000701050105040102010207",
            "01060402010201020101040700010100010201040403",
        ),
        "02010203040101760109",
    ];
    assert_eq!(all.iter().map(|bytes| hex(bytes)).collect::<Vec<_>>(), expected);
}

/// The same of buckets that move; a head in which none has moved is as it was before.
#[test]
fn the_bytes_of_what_moves_stay() {
    let (bucket, content) = (b'1', Some((key("v"), Some(9))));
    let item = Stored { version: Version(1), op: 2, writer: tx(3, 4), content };
    let members = vec![NodeId(1), NodeId(2)];
    let steps = [
        Step::Found { group: GroupId(3), members },
        Step::Arriving { bucket, from: GroupId(1), version: 0 },
        Step::Arrived { bucket, items: vec![(key("1x"), item)] },
        Step::Passed { bucket, as_of: 7, purged: 1, releases: true },
        Step::Abandon { bucket, home: GroupId(1), version: 0, is_awaited: true },
        Step::Release { bucket, to: GroupId(2), version: 3 },
        Step::Take { bucket, version: 3, floor: Version(1) },
        Step::Let { bucket, version: 3 },
        Step::Clear { keys: vec![key("1x")] },
    ];
    let expected = [
        "020b0003020102",
        "020b01310100",
        "020b023101023178010203040101760109",
        "020b0331070101",
        "020b0431010001",
        "020b05310203",
        "020b06310301",
        "020b073103",
        "020b0801023178",
    ];
    let bytes = steps.map(|step| hex(&Entry::Move(step).bytes()));
    assert_eq!(bytes, expected);
    let mut head = Head { floor: Version(1), clock: 2, horizon: 3, ..Head::default() };
    let before = keys::encode(&head);
    assert_eq!(keys::encode_head(&head), before);
    let (home, is_kept, is_awaited, arrival) = (GroupId(2), true, false, None);
    let moved = Moved { version: 3, home, is_kept, is_awaited, arrival };
    head.moves.buckets.insert(bucket, moved);
    let bytes = keys::encode_head(&head);
    assert_eq!(hex(&bytes), std::format!("{}013103020100000000", hex(&before)));
    assert_eq!(keys::read_head(&bytes), Some(head));
    assert_eq!(keys::read_head(&bytes[..bytes.len() - 1]), None, "not if they are cut");
}

/// The same of what entries and heads hold: each variant of it.
#[test]
fn the_bytes_of_what_entries_hold_stay() {
    let (found, error, by) = (Version(2), ActError::Condition, tx(3, 4));
    let causes = vec![
        Cause::Version { key: key("1x"), expected: Version(1), found, by },
        Cause::Act { key: key("1x"), error, by },
        Cause::TooLarge,
        Cause::Timeout,
        Cause::Asked,
        Cause::Forgotten,
        Cause::Lost,
        Cause::Elsewhere,
        Cause::Exhausted,
        Cause::ReadsTooMuch { bytes: 300, bytes_max: 200 },
    ];
    let errors = [
        ActError::Condition,
        ActError::NotAnInteger,
        ActError::NotAFloat,
        ActError::Overflow,
        ActError::NotFinite,
        ActError::TooLong,
    ];
    let done = [
        Done::Put,
        Done::Deleted { existed: true },
        Done::Integer(-3),
        Done::Float(key("5")),
        Done::Length(7),
        Done::Expiry { changed: true },
    ];
    let results: Results = done.into_iter().map(Ok).chain(errors.map(Err)).collect();
    let effects = vec![Effect::Put { value: key("v"), expires: Some(9) }, Effect::Delete];
    let all = [keys::encode(&causes), keys::encode(&results), keys::encode(&effects)];
    let expected = [
        "020a0002317801020304010231780003040203040506070809ac02c801",
        "020c000000010100020500030135000407000501010001010102010301040105",
        "0202000176010901",
    ];
    assert_eq!(all.iter().map(|bytes| hex(bytes)).collect::<Vec<_>>(), expected);
}

/// A vote that is too long by now ends, and stops no primary; a key that is, stays.
#[test]
fn what_is_longer_than_limits_stops_no_primary() {
    let mut world = World::new(2);
    let digits = key(&"1".repeat(rules::ANSWER_BYTES_MAX + 1));
    let (one, mut prepared) = (tx(3, 4), vote(&[1, 2], 1));
    prepared.vote.as_mut().expect("it is ready").results = vec![Ok(Done::Float(digits))];
    let long = key(&"k".repeat(rules::ITEM_KEY_BYTES_MAX + 1));
    let named = |key, effect| crate::serializable::Change { key, effect, ..change(1) };
    let expires = Effect::Put { value: key("v"), expires: Some(6) };
    let other = key(&"l".repeat(rules::ITEM_KEY_BYTES_MAX + 1));
    let entries = [
        Entry::Prepared(prepared),
        alone(tx(1, 1), named(long, Effect::Delete)),
        alone(tx(2, 1), named(other, expires)),
    ];
    world.groups[0].log.extend(entries.iter().map(Entry::bytes));
    // It is checked as far as limits leave it.
    let its = &mut world.groups[0].replicas[0];
    for (place, entry) in entries.iter().enumerate() {
        let (op, state) = (Op(place as u64 + 1), &mut its.state);
        its.disk.call(|store| state.apply(op, &entry.bytes(), store));
        its.applied += 1;
    }
    its.state.take_executed();
    world.handle(0, 0, Input::Deposed);
    world.handle(0, 0, Input::Serving);
    let purge = Op(world.groups[0].log.len() as u64);
    world.handle_primary(0, Input::Sweep { from: Bytes::new(), purge });
    assert!(world.groups[0].tail.is_empty(), "nothing is proposed that nobody takes");
    let (group, groups, seq) = (GroupId(2), groups(&[1, 2]), VoteSeq(0));
    let told = Message::Vote { tx: one, group, groups, seq, vote: Ok(Vec::new()) };
    world.handle_primary(0, Input::Message(told));
    world.commit(0, usize::MAX);
    assert_eq!(world.state(0).outcome(one), Some(Outcome::Aborted(Cause::TooLarge)));
}

/// Limits are those of what comes into a log. What is in one was let in by the limits of its time.
#[test]
fn what_is_in_the_log_is_executed_whatever_the_limits_are() {
    let (mut state, mut disk) = (State::new(GroupId(1)), Disk::default());
    let digits = key(&"1".repeat(rules::ANSWER_BYTES_MAX + 1));
    let outcome = Ok((vec![change(1)], vec![Ok(Done::Float(digits))]));
    let entry = Entry::DecidedApplied { tx: tx(3, 4), outcome, mark: 0, clock: 5 }.bytes();
    assert!(!state.is_command(&entry), "nobody takes it now");
    disk.call(|store| state.apply(Op(1), &entry, store));
    assert!(matches!(state.outcome(tx(3, 4)), Some(Outcome::Committed(_))));
}
