//! Every message's bytes are pinned, and any other bytes are survived.
//!
//! Messages outlive the code that sends them. A changed byte here is a change of the protocol:
//! append a variant instead.

use crate::gossip::cyclon::Peer;
use crate::gossip::digest::Seen;
use crate::gossip::record::{HostRecord, Load, News, Order, Version};
use crate::overlay::message::Message;
use crate::overlay::operators::shutdown::Stage;
use crate::overlay::tokens::balance::TokenMove;
use crate::overlay::tokens::weights::{Advice, Weights};
use crate::ring::pointers::Place;
use crate::ring::stabilize::{NeighboursReply, NeighboursRequest};
use bytes::BytesMut;
use proptest::prelude::*;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::{
    ADDRESS_BYTES_MAX, HOSTS_LISTED_MAX, NEWS_BYTES_MAX, PIECES_MAX, SUCCESSORS_MAX,
    TOKENS_PER_HOST_MAX,
};
use quorate_kernel::ring::{Door, Piece, Standing};
use quorate_kernel::view::Range;
use quorate_kernel::wire::{Body, Decoder, Encoder, Wire};
use std::boxed::Box;
use std::collections::BTreeSet;
use std::format;
use std::string::String;
use std::sync::Arc;
use std::vec;
use std::vec::Vec;

fn who(node: u64, start: u32) -> Incarnation {
    Incarnation { node: NodeId(node), start: Start(start) }
}

fn record() -> HostRecord {
    HostRecord {
        who: who(1, 2),
        version: Version(3),
        address: "a:1".into(),
        zone: "z".into(),
        tokens: Arc::from([7, 300]),
        load: Load { keys: 4, bytes: 5, operations: 6 },
        order: Order(9),
        standing: Standing::Leaving,
        doors: Arc::from([Door { name: "resp".into(), address: "a:2".into() }]),
    }
}

fn news() -> News {
    News { record: Arc::new(record()), suspected_by: Some(NodeId(8)) }
}

fn weights() -> Weights {
    let range = Range { low: 7, high: 300 };
    let piece = Piece { range, replicas: 3, bytes: 300, operations: 4 };
    let advice = Advice { to: NodeId(8), shape: 9, change: TokenMove::Move { from: 7, to: 300 } };
    let (who, pieces, advice) = (who(1, 2), vec![piece], Some(advice));
    Weights { who, number: 3, shape: 9, pieces, advice }
}

fn peers() -> Vec<Peer> {
    vec![Peer { who: who(1, 2), age: 3, address: "a:1".into() }]
}

/// The number that a head begins with. Without a wildcard, so that a new variant must be added
/// here, and to [`golden`].
fn tag(message: &Message) -> u8 {
    match message {
        Message::Shuffle { .. } => 0,
        Message::ShuffleReply { .. } => 1,
        Message::News { .. } => 2,
        Message::Digest { .. } => 3,
        Message::Buckets { .. } => 4,
        Message::Versions { .. } => 5,
        Message::Want { .. } => 6,
        Message::Missing { .. } => 7,
        Message::Ping { .. } => 8,
        Message::Pong { .. } => 9,
        Message::Stabilize { .. } => 10,
        Message::Neighbours { .. } => 11,
        Message::Lookup { .. } => 12,
        Message::Close { .. } => 13,
        Message::Closing { .. } => 14,
        Message::Weights { .. } => 15,
        Message::Observe { .. } => 16,
        Message::Observed { .. } => 17,
    }
}

/// How many variants there are; see [`tag`].
const VARIANTS: u8 = 18;

fn golden() -> Vec<(Message, &'static str)> {
    let ask = NeighboursRequest { own: 1, of: 300 };
    let place = Place { token: 7, node: NodeId(2) };
    let answer = NeighboursReply { ask, predecessor: Some(place), successors: vec![place] };
    let seen = Seen {
        who: who(1, 2),
        version: Version(3),
        order: Order(9),
        standing: Standing::Left,
        is_suspected: true,
    };
    vec![
        (Message::Shuffle { entries: peers() }, "000101020303613a31"),
        (Message::ShuffleReply { entries: peers() }, "010101020303613a31"),
        (
            Message::News { news: vec![news()] },
            "020101020303613a31017a0207ac02040506090101047265737003613a320108",
        ),
        (Message::Digest { sum: 300 }, "03ac02"),
        (Message::Buckets { sums: vec![1, 300] }, "040201ac02"),
        (Message::Versions { buckets: 5, seen: vec![seen] }, "050501010203090201"),
        (Message::Want { nodes: vec![NodeId(1), NodeId(300)] }, "060201ac02"),
        (
            Message::Missing { news: vec![News::of(record())] },
            "070101020303613a31017a0207ac02040506090101047265737003613a3200",
        ),
        (Message::Ping { sent: 300 }, "08ac02"),
        (Message::Pong { sent: 300 }, "09ac02"),
        (Message::Stabilize { asks: vec![ask] }, "0a0101ac02"),
        (Message::Neighbours { answers: vec![answer] }, "0b0101ac02010702010702"),
        (
            Message::Lookup { news: Box::new(news()), hops: 3 },
            "0c01020303613a31017a0207ac02040506090101047265737003613a32010803",
        ),
        (Message::Close { is_over: true }, "0d01"),
        (Message::Closing { stage: Stage::Idle }, "0e01"),
        (Message::Weights { words: vec![weights()] }, "0f01010203090107ac0203ac02040108090107ac02"),
        (Message::Observe { sent: 300 }, "10ac02"),
        (Message::Observed { sent: 300 }, "11ac02"),
    ]
}

/// A head of any bytes, as a peer gone wrong could send them with a right checksum.
#[derive(Debug)]
struct Raw(Vec<u8>);

impl Wire for Raw {
    fn encode(&self, out: &mut Encoder<'_>) {
        self.0.iter().for_each(|byte| out.head(byte));
    }

    fn decode(input: &Decoder) -> Result<Raw, WireError> {
        let mut bytes = Vec::new();
        // A reader that takes whatever there is: byte after byte.
        if let Ok(all) = input.head::<Rest>() {
            bytes = all.0;
        }
        Ok(Raw(bytes))
    }
}

struct Rest(Vec<u8>);

impl<'de> serde::Deserialize<'de> for Rest {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Rest, D::Error> {
        struct All;
        impl<'de> serde::de::Visitor<'de> for All {
            type Value = Vec<u8>;
            fn expecting(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(
                self,
                mut seq: A,
            ) -> Result<Vec<u8>, A::Error> {
                let mut bytes = Vec::new();
                while let Ok(Some(byte)) = seq.next_element::<u8>() {
                    bytes.push(byte);
                }
                Ok(bytes)
            }
        }
        from.deserialize_tuple(usize::MAX, All).map(Rest)
    }
}

fn head(message: &Message) -> Vec<u8> {
    let body = Body::encode(message, &mut BytesMut::new()).expect("it fits");
    body.decode::<Raw>().expect("any bytes").0
}

fn survive(head: &[u8]) -> Result<Message, WireError> {
    Body::encode(&Raw(head.to_vec()), &mut BytesMut::new()).expect("it fits").decode()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn every_message_has_its_bytes() {
    let mut wrong = String::new();
    for (message, bytes) in golden() {
        let actual = hex(&head(&message));
        if actual != bytes {
            wrong += &format!("{message:?}: \"{actual}\"\n");
        }
        assert_eq!(head(&message)[0], tag(&message));
        assert_eq!(survive(&head(&message)), Ok(message));
    }
    assert!(wrong.is_empty(), "{wrong}");
    let tags: BTreeSet<u8> = golden().iter().map(|(message, _)| tag(message)).collect();
    assert!(tags.into_iter().eq(0..VARIANTS), "every variant has its bytes");
}

proptest! {
    #[test]
    fn any_bytes_are_survived(tag in 0..VARIANTS + 1, bytes: Vec<u8>) {
        let _ = survive(&[Vec::from([tag]), bytes.clone()].concat());
        let _ = survive(&bytes);
    }

    #[test]
    fn damaged_messages_are_survived(
        which in 0..usize::from(VARIANTS),
        at: prop::sample::Index,
        by in 1u8..,
        cut: prop::sample::Index,
    ) {
        let mut bytes = head(&golden()[which].0);
        let cut = cut.index(bytes.len());
        prop_assert!(survive(&bytes[..cut]).is_err());
        let place = at.index(bytes.len());
        bytes[place] ^= by;
        let _ = survive(&bytes);
        bytes.truncate(cut);
        let _ = survive(&bytes);
    }
}

#[test]
fn what_is_too_long_is_refused() {
    let long = |change: fn(&mut HostRecord)| {
        let mut record = record();
        change(&mut record);
        survive(&head(&Message::News { news: vec![News::of(record)] }))
    };
    assert!(long(|_| {}).is_ok());
    assert!(long(|record| record.address = "x".repeat(ADDRESS_BYTES_MAX + 1).into()).is_err());
    assert!(long(|record| record.zone = "x".repeat(65).into()).is_err());
    assert!(long(|record| record.tokens = (0..65).collect()).is_err());
    assert!(long(|record| record.tokens = Arc::from([2, 2])).is_err(), "tokens ascend");
    let entries = vec![peers().remove(0); 9];
    assert!(survive(&head(&Message::Shuffle { entries })).is_err());
    assert!(survive(&head(&Message::Buckets { sums: vec![0; 65] })).is_err());
    assert!(survive(&head(&Message::Lookup { news: Box::new(news()), hops: 17 })).is_err());
    let pieces = vec![weights().pieces[0]; PIECES_MAX + 1];
    let words = vec![Weights { pieces, ..weights() }];
    assert!(survive(&head(&Message::Weights { words })).is_err());
    let nodes = vec![NodeId(1); HOSTS_LISTED_MAX + 1];
    assert!(survive(&head(&Message::Want { nodes })).is_err());
}

/// The largest messages that the overlay sends fit a frame's head.
#[test]
fn the_largest_messages_fit() {
    let mut largest = record();
    largest.address = "x".repeat(ADDRESS_BYTES_MAX).into();
    largest.tokens = (u64::MAX - TOKENS_PER_HOST_MAX as u64..u64::MAX).collect();
    (largest.who, largest.version) = (who(u64::MAX, u32::MAX), Version(u64::MAX));
    let one = News { record: Arc::new(largest), suspected_by: Some(NodeId(u64::MAX)) };
    let alone = head(&Message::News { news: vec![one.clone()] }).len();
    assert!(alone <= one.record.bytes_max(), "{alone}");
    let packed = crate::gossip::rumours::pack(std::iter::repeat_n(one, 500));
    for news in packed {
        assert!(head(&Message::Missing { news }).len() <= NEWS_BYTES_MAX + 8);
    }
    let range = Range { low: u64::MAX, high: u64::MAX };
    let (bytes, operations) = (u64::MAX, u32::MAX);
    let piece = Piece { range, replicas: 7, bytes, operations };
    let change = TokenMove::Move { from: u64::MAX, to: u64::MAX };
    let advice = Some(Advice { to: NodeId(u64::MAX), shape: u64::MAX, change });
    let (number, shape, pieces) = (u64::MAX, u64::MAX, vec![piece; PIECES_MAX]);
    let word = Weights { who: who(u64::MAX, u32::MAX), number, shape, pieces, advice };
    let alone = head(&Message::Weights { words: vec![word.clone()] }).len();
    assert!(alone <= word.bytes_max(), "{alone}");
    let place = Place { token: u64::MAX, node: NodeId(u64::MAX) };
    let ask = NeighboursRequest { own: u64::MAX, of: u64::MAX };
    let answer =
        NeighboursReply { ask, predecessor: Some(place), successors: vec![place; SUCCESSORS_MAX] };
    let answers = vec![answer; TOKENS_PER_HOST_MAX];
    assert!(survive(&head(&Message::Neighbours { answers })).is_ok());
    let seen = Seen {
        who: who(u64::MAX, u32::MAX),
        version: Version(u64::MAX),
        order: Order(u64::MAX),
        standing: Standing::Up,
        is_suspected: true,
    };
    let seen = vec![seen; HOSTS_LISTED_MAX];
    assert!(survive(&head(&Message::Versions { buckets: u64::MAX, seen })).is_ok());
}
