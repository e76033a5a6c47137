//! Frames, keys and names.

use crate::membership::{self, Body, Configuration, Number, RollId, Shape, prime};
use crate::roll::{Message, Says, keys, names};
use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::NodeId;
use quorate_kernel::process::Table;
use quorate_kernel::storage::Class;
use quorate_kernel::wire::Body as Frame;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::vec::Vec;

fn configuration() -> Configuration {
    let members: Vec<_> = (1..=3).map(|node| names::member(NodeId(node), node - 1)).collect();
    Configuration::founding(Shape::DEFAULT, &members).expect("they are different")
}

#[test]
fn messages_go_there_and_back_with_what_travels_beside_them() {
    let configuration = Arc::new(configuration());
    let whole = Body::Whole { configuration: Arc::clone(&configuration) };
    let nonce = Body::Probe { nonce: 7 };
    let roll = configuration.id;
    for (coming, body) in [(0, whole), (u64::MAX, nonce)] {
        let says = Says::Rapid(membership::Message { roll, body });
        let message = Message { coming, whom: Some(NodeId(coming)), says };
        let frame = Frame::encode(&message, &mut BytesMut::new()).expect("it fits");
        assert_eq!(frame.decode::<Message>().expect("it is sound"), message);
    }
    // A configuration that its stamp does not name.
    let stamp = RollId { number: Number(9), ..roll };
    let body = Body::Whole { configuration };
    let says = Says::Rapid(membership::Message { roll: stamp, body });
    let wrong = Message { coming: 0, whom: None, says };
    let frame = Frame::encode(&wrong, &mut BytesMut::new()).expect("it fits");
    assert!(frame.decode::<Message>().is_err());
    let chain = Vec::from([roll]);
    let says = Says::Prime(prime::Message::Meet { chain, members: 3, is_sure: true });
    let message = Message { coming: 1, whom: None, says };
    let frame = Frame::encode(&message, &mut BytesMut::new()).expect("it fits");
    assert_eq!(frame.decode::<Message>().expect("it is sound"), message);
}

#[test]
fn a_host_has_a_name_for_each_coming_and_says_which_host_it_is() {
    let node = NodeId(77);
    let names: Vec<NodeId> = (0..100).map(|coming| names::name(node, coming)).collect();
    assert_eq!(names[0], node);
    let mut distinct = names.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 100);
    assert_eq!(names::host(&names::member(node, 5)), Some(node));
    let mut silent = names::member(node, 5);
    silent.metadata.clear();
    assert_eq!(names::host(&silent), None);
    let hosts: Vec<u64> = names::hosts(&configuration()).iter().map(|it| it.0).collect();
    assert_eq!(hosts, [1, 2, 3]);
}

struct Pairs(BTreeMap<Bytes, Bytes>);

impl Table for Pairs {
    fn get(&self, _: Class, key: &Bytes) -> Option<Bytes> {
        self.0.get(key).cloned()
    }

    fn scan(&self, _: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        let pairs = self.0.iter().skip_while(|(key, _)| key[..] < *from);
        for (key, value) in pairs {
            if !each(key, value) {
                return;
            }
        }
    }
}

#[test]
fn what_was_stored_in_one_coming_is_not_there_in_another() {
    let pair = |coming, key: &'static str, value: &'static str| {
        (keys::of(coming, key.as_bytes()), Bytes::from_static(value.as_bytes()))
    };
    let pairs = [pair(1, "a", "old"), pair(2, "a", "new"), pair(2, "b", "newer"), pair(3, "a", "")];
    let table = Pairs(pairs.into());
    let of = keys::OfComing { coming: 2, table: &table };
    assert_eq!(of.get(Class::State, &Bytes::from_static(b"a")).as_deref(), Some(&b"new"[..]));
    let mut seen = Vec::new();
    of.scan(Class::State, b"", &mut |key, value| {
        seen.push((key.to_vec(), value.clone()));
        true
    });
    let expected = [(b"a".to_vec(), "new".into()), (b"b".to_vec(), "newer".into())];
    assert_eq!(seen, expected);
    assert_eq!(keys::all_of(2).len(), 3, "of both kinds");
}
