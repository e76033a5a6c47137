//! Every message is read back, and any other bytes are survived.

use super::super::keys::data_key;
use super::super::map::{Map, Shape};
use super::super::message::{Ending, Message, Pair, TellClock, TellContext, Window};
use super::super::page;
use crate::dots::clock::{Clock, Entry};
use crate::dots::dot::{Actor, COUNTER_MAX, Dot, Partition};
use crate::dots::object::{Object, Version};
use crate::testing::siblings::{Move, first, moved};
use bytes::{Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::NodeId;
use quorate_kernel::wire::{Body, Decoder, Encoder, Wire};
use quorate_kernel::write::WriteId;
use std::vec::Vec;

fn any_actor() -> impl Strategy<Value = Actor> {
    any::<(u16, u64, u32, u64)>().prop_map(|(partition, since, birth, node)| {
        let (partition, node) = (Partition(partition), NodeId(node));
        Actor { partition, since, birth, node }
    })
}

fn any_counter() -> impl Strategy<Value = u64> {
    prop_oneof![1u64..20, 1..=COUNTER_MAX]
}

fn any_dot() -> impl Strategy<Value = Dot> {
    (any_actor(), any_counter()).prop_map(|(actor, counter)| Dot { actor, counter })
}

fn any_window() -> impl Strategy<Value = Window> {
    use proptest::option::of;
    (of(any_dot()), of(any_dot())).prop_map(|(after, until)| Window { after, until })
}

fn any_said() -> impl Strategy<Value = (bool, Window, Option<Window>)> {
    (any::<bool>(), any_window(), proptest::option::of(any_window()))
}

fn any_entry() -> impl Strategy<Value = Entry> {
    (vec(1u64..60, 0..12), any::<(bool, bool)>()).prop_map(|(counters, (closed, left))| {
        let mut entry = Entry::default();
        counters.into_iter().for_each(|counter| {
            entry.insert(counter);
        });
        (entry.closed, entry.left) = (closed, left);
        entry
    })
}

fn any_clock() -> impl Strategy<Value = TellClock> {
    vec((any_actor(), any_entry()), 0..5).prop_map(|entries| {
        let clock: Clock = entries.into_iter().collect();
        TellClock::of(&clock)
    })
}

fn any_context() -> impl Strategy<Value = TellContext> {
    vec((any_actor(), any_counter()), 0..5)
}

fn any_names() -> impl Strategy<Value = Vec<(Dot, WriteId)>> {
    vec((any_dot(), any::<u128>().prop_map(WriteId)), 0..3)
}

fn any_object() -> impl Strategy<Value = Bytes> {
    let version = (any_dot(), any::<(Option<u128>, Vec<u8>)>());
    (vec(version, 0..3), any_context()).prop_map(|(versions, context)| {
        let version = |(dot, (id, value)): (Dot, (Option<u128>, Vec<u8>))| {
            (dot, Version { id: id.map(WriteId), value: value.into() })
        };
        let versions = versions.into_iter().map(version).collect();
        let context = context.into_iter().collect();
        Object { versions, context, ..Object::default() }.to_bytes()
    })
}

fn any_key() -> impl Strategy<Value = Bytes> {
    any::<Vec<u8>>().prop_map(|key| data_key(&key))
}

fn any_page() -> impl Strategy<Value = Bytes> {
    let object = prop_oneof![Just(Bytes::new()), any_object()];
    vec((any_key(), object, vec(any_dot(), 0..3)), 0..3).prop_map(|entries| {
        let mut page = BytesMut::new();
        entries.iter().for_each(|(key, object, dots)| page::push(&mut page, key, object, dots));
        page.freeze()
    })
}

fn any_pair() -> impl Strategy<Value = Pair> {
    (any_actor(), any::<(u16, u64)>()).prop_map(|(from, (to, map))| Pair {
        from,
        to: Partition(to),
        map,
    })
}

fn of_clients() -> impl Strategy<Value = Message> {
    let ending = prop_oneof![
        any_context().prop_map(Ending::Stored),
        (any_context(), any_names()).prop_map(|(told, names)| Ending::StoredAs(told, names)),
        Just(Ending::NotHere),
        Just(Ending::Overloaded),
        Just(Ending::Unknown),
        any::<u64>().prop_map(Ending::TooLarge),
    ];
    prop_oneof![
        (any::<u64>(), any_key()).prop_map(|(op, key)| Message::ReadA { op, key }),
        (any::<(u64, u16, bool)>(), any_object()).prop_map(|((op, at, is_serving), object)| {
            Message::ReadB { op, partition: Partition(at), is_serving, object }
        }),
        (any::<(u64, u128, bool, u32, Vec<u8>)>(), any_context(), any_key()).prop_map(
            |((op, id, is_delete, within_ms, value), context, key)| {
                let (id, value) = (WriteId(id), value.into());
                Message::WriteA { op, id, context, is_delete, within_ms, key, value }
            }
        ),
        (any::<(u32, u64, u128, u32, Vec<u8>)>(), any_context(), any_key()).prop_map(
            |((age_ms, op, id, within_ms, value), context, key)| {
                let (id, value) = (WriteId(id), value.into());
                Message::WriteAgainA { age_ms, op, id, context, within_ms, key, value }
            }
        ),
        (
            any::<(u32, u64, u128, u32, Vec<u8>)>(),
            any::<bool>(),
            any_context(),
            any_key(),
            any_names()
        )
            .prop_map(
                |((age_ms, op, id, within_ms, value), is_delete, context, key, names)| {
                    let (id, value) = (WriteId(id), value.into());
                    Message::WriteSeenA {
                        names,
                        age_ms,
                        op,
                        id,
                        context,
                        is_delete,
                        within_ms,
                        key,
                        value,
                    }
                }
            ),
        (any::<u64>(), ending).prop_map(|(op, ending)| Message::WriteB { op, ending }),
        (any::<u64>(), proptest::option::of(any_actor()), vec(any_dot(), 0..3), any_key())
            .prop_flat_map(|(op, from, dots, key)| any_object().prop_map(move |object| {
                let (dots, key) = (dots.clone(), key.clone());
                match from {
                    Some(from) if op % 2 == 0 => Message::HandOver { op, from, dots, key, object },
                    from => Message::Replicate { op, from, dots, key, object },
                }
            })),
        any::<(u64, u16)>()
            .prop_map(|(op, at)| Message::Replicated { op, partition: Partition(at) }),
    ]
}

fn of_replicas() -> impl Strategy<Value = Message> {
    let map = (1u16..9, 1u64..9).prop_map(|(partitions, out)| {
        let hosts: Vec<NodeId> = (1..=8).map(NodeId).collect();
        let record = first(Shape::new(partitions, 1), &hosts);
        Map::of(&moved(record, &Move { out, into: 99, gone: out > 4 }))
    });
    prop_oneof![
        (any_pair(), any_clock(), any_window(), any::<bool>())
            .prop_map(|(pair, clock, window, all)| Message::SyncA { pair, clock, window, all }),
        (any_pair(), any_actor(), any_clock(), any_said(), any_page()).prop_map(
            |(pair, to, clock, (is_joined, covers, wants), page)| {
                Message::SyncB { pair, to, clock, is_joined, covers, wants, page }
            }
        ),
        (any_pair(), any::<u64>(), any_key()).prop_map(|(pair, step, key)| Message::ScanA {
            pair,
            step,
            key
        }),
        (any_pair(), any_actor(), any::<u64>(), any_clock(), any_page(), any_key()).prop_map(
            |(pair, to, step, clock, page, next)| {
                Message::ScanB { pair, to, step, clock, page, next: next.to_vec() }
            }
        ),
        any::<u64>().prop_map(|version| Message::MapA { version }),
        map.prop_map(|map| Message::MapB { map }),
        any_actor().prop_map(|actor| Message::LeftA { actor }),
        (any_actor(), any::<u64>()).prop_map(|(actor, map)| Message::LeftB { actor, map }),
        any::<(u64, u64, u32)>().prop_map(|(op, from, limit)| Message::ListA { op, from, limit }),
        (any::<(u64, Option<u64>)>(), vec(any::<Vec<u8>>(), 0..4)).prop_map(
            |((op, next), keys)| {
                let keys: Vec<Bytes> = keys.into_iter().map(Bytes::from).collect();
                Message::ListB { op, next, keys: super::super::coordinate::plain::pack(&keys) }
            }
        ),
    ]
}

fn any_message() -> impl Strategy<Value = Message> {
    prop_oneof![of_clients(), of_replicas()]
}

/// A body whose pieces are any bytes, as a peer gone wrong could send them with a right checksum.
struct Raw([Vec<u8>; 3]);

impl Wire for Raw {
    fn encode(&self, out: &mut Encoder<'_>) {
        for byte in &self.0[0] {
            out.head(byte);
        }
        out.tail(0, &Bytes::copy_from_slice(&self.0[1]));
        out.tail(1, &Bytes::copy_from_slice(&self.0[2]));
    }

    fn decode(_input: &Decoder) -> Result<Raw, WireError> {
        unreachable!("only sent");
    }
}

fn survive(pieces: [Vec<u8>; 3]) -> Result<Message, WireError> {
    Body::encode(&Raw(pieces), &mut BytesMut::new()).expect("it fits").decode()
}

proptest! {
    #[test]
    fn every_message_is_read_back(message in any_message()) {
        let body = Body::encode(&message, &mut BytesMut::new()).expect("it fits");
        prop_assert_eq!(body.decode::<Message>(), Ok(message));
    }

    #[test]
    fn any_bytes_are_survived(head: Vec<u8>, first: Vec<u8>, second: Vec<u8>, tag in 0u8..18) {
        let mut tagged = head.clone();
        tagged.insert(0, tag);
        let _ = survive([tagged, first.clone(), second.clone()]);
        let _ = survive([head, first, second]);
    }
}

#[test]
fn a_counter_that_nobody_issues_is_refused() {
    let actor = Actor::default();
    let over = COUNTER_MAX + 1;
    let key = data_key(b"k");
    let object = |counter| {
        let context = [(actor, counter)].into_iter().collect();
        Object { context, ..Object::default() }.to_bytes()
    };
    let replicate =
        |dots, object| Message::Replicate { op: 0, from: None, dots, key: key.clone(), object };
    let clock = |base| TellClock(Vec::from([(actor, Entry::upto(base))]));
    let pair = Pair { from: actor, to: Partition(0), map: 1 };
    for (message, is_sound) in [
        (replicate(Vec::new(), object(COUNTER_MAX)), true),
        (replicate(Vec::new(), object(over)), false),
        (replicate(Vec::from([Dot { actor, counter: 1 << 63 }]), object(1)), false),
        (
            Message::SyncA {
                pair,
                clock: clock(COUNTER_MAX),
                window: Window::default(),
                all: false,
            },
            true,
        ),
        (Message::SyncA { pair, clock: clock(over), window: Window::default(), all: false }, false),
    ] {
        let body = Body::encode(&message, &mut BytesMut::new()).expect("it fits");
        assert_eq!(body.decode::<Message>().is_ok(), is_sound, "{message:?}");
    }
}

/// The heads of one message of every variant.
const HEADS: [&str; 14] = [
    "0001",
    "01010001",
    "020101000101",
    "030100010302010905",
    "04010103020109010302010906",
    "050100",
    "06030201090001000000",
    "0703020109000103020109010000010000",
    "0803020109000101",
    "09030201090001030201090100",
    "0a01",
    "0b0101010100",
    "0c03020109",
    "0d03020109ffffffffffffffffff01",
];

#[test]
fn messages_keep_their_bytes() {
    let actor = Actor { partition: Partition(3), since: 2, birth: 1, node: NodeId(9) };
    let clock = TellClock([(actor, Entry::upto(7))].into());
    let pair = Pair { from: actor, to: Partition(0), map: 1 };
    let (key, object) = (data_key(b"k"), Object::default().to_bytes());
    let empty = Bytes::new;
    let all = [
        Message::ReadA { op: 1, key: key.clone() },
        Message::ReadB { op: 1, partition: Partition(0), is_serving: true, object: object.clone() },
        Message::WriteA {
            op: 1,
            id: WriteId(1),
            context: Vec::new(),
            is_delete: true,
            within_ms: 1,
            key: key.clone(),
            value: empty(),
        },
        Message::WriteB { op: 1, ending: Ending::Stored([(actor, 5)].into()) },
        Message::Replicate {
            op: 1,
            from: Some(actor),
            dots: [Dot { actor, counter: 6 }].into(),
            key: key.clone(),
            object,
        },
        Message::Replicated { op: 1, partition: Partition(0) },
        Message::SyncA { pair, clock: clock.clone(), window: Window::default(), all: false },
        Message::SyncB {
            pair,
            to: actor,
            clock: clock.clone(),
            is_joined: true,
            covers: Window::default(),
            wants: Some(Window::default()),
            page: empty(),
        },
        Message::ScanA { pair, step: 1, key },
        Message::ScanB { pair, to: actor, step: 1, clock, page: empty(), next: Vec::new() },
        Message::MapA { version: 1 },
        Message::MapB { map: Map::of(&first(Shape::new(1, 1), &[NodeId(1)])) },
        Message::LeftA { actor },
        Message::LeftB { actor, map: u64::MAX },
    ];
    for (message, expected) in all.iter().zip(HEADS) {
        let head = postcard::to_allocvec(message).expect("plain data");
        let hex: std::string::String = head.iter().map(|byte| std::format!("{byte:02x}")).collect();
        assert_eq!(hex, expected, "{message:?}");
    }
    assert_eq!(all.len(), HEADS.len());
}
