//! Every message's bytes are pinned, and any other bytes are an error or another message: never a
//! panic, and no node ends by one.

use super::traps::{Solo, copy, event};
use crate::epto::{Ball, Digest, EventKey, LogicalTime, Message, Payloads, Sequence};
use crate::testing::raw::{self, frame, hex, pieces};
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::{
    EPTO_BALL_EVENTS_MAX, EPTO_PAYLOAD_BYTES_MAX, EPTO_PULL_KEYS_MAX, EPTO_TIME_MAX, EPTO_TTL_MAX,
};
use quorate_kernel::rng::Rng;
use std::sync::Arc;
use std::vec::Vec;

fn read(head: &[u8], tail: &[u8]) -> Result<Message, WireError> {
    raw::read(head, tail)
}

fn messages() -> Vec<Message> {
    let (one, two) = (event(3, 2, 1), event(300, 9, 7));
    let ball = Ball(Vec::from([copy(one, 0), copy(two, 11)]));
    let payloads = Payloads {
        found: Vec::from([(one.key, 2), (two.key, 3)]),
        absent: Vec::from([event(301, 9, 8).key]),
        bytes: Bytes::from_static(b"aabbb"),
    };
    Vec::from([
        Message::Ball(Arc::new(ball)),
        Message::Pull(Vec::from([one.key, two.key])),
        Message::Payloads(payloads),
    ])
}

#[test]
fn every_message_has_its_bytes_and_is_read_back() {
    let ball = "0002030201010c14562bbad149532aa30001ac020901070c1607c46fb6cfaaa16e0b01";
    let payloads = "020203020102ac0209010301ad020901";
    let expected = [(ball, ""), ("0102030201ac020901", ""), (payloads, "6161626262")];
    for (message, (head, tail)) in messages().iter().zip(expected) {
        let (actual_head, actual_tail) = pieces(message);
        assert_eq!((&*hex(&actual_head), &*hex(&actual_tail)), (head, tail));
        assert_eq!(frame(message).decode().as_ref(), Ok(message));
    }
    assert!(read(&[3], b"").is_err(), "there is no other");
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
        for length in 0..tail.len() {
            assert!(read(&head, &tail[..length]).is_err(), "{message:?}, tail cut to {length}");
        }
    }
}

/// What can be read of damaged bytes ends no node, and leaves it within its bounds.
#[test]
fn damaged_messages_are_survived() {
    let mut rng = Rng::new(7);
    let (mut heard, mut solo) = (0, Solo::new());
    for round in 0..2000 {
        if round % 100 == 0 {
            solo = Solo::new();
        }
        for message in messages() {
            let (mut head, mut tail) = pieces(&message);
            for _ in 0..rng.below(3) {
                let piece = if rng.below(4) == 0 { &mut tail } else { &mut head };
                match (piece.len() as u64, rng.below(3)) {
                    (0, _) => piece.push(rng.below(256) as u8),
                    (length, 0) => piece.truncate(rng.below(length) as usize),
                    (length, _) => piece[rng.below(length) as usize] = rng.below(256) as u8,
                }
            }
            let Ok(read) = read(&head, &tail) else { continue };
            assert_eq!(frame(&read).decode(), Ok(read.clone()));
            heard += 1;
            solo.epto.on_message(NodeId(rng.between(2, 5)), &read, &mut solo.told);
            solo.epto.check();
        }
        if rng.below(4) == 0 {
            solo.epto.on_round(1, &[NodeId(2), NodeId(3)], &mut solo.told);
            solo.epto.check();
            solo.told.clear();
        }
    }
    assert!(heard > 2500, "{heard} could be read");
}

#[test]
fn what_is_too_much_or_makes_no_sense_is_an_error() {
    let with = |message: Message| {
        let (head, tail) = pieces(&message);
        read(&head, &tail)
    };
    let ball = |copies: &[_]| with(Message::Ball(Arc::new(Ball(copies.to_vec()))));
    let one = event(3, 2, 1);
    assert!(ball(&[copy(one, 0)]).is_ok() && ball(&[]).is_err());
    assert!(ball(&[copy(one, 0), copy(one, 0)]).is_err(), "twice");
    assert!(ball(&[copy(event(4, 2, 1), 0), copy(one, 0)]).is_err(), "not in order");
    for wrong in [
        event(0, 2, 1),
        event(EPTO_TIME_MAX + 1, 2, 1),
        event(3, 2, 0),
        event(3, 2, 4),
        crate::epto::Event { ttl_max: 0, ..one },
        crate::epto::Event { ttl_max: EPTO_TTL_MAX + 1, ..one },
        crate::epto::Event {
            payload: Digest { bytes: EPTO_PAYLOAD_BYTES_MAX as u32 + 1, hash: [0; 8] },
            ..one
        },
    ] {
        assert!(ball(&[copy(wrong, 0)]).is_err(), "{wrong:?}");
    }
    let keys = |count: u64| (1..=count).map(|time| event(time, 2, 1).key).collect::<Vec<_>>();
    let most = EPTO_PULL_KEYS_MAX as u64;
    assert!(with(Message::Pull(keys(most))).is_ok());
    assert!(with(Message::Pull(keys(most + 1))).is_err() && with(Message::Pull(keys(0))).is_err());
    let payloads = |absent: u64, length: u32, bytes: usize| {
        let found = Vec::from([(one.key, length)]);
        let bytes = Bytes::from(std::vec![0; bytes]);
        with(Message::Payloads(Payloads { found, absent: keys(absent), bytes }))
    };
    assert!(payloads(0, 9, 9).is_ok() && payloads(most - 1, 0, 0).is_ok());
    assert!(payloads(0, 9, 8).is_err() && payloads(most, 0, 0).is_err());
    let length = EPTO_PAYLOAD_BYTES_MAX + 1;
    assert!(payloads(0, length as u32, length).is_err());
    assert!(with(Message::Payloads(Payloads::default())).is_err(), "nothing");
    // A long list is told in few bytes: it takes no memory before it is there.
    assert!(read(&[0, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], b"").is_err());
}

/// The largest of each kind fits a message.
#[test]
fn the_longest_messages_fit() {
    let source = Incarnation { node: NodeId(u64::MAX), start: Start(u32::MAX) };
    let key = |at: u64| EventKey { time: LogicalTime(EPTO_TIME_MAX - 9999 + at), source };
    let payload = Digest { bytes: EPTO_PAYLOAD_BYTES_MAX as u32, hash: [255; 8] };
    let copied = |at: u64| {
        let (sequence, ttl_max) = (Sequence(1 << 62), EPTO_TTL_MAX);
        let event = crate::epto::Event { key: key(at), sequence, ttl_max, payload };
        crate::epto::Event { sequence: Sequence(event.key.time.0), ..event }
    };
    let copies = (0..EPTO_BALL_EVENTS_MAX as u64).map(|at| copy(copied(at), u16::MAX));
    let keys: Vec<EventKey> = (0..EPTO_PULL_KEYS_MAX as u64).map(key).collect();
    for message in [
        Message::Ball(Arc::new(Ball(copies.collect()))),
        Message::Pull(keys.clone()),
        Message::Payloads(Payloads { absent: keys, ..Payloads::default() }),
    ] {
        assert!(pieces(&message).0.len() > 5000);
        assert_eq!(frame(&message).decode(), Ok(message));
    }
}
