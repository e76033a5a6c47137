//! Any message that a correct peer can send.

use super::super::keys::data_key;
use super::super::message::{Message, Stamp, Want};
use super::super::page;
use super::super::record::{Record, Ts};
use super::super::state::Status;
use crate::quorum::CrashVector;
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start};
use quorate_kernel::view::{Range, View, ViewId};
use std::boxed::Box;
use std::collections::BTreeSet;
use std::vec::Vec;

fn any_stamp() -> impl Strategy<Value = Stamp> {
    let nodes = || proptest::collection::btree_set(any::<u64>(), 1..=7);
    let node_ids = |nodes: BTreeSet<u64>| nodes.into_iter().map(NodeId).collect::<Vec<_>>();
    let status = prop_oneof![
        Just(Status::Ready),
        Just(Status::Forgot),
        (nodes(), any::<bool>())
            .prop_map(move |(nodes, forgot)| Status::Busy { sources: node_ids(nodes), forgot }),
    ];
    let crashes = proptest::collection::vec((any::<u64>(), any::<u32>()), 0..5).prop_map(|list| {
        let mut crashes = CrashVector::default();
        for (node, start) in list {
            crashes.raise(NodeId(node), Start(start));
        }
        crashes
    });
    let hint = proptest::option::of((any_view_id(), any::<(u64, u64)>(), nodes()).prop_map(
        move |(id, (low, high), nodes)| {
            Box::new(View::new(id, Range { low, high }, node_ids(nodes)))
        },
    ));
    (any_view_id(), status, crashes, hint).prop_map(|(view, status, crashes, hint)| Stamp {
        view,
        status,
        crashes,
        hint,
    })
}

fn any_view_id() -> impl Strategy<Value = ViewId> {
    any::<(u64, u64)>().prop_map(|(group, version)| ViewId { group: GroupId(group), version })
}

fn any_who() -> impl Strategy<Value = Incarnation> {
    any::<(u64, u32)>()
        .prop_map(|(node, start)| Incarnation { node: NodeId(node), start: Start(start) })
}

fn any_ts() -> impl Strategy<Value = Ts> {
    (any::<u64>(), any_who(), any::<u64>()).prop_map(|(n, writer, sequence)| Ts {
        n: n % (1 << 62) + 1,
        writer,
        sequence,
    })
}

fn any_key() -> impl Strategy<Value = Bytes> {
    any::<Vec<u8>>().prop_map(|key| data_key(&key))
}

fn any_record() -> impl Strategy<Value = Bytes> {
    (any_ts(), any::<Option<Vec<u8>>>())
        .prop_map(|(ts, value)| Record::new(ts, value.as_deref()).bytes().clone())
}

fn any_page() -> impl Strategy<Value = Bytes> {
    proptest::collection::btree_map(any_key(), any_record(), 0..4).prop_map(|entries| {
        let mut page = BytesMut::new();
        entries.iter().for_each(|(key, record)| page::push(&mut page, key, record));
        page.freeze()
    })
}

/// Any message.
pub(super) fn any_message() -> impl Strategy<Value = Message> {
    let want = prop_oneof![Just(Want::Value), Just(Want::Digest), Just(Want::Counter)];
    let maybe_record = prop_oneof![Just(Bytes::new()), any_record()];
    prop_oneof![
        (any::<u64>(), any_view_id(), want, any_key())
            .prop_map(|(op, view, want, key)| Message::ReadA { op, view, want, key }),
        (any::<u64>(), any_stamp(), any_ts(), any::<bool>(), maybe_record).prop_map(
            |(op, stamp, ts, live, record)| Message::ReadB { op, stamp, ts, live, record }
        ),
        (any::<u64>(), any_view_id(), any_key(), any_record())
            .prop_map(|(op, view, key, record)| Message::WriteA { op, view, key, record }),
        (any::<u64>(), any_view_id(), any::<bool>(), any_stamp())
            .prop_map(|(op, view, ok, stamp)| Message::WriteB { op, view, ok, stamp }),
        (any::<u64>(), any_view_id(), any::<u64>(), any::<u32>())
            .prop_map(|(op, view, from, limit)| Message::PageA { op, view, from, limit }),
        (any::<u64>(), any_stamp(), any::<Option<u64>>(), any_page())
            .prop_map(|(op, stamp, next, page)| Message::PageB { op, stamp, next, page }),
        (any::<u64>(), any_view_id(), any::<bool>(), any::<u64>())
            .prop_map(|(round, view, forgot, from)| Message::RefillA { round, view, forgot, from }),
        (
            any::<u64>(),
            any_stamp(),
            any::<(u64, Option<u64>)>(),
            proptest::collection::vec(any_who(), 0..7),
            any_page()
        )
            .prop_map(|(round, stamp, (from, next), lost, page)| Message::RefillB {
                round,
                stamp,
                from,
                next,
                lost,
                page
            }),
    ]
}
