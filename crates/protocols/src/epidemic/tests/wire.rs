//! Messages as bytes.

use crate::epidemic::keys::wire_key;
use crate::epidemic::listings::{ListA, ListB, Listed};
use crate::epidemic::message::{
    Came, Flask, FlaskAct, Found, LISTED_MAX, Message, Page, Rest, SnapshotB,
};
use crate::epidemic::repair::behind::Heard;
use crate::epidemic::replica::range::{Leaf, Range};
use crate::epidemic::replica::seen::Done;
use crate::epidemic::replica::store::{Entry, Record};
use crate::epidemic::replica::version::{RequestId, Version};
use crate::epto::{EventKey, Horizon, LogicalTime, Sequence};
use crate::gossip::cyclon::Peer;
use crate::slices::Profile;
use crate::slices::position::Position;
use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::{ADDRESS_BYTES_MAX, EPTO_TIME_MAX};
use quorate_kernel::wire::Body;
use std::vec::Vec;

fn who() -> Incarnation {
    Incarnation { node: NodeId(7), start: Start(2) }
}

fn event() -> EventKey {
    EventKey { time: LogicalTime(9), source: who() }
}

fn record() -> Record {
    let (version, value) = (Version::Ordered(event()), Some(Bytes::from_static(b"value")));
    Record { key: wire_key(b"k"), version, id: RequestId(1 << 90), value }
}

fn done() -> (RequestId, Done) {
    (RequestId(3), Done { event: event(), position: Position(5), existed: true })
}

fn entry(version: Version) -> Entry {
    Entry { key: wire_key(b"k"), version, rank: 7 }
}

fn peer(address: usize) -> Peer {
    Peer { who: who(), age: 3, address: "a".repeat(address).into() }
}

fn page_of(leaf: Leaf) -> Page {
    Page { number: 8, leaf, until: None }
}

fn snapshot() -> SnapshotB {
    SnapshotB {
        number: 4,
        is_ready: true,
        horizon: Horizon { last: Some(event()), ..Horizon::default() },
        noted: Vec::from([(Range::ALL, Heard::Taken(LogicalTime(7)))]),
        records: Vec::from([record()]),
        forgotten: Some(event()),
        ids: Vec::from([done()]),
        after: Rest::Behind(wire_key(b"k")),
        ids_below: Rest::Behind(event()),
    }
}

/// One message of each kind.
fn all() -> Vec<Message> {
    let (key, version) = (wire_key(b"k"), Version::Explicit(4));
    let wrote = Came::Wrote { version, existed: false };
    let read = Came::Read { version: None, value: None, is_degraded: true };
    let told = Profile { count: Some(40), ..Profile::default() };
    let forgotten = Vec::from([(RequestId(1), Came::Forgotten), (RequestId(2), Came::Overloaded)]);
    let act = FlaskAct::Put(4, Bytes::from_static(b"v"));
    let flask = Flask { id: RequestId(1), attempt: 2, entry: who(), number: 9, hops: 3, key, act };
    let (range, key) = (Range::ALL, wire_key(b"k"));
    let (source, sequence) = (who(), Sequence(4));
    let left = Vec::from([(key.clone(), version)]);
    let (records, ids) = (Vec::from([record()]), Vec::from([done()]));
    let heard = LogicalTime(8);
    let found =
        Found { source, sequence, range: Some(range), heard, records, left, ids: ids.clone() };
    Vec::from([
        Message::Shuffle { entries: Vec::from([peer(5)]), told },
        Message::ShuffleReply { entries: Vec::new(), told: Profile::default() },
        Message::Members(Vec::from([peer(0)])),
        Message::Did { event: event(), members: 6, results: Vec::from([(RequestId(1), read)]) },
        Message::Flask(flask),
        Message::Flasked { id: RequestId(1), members: 6, result: wrote },
        Message::Flasked { id: RequestId(1), members: 6, result: Came::Refused },
        Message::Did { event: event(), members: 6, results: forgotten },
        Message::Compare {
            number: 5,
            range,
            sums: Vec::from([1; 64]),
            ids: 3,
            last: Some(event()),
            forgotten: Some(event()),
        },
        Message::Leaves {
            number: 5,
            parts: Vec::from([(Leaf(0), Leaf(9))]),
            sums: Vec::from([(Leaf(3), 4)]),
            ids: ids.clone(),
        },
        Message::Equal { number: 5 },
        Message::Listed {
            page: page_of(Leaf(3)),
            after: Some(key.clone()),
            held: Vec::from([entry(version)]),
        },
        Message::Records {
            page: Some(page_of(Leaf(3))),
            heard,
            records: Vec::from([record()]),
            ids,
            wanted: Vec::from([(key.clone(), version)]),
        },
        Message::SnapshotA { number: 4, range, after: Rest::Behind(key), ids_below: Rest::Nothing },
        Message::SnapshotB(snapshot()),
        Message::MissingA(Vec::from([(source, sequence)])),
        Message::MissingB(Vec::from([found])),
        list_of(wire_key(b"k")),
        page_of_keys(Vec::from([wire_key(b"k")])),
        Message::SnapshotC { page: snapshot(), lost: Vec::from([range]) },
        Message::CopyA { number: 6, range },
        Message::CopyB { number: 6, parts: Vec::from([range]) },
    ])
}

fn list_of(from: Bytes) -> Message {
    Message::ListA(ListA { number: 6, from, limit: 9, takes_doubtful: true })
}

fn page_of_keys(keys: Vec<Bytes>) -> Message {
    Message::ListB(ListB { number: 6, listed: Some(Listed { keys, next: None }) })
}

fn back(message: &Message) -> Result<Message, quorate_kernel::error::WireError> {
    Body::encode(message, &mut BytesMut::new()).expect("it fits a frame").decode()
}

#[test]
fn messages_come_back_as_they_were() {
    for message in all() {
        assert_eq!(back(&message), Ok(message));
    }
}

#[test]
fn what_no_correct_node_says_is_refused() {
    let strange = Bytes::from_static(b"no key with its hash");
    let range = Range { first: Position(9), last: Position(3) };
    let told = Profile::default();
    let held = std::vec![entry(Version::Explicit(1)); 16 * LISTED_MAX + 1];
    for message in [
        Message::Members(Vec::from([peer(ADDRESS_BYTES_MAX + 1)])),
        Message::Shuffle { entries: std::vec![peer(1); 65], told },
        compare_in(range, std::vec![0; 64], None),
        compare(Vec::new(), None),
        compare(std::vec![0; 65], None),
        Message::Listed { page: page_of(Leaf(0)), after: Some(strange.clone()), held: Vec::new() },
        Message::Listed { page: page_of(Leaf(0)), after: None, held },
        Message::CopyA { number: 6, range },
        Message::CopyB { number: 6, parts: Vec::from([range]) },
        Message::CopyB { number: 6, parts: std::vec![Range::ALL; 65] },
        list_of(Bytes::from_static(b"short")),
        list_of(strange.clone()),
        page_of_keys(Vec::from([strange.clone()])),
        Message::Records {
            page: None,
            heard: LogicalTime(8),
            records: Vec::from([Record { key: strange, ..record() }]),
            ids: Vec::new(),
            wanted: Vec::new(),
        },
    ]
    .into_iter()
    .chain(of_the_far_future())
    {
        assert!(back(&message).is_err(), "{message:?}");
    }
}

fn compare(sums: Vec<u64>, last: Option<EventKey>) -> Message {
    compare_in(Range::ALL, sums, last)
}

fn compare_in(range: Range, sums: Vec<u64>, last: Option<EventKey>) -> Message {
    Message::Compare { number: 5, range, sums, ids: 3, last, forgotten: None }
}

/// One message of each kind that names an event, with one that no clock will ever get to.
fn of_the_far_future() -> Vec<Message> {
    let event = EventKey { time: LogicalTime(EPTO_TIME_MAX + 1), ..event() };
    let (version, last) = (Version::Ordered(event), Some(event));
    let done = Done { event, ..done().1 };
    let (key, ids) = (wire_key(b"k"), Vec::from([(RequestId(3), done)]));
    let wrote = || Came::Wrote { version, existed: false };
    let read = Came::Read { version: Some(version), value: None, is_degraded: false };
    let records = |version, ids| Message::Records {
        page: None,
        heard: LogicalTime(8),
        records: Vec::from([Record { version, ..record() }]),
        ids,
        wanted: Vec::new(),
    };
    let page = |horizon, ids_below| {
        let (records, ids, after) = (Vec::new(), Vec::new(), Rest::Nothing);
        let (number, is_ready, forgotten) = (1, true, None);
        Message::SnapshotB(SnapshotB {
            number,
            is_ready,
            horizon,
            noted: Vec::new(),
            records,
            forgotten,
            ids,
            after,
            ids_below,
        })
    };
    let sound = Version::Explicit(1);
    let found = Found {
        source: who(),
        sequence: Sequence(1),
        range: None,
        heard: LogicalTime(8),
        records: Vec::new(),
        left: Vec::from([(key.clone(), version)]),
        ids: Vec::new(),
    };
    Vec::from([
        Message::Did { event, members: 1, results: Vec::new() },
        Message::Did {
            event: super::wire::event(),
            members: 1,
            results: Vec::from([(RequestId(1), wrote())]),
        },
        Message::Flasked { id: RequestId(1), members: 6, result: read },
        compare(Vec::from([1; 64]), last),
        Message::Leaves { number: 5, parts: Vec::new(), sums: Vec::new(), ids: ids.clone() },
        Message::Listed { page: page_of(Leaf(0)), after: None, held: Vec::from([entry(version)]) },
        records(version, Vec::new()),
        records(sound, ids),
        page(Horizon { last, ..Horizon::default() }, Rest::Nothing),
        page(Horizon { clock: event.time, ..Horizon::default() }, Rest::Nothing),
        page(Horizon::default(), Rest::Behind(event)),
        Message::MissingB(Vec::from([found])),
    ])
}

proptest! {
    /// Bytes of a message with some of them changed are a message, or are refused.
    #[test]
    fn damaged_bytes_do_not_panic(which in 0..22_usize, at: u16, to: u8, cut: u16) {
        let mut bytes = postcard::to_allocvec(&all()[which]).expect("plain data");
        let place = usize::from(at) % bytes.len();
        bytes[place] = to;
        bytes.truncate(bytes.len().saturating_sub(usize::from(cut) % 4));
        let body = Body::encode(&Raw(bytes.into()), &mut BytesMut::new()).expect("it is short");
        let _ = body.decode::<Message>();
    }
}

/// Bytes in place of a message.
struct Raw(Bytes);

impl quorate_kernel::wire::Wire for Raw {
    fn encode(&self, out: &mut quorate_kernel::wire::Encoder<'_>) {
        out.tail(0, &self.0);
    }

    fn decode(
        input: &quorate_kernel::wire::Decoder,
    ) -> Result<Raw, quorate_kernel::error::WireError> {
        Ok(Raw(input.tail(0)))
    }
}
