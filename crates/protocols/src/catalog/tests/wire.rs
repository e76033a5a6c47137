//! Every message's bytes are pinned, and any other bytes are survived.
//!
//! Messages outlive the code that sends them. A changed byte here is a change of the protocol:
//! append a variant instead.

use crate::catalog::message::Purpose;
use crate::catalog::{Catalog, Decree, Entry, Message, Origin};
use crate::reconfigure::{Accepted, Ballot, Message as M, Promise};
use bytes::BytesMut;
use proptest::prelude::*;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{GroupId, Incarnation, LaneId, NodeId, Start};
use quorate_kernel::keyspace::{Birth, Settings};
use quorate_kernel::limits::{PARTITIONS_MAX, SETTINGS_MAX};
use quorate_kernel::view::{Change, Range, View, ViewId};
use quorate_kernel::wire::{Body, Decoder, Encoder, Wire};
use std::boxed::Box;
use std::format;
use std::string::{String, ToString};
use std::sync::Arc;
use std::vec::Vec;

fn entry(decree: Decree) -> Entry {
    let who = Incarnation { node: NodeId(2), start: Start(1) };
    Entry { origin: Origin { who, number: 3 }, decree }
}

fn settings() -> Settings {
    Settings::from([("replicas".to_string(), "2".to_string())])
}

fn views() -> Birth {
    let id = ViewId { group: GroupId(9), version: 0 };
    Birth::Groups(Vec::from([View::new(id, Range::ALL, [1, 2].map(NodeId).into())]))
}

fn create(birth: Birth, places: &[u64]) -> Entry {
    let places = places.iter().copied().map(NodeId).collect();
    let (name, engine) = ("x".to_string(), "e".to_string());
    entry(Decree::Create { name, engine, settings: settings(), birth, places })
}

/// One of each decree.
fn decrees() -> Vec<Entry> {
    let lane = LaneId(16);
    Vec::from([
        create(views(), &[]),
        create(Birth::Groupless, &[1, 2]),
        entry(Decree::Alter { lane, settings: settings() }),
        entry(Decree::Drop { lane }),
        entry(Decree::Replace { lane, partition: 1, since: 2, to: NodeId(5) }),
        entry(Decree::Settle { lane, partition: 1, since: 4 }),
        entry(Decree::Members(Change::Grow { into: NodeId(3) })),
        entry(Decree::Gone { lane, node: NodeId(5) }),
        entry(Decree::HandOver { lane, partition: 1, since: 4 }),
    ])
}

/// One of each message. Without a wildcard, so that a new variant must be added here.
fn messages() -> Vec<Message> {
    let who = Incarnation { node: NodeId(2), start: Start(1) };
    let (ballot, view) = (
        Ballot { round: 1, proposer: who },
        Catalog::born([1].map(NodeId).into()).after(&create(views(), &[])),
    );
    let id = ViewId { group: GroupId(1), version: 2 };
    let tag = |message: &Message| match message {
        Message::Decide(_)
        | Message::Length { .. }
        | Message::Entries { .. }
        | Message::Snapshot { .. } => (),
    };
    let promised = Promise {
        view: id,
        ballot,
        ok: true,
        installed: id,
        promised: ballot,
        accepted: Some((ballot, entry(Decree::Drop { lane: LaneId(16) }))),
    };
    let accepted = Accepted { view: id, ballot, ok: true, installed: id, promised: ballot };
    let change = entry(Decree::Drop { lane: LaneId(16) });
    let all = Vec::from([
        Message::Decide(Box::new(M::P1A { view: id, ballot })),
        Message::Decide(Box::new(M::P1B(promised))),
        Message::Decide(Box::new(M::P2A { view: id, ballot, change: change.clone() })),
        Message::Decide(Box::new(M::P2B(accepted))),
        Message::Decide(Box::new(M::P3A { view: id, change })),
        Message::Length { version: 2, purpose: Purpose::News },
        Message::Length { version: 2, purpose: Purpose::Question },
        Message::Length { version: 2, purpose: Purpose::Answer },
        Message::Length { version: 2, purpose: Purpose::Ask(5) },
        Message::Length { version: 2, purpose: Purpose::Reply(5) },
        Message::Entries { follows: 1, entries: decrees() },
        Message::Snapshot { catalog: Arc::new(view) },
    ]);
    all.iter().for_each(tag);
    all
}

struct Raw<'a>(&'a [u8], &'a [u8]);

impl Wire for Raw<'_> {
    fn encode(&self, out: &mut Encoder<'_>) {
        self.0.iter().for_each(|byte| out.head(byte));
        out.tail(0, &bytes::Bytes::copy_from_slice(self.1));
    }

    fn decode(_: &Decoder) -> Result<Self, WireError> {
        unreachable!("it is only written")
    }
}

fn hex(message: &Message) -> String {
    let frame = format!("{:?}", Body::encode(message, &mut BytesMut::new()).expect("it fits"));
    frame
}

#[test]
fn messages_read_what_was_written_and_their_bytes_stay() {
    let mut lines = String::new();
    for message in messages() {
        let body = Body::encode(&message, &mut BytesMut::new()).expect("it fits");
        assert_eq!(body.decode::<Message>().as_ref(), Ok(&message));
        lines.push_str(&hex(&message));
        lines.push('\n');
    }
    let path = format!("{}/src/catalog/scripts/bytes.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_SCRIPTS").is_some() {
        std::fs::write(&path, &lines).expect("a writable file");
    }
    let expected = std::fs::read_to_string(&path).expect("the bytes are there");
    assert_eq!(lines, expected, "the bytes of a message have changed");
}

#[test]
fn the_longest_decree_fits_a_message_and_what_is_longer_is_refused() {
    let long = |count: usize| {
        let name = |index: usize| format!("{index:0>128}");
        let settings: Settings = (0..count).map(|index| (name(index), name(index))).collect();
        let lane = LaneId(16);
        let alter = entry(Decree::Alter { lane, settings });
        let id = ViewId { group: GroupId(1), version: 2 };
        let message = Message::Decide(Box::new(M::P3A { view: id, change: alter }));
        Body::encode(&message, &mut BytesMut::new()).expect("it fits").decode::<Message>()
    };
    assert!(long(SETTINGS_MAX).is_ok());
    assert!(matches!(long(SETTINGS_MAX + 1), Err(WireError::Malformed { .. })));
    let places: Vec<u64> = (0..=PARTITIONS_MAX as u64).collect();
    assert!(!create(Birth::Groupless, &places).is_sound());
    assert!(create(Birth::Groupless, &places[1..]).is_sound());
    assert!(!entry(Decree::Members(Change::Split { at: 7 })).is_sound());
}

proptest! {
    #[test]
    fn any_bytes_are_survived(
        tag in 0_u8..6,
        head in proptest::collection::vec(any::<u8>(), 0..60),
        tail in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let head: Vec<u8> = core::iter::once(tag).chain(head).collect();
        let body = Body::encode(&Raw(&head, &tail), &mut BytesMut::new()).expect("it fits");
        if let Ok(message) = body.decode::<Message>() {
            let again = Body::encode(&message, &mut BytesMut::new()).expect("it fits");
            prop_assert_eq!(again.decode::<Message>(), Ok(message));
        }
    }

    #[test]
    fn damaged_lists_are_survived(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        for message in messages() {
            let Message::Entries { entries, .. } = &message else { continue };
            let mut bytes = postcard::to_allocvec(entries).expect("plain data");
            let index = at.index(bytes.len());
            bytes[index] = byte;
            // The head of entries that follow link 1.
            let body = Body::encode(&Raw(&[2, 1], &bytes), &mut BytesMut::new()).expect("it fits");
            if let Ok(Message::Entries { entries, .. }) = body.decode::<Message>() {
                prop_assert!(entries.iter().all(Entry::is_sound));
            }
        }
    }
}
