//! Bare messages, and what is refused of them.

use super::message::{ANY_BASIS, Sent, can_be_bare, stamp_of};
use super::*;
use bytes::{Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{ClusterId, GroupId, Incarnation, LaneId, NodeId, Start};
use quorate_kernel::keyspace::Keyspace;
use quorate_kernel::view::ViewId;
use quorate_kernel::wire::Body;
use quorate_protocols::linearizable::message::{Basis, Message, Want};
use quorate_protocols::linearizable::record::Ts;

const VIEW: ViewId = ViewId { group: GroupId(7), version: 3 };

/// One message of each kind that can be bare.
fn messages(view: ViewId, basis: Basis) -> [Message; 4] {
    let writer = Incarnation { node: NodeId(2), start: Start(4) };
    let (op, ts) = (300, Ts { n: 9, writer, sequence: 1 });
    let token = (ENGINE.token)(&[].into(), b"k");
    let key = Bytes::from([&token.to_be_bytes()[..], b"k"].concat());
    let record = Bytes::from_static(&[
        17, 0, 0, 0, 0, 0, 0, 1, 44, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 9,
        118,
    ]);
    [
        Message::ReadA { op, view, want: Want::Digest, key: key.clone() },
        Message::ReadB { op, stamp: stamp_of(view), ts, live: true, record: record.clone() },
        Message::WriteA { op, view, basis, key, record },
        Message::WriteB { op, view, ok: true, stamp: stamp_of(view) },
    ]
}

fn encoded(message: Message, is_bare: bool) -> Body {
    Body::encode(&Sent { message, is_bare }, &mut BytesMut::new()).expect("it fits")
}

#[test]
fn bare_messages_leave_out_views_and_stamps_and_nothing_else() {
    let whole = messages(VIEW, Basis { generation: 2, is_imposed: true, epoch: 1 });
    let blank = messages(ViewId::default(), ANY_BASIS);
    for (message, blank) in whole.into_iter().zip(blank) {
        assert!(can_be_bare(&message));
        let (stamped, bare) = (encoded(message.clone(), false), encoded(message.clone(), true));
        assert!(bare.frame_bytes() < stamped.frame_bytes(), "{message:?}");
        assert_eq!(stamped.decode::<Sent>(), Ok(Sent { message, is_bare: false }));
        assert_eq!(bare.decode::<Sent>(), Ok(Sent { message: blank, is_bare: true }));
    }
}

#[test]
fn a_bare_message_is_checked_as_any_other() {
    let [_, _, write, _] = messages(VIEW, ANY_BASIS);
    let Message::WriteA { op, view, basis, key, record } = write else { unreachable!() };
    let no_record = Message::WriteA { op, view, basis, key, record: Bytes::new() };
    let elsewhere = Bytes::from_static(b"\0\0\0\0\0\0\0\0k");
    let no_key = Message::WriteA { op, view, basis, key: elsewhere, record };
    for message in [no_record, no_key] {
        let found = encoded(message, true).decode::<Sent>();
        assert!(matches!(found, Err(WireError::Malformed { .. } | WireError::Truncated { .. })));
    }
}

#[test]
fn the_engine_has_one_setting_more() {
    let settings = ENGINE.complete(&[].into()).expect("defaults");
    assert_eq!(settings[STAMPS], "yes");
    assert!(linearizable::ENGINE.complete(&settings).is_err(), "only this program has it");
    let asked = [(STAMPS.to_owned(), "perhaps".to_owned())].into();
    assert!(ENGINE.complete(&asked).is_err());
    let keyspace = Keyspace::new("k", LaneId::KEYSPACES, ENGINE.name, settings, 1);
    let (cluster, signing_key, pace) = (ClusterId(1), [7; 32], &Default::default());
    let opening = Opening { keyspace: &keyspace, cluster, signing_key, pace };
    assert!((ENGINE.open)(&opening).is_ok());
}
