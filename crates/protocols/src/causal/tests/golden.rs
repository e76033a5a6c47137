//! One message of each shape: its bytes are pinned.
//!
//! Messages outlive the code that sends them. A changed byte here is a change of the protocol:
//! append a variant instead.

use super::super::coordinate::plain;
use super::super::keys::data_key;
use super::super::map::{Map, Shape};
use super::super::message::{Ending, Message, Pair, TellClock, Window};
use super::super::page;
use crate::dots::clock::Clock;
use crate::dots::dot::{Actor, Dot, Partition};
use crate::dots::object::{Object, Version};
use crate::testing::siblings::{Move, first, moved};
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::NodeId;
use quorate_kernel::wire::Body;
use quorate_kernel::write::WriteId;
use std::format;
use std::string::String;
use std::vec::Vec;

fn actor(partition: u16, node: u64) -> Actor {
    Actor { partition: Partition(partition), since: 3, birth: 1, node: NodeId(node) }
}

fn object() -> Bytes {
    let version = Version { id: Some(WriteId(5)), value: Bytes::from_static(b"v") };
    let dot = Dot { actor: actor(1, 2), counter: 7 };
    let context = [(actor(0, 1), 300)].into_iter().collect();
    let versions = [(dot, version)].into_iter().collect();
    Object { versions, context, ..Object::default() }.to_bytes()
}

/// What tells, beside its dots, the name of a write of which no version is left.
fn replaced() -> Bytes {
    let dot = Dot { actor: actor(1, 2), counter: 7 };
    let replaced = [(dot, WriteId(5))].into_iter().collect();
    Object { replaced, ..Object::default() }.to_bytes()
}

fn clock() -> TellClock {
    let mut clock = Clock::default();
    [1, 2, 3, 7].into_iter().for_each(|counter| {
        clock.entry(actor(1, 2)).insert(counter);
    });
    clock.entry(actor(2, 9)).left = true;
    TellClock::of(&clock)
}

fn messages() -> Vec<Message> {
    let (key, object, clock) = (data_key(b"k"), object(), clock());
    let dots = Vec::from([Dot { actor: actor(1, 2), counter: 7 }]);
    let mut page = BytesMut::new();
    page::push(&mut page, &key, &object, &dots);
    let page = page.freeze();
    let (pair, to) = (Pair { from: actor(1, 2), to: Partition(2), map: 3 }, actor(2, 9));
    let part = Window { after: Some(dots[0]), until: Some(Dot { actor: to, counter: 300 }) };
    let write = |is_delete| Message::WriteA {
        op: 1,
        id: WriteId(5),
        context: Vec::from([(actor(0, 1), 300)]),
        is_delete,
        within_ms: 2000,
        key: key.clone(),
        value: if is_delete { Bytes::new() } else { Bytes::from_static(b"v") },
    };
    let ended = |ending| Message::WriteB { op: 1, ending };
    let sync = |is_joined, covers, wants| Message::SyncB {
        pair,
        to,
        clock: clock.clone(),
        is_joined,
        covers,
        wants,
        page: page.clone(),
    };
    let hosts: Vec<NodeId> = (1..=3).map(NodeId).collect();
    let record = first(Shape::new(3, 3), &hosts);
    let map = Map::of(&moved(record, &Move { out: 2, into: 9, gone: true }));
    let keys = plain::pack(&[Bytes::from_static(b"k"), Bytes::new()]);
    let mut all = Vec::from([
        Message::ReadA { op: 1, key: key.clone() },
        Message::ReadB { op: 1, partition: Partition(2), is_serving: true, object: object.clone() },
        write(false),
        write(true),
        ended(Ending::Stored(Vec::from([(actor(1, 2), 7)]))),
        ended(Ending::NotHere),
        ended(Ending::Overloaded),
        ended(Ending::Unknown),
        ended(Ending::TooLarge(1 << 25)),
        Message::Replicate {
            op: 1,
            from: Some(actor(1, 2)),
            dots: dots.clone(),
            key: key.clone(),
            object: object.clone(),
        },
        Message::Replicate { op: 0, from: None, dots: Vec::new(), key: key.clone(), object },
        Message::Replicated { op: 1, partition: Partition(2) },
        Message::SyncA { pair, clock: clock.clone(), window: Window::default(), all: false },
        Message::SyncA { pair, clock: clock.clone(), window: part, all: false },
        sync(true, Window::default(), Some(Window::default())),
        sync(false, part, None),
        Message::ScanA { pair, step: 4, key: key.clone() },
        Message::ScanB { pair, to, step: 4, clock: clock.clone(), page, next: key.to_vec() },
        Message::MapA { version: 300 },
        Message::MapB { map },
        Message::LeftA { actor: actor(1, 2) },
        Message::LeftB { actor: actor(1, 2), map: 3 },
        Message::ListA { op: 1, from: 1 << 63, limit: 100 },
        Message::ListB { op: 1, next: Some(300), keys: keys.clone() },
        Message::ListB { op: 1, next: None, keys },
    ]);
    all.extend(of_names(dots, key));
    all
}

/// Messages about writes that have names.
fn of_names(dots: Vec<Dot>, key: Bytes) -> [Message; 5] {
    [
        Message::WriteAgainA {
            age_ms: 1500,
            op: 1,
            id: WriteId(5),
            context: Vec::from([(actor(0, 1), 300)]),
            within_ms: 2000,
            key: key.clone(),
            value: Bytes::from_static(b"v"),
        },
        Message::WriteSeenA {
            names: dots.iter().map(|dot| (*dot, WriteId(6))).collect(),
            age_ms: 0,
            op: 1,
            id: WriteId(5),
            context: Vec::from([(actor(0, 1), 300)]),
            is_delete: true,
            within_ms: 2000,
            key: key.clone(),
            value: Bytes::new(),
        },
        Message::WriteB {
            op: 1,
            ending: Ending::StoredAs(
                Vec::from([(actor(1, 2), 7)]),
                dots.iter().map(|dot| (*dot, WriteId(6))).collect(),
            ),
        },
        Message::Replicate {
            op: 0,
            from: None,
            dots: dots.clone(),
            key: key.clone(),
            object: replaced(),
        },
        Message::HandOver { op: 1, from: actor(0, 1), dots, key, object: replaced() },
    ]
}

#[test]
fn the_bytes_of_messages_stay() {
    let mut lines = String::new();
    for message in messages() {
        let body = Body::encode(&message, &mut BytesMut::new()).expect("it fits");
        assert_eq!(body.decode::<Message>().as_ref(), Ok(&message));
        lines.push_str(&format!("{body:?}\n"));
    }
    let path = format!("{}/src/causal/bytes.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_SCRIPTS").is_some() {
        std::fs::write(&path, &lines).expect("a writable file");
    }
    let expected = std::fs::read_to_string(&path).expect("the bytes are there");
    assert_eq!(lines, expected, "the bytes of a message have changed");
}
