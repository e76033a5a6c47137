//! Every message is read back, and any bytes are survived.

use super::super::message::{Leaf, Message, Part};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use quorate_kernel::ids::NodeId;
use quorate_kernel::wire::{Body, Encoder, Wire};
use quorate_protocols::causal::keys::data_key;
use quorate_protocols::causal::map::{Map, Shape};
use quorate_protocols::causal::message::Pair;
use quorate_protocols::dots::dot::{Actor, Partition};
use quorate_protocols::dots::object::Object;
use quorate_protocols::testing::siblings::first;
use std::vec::Vec;

fn messages() -> Vec<Message> {
    let actor = Actor { node: NodeId(7), since: 1, birth: 1, ..Actor::default() };
    let pair = Pair { from: actor, to: Partition(2), map: 3 };
    let (key, object) = (data_key(b"k"), Object::default().to_bytes());
    let parts = Vec::from([Part { home: 1, at: 2, hashes: Vec::from([[3; 16], [4; 16]]) }]);
    let leaf = Leaf { home: 1, at: 5, keys: Vec::from([(key.clone(), [6; 16])]) };
    let map = Map::of(&first(Shape::new(3, 3), &[1, 2, 3].map(NodeId)));
    Vec::from([
        Message::ReadA { op: 1, key: key.clone() },
        Message::ReadB { op: 1, partition: Partition(1), is_serving: true, object: object.clone() },
        Message::WriteA {
            op: 2,
            id: None,
            context: Vec::from([(actor, 9)]),
            is_delete: false,
            key: key.clone(),
            value: Bytes::from_static(b"v"),
        },
        Message::WriteB { op: 2, told: Some(Vec::from([(actor, 9)])) },
        Message::Replicate { key, object },
        Message::Roots { pair, exchange: 1, parts: parts.clone() },
        Message::Buckets { pair, exchange: 1, parts: parts.clone() },
        Message::Leaves { pair, parts },
        Message::Keys { pair, leaves: Vec::from([leaf.clone(), leaf]) },
        Message::Repair { pair, wants: true, page: Bytes::new() },
        Message::MapA { version: 1 },
        Message::MapB { map },
    ])
}

#[test]
fn every_message_is_read_back() {
    for message in messages() {
        let body = Body::encode(&message, &mut BytesMut::new()).expect("it fits");
        assert_eq!(body.decode(), Ok(message));
    }
}

/// A message with other tails than its own.
struct Damaged(Message, Bytes, Bytes);

impl Wire for Damaged {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(&self.0);
        out.tail(0, &self.1);
        out.tail(1, &self.2);
    }

    fn decode(
        _: &quorate_kernel::wire::Decoder,
    ) -> Result<Damaged, quorate_kernel::error::WireError> {
        panic!("it is only written")
    }
}

proptest! {
    #[test]
    fn any_bytes_are_survived(
        which in 0usize..12, first in proptest::collection::vec(any::<u8>(), 0..60), second: Vec<u8>
    ) {
        let damaged = Damaged(messages()[which].clone(), first.into(), second.into());
        let body = Body::encode(&damaged, &mut BytesMut::new()).expect("it fits");
        // Decoding ends, and what it takes can be written again.
        if let Ok(message) = body.decode::<Message>() {
            Body::encode(&message, &mut BytesMut::new()).expect("it fits");
        }
    }
}
