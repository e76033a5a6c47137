//! Messages are read back, and any other bytes are an error or another message: never a panic, and
//! no node ends by one.

use super::world::{World, member};
use crate::epto::{self, EventKey, LogicalTime};
use crate::membership::prime::{Action, Message, Whole};
use crate::membership::{Digest, Number, RollId};
use crate::testing::raw::{self, frame, pieces};
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::rng::Rng;
use std::sync::Arc;
use std::vec::Vec;

fn read(head: &[u8], tail: &[u8]) -> Result<Message, WireError> {
    raw::read(head, tail)
}

/// One of each kind; the state is that of a node that has lived.
fn messages() -> Vec<Message> {
    let mut world = World::new(5, 1);
    world.run(3);
    world.node(2).is_stopped = true;
    world.join(9, 1, &[1]);
    world.run(40);
    let mut actions = Vec::new();
    world.node(1).prime.on_message(NodeId(3), Message::Fetch, &mut actions);
    let [Action::Send { message: whole, .. }] = &actions[..] else { panic!("it answers") };
    let source = Incarnation { node: NodeId(3), start: Start(1) };
    let key = EventKey { time: LogicalTime(3), source };
    let view = |number| RollId { number: Number(number), digest: Digest(300) };
    Vec::from([
        Message::Epto(epto::Message::Pull(Vec::from([key]))),
        Message::Probe { nonce: 300, view: view(2) },
        Message::ProbeAck { nonce: 300, view: view(2) },
        Message::Ask,
        Message::Views { chain: Vec::from([view(2), view(3)]), last: Some(key) },
        Message::Fetch,
        whole.clone(),
        Message::Join(Arc::new(member(9))),
        Message::Gone,
        Message::Rests { view: view(2), last: Some(key) },
        Message::Meet { chain: Vec::from([view(2), view(3)]), members: 300, is_sure: true },
    ])
}

/// Times and sequences that no correct peer has are refused: a node that took them over could say
/// nothing any more, and would believe nobody.
#[test]
fn a_state_of_another_time_is_refused() {
    let messages = messages();
    let whole = messages.iter().find_map(|message| match message {
        Message::Whole(Some(whole)) => Some((**whole).clone()),
        _ => None,
    });
    let whole = whole.expect("one of each kind");
    let is_read = |whole: &Whole| {
        frame(&Message::Whole(Some(Arc::new(whole.clone())))).decode::<Message>().is_ok()
    };
    assert!(is_read(&whole));
    let mut far = whole.clone();
    far.horizon.clock = LogicalTime(u64::MAX);
    assert!(!is_read(&far));
    let mut far = whole.clone();
    far.horizon.sources[0].1.0 = u64::MAX;
    assert!(!is_read(&far));
    let source = Incarnation { node: NodeId(3), start: Start(1) };
    let last = Some(EventKey { time: LogicalTime(u64::MAX), source });
    let view = RollId { number: Number(2), digest: Digest(300) };
    for message in
        [Message::Rests { view, last }, Message::Views { chain: Vec::from([view]), last }]
    {
        assert!(frame(&message).decode::<Message>().is_err(), "{message:?}");
    }
}

#[test]
fn every_message_is_read_back_and_what_is_cut_off_is_an_error() {
    for (tag, message) in messages().iter().enumerate() {
        let (head, tail) = pieces(message);
        assert_eq!(usize::from(head[0]), tag, "tags stay what they are");
        assert_eq!(frame(message).decode().as_ref(), Ok(message));
        for length in 0..head.len() {
            assert!(read(&head[..length], &tail).is_err(), "{message:?} cut to {length}");
        }
        assert!(read(&[&head[..], &[0]].concat(), &tail).is_err(), "{message:?} and a byte");
        assert!(read(&head, &[&tail[..], &[0]].concat()).is_err(), "{message:?} and a byte behind");
        for length in 0..tail.len() {
            assert!(read(&head, &tail[..length]).is_err(), "{message:?}, tail cut to {length}");
        }
    }
    assert!(read(&[11], b"").is_err(), "there is no other");
}

#[test]
fn damaged_messages_are_survived() {
    let mut rng = Rng::new(7);
    let (mut heard, messages) = (0, messages());
    for round in 0..60 {
        let mut world = World::new(1 + round % 6, round);
        for _ in 0..8 {
            for message in &messages {
                let (mut head, mut tail) = pieces(message);
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
                let from = NodeId(rng.between(2, 9));
                let prime = &mut world.node(1).prime;
                prime.on_message(from, read, &mut Vec::new());
                prime.check();
            }
            world.run(1);
        }
    }
    assert!(heard > 1500, "{heard} could be read");
}
