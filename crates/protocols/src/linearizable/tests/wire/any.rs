//! Any message that a correct peer can send.

use crate::linearizable::group::{Generation, Standing};
use crate::linearizable::keys::cursor_of;
use crate::linearizable::message::{Basis, Beat, Bounds, Known, Message, Said, Stamp, Want};
use crate::linearizable::record::{COUNTER_MAX, Record, Ts};
use crate::linearizable::wire::page;
use crate::order::Order;
use crate::quorum::CrashVector;
use crate::reconfigure::{self, Ballot};
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start};
use quorate_kernel::operation::Cursor;
use quorate_kernel::view::{Change, Range, View, ViewId};
use std::boxed::Box;
use std::vec::Vec;

fn any_standing() -> impl Strategy<Value = Standing> {
    prop_oneof![
        Just(Standing::Ready),
        Just(Standing::Busy),
        Just(Standing::Forgot),
        Just(Standing::Outside),
        Just(Standing::Learned),
        Just(Standing::Split),
        Just(Standing::Gathering),
    ]
}

fn any_cursor() -> impl Strategy<Value = Cursor> {
    prop_oneof![any::<u64>().prop_map(Cursor::at), any_key().prop_map(|key| cursor_of(&key))]
}

fn any_generation() -> impl Strategy<Value = Generation> {
    (0..=COUNTER_MAX, 0..=COUNTER_MAX).prop_map(|(number, floor)| Generation { number, floor })
}

fn any_epoch() -> impl Strategy<Value = u64> {
    0..=COUNTER_MAX
}

fn any_known() -> impl Strategy<Value = Known> {
    (any_generation(), any_epoch()).prop_map(|(generation, epoch)| Known { generation, epoch })
}

fn any_stamp() -> impl Strategy<Value = Stamp> {
    let crashes = proptest::collection::vec((any::<u64>(), any::<u32>()), 0..5).prop_map(|list| {
        let mut crashes = CrashVector::default();
        for (node, start) in list {
            crashes.raise(NodeId(node), Start(start));
        }
        crashes
    });
    let hint = proptest::option::of(any_view().prop_map(Box::new));
    let place = (any_view_id(), any_standing());
    (place, any_known(), crashes, hint).prop_map(|((view, standing), known, crashes, hint)| Stamp {
        view,
        standing,
        known,
        crashes,
        hint,
    })
}

fn any_view_id() -> impl Strategy<Value = ViewId> {
    any::<(u64, u64)>().prop_map(|(group, version)| ViewId { group: GroupId(group), version })
}

fn any_view() -> impl Strategy<Value = View> {
    let nodes = proptest::collection::btree_set(any::<u64>(), 1..=7);
    (any_view_id(), any::<(u64, u64)>(), nodes).prop_map(|(mut id, (low, high), nodes)| {
        // Views of higher versions are refused.
        id.version %= 1 << 62;
        View::new(id, Range { low, high }, nodes.into_iter().map(NodeId).collect())
    })
}

fn any_who() -> impl Strategy<Value = Incarnation> {
    any::<(u64, u32)>()
        .prop_map(|(node, start)| Incarnation { node: NodeId(node), start: Start(start) })
}

fn any_change() -> impl Strategy<Value = Change> {
    prop_oneof![
        any::<(u64, u64)>()
            .prop_map(|(out, into)| Change::Replace { out: NodeId(out), into: NodeId(into) }),
        any::<u64>().prop_map(|into| Change::Grow { into: NodeId(into) }),
        any::<u64>().prop_map(|out| Change::Shrink { out: NodeId(out) }),
        any::<u64>().prop_map(|at| Change::Split { at }),
    ]
}

fn any_reconfiguration() -> impl Strategy<Value = reconfigure::Message> {
    use reconfigure::{Accepted, Message as M, Promise};
    let ballot =
        || (1u64..1 << 48, any_who()).prop_map(|(round, proposer)| Ballot { round, proposer });
    let ids = || (any_view_id(), any_view_id());
    prop_oneof![
        (any_view_id(), ballot()).prop_map(|(view, ballot)| M::P1A { view, ballot }),
        (any_view_id(), ballot(), proptest::option::of(any_change())).prop_map(
            |(view, ballot, change)| {
                let accepted = change.map(|change| (ballot, change));
                M::P1B(Promise {
                    view,
                    ballot,
                    ok: true,
                    installed: view,
                    promised: ballot,
                    accepted,
                })
            }
        ),
        (any_view_id(), ballot(), any_change()).prop_map(|(view, ballot, change)| M::P2A {
            view,
            ballot,
            change
        }),
        (ids(), ballot(), ballot()).prop_map(|((view, installed), ballot, promised)| {
            M::P2B(Accepted { view, ballot, ok: false, installed, promised })
        }),
        (any_view_id(), any_change()).prop_map(|(view, change)| M::P3A { view, change }),
        ids().prop_map(|(view, installed)| M::P3B { view, installed }),
    ]
}

fn any_ts() -> impl Strategy<Value = Ts> {
    (any::<u64>(), any_who(), any::<u64>()).prop_map(|(n, writer, sequence)| Ts {
        n: n % COUNTER_MAX + 1,
        writer,
        sequence,
    })
}

fn any_key() -> impl Strategy<Value = Bytes> {
    let order = prop_oneof![Just(Order::Hash), Just(Order::Key)];
    (order, any::<Vec<u8>>()).prop_map(|(order, key)| order.data_key(&key))
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
    prop_oneof![of_operations(), of_transfers(), of_groups(), of_purges(), of_comparisons()]
}

fn any_want() -> impl Strategy<Value = Want> {
    prop_oneof![Just(Want::Value), Just(Want::Digest), Just(Want::Counter)]
}

fn of_operations() -> impl Strategy<Value = Message> {
    let basis = any::<(u64, bool, u64)>();
    let basis =
        basis.prop_map(|(generation, is_imposed, epoch)| Basis { generation, is_imposed, epoch });
    let maybe_record = prop_oneof![Just(Bytes::new()), any_record()];
    prop_oneof![
        (any::<u64>(), any_view_id(), any_want(), any_key())
            .prop_map(|(op, view, want, key)| Message::ReadA { op, view, want, key }),
        (any::<u64>(), any_stamp(), any_ts(), any::<bool>(), maybe_record).prop_map(
            |(op, stamp, ts, live, record)| Message::ReadB { op, stamp, ts, live, record }
        ),
        (any::<u64>(), any_view_id(), basis, any_key(), any_record()).prop_map(
            |(op, view, basis, key, record)| Message::WriteA { op, view, basis, key, record }
        ),
        (any::<u64>(), any_view_id(), any::<bool>(), any_stamp())
            .prop_map(|(op, view, ok, stamp)| Message::WriteB { op, view, ok, stamp }),
        (any::<u64>(), any_view_id(), any_cursor(), any::<u32>())
            .prop_map(|(op, view, from, limit)| Message::PageA { op, view, from, limit }),
        (any::<u64>(), any_stamp(), proptest::option::of(any_cursor()), any_page())
            .prop_map(|(op, stamp, next, page)| Message::PageB { op, stamp, next, page }),
    ]
}

fn of_transfers() -> impl Strategy<Value = Message> {
    let lost = proptest::collection::vec(any_who(), 0..7);
    let asked = || (any::<u64>(), any_view_id());
    let next = proptest::option::of(any_cursor());
    let list = ((any::<bool>(), any_cursor(), next), lost, any_page());
    prop_oneof![
        (asked(), any_epoch(), any::<bool>(), any_cursor()).prop_map(
            |((round, since), epoch, forgot, from)| Message::ListA {
                round,
                since,
                epoch,
                forgot,
                from
            }
        ),
        (asked(), any_stamp(), list).prop_map(
            |((round, since), stamp, ((is_source, from, next), lost, page))| Message::ListB {
                round,
                since,
                stamp,
                is_source,
                bounds: Box::new(Bounds { from, next }),
                lost,
                page
            }
        ),
        (asked(), proptest::collection::vec(any::<u64>().prop_map(NodeId), 0..9), any_epoch())
            .prop_map(|((round, since), awaits, epoch)| Message::Lacks {
                round,
                since,
                awaits,
                epoch
            }),
        (asked(), any_page()).prop_map(|((round, since), page)| Message::FetchA {
            round,
            since,
            page
        }),
        (asked(), any_page()).prop_map(|((round, since), page)| Message::FetchB {
            round,
            since,
            page
        }),
    ]
}

fn of_groups() -> impl Strategy<Value = Message> {
    let beat = (any_view_id(), any_standing(), any_known(), any::<bool>())
        .prop_map(|(view, standing, known, asks)| Beat { view, standing, known, asks });
    let into = any::<u64>().prop_map(NodeId);
    prop_oneof![
        of_examinations(),
        any::<u64>().prop_map(|token| Message::LocateA { token }),
        any_view().prop_map(|view| Message::LocateB { view }),
        proptest::collection::vec(any_reconfiguration(), 0..4).prop_map(Message::Reconfigure),
        (any_view(), into, any_known()).prop_filter_map(
            "a view that something follows",
            |(mut old, into, known)| {
                old.id.version >>= 1;
                let [next] = <[View; 1]>::try_from(old.after(&Change::Grow { into })?).ok()?;
                Some(Message::Invite { next, old, known })
            }
        ),
        (any_view(), any_known()).prop_map(|(view, known)| Message::Learn { view, known }),
        (any_view(), any_generation())
            .prop_map(|(view, generation)| Message::Split { view, generation }),
        proptest::collection::vec(beat, 0..4).prop_map(Message::Beats),
        any_view_id().prop_map(|view| Message::DecisionsA { view }),
        (any_view_id(), proptest::collection::vec(any_change(), 0..4))
            .prop_map(|(view, changes)| Message::DecisionsB { view, changes }),
    ]
}

fn of_examinations() -> impl Strategy<Value = Message> {
    let said = (any_standing(), any::<bool>(), any::<bool>(), any::<bool>())
        .prop_map(|(standing, brings, keeps, stays)| Said { standing, brings, keeps, stays });
    let asked = (any::<u64>(), any_view_id(), any::<u64>(), any::<Option<u64>>());
    prop_oneof![
        asked.prop_map(|(op, view, token, leaver)| {
            Message::ExamineA { op, view, token, leaver: leaver.map(NodeId) }
        }),
        (any::<u64>(), any_stamp(), said).prop_map(|(op, stamp, said)| Message::ExamineB {
            op,
            stamp,
            said
        }),
    ]
}

fn of_comparisons() -> impl Strategy<Value = Message> {
    let asked = || (any::<u64>(), any_view_id());
    let parts = (any_key(), proptest::collection::btree_map(any_key(), any::<u64>(), 0..4));
    let parts = parts.prop_map(|(from, ends)| {
        let mut parts = Vec::new();
        let mut part = |digest: u64, end: &[u8]| {
            parts.extend(digest.to_le_bytes());
            parts.extend((end.len() as u32).to_le_bytes());
            parts.extend(end);
        };
        ends.iter().filter(|(end, _)| **end > from).for_each(|(end, digest)| part(*digest, end));
        part(1, b"");
        (from, Bytes::from(parts))
    });
    let upto = prop_oneof![Just(Bytes::new()), any_key()];
    prop_oneof![
        (asked(), parts).prop_map(|((round, view), (from, parts))| Message::CompareA {
            round,
            view,
            from,
            parts
        }),
        (asked(), any_page(), upto).prop_map(|((round, view), page, upto)| Message::CompareB {
            round,
            view,
            page,
            upto
        }),
        (asked(), any_page()).prop_map(|((round, view), page)| Message::RecordsA {
            round,
            view,
            page
        }),
        (asked(), any::<(u64, u64)>(), any_page()).prop_map(
            |((round, view), (generation, epoch), page)| Message::RecordsB {
                round,
                view,
                generation,
                epoch,
                page
            }
        ),
    ]
}

fn of_purges() -> impl Strategy<Value = Message> {
    let next = proptest::option::of(any_cursor());
    prop_oneof![
        (any_view_id(), any_generation())
            .prop_map(|(view, generation)| Message::FloorA { view, generation }),
        (any_view_id(), any_generation())
            .prop_map(|(view, generation)| Message::FloorB { view, generation }),
        (any_view_id(), any::<u64>()).prop_map(|(view, from)| Message::TombsA { view, from }),
        (any_view_id(), any::<(u64, Option<u64>)>(), any_page())
            .prop_map(|(view, (from, next), page)| Message::TombsB { view, from, next, page }),
        (any_view_id(), any_generation(), any_page())
            .prop_map(|(view, generation, page)| Message::DropA { view, generation, page }),
        (any_view_id(), any::<u64>(), any_cursor()).prop_map(|(view, generation, from)| {
            Message::TombstonesA { view, generation, from }
        }),
        (any_view_id(), any::<u64>(), (any_cursor(), next), any_page()).prop_map(
            |(view, generation, (from, next), page)| Message::TombstonesB {
                view,
                generation,
                from,
                next,
                page
            }
        ),
        (any_view_id(), any_generation(), any_key())
            .prop_map(|(view, generation, first)| Message::DropB { view, generation, first }),
    ]
}
