//! Every message's bytes are pinned, and any other bytes are an error or another message: never a
//! panic, and no node ends by one.

use super::node::member;
use super::solo::Solo;
use crate::membership::{
    Alert, Body, Change, Configuration, Digest, Message, Number, Refusal, RollId, Round, Shape,
};
use crate::testing::raw::{self, frame, hex, pieces};
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::{
    ADDRESS_BYTES_MAX, ROLL_ALERTS_MAX, ROLL_CHANGE_MAX, ROLL_DECISIONS_MAX,
    ROLL_METADATA_BYTES_MAX, ROLL_RINGS_MAX,
};
use quorate_kernel::rng::Rng;
use std::format;
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

fn read(head: &[u8], tail: &[u8]) -> Result<Message, WireError> {
    raw::read(head, tail)
}

fn change() -> Arc<Change> {
    let joins = Vec::from([Arc::new(member(9)), Arc::new(member(300))]);
    Arc::new(Change::new(joins, Vec::from([NodeId(2)])))
}

const ROLL: RollId = RollId { number: Number(3), digest: Digest(7) };
const ROUND: Round = Round { number: 2, coordinator: NodeId(300) };

/// The tail of [`change`], and of a configuration.
const CHANGE: &str = "02090a686f7374393a373430300109ac020c686f73743330303a37343030012c0102";
const WHOLE: &str = "03070a090402010a686f7374313a373430300101020a686f7374323a3734303001020109";

/// Each body, in the order of their tags, with its head behind the stamp and its tail in
/// hexadecimal digits.
fn golden() -> Vec<(Body, &'static str, &'static str)> {
    let alert = |member: Option<Arc<_>>| Alert { subject: NodeId(9), rings: 0x3ff, member };
    let alerts = Vec::from([alert(None), alert(Some(Arc::new(member(9))))]);
    let founding = Configuration::founding(Shape::DEFAULT, &[member(1), member(2)]);
    let mut whole = founding.expect("it is sound");
    whole.id = ROLL;
    whole.left.push(NodeId(9));
    let observers = Vec::from([1, 2, 1].map(|id| Arc::new(member(id))));
    let (digest, round) = (Digest(300), ROUND);
    Vec::from([
        (Body::Probe { nonce: 300 }, "00ac02", ""),
        (Body::ProbeAck { nonce: 300 }, "01ac02", ""),
        (Body::Alerts { alerts }, "020209ff070009ff0701090a686f7374393a373430300109", ""),
        (Body::FastVote { digest }, "03ac02", ""),
        (Body::Phase1a { round }, "0402ac02", ""),
        (Body::Phase1b { round, voted: Round::NONE, value: None }, "0502ac020000", ""),
        (
            Body::Phase1b { round, voted: Round::FAST, value: Some(change()) },
            "0502ac020100",
            CHANGE,
        ),
        (Body::Phase2a { round, value: change() }, "0602ac02", CHANGE),
        (Body::Phase2b { round, digest }, "0702ac02ac02", ""),
        (Body::Outbid { round }, "0802ac02", ""),
        (Body::Ask { digest: None }, "0900", ""),
        (Body::Ask { digest: Some(digest) }, "0901ac02", ""),
        (Body::Value { value: change() }, "0a", CHANGE),
        (
            Body::Decisions {
                since: RollId { number: Number(2), digest },
                changes: Vec::from([change()]),
            },
            "0b02ac02",
            CHANGE,
        ),
        (Body::Whole { configuration: Arc::new(whole) }, "0c", WHOLE),
        (Body::Kicked, "0d", ""),
        (Body::PreJoin, "0e", ""),
        (
            Body::Observers { observers },
            "0f03010a686f7374313a373430300101020a686f7374323a373430300102010a686f7374313a37343030\
             0101",
            "",
        ),
        (
            Body::Join { member: Arc::new(member(9)), rings: 5 },
            "10090a686f7374393a37343030010905",
            "",
        ),
        (Body::Here, "11", ""),
        (Body::Outside, "12", ""),
        (Body::Refused(Refusal::Gone), "1300", ""),
        (Body::Refused(Refusal::Full), "1301", ""),
        (Body::Depart { node: NodeId(300) }, "14ac02", ""),
    ])
}

fn messages() -> Vec<Message> {
    golden().into_iter().map(|(body, ..)| Message { roll: ROLL, body }).collect()
}

/// How many variants there are. Without a wildcard, so that a new one must be added to [`golden`].
fn tag(body: &Body) -> u8 {
    match body {
        Body::Probe { .. } => 0,
        Body::ProbeAck { .. } => 1,
        Body::Alerts { .. } => 2,
        Body::FastVote { .. } => 3,
        Body::Phase1a { .. } => 4,
        Body::Phase1b { .. } => 5,
        Body::Phase2a { .. } => 6,
        Body::Phase2b { .. } => 7,
        Body::Outbid { .. } => 8,
        Body::Ask { .. } => 9,
        Body::Value { .. } => 10,
        Body::Decisions { .. } => 11,
        Body::Whole { .. } => 12,
        Body::Kicked => 13,
        Body::PreJoin => 14,
        Body::Observers { .. } => 15,
        Body::Join { .. } => 16,
        Body::Here => 17,
        Body::Outside => 18,
        Body::Refused(_) => 19,
        Body::Depart { .. } => 20,
    }
}

#[test]
fn every_message_has_its_bytes_and_is_read_back() {
    let mut wrong = String::new();
    for (body, head, tail) in golden() {
        let message = Message { roll: ROLL, body };
        let (actual_head, actual_tail) = pieces(&message);
        let stamped = format!("0307{head}");
        if hex(&actual_head) != stamped || hex(&actual_tail) != tail {
            let body = &message.body;
            wrong += &format!("{body:?}: {} {}\n", hex(&actual_head), hex(&actual_tail));
        }
        assert_eq!(actual_head[2], tag(&message.body));
        assert_eq!(frame(&message).decode(), Ok(message));
    }
    assert!(wrong.is_empty(), "{wrong}");
    let tags: std::collections::BTreeSet<u8> = golden().iter().map(|one| tag(&one.0)).collect();
    assert!(tags.into_iter().eq(0..21), "every variant has its bytes");
    assert!(read(&[3, 7, 21], b"").is_err(), "there is no other");
}

#[test]
fn what_is_cut_off_is_an_error() {
    for message in messages() {
        let (head, tail) = pieces(&message);
        for length in 0..head.len() {
            assert!(read(&head[..length], &tail).is_err(), "{message:?} cut to {length}");
        }
        assert!(read(&[&head[..], &[0]].concat(), &tail).is_err(), "{message:?} and a byte");
        assert!(read(&head, &[&tail[..], &[0]].concat()).is_err(), "{message:?} and a byte behind");
        for length in 1..tail.len() {
            assert!(read(&head, &tail[..length]).is_err(), "{message:?}, tail cut to {length}");
        }
    }
}

/// What can be read of damaged bytes ends no node, of whatever kind it is.
#[test]
fn damaged_messages_are_survived() {
    let mut rng = Rng::new(7);
    let mut heard = 0;
    for round in 0..400 {
        let mut solo = Solo::new(1 + round % 6);
        let id = solo.configuration.id;
        for mut message in messages() {
            if rng.below(2) == 0 {
                message.roll = id;
            }
            let (mut head, mut tail) = pieces(&message);
            for _ in 0..rng.below(3) {
                let piece = if rng.below(3) == 0 { &mut tail } else { &mut head };
                match (piece.len() as u64, rng.below(3)) {
                    (0, _) => piece.push(rng.below(256) as u8),
                    (length, 0) => piece.truncate(rng.below(length) as usize),
                    (length, _) => piece[rng.below(length) as usize] = rng.below(256) as u8,
                }
            }
            let Ok(read) = read(&head, &tail) else { continue };
            assert_eq!(frame(&read).decode(), Ok(read.clone()));
            heard += 1;
            let from = Incarnation { node: NodeId(rng.between(1, 7)), start: Start(1) };
            solo.turn(|roll, cx| roll.on_message(from, read, cx));
            if rng.below(4) == 0 {
                solo.tick_ms(100 * rng.between(1, 20));
            }
        }
        solo.restart();
        solo.tick_ms(1000);
    }
    assert!(heard > 3000, "{heard} could be read");
}

#[test]
fn what_is_too_much_or_makes_no_sense_is_an_error() {
    let with = |body: Body| {
        let (head, tail) = pieces(&Message { roll: ROLL, body });
        read(&head, &tail)
    };
    let alert = |rings| Alert { subject: NodeId(9), rings, member: None };
    let alerts = |count: usize, rings| Body::Alerts { alerts: std::vec![alert(rings); count] };
    assert!(with(alerts(ROLL_ALERTS_MAX, 1)).is_ok());
    assert!(with(alerts(ROLL_ALERTS_MAX + 1, 1)).is_err() && with(alerts(0, 1)).is_err());
    assert!(with(alerts(1, 0)).is_err(), "in no ring");
    let other = Alert { member: Some(Arc::new(member(8))), ..alert(1) };
    assert!(with(Body::Alerts { alerts: Vec::from([other]) }).is_err(), "of another");
    let classic = |number| Round { number, coordinator: NodeId(1) };
    for round in [Round::NONE, Round::FAST, classic(u64::from(u32::MAX) + 1)] {
        assert!(with(Body::Phase1a { round }).is_err(), "{round:?}");
        assert!(with(Body::Phase2a { round, value: change() }).is_err(), "{round:?}");
    }
    let vote = |voted, value| with(Body::Phase1b { round: classic(3), voted, value });
    assert!(vote(classic(2), Some(change())).is_ok());
    assert!(vote(classic(2), None).is_err() && vote(Round::NONE, Some(change())).is_err());
    assert!(vote(classic(3), Some(change())).is_err(), "a promise is of earlier rounds");
    let since = RollId { number: Number(1), digest: Digest(1) };
    let decisions = |count| Body::Decisions { since, changes: std::vec![change(); count] };
    assert!(with(decisions(2)).is_ok() && with(decisions(0)).is_err());
    assert!(with(decisions(3)).is_err(), "more than the sender's number says");
    let whole = |number| {
        let founding = Configuration::founding(Shape::DEFAULT, &[member(1)]);
        let mut configuration = founding.expect("it is sound");
        configuration.id.number = Number(number);
        let roll = configuration.id;
        let body = Body::Whole { configuration: Arc::new(configuration) };
        let (head, tail) = pieces(&Message { roll, body });
        read(&head, &tail)
    };
    assert!(whole(u64::MAX / 2).is_ok());
    assert!(whole(u64::MAX).is_err(), "none could follow it");
    let many: Vec<NodeId> = (0..=ROLL_CHANGE_MAX as u64).map(NodeId).collect();
    let large = Arc::new(Change { joins: Vec::new(), leaves: many });
    assert!(with(Body::Value { value: large }).is_err());
    let roll = RollId::default();
    let (head, tail) = pieces(&Message { roll, body: Body::FastVote { digest: Digest(1) } });
    assert!(read(&head, &tail).is_err(), "nobody votes who has no configuration");
}

/// The largest of each kind fits a message.
#[test]
fn the_longest_messages_fit() {
    let mut longest = member(u64::MAX);
    longest.address = "a".repeat(ADDRESS_BYTES_MAX);
    longest.metadata = std::vec![255; ROLL_METADATA_BYTES_MAX];
    let longest = Arc::new(longest);
    let alert = Alert { subject: longest.id, rings: u16::MAX, member: Some(Arc::clone(&longest)) };
    let alerts = std::vec![alert; ROLL_ALERTS_MAX];
    let observers = std::vec![Arc::clone(&longest); ROLL_RINGS_MAX];
    let roll = RollId { number: Number(u64::MAX), digest: Digest(u128::MAX) };
    for body in [Body::Alerts { alerts }, Body::Observers { observers }] {
        let message = Message { roll, body };
        assert!(pieces(&message).0.len() > 5000);
        assert_eq!(frame(&message).decode(), Ok(message));
    }
    let joins = (0..ROLL_CHANGE_MAX as u64).map(|id| {
        let id = NodeId(u64::MAX - id);
        Arc::new(crate::membership::Member { id, ..(*longest).clone() })
    });
    let value = Arc::new(Change::new(joins.collect(), Vec::new()));
    let message = Message { roll, body: Body::Value { value: Arc::clone(&value) } };
    assert_eq!(frame(&message).decode(), Ok(message));
    let since = RollId { number: Number(1), digest: Digest(1) };
    let changes = std::vec![value; ROLL_DECISIONS_MAX];
    let message = Message { roll, body: Body::Decisions { since, changes } };
    let (head, tail) = pieces(&message);
    assert!(read(&head, &tail).is_err(), "so much is told as a whole configuration");
}
