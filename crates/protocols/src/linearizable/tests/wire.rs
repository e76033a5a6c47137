//! Every message's bytes are pinned, and any other bytes are survived.
//!
//! Messages outlive the code that sends them. A changed byte here is a change of the protocol:
//! append a variant instead. `docs/wire.md` shows the same table.

use super::super::message::Message;
use super::super::record::{Record, Ts};
use super::any::any_message;
use super::golden::{Golden, VARIANTS, golden, view_id, who};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use quorate_kernel::ids::LaneId;
use quorate_kernel::wire::{Body, Frame, PREFIX_BYTES, Received, Wire};
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

pub(super) fn frame(message: &Message) -> Bytes {
    let body = Body::encode(message, &mut BytesMut::new());
    let frame = Frame { lane: LaneId(3), source: who(1, 2), target: who(2, 0), body };
    frame.to_bytes()
}

/// The head and the two tails of a message, as they stand in a frame.
fn pieces(message: &Message) -> [Vec<u8>; 3] {
    let bytes = frame(message);
    let head = usize::from(u16::from_le_bytes([bytes[37], bytes[38]]));
    let first = u32::from_le_bytes([bytes[39], bytes[40], bytes[41], bytes[42]]) as usize;
    let (head_end, first_end) = (PREFIX_BYTES + head, PREFIX_BYTES + head + first);
    [&bytes[PREFIX_BYTES..head_end], &bytes[head_end..first_end], &bytes[first_end..]]
        .map(<[u8]>::to_vec)
}

fn decode(bytes: Bytes) -> Message {
    let received = Received::decode(bytes).expect("a frame");
    Message::decode(&received.message).expect("a message")
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
    let message = Message::ListA { round: 2, since: view_id(), forgot: true, from: 0 };
    assert_eq!(
        hex(&frame(&message)),
        "2d00000003030000000100000000000000020000000200000000000000000000002370739b0600000000000\
         60201030100"
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
    Body::encode(&Raw(pieces), &mut BytesMut::new()).decode()
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
    let zero = Record::new(Ts::ZERO, None);
    assert!(with(&write[1], zero.bytes()).is_err(), "a record that nobody wrote");
}
