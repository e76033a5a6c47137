//! One message of every variant, and of every shape of its fields, with its bytes.

use super::bytes::unhex;
use crate::linearizable::group::{Generation, Standing};
use crate::linearizable::keys::cursor_of;
use crate::linearizable::message::{Basis, Beat, Bounds, Known, Message, Said, Stamp, Want};
use crate::linearizable::record::{Record, Ts};
use crate::linearizable::wire::page;
use crate::order::Order;
use crate::quorum::CrashVector;
use crate::reconfigure::{self, Ballot};
use crate::testing::Scripted;
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start};
use quorate_kernel::operation::Cursor;
use quorate_kernel::view::{Change, Range, View, ViewId};
use std::boxed::Box;
use std::vec::Vec;

/// A message with the bytes of its head and its tails, in hexadecimal digits.
pub(super) struct Golden {
    pub message: Message,
    /// The head and the two tails.
    pub bytes: [&'static str; 3],
}

impl Golden {
    pub fn name(&self) -> &'static str {
        crate::linearizable::Linearizable::name(&self.message)
    }

    /// The number that a head begins with. Without a wildcard, so that a new variant must be added
    /// here, and to [`golden`].
    pub fn tag(&self) -> u8 {
        match self.message {
            Message::ReadA { .. } => 0,
            Message::ReadB { .. } => 1,
            Message::WriteA { .. } => 2,
            Message::WriteB { .. } => 3,
            Message::PageA { .. } => 4,
            Message::PageB { .. } => 5,
            Message::ListA { .. } => 6,
            Message::ListB { .. } => 7,
            Message::FetchA { .. } => 8,
            Message::FetchB { .. } => 9,
            Message::LocateA { .. } => 10,
            Message::LocateB { .. } => 11,
            Message::Reconfigure(_) => 12,
            Message::Invite { .. } => 13,
            Message::Learn { .. } => 14,
            Message::Beats(_) => 15,
            Message::DecisionsA { .. } => 16,
            Message::DecisionsB { .. } => 17,
            Message::FloorA { .. } => 18,
            Message::FloorB { .. } => 19,
            Message::TombsA { .. } => 20,
            Message::TombsB { .. } => 21,
            Message::DropA { .. } => 22,
            Message::TombstonesA { .. } => 23,
            Message::TombstonesB { .. } => 24,
            Message::DropB { .. } => 25,
            Message::CompareA { .. } => 26,
            Message::CompareB { .. } => 27,
            Message::RecordsA { .. } => 28,
            Message::RecordsB { .. } => 29,
            Message::Lacks { .. } => 30,
            Message::Split { .. } => 31,
            Message::ExamineA { .. } => 32,
            Message::ExamineB { .. } => 33,
        }
    }
}

/// How many variants there are; see [`Golden::tag`].
pub(super) const VARIANTS: u8 = 34;

pub(super) fn view_id() -> ViewId {
    ViewId { group: GroupId(1), version: 3 }
}

pub(crate) fn who(node: u64, start: u32) -> Incarnation {
    Incarnation { node: NodeId(node), start: Start(start) }
}

pub(crate) fn generation() -> Generation {
    Generation { number: 4, floor: 300 }
}

pub(crate) fn view() -> View {
    View::new(view_id(), Range { low: 7, high: 9 }, Vec::from([NodeId(1), NodeId(300)]))
}

/// The view after [`view`], of which node 2 is a new member.
pub(super) fn next_view() -> View {
    let change = Change::Replace { out: NodeId(1), into: NodeId(2) };
    view().after(&change).expect("it fits").remove(0)
}

fn stamp(standing: Standing) -> Stamp {
    let crashes = CrashVector::default();
    Stamp { view: view_id(), standing, known: Known::default(), crashes, hint: None }
}

fn known() -> Known {
    Known { generation: generation(), epoch: 3 }
}

fn crashes() -> CrashVector {
    let mut crashes = CrashVector::default();
    crashes.raise(NodeId(2), Start(5));
    crashes
}

fn full_stamp() -> Stamp {
    let crashes = crashes();
    let hint = Some(Box::new(view()));
    Stamp { view: view_id(), standing: Standing::Busy, known: known(), crashes, hint }
}

pub(crate) fn ts() -> Ts {
    Ts { n: 300, writer: who(2, 4), sequence: 9 }
}

fn one_page() -> Bytes {
    let mut page = BytesMut::new();
    page::push(&mut page, &Order::Hash.data_key(b"k"), Record::new(ts(), None).bytes());
    page.freeze()
}

const KEY: &str = "a921e3704fda881d6b";
const RECORD: &str = "11000000000000012c000000000000000200000004000000000000000976";
/// The lengths of both, the key, and a tombstone.
const PAGE: &str = "090000001d000000a921e3704fda881d6b\
    10000000000000012c0000000000000002000000040000000000000009";

const PARTS: &str = "080706050403020108000000ffffffffffffffff010000000000000000000000";

/// One message of every variant, and of every shape of its fields.
pub(crate) fn golden() -> Vec<Golden> {
    let mut list = of_operations();
    list.extend(of_transfers());
    list.extend(of_groups());
    list.extend(of_reconfigurations());
    list.extend(of_purges());
    list.extend(of_comparisons());
    list.into_iter().map(|(message, bytes)| Golden { message, bytes }).collect()
}

type Pieces = [&'static str; 3];

const READ_B: &str = "\
    010100000000000000010000000000000003000000000000000000000000000000000000000000000000\
    00000000000000002c01000000000000020000000000000004000000090000000000000001";
const READ_B_OF_A_FULL_STAMP: &str = "\
    01c800000000000000010000000000000003000000000000000104000000000000002c01000000000000\
    030000000000000000000000000000000000000000000000000000000000000000000000000102050101\
    0307090201ac02";

fn of_operations() -> Vec<(Message, Pieces)> {
    let (view, key) = (view_id(), Order::Hash.data_key(b"k"));
    let record = Record::new(ts(), Some(b"v")).bytes().clone();
    let read = |want| Message::ReadA { op: 1, view, want, key: key.clone() };
    let basis = Basis { generation: 4, is_imposed: true, epoch: 3 };
    Vec::from([
        (read(Want::Value), ["0001000000000000000100000000000000030000000000000000", KEY, ""]),
        (read(Want::Digest), ["0001000000000000000100000000000000030000000000000001", KEY, ""]),
        (read(Want::Counter), ["0001000000000000000100000000000000030000000000000002", KEY, ""]),
        (
            Message::ReadB {
                op: 1,
                stamp: stamp(Standing::Ready),
                ts: ts(),
                live: true,
                record: record.clone(),
            },
            [READ_B, RECORD, ""],
        ),
        (
            Message::ReadB {
                op: 200,
                stamp: full_stamp(),
                ts: Ts::ZERO,
                live: false,
                record: Bytes::new(),
            },
            [READ_B_OF_A_FULL_STAMP, "", ""],
        ),
        (
            Message::WriteA { op: 1, view, basis, key, record },
            [
                "0201000000000000000100000000000000030000000000000004000000000000000103\
                 00000000000000",
                KEY,
                RECORD,
            ],
        ),
        (
            Message::WriteB { op: 1, view, ok: true, stamp: stamp(Standing::Forgot) },
            [
                "0301000000000000000100000000000000030000000000000001010000000000000003\
                 0000000000000002000000000000000000000000000000000000000000000000",
                "",
                "",
            ],
        ),
        (
            Message::PageA { op: 1, view, from: Cursor::at(u64::MAX), limit: 10 },
            ["04010103ffffffffffffffffff010a", "", ""],
        ),
        (
            Message::PageB {
                op: 1,
                stamp: stamp(Standing::Outside),
                next: Some(Cursor::at(128)),
                page: one_page(),
            },
            ["05010103030000000000018001", PAGE, ""],
        ),
        (
            Message::PageA { op: 1, view, from: cursor_of(&Order::Hash.data_key(b"k")), limit: 10 },
            ["040101039d90eafe84eef890a9010a", "", "01006b"],
        ),
    ])
}

fn of_transfers() -> Vec<(Message, Pieces)> {
    let (since, page) = (view_id(), one_page());
    let list = |is_source, next, lost| Message::ListB {
        round: 2,
        since,
        stamp: stamp(Standing::Ready),
        is_source,
        bounds: Box::new(Bounds { from: Cursor::at(0), next }),
        lost,
        page: page.clone(),
    };
    let lost = Vec::from([who(1, 2), who(2, 2)]);
    let awaits = Vec::from([NodeId(1), NodeId(2)]);
    Vec::from([
        (
            Message::ListA { round: 2, since, epoch: 3, forgot: true, from: Cursor::at(0) },
            ["06020103030100", "", ""],
        ),
        (
            list(true, Some(Cursor::at(128)), Vec::new()),
            ["070201030103000000000000010001800100", PAGE, ""],
        ),
        (list(false, None, lost), ["0702010301030000000000000000000201020202", PAGE, ""]),
        (Message::Lacks { round: 2, since, awaits, epoch: 3 }, ["1e02010302010203", "", ""]),
        (Message::FetchA { round: 2, since, page: page.clone() }, ["08020103", PAGE, ""]),
        (Message::FetchB { round: 2, since, page }, ["09020103", PAGE, ""]),
    ])
}

fn of_groups() -> Vec<(Message, Pieces)> {
    let (id, generation) = (view_id(), generation());
    let beat = |standing, asks| Beat { view: id, standing, known: known(), asks };
    let beats = Vec::from([beat(Standing::Learned, true), beat(Standing::Split, false)]);
    let changes = Vec::from([
        Change::Replace { out: NodeId(1), into: NodeId(2) },
        Change::Grow { into: NodeId(1) },
        Change::Shrink { out: NodeId(2) },
        Change::Split { at: 8 },
    ]);
    let said = Said { standing: Standing::Gathering, brings: true, keeps: false, stays: true };
    let examine = |leaver| Message::ExamineA { op: 1, view: id, token: 300, leaver };
    Vec::from([
        (examine(None), ["20010103ac0200", "", ""]),
        (examine(Some(NodeId(2))), ["20010103ac020102", "", ""]),
        (
            Message::ExamineB { op: 1, stamp: stamp(Standing::Ready), said },
            ["2101010300000000000006010001", "", ""],
        ),
        (Message::LocateA { token: 300 }, ["0aac02", "", ""]),
        (Message::LocateB { view: view() }, ["0b010307090201ac02", "", ""]),
        (
            Message::Invite { next: next_view(), old: view(), known: known() },
            ["0d010407090202ac02010307090201ac0204ac0203", "", ""],
        ),
        (Message::Learn { view: view(), known: known() }, ["0e010307090201ac0204ac0203", "", ""]),
        (Message::Split { view: view(), generation }, ["1f010307090201ac0204ac02", "", ""]),
        (Message::Beats(beats), ["0f0201030404ac02030101030504ac020300", "", ""]),
        (Message::DecisionsA { view: id }, ["100103", "", ""]),
        (Message::DecisionsB { view: id, changes }, ["11010304000102010102020308", "", ""]),
    ])
}

fn of_reconfigurations() -> Vec<(Message, Pieces)> {
    use reconfigure::{Accepted, Message as M, Promise};
    let (view, installed) = (view_id(), ViewId { version: 4, ..view_id() });
    let ballot = Ballot { round: 7, proposer: who(1, 2) };
    let lower = Ballot { round: 6, ..ballot };
    let change = Change::Replace { out: NodeId(1), into: NodeId(2) };
    let promised = ballot;
    let accepted = Some((lower, change));
    let promise = Promise { view, ballot, ok: true, installed: view, promised, accepted };
    let refusal = Accepted { view, ballot: lower, ok: false, installed, promised };
    let one = |message| Message::Reconfigure(Vec::from([message]));
    Vec::from([
        (one(M::P1A { view, ballot }), ["0c01000103070102", "", ""]),
        (one(M::P1B(promise)), ["0c0101010307010201010307010201060102000102", "", ""]),
        (one(M::P2A { view, ballot, change }), ["0c01020103070102000102", "", ""]),
        (one(M::P2B(refusal)), ["0c01030103060102000104070102", "", ""]),
        (one(M::P3A { view, change }), ["0c01040103000102", "", ""]),
        (one(M::P3B { view, installed }), ["0c010501030104", "", ""]),
    ])
}

fn of_purges() -> Vec<(Message, Pieces)> {
    let (view, generation, page) = (view_id(), generation(), one_page());
    let first = Order::Hash.data_key(b"k");
    Vec::from([
        (Message::FloorA { view, generation }, ["12010304ac02", "", ""]),
        (Message::FloorB { view, generation }, ["13010304ac02", "", ""]),
        (Message::TombsA { view, from: 300 }, ["140103ac02", "", ""]),
        (
            Message::TombsB { view, from: 300, next: None, page: page.clone() },
            ["150103ac0200", PAGE, ""],
        ),
        (Message::DropA { view, generation, page: page.clone() }, ["16010304ac02", PAGE, ""]),
        (
            Message::TombstonesA { view, generation: 3, from: Cursor::at(300) },
            ["17010303ac02", "", ""],
        ),
        (
            Message::TombstonesB {
                view,
                generation: 3,
                from: Cursor::at(300),
                next: Some(Cursor::at(301)),
                page: page.clone(),
            },
            ["18010303ac0201ad02", PAGE, ""],
        ),
        (
            Message::TombstonesB {
                view,
                generation: 3,
                from: cursor_of(&Order::Hash.data_key(b"k")),
                next: Some(cursor_of(&Order::Hash.data_key(b"l"))),
                page,
            },
            ["180103039d90eafe84eef890a90101ba98b0c0f5a9e787c001", PAGE, "01006b6c"],
        ),
        (Message::DropB { view, generation, first }, ["19010304ac02", KEY, ""]),
    ])
}

fn of_comparisons() -> Vec<(Message, Pieces)> {
    let (view, page, key) = (view_id(), one_page(), Order::Hash.data_key(b"k"));
    // One part before a cursor, and one to the end of the interval.
    let parts = unhex(PARTS).into();
    Vec::from([
        (Message::CompareA { round: 2, view, from: key.clone(), parts }, ["1a020103", KEY, PARTS]),
        (
            Message::CompareB { round: 2, view, page: page.clone(), upto: key },
            ["1b020103", PAGE, KEY],
        ),
        (Message::RecordsA { round: 2, view, page: page.clone() }, ["1c020103", PAGE, ""]),
        (
            Message::RecordsB { round: 2, view, generation: 3, epoch: 3, page },
            ["1d0201030303", PAGE, ""],
        ),
    ])
}
