//! Frames are read back, and nothing else is read for one.

use super::*;
use proptest::prelude::*;
use std::string::ToString;
use std::vec::Vec;

#[derive(Debug, PartialEq, Clone)]
struct Note(u64, Bytes, Bytes);

impl Wire for Note {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(&self.0);
        out.tail(0, &self.1);
        out.tail(1, &self.2);
    }
    fn decode(input: &Decoder) -> Result<Note, WireError> {
        Ok(Note(input.head()?, input.tail(0), input.tail(1)))
    }
}

fn frame(note: &Note) -> Frame {
    let who = |n| Incarnation { node: NodeId(n), start: Start(n as u32) };
    let body = Body::encode(note, &mut BytesMut::new()).expect("it fits");
    Frame { lane: LaneId(3), source: who(1), target: who(2), body }
}

proptest! {
    #[test]
    fn a_frame_is_read_back(n: u64, key: Vec<u8>, value: Vec<u8>) {
        let note = Note(n, key.into(), value.into());
        let sent = frame(&note);
        let bytes = sent.to_bytes();
        prop_assert_eq!(frame_length(&bytes), Ok(Some(bytes.len())));
        let mut rope = Rope::default();
        sent.write(&mut rope);
        prop_assert_eq!(rope.to_bytes(), bytes.clone());
        prop_assert_eq!(frame_source(&bytes), Some(sent.source));
        let got = Received::decode(bytes.clone()).expect("a frame");
        prop_assert_eq!((got.lane, got.source, got.target), (sent.lane, sent.source, sent.target));
        let (head, tails) = got.message.parts();
        prop_assert_eq!(frame_of(sent.lane, sent.source, sent.target, head, tails), bytes);
        prop_assert_eq!(got.message.message::<Note>().expect("a note"), note);
    }

    #[test]
    fn a_changed_byte_is_noticed(at: prop::sample::Index, by in 1u8..) {
        let note = Note(7, Bytes::from_static(b"key"), Bytes::from_static(b"value"));
        let mut bytes = frame(&note).to_bytes().to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        prop_assert!(Received::decode(bytes.into()).is_err());
    }

    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        let _ = frame_length(&bytes);
        let _ = frame_source(&bytes);
        let _ = Received::decode(bytes.into());
    }
}

/// A message with a long head: numbers, one after the other.
#[derive(Debug, PartialEq)]
struct Numbers(Vec<u64>);

impl Wire for Numbers {
    const HEAD_BYTES_MAX: usize = HEADER_BYTES_MAX;

    fn encode(&self, out: &mut Encoder<'_>) {
        self.0.iter().for_each(|number| out.head(number));
    }

    fn decode(input: &Decoder) -> Result<Numbers, WireError> {
        input.items().collect::<Result<_, _>>().map(Numbers)
    }
}

fn sent<M: Wire>(message: &M) -> Result<Bytes, WireError> {
    let body = Body::encode(message, &mut BytesMut::new())?;
    let (lane, who) = (LaneId(3), Incarnation::default());
    Ok(Frame { lane, source: who, target: who, body }.to_bytes())
}

#[test]
fn a_head_is_as_long_as_its_kind_may_be_and_no_longer() {
    // Ten bytes each.
    let numbers = |count: usize| Numbers(std::vec![u64::MAX; count]);
    let most = numbers(HEADER_BYTES_MAX / 10);
    let bytes = sent(&most).expect("it fits");
    let received = Received::decode(bytes).expect("a frame");
    assert_eq!(received.message.message(), Ok(most));
    // The same frame is no message of a kind with shorter heads.
    let (length, limit) = ((HEADER_BYTES_MAX / 10 * 10) as u64, HEADER_BYTES_USUAL as u64);
    let what = "head of a message";
    let refused = WireError::TooLong { what, length, limit };
    assert_eq!(received.message.message::<Note>(), Err(refused));
    let refused = sent(&numbers(HEADER_BYTES_MAX / 10 + 1)).expect_err("it is too long");
    assert!(matches!(refused, WireError::TooLong { .. }), "{refused}");
    let long = Bytes::from(std::vec![0; FRAME_BYTES_MAX]);
    let refused = sent(&Note(1, Bytes::new(), long)).expect_err("it is too long");
    assert!(refused.to_string().starts_with("frame of "), "{refused}");
}

#[test]
fn a_head_that_says_to_be_longer_than_any_is_refused_before_it_is_looked_at() {
    let mut bytes = sent(&Numbers(std::vec![1; 100])).expect("it fits").to_vec();
    bytes[HEAD_AT..FIRST_AT].copy_from_slice(&(HEADER_BYTES_MAX as u32 + 1).to_le_bytes());
    let refused = Received::decode(bytes.into()).map(|_| ()).expect_err("it is too long");
    assert!(matches!(refused, WireError::TooLong { .. }), "{refused}");
}

proptest! {
    #[test]
    fn a_changed_byte_of_a_long_head_is_noticed(at: prop::sample::Index, by in 1u8..) {
        let mut bytes = sent(&Numbers(std::vec![u64::MAX; 20_000])).expect("it fits").to_vec();
        let at = at.index(bytes.len());
        bytes[at] ^= by;
        prop_assert!(Received::decode(bytes.into()).is_err());
    }

    #[test]
    fn items_are_read_to_the_first_that_is_none(head: Vec<u8>) {
        let decoder = Decoder { head: head.into(), tails: [Bytes::new(), Bytes::new()] };
        let read: Vec<Result<u64, WireError>> = decoder.items().collect();
        let (last, before) = read.split_last().map_or((&Ok(0), &[][..]), |(l, b)| (l, b));
        prop_assert!(before.iter().all(Result::is_ok));
        prop_assert!(last.is_ok() || read.len() <= decoder.head.len());
        let empty: Vec<Result<(), WireError>> = decoder.items().collect();
        prop_assert!(empty.len() <= 1, "what takes no bytes ends too");
    }
}
