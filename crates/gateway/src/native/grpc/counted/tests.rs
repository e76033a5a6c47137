//! Requests that are honest, hostile and broken.

use super::super::lists::List;
use super::*;
use crate::web::Budget;
use prost::Message;
use quorate_api::v1::{Kind, NodeFailure, TransactRequest};
use quorate_kernel::limits::{TRANSACTION_ITEMS_MAX, TREE_ACL_MAX};
use tonic::codec::{Codec, Streaming};
use tonic_prost::ProstCodec;

const PLENTY: usize = 64 * 1024 * 1024;

fn fields(call: &str) -> &'static [Field] {
    lists::of_call(&format!("/quorate.v1.{call}"))
}

/// A message as it stands in the body of a request.
fn prefixed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("it is short");
    [&[0], &length.to_be_bytes()[..], message].concat()
}

/// Counts a body that comes in pieces of so many bytes.
fn counted(fields: &'static [Field], body: &[u8], piece: usize) -> Result<Count, Problem> {
    let mut count = Count::new(fields, Budget::new(PLENTY).allowance());
    body.chunks(piece).try_for_each(|piece| count.take(piece))?;
    Ok(count)
}

fn refused(call: &str, message: &[u8]) -> Problem {
    let told = |piece| counted(fields(call), &prefixed(message), piece).err().expect("refused");
    let whole = told(usize::MAX);
    assert_eq!(whole.kind(), Kind::Invalid);
    for piece in [1, 2, 7] {
        assert_eq!(told(piece), whole, "however it comes");
    }
    whole
}

#[test]
fn lists_that_are_too_long_are_refused_by_their_names() {
    let ranks = [("Transact", "items"), ("BatchGet", "keys")];
    for (call, field) in ranks {
        let why = refused(&format!("Kv/{call}"), &[0x12, 0].repeat(2_000));
        assert_eq!(why.field, field, "{why:?}");
    }
    let why = refused("Kv/Transact", &[0x12, 0].repeat(2_000));
    assert!(why.what.contains("1024") && why.right.contains("1024"), "{why:?}");
    assert_eq!(refused("Tree/Multi", &[0x12, 0].repeat(1_025)).field, "items");
    assert_eq!(refused("Admin/CreateKeyspace", &[0x1a, 0].repeat(257)).field, "settings");
    assert_eq!(refused("Admin/AlterKeyspace", &[0x12, 0].repeat(257)).field, "settings");
    for (call, count) in [("Kv/Transact", TRANSACTION_ITEMS_MAX), ("Tree/SetAcl", TREE_ACL_MAX)] {
        let tag = fields(call)[0].number << 3 | 2;
        let entry = [u8::try_from(tag).expect("a small one"), 0];
        assert!(counted(fields(call), &prefixed(&entry.repeat(count)), 3).is_ok(), "{call}");
        assert!(counted(fields(call), &prefixed(&entry.repeat(count + 1)), 3).is_err(), "{call}");
    }
}

#[test]
fn access_lists_are_counted_wherever_they_stand() {
    let acl = |count: usize| [0x1a, 0].repeat(count);
    let inside = |tag: u8, content: &[u8]| {
        let length = content.len();
        let low = u8::try_from(length & 0x7f).expect("seven bits") | 0x80;
        let high = u8::try_from(length >> 7).expect("it is short");
        [&[tag, low, high], content].concat()
    };
    let most = TREE_ACL_MAX;
    let alone = refused("Tree/SetAcl", &acl(most + 1));
    assert_eq!((&alone.field[..], alone.node_failure()), ("acl", NodeFailure::InvalidAcl));
    let node = refused("Tree/Create", &inside(0x12, &acl(most + 1)));
    assert_eq!((&node.field[..], node.node_failure()), ("node.acl", NodeFailure::InvalidAcl));
    // One node in two parts is one node.
    let half = inside(0x12, &acl(most / 2 + 1));
    assert_eq!(refused("Tree/Create", &half.repeat(2)).field, "node.acl");
    // Each item has a list of its own.
    let item = inside(0x12, &inside(0x0a, &acl(most)));
    let multi = fields("Tree/Multi");
    assert!(counted(multi, &prefixed(&item.repeat(3)), 5).is_ok());
    let long = inside(0x12, &inside(0x0a, &acl(most / 2 + 1)).repeat(2));
    let all = [item.repeat(2), long].concat();
    assert_eq!(refused("Tree/Multi", &all).field, "items[2].create.acl");
}

#[test]
fn what_is_not_encoded_as_the_schema_says_is_refused() {
    for (what, message) in [
        ("a field beyond its message", &[0x12, 5, 0][..]),
        ("an entry beyond its message", &[0x12, 2, 0x1a, 4, 0, 0, 0]),
        ("half a number", &[0x12]),
        ("half a key at the end of an entry", &[0x12, 1, 0x80, 0]),
        ("a field 0", &[2, 0]),
        ("a group", &[0x1b, 0x12, 0, 0x1c]),
        ("a type that there is not", &[0x1e, 0]),
        ("a list of numbers", &[0x10, 1]),
        ("eleven bytes of a number", &[0x18, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1]),
        ("65 bits", &[0x18, 255, 255, 255, 255, 255, 255, 255, 255, 255, 2]),
        ("a key of 33 bits", &[0x82, 0x80, 0x80, 0x80, 0x80, 1, 0]),
        ("a length of 64 bits", &[0x12, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0]),
    ] {
        let mut body = prefixed(message);
        // What follows is another message, if the first one is at its end.
        body.extend_from_slice(&[0, 0, 0, 0, 0]);
        let told = counted(fields("Tree/Multi"), &body, 1).err();
        let why = told.unwrap_or_else(|| panic!("{what} is taken"));
        assert_eq!((why.kind(), &why.field[..]), (Kind::Invalid, "message"), "{what}");
    }
    let compressed = counted(fields("Tree/Multi"), &[1, 0, 0, 0, 0], 1).err().expect("refused");
    assert!(compressed.what.contains("compressed"), "{compressed:?}");
}

/// What entries take of the memory is taken while they arrive.
#[test]
fn entries_are_paid_for() {
    let budget = Budget::new(1_000);
    let mut count = Count::new(fields("Kv/Transact"), budget.allowance());
    count.take(&prefixed(&[0x12, 0].repeat(3))).expect("there is room");
    assert_eq!(budget.left(), 1_000 - 3 * 256);
    let why = count.take(&prefixed(&[0x12, 0])).expect_err("there is no more room");
    assert_eq!(why.kind(), Kind::Overloaded);
    drop(count);
    assert_eq!(budget.left(), 1_000);
}

/// Numbers that look drawn, always the same.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// Bytes that may be a message, of fields in one another.
    fn message(&mut self, depth: u32) -> Vec<u8> {
        let mut all = Vec::new();
        for _ in 0..self.below(7) {
            // Most often what can be a list in a list.
            let number = match (self.below(3), depth) {
                (1.., 4) => 2,
                (1.., 3) => 1,
                (1.., 2) => 3,
                _ => 1 + self.below(4),
            };
            let mut content = Vec::new();
            if depth > 0 && self.below(3) > 0 {
                content = self.message(depth - 1);
            }
            let (kind, mut length) = (2, content.len() as u64);
            // Now and then a type or a length is another one.
            let (kind, odd) = match self.below(40) {
                0 => (self.below(8), 0),
                1 => (kind, 1 + self.below(3)),
                _ => (kind, 0),
            };
            length += odd;
            assert!(length < 1 << 14, "two bytes hold it");
            let key = u8::try_from(number << 3 | kind).expect("it is small");
            let low = u8::try_from(length & 0x7f).expect("seven bits");
            let length = match (length >> 7, self.below(8)) {
                (0, 1..) => vec![low],
                // Longer than it must be, which may be.
                (high, _) => vec![low | 0x80, u8::try_from(high).expect("seven bits")],
            };
            all.push(key);
            all.extend(length);
            all.extend(content);
        }
        all
    }
}

const fn short(number: u32, name: &'static str, inside: &'static [Field]) -> Field {
    let list = List { most: 2, entry_bytes: 1, failure: NodeFailure::Unspecified };
    Field { number, name, list: Some(list), inside }
}

/// As those of `Tree.Multi`, but short.
static SHORT: [Field; 1] = [short(2, "items", &SHORT_ITEM)];
static SHORT_ITEM: [Field; 1] =
    [Field { number: 1, name: "create", list: None, inside: &SHORT_NODE }];
static SHORT_NODE: [Field; 1] = [short(3, "acl", &[])];
static SHORT_SETTINGS: [Field; 1] = [short(2, "settings", &[])];

/// No message makes the decoder keep more entries than were counted, be it broken or not.
#[test]
fn nothing_is_taken_apart_that_has_more_entries_than_there_may_be() {
    let mut draws = Draws(7);
    let (mut long, mut nested, mut many, mut broken) = (0, 0, 0, 0);
    for _ in 0..20_000 {
        let message = draws.message(4);
        let body = prefixed(&message);
        let piece = 1 + usize::try_from(draws.below(9)).expect("it is small");
        let is_taken = counted(&SHORT, &body, piece).is_ok();
        let mut decoded = v1::MultiRequest::default();
        let whole = decoded.merge(&message[..]);
        let mut longest = 0;
        for item in &decoded.items {
            if let Some(v1::node_item::Action::Create(node)) = &item.action {
                longest = longest.max(node.acl.len());
            }
        }
        if is_taken {
            assert!(decoded.items.len() <= 2 && longest <= 2, "{message:02x?} has {decoded:?}");
            long += usize::from(decoded.items.len() == 2);
            nested += usize::from(longest == 2);
        } else {
            many += usize::from(decoded.items.len() > 2 || longest > 2);
            broken += usize::from(whole.is_err());
        }
        let mut altered = v1::AlterKeyspaceRequest::default();
        let is_taken = counted(&SHORT_SETTINGS, &body, piece).is_ok();
        let _ = altered.merge(&message[..]);
        assert!(!is_taken || altered.settings.len() <= 2, "{message:02x?} has {altered:?}");
    }
    let seen = [long, nested, many, broken];
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

#[test]
fn what_clients_send_is_taken() {
    let acl = v1::Acl { permissions: 31, scheme: "world".into(), id: "anyone".into() };
    let node =
        v1::NewNode { path: "/a".into(), acl: vec![acl; 9], ttl_ms: 7, ..Default::default() };
    let create = v1::node_item::Action::Create(node.clone());
    let session =
        Some(v1::Session { id: u64::MAX, password: Bytes::from(vec![7; 16]), opening: u64::MAX });
    let multi = v1::MultiRequest {
        keyspace: "config".into(),
        items: vec![v1::NodeItem { action: Some(create) }; TRANSACTION_ITEMS_MAX],
        session: session.clone(),
        options: Some(v1::WriteOptions { timeout_ms: u32::MAX, ..Default::default() }),
    };
    let create = v1::CreateNodeRequest { node: Some(node), session, ..Default::default() };
    let value = v1::item::Action::Put(Bytes::from(vec![0xff; 70_000]));
    let item = v1::Item { key: "k".into(), action: Some(value), expiry: None };
    let transact = TransactRequest { items: vec![item; 3], ..Default::default() };
    for (call, message) in [
        ("Tree/Multi", multi.encode_to_vec()),
        ("Tree/Create", create.encode_to_vec()),
        ("Kv/Transact", transact.encode_to_vec()),
    ] {
        for piece in [1, 1_000, usize::MAX] {
            let body = prefixed(&message).repeat(2);
            let count = counted(fields(call), &body, piece);
            assert!(count.is_ok_and(|count| count.levels.is_empty()), "{call}");
        }
    }
}

/// The server's own decoder gets nothing of it, and the client is told why.
#[tokio::test]
async fn a_client_is_told_what_was_too_much() {
    let me = v1::Coordinator { node: 7, start: 1 };
    let call = |message: Vec<u8>| {
        let count = Count::new(fields("Kv/Transact"), Budget::new(PLENTY).allowance());
        let body = Body::new(Counted { body: Body::from(prefixed(&message)), count, me });
        let decoder = ProstCodec::<TransactRequest, TransactRequest>::default().decoder();
        Streaming::new_request(decoder, body, None, None)
    };
    let good = call(vec![0x12, 0]).message().await.expect("it is taken").expect("a message");
    assert_eq!(good.items.len(), 1);
    let status = call([0x12, 0].repeat(2_000)).message().await.expect_err("it is refused");
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    let told = details::error(&status).expect("it has details");
    assert_eq!((told.kind(), &told.field[..]), (Kind::Invalid, "items"));
    assert!(told.what.contains("1024") && told.coordinator == Some(me), "{told:?}");
}
