//! Every message's bytes are pinned, and any other bytes are survived.
//!
//! Messages outlive the code that sends them. A changed byte here is a change of the protocol:
//! append a variant instead. `docs/wire.md` shows the same table.

use super::any::any_message;
use super::golden::{Golden, VARIANTS, golden, view_id, who};
use crate::linearizable::group::{Generation, Standing};
use crate::linearizable::message::{Beat, Known, Message};
use crate::linearizable::record::{COUNTER_MAX, Record, Ts};
use crate::reconfigure;
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use quorate_kernel::ids::{GroupId, LaneId, NodeId};
use quorate_kernel::limits::{BEATS_MAX, RECONFIGURES_MAX};
use quorate_kernel::operation::Cursor;
use quorate_kernel::view::{Change, ViewId};
use quorate_kernel::wire::{Body, Frame, Received, Wire};
use std::collections::BTreeSet;
use std::format;
use std::string::String;
use std::vec::Vec;

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn unhex(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("digits");
    (0..digits.len() / 2).map(|at| byte(2 * at)).collect()
}

pub(crate) fn frame(message: &Message) -> Bytes {
    let body = Body::encode(message, &mut BytesMut::new()).expect("it fits");
    let frame = Frame { lane: LaneId(3), source: who(1, 2), target: who(2, 0), body };
    frame.to_bytes()
}

/// The head and the two tails of a message, as they stand in a frame.
fn pieces(message: &Message) -> [Vec<u8>; 3] {
    let received = Received::decode(frame(message)).expect("a frame");
    let (head, [first, second]) = received.message.parts();
    [head, first, second].map(|piece| piece.to_vec())
}

fn decode(bytes: Bytes) -> Message {
    let received = Received::decode(bytes).expect("a frame");
    received.message.message().expect("a message")
}

#[test]
fn every_message_has_its_bytes() {
    let golden = golden();
    let mut wrong = String::new();
    for one in &golden {
        let actual = pieces(&one.message).map(|piece| hex(&piece));
        if actual != one.bytes {
            wrong += &format!("{}: {actual:?}\n", one.name());
        }
        assert_eq!(decode(frame(&one.message)), one.message);
    }
    assert!(wrong.is_empty(), "{wrong}");
    for one in &golden {
        assert_eq!(unhex(one.bytes[0])[0], one.tag(), "{} begins with its tag", one.name());
    }
    let tags: BTreeSet<u8> = golden.iter().map(Golden::tag).collect();
    assert!(tags.into_iter().eq(0..VARIANTS), "every variant has its bytes");
}

#[test]
fn a_whole_frame_has_its_bytes() {
    let (round, since, epoch, forgot, from) = (2, view_id(), 0, true, Cursor::at(0));
    let message = Message::ListA { round, since, epoch, forgot, from };
    assert_eq!(
        hex(&frame(&message)),
        "300000000f030000000100000000000000020000000200000000000000000000005b7ef22d0700000000000\
         00006020103000100"
    );
}

/// A body whose pieces are any bytes, as a peer gone wrong could send them with a right checksum.
#[derive(Clone, Debug)]
struct Raw([Vec<u8>; 3]);

impl Wire for Raw {
    fn encode(&self, out: &mut quorate_kernel::wire::Encoder<'_>) {
        for byte in &self.0[0] {
            out.head(byte);
        }
        out.tail(0, &Bytes::copy_from_slice(&self.0[1]));
        out.tail(1, &Bytes::copy_from_slice(&self.0[2]));
    }

    fn decode(
        _input: &quorate_kernel::wire::Decoder,
    ) -> Result<Raw, quorate_kernel::error::WireError> {
        unreachable!("only sent");
    }
}

fn survive(pieces: [Vec<u8>; 3]) -> Result<Message, quorate_kernel::error::WireError> {
    Body::encode(&Raw(pieces), &mut BytesMut::new()).expect("it fits").decode()
}

proptest! {
    #[test]
    fn every_message_is_read_back(message in any_message()) {
        prop_assert_eq!(decode(frame(&message)), message.clone());
        prop_assert_eq!(survive(pieces(&message)), Ok(message));
    }

    #[test]
    fn any_bytes_are_survived(head: Vec<u8>, first: Vec<u8>, second: Vec<u8>) {
        let _ = survive([head, first, second]);
    }

    #[test]
    fn damaged_messages_are_survived(
        message in any_message(),
        at: (u8, prop::sample::Index),
        by in 1u8..,
        cut: prop::sample::Index,
    ) {
        let mut pieces = pieces(&message);
        let piece = &mut pieces[usize::from(at.0 % 3)];
        if piece.is_empty() {
            return Ok(());
        }
        let place = at.1.index(piece.len());
        piece[place] ^= by;
        let _ = survive(pieces.clone());
        let piece = &mut pieces[usize::from(at.0 % 3)];
        piece.truncate(cut.index(piece.len()));
        let _ = survive(pieces);
    }
}

/// Lists are cut by the number of their entries, so the longest of the largest must fit a frame.
#[test]
fn the_longest_lists_fit_a_frame() {
    use reconfigure::{Ballot, Message as M, Promise};
    let view = ViewId { group: GroupId(u64::MAX), version: u64::MAX };
    let ballot = Ballot { round: u64::MAX, proposer: who(u64::MAX, u32::MAX) };
    let change = Change::Replace { out: NodeId(u64::MAX), into: NodeId(u64::MAX - 1) };
    let (installed, promised, accepted) = (view, ballot, Some((ballot, change)));
    let promise = M::P1B(Promise { view, ballot, ok: true, installed, promised, accepted });
    let proposal = M::P2A { view, ballot, change };
    let generation = Generation { number: u64::MAX, floor: COUNTER_MAX };
    let known = Known { generation, epoch: COUNTER_MAX };
    let beat = Beat { view, standing: Standing::Split, known, asks: true };
    for message in [
        Message::Reconfigure(std::vec![promise; RECONFIGURES_MAX]),
        Message::Reconfigure(std::vec![proposal; RECONFIGURES_MAX]),
        Message::Beats(std::vec![beat; BEATS_MAX]),
    ] {
        // Of its kind it is the largest: the encoder panics if it does not fit.
        assert!(pieces(&message)[0].len() > 40 * 256);
    }
}

#[test]
fn a_beat_with_an_impossible_floor_is_refused() {
    let beats = |floor| {
        let known = Known { generation: Generation { number: 2, floor }, epoch: 0 };
        let beat = Beat { view: view_id(), standing: Standing::Ready, known, asks: false };
        survive(pieces(&Message::Beats(Vec::from([beat]))))
    };
    assert!(beats(COUNTER_MAX).is_ok());
    assert!(beats(COUNTER_MAX + 1).is_err());
}

#[test]
fn nonsense_is_refused() {
    let good = |message: &Message| pieces(message);
    let golden = golden();
    let write = golden.iter().find(|one| one.name() == "WriteA").expect("one of each");
    let write = good(&write.message);
    let with =
        |first: &[u8], second: &[u8]| survive([write[0].clone(), first.to_vec(), second.to_vec()]);
    assert!(with(&write[1], &write[2]).is_ok());
    assert!(with(b"", &write[2]).is_err(), "no key");
    assert!(with(&[&write[1][..8], b"j"].concat(), &write[2]).is_err(), "a key at another's place");
    assert!(with(&write[1], b"").is_err(), "no record");
    assert!(with(&write[1], &write[2][..28]).is_err(), "half a record");
    assert!(survive([Vec::from([VARIANTS]), Vec::new(), Vec::new()]).is_err(), "an unknown tag");
    for one in golden.iter().filter(|one| one.tag() < 4) {
        // The fields as those of other messages, behind a tag of two bytes.
        let fields = postcard::to_allocvec(&one.message).expect("plain data");
        let head = [&[one.tag() | 0x80, 0], &fields[1..]].concat();
        let [_, first, second] = good(&one.message);
        assert!(survive([head, first, second]).is_err(), "{} in another layout", one.name());
    }
    let zero = Record::new(Ts::ZERO, None);
    assert!(with(&write[1], zero.bytes()).is_err(), "a record that nobody wrote");
}
