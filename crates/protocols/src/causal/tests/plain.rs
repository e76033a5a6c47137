//! Operations without a context, and what the engine makes of the catalog's records.

use super::super::keys::hash_of_key;
use super::super::map::{Map, Shape};
use super::super::token::Tokens;
use super::super::{self as causal, Causal, ENGINE};
use super::traps::{CausalWorld, ask, bytes, calm, deliver_all, get, put, world};
use crate::testing::siblings::first;
use bytes::Bytes;
use quorate_kernel::expiry::Expiry;
use quorate_kernel::ids::{ClusterId, LaneId, NodeId};
use quorate_kernel::keyspace::{Keyspace, Partition, Settings, Tenure};
use quorate_kernel::operation::{Cursor, Operation, Outcome, Refusal};
use quorate_kernel::part::{Left, Part};
use quorate_kernel::process::Process;
use quorate_kernel::time::Span;
use quorate_kernel::transaction::Item;
use std::collections::BTreeSet;
use std::format;
use std::string::String;
use std::sync::Arc;
use std::vec::Vec;

fn plain(world: &mut CausalWorld, node: u64, operation: Operation) -> Outcome {
    let number = world.request(node, operation, Span::secs(1));
    if world.answers[number].1.is_none() {
        deliver_all(world);
    }
    world.answers[number].1.clone().expect("one replica is enough")
}

fn set(world: &mut CausalWorld, node: u64, key: &str, value: &str) {
    let operation = Operation::put(bytes(key), bytes(value));
    assert_eq!(plain(world, node, operation), Outcome::written());
}

fn read(world: &mut CausalWorld, node: u64, key: &str) -> Outcome {
    plain(world, node, Operation::get(bytes(key)))
}

fn remove(world: &mut CausalWorld, node: u64, key: &str) -> Outcome {
    plain(world, node, Operation::delete(bytes(key)))
}

#[test]
fn a_get_shows_one_value_and_chooses_among_several_only_if_it_may() {
    for options in [&["lazy"][..], &["lazy", "newest"]] {
        let mut world = world(3, options);
        assert_eq!(read(&mut world, 1, "k"), Outcome::value(None));
        set(&mut world, 1, "other", "0");
        set(&mut world, 1, "k", "b");
        assert_eq!(read(&mut world, 1, "k"), Outcome::value(Some(bytes("b"))));
        // It has seen nothing of the first.
        set(&mut world, 2, "k", "a");
        calm(&mut world, Span::secs(1));
        for node in 1..=3 {
            let found = read(&mut world, node, "k");
            if options.len() == 1 {
                assert_eq!(found, Outcome::Refused(Refusal::Siblings { count: 2 }));
            } else {
                assert_eq!(found, Outcome::value(Some(bytes("b"))), "the higher counter");
            }
        }
        // Whoever has seen both may write what they come to; then there is one again.
        let (values, context) = get(&mut world, 2, "k");
        assert_eq!(values.len(), 2);
        put(&mut world, 2, "k", "ab", context);
        assert_eq!(read(&mut world, 2, "k"), Outcome::value(Some(bytes("ab"))));
    }
}

#[test]
fn a_put_replaces_what_is_seen_only_where_gets_choose_the_newest() {
    for (options, left) in [(&[][..], 3), (&["newest"], 1)] {
        let mut world = world(4, options);
        // Also through a host that is no replica of the key.
        for (node, value) in [(1, "a"), (2, "b"), (4, "c")] {
            set(&mut world, node, "k", value);
            calm(&mut world, Span::secs(1));
        }
        let (values, _) = get(&mut world, 3, "k");
        assert_eq!(values.len(), left);
        assert_eq!(values.last(), Some(&bytes("c")));
    }
}

#[test]
fn a_delete_takes_away_what_a_get_shows_and_nothing_that_comes_later() {
    let mut world = world(3, &["lazy"]);
    assert_eq!(remove(&mut world, 1, "k"), Outcome::deleted(false));
    set(&mut world, 1, "k", "here");
    set(&mut world, 1, "k", "here too");
    set(&mut world, 2, "k", "elsewhere");
    assert_eq!(remove(&mut world, 1, "k"), Outcome::deleted(true));
    assert_eq!(read(&mut world, 1, "k"), Outcome::value(None));
    calm(&mut world, Span::secs(2));
    for node in 1..=3 {
        assert_eq!(read(&mut world, node, "k"), Outcome::value(Some(bytes("elsewhere"))));
    }
}

#[test]
fn operations_without_a_context_are_forwarded_like_all_others() {
    let mut world = world(4, &["replicas=1", "partitions=4"]);
    for number in 0..20 {
        let key = format!("k{number}");
        set(&mut world, 1, &key, "v");
        assert_eq!(read(&mut world, 2, &key), Outcome::value(Some(bytes("v"))));
        assert_eq!(remove(&mut world, 3, &key), Outcome::deleted(true));
        assert_eq!(read(&mut world, 4, &key), Outcome::value(None));
    }
}

/// All keys that scans from a node list, in pages of about so many.
fn scan(world: &mut CausalWorld, node: u64, limit: u32) -> Vec<Bytes> {
    let (mut all, mut from) = (Vec::new(), Some(0));
    while let Some(at) = from {
        match plain(world, node, Operation::Scan { from: Cursor::at(at), limit }) {
            Outcome::Page { keys, next } => {
                let next = next.map(|next| next.token);
                assert!(next.is_none_or(|next| next > at), "it comes to an end");
                all.extend(keys);
                from = next;
            }
            other => panic!("{other:?}"),
        }
    }
    all
}

#[test]
fn blind_writes_end_before_a_key_fits_no_message_and_who_has_seen_them_goes_on() {
    for options in [&["long"][..], &["long", "replicas=1", "partitions=3"]] {
        let mut world = world(3, options);
        let long = "x".repeat(8 << 20);
        let blind = |world: &mut CausalWorld, node| {
            let operation = Operation::put(bytes("k"), bytes(&long));
            plain(world, node, operation)
        };
        for _ in 0..4 {
            assert_eq!(blind(&mut world, 1), Outcome::written());
        }
        let (what, length, limit) = ("key with all its siblings", 40 << 20, 32 << 20);
        for node in 1..=3 {
            deliver_all(&mut world);
            let refused = Outcome::Refused(Refusal::TooLarge { what, length, limit });
            assert_eq!(blind(&mut world, node), refused);
        }
        let (values, context) = get(&mut world, 1, "k");
        assert_eq!(values.len(), 4, "nothing was dropped");
        put(&mut world, 1, "k", &long, context);
        assert_eq!(get(&mut world, 1, "k").0.len(), 1);
    }
}

#[test]
fn scans_list_every_key_with_a_value_once_in_the_order_of_hashes() {
    for (options, members) in [(&[][..], 3), (&["replicas=2", "partitions=7"], 5)] {
        let mut world = world(members, options);
        assert!(scan(&mut world, 1, 10).is_empty());
        let mut expected = BTreeSet::new();
        for number in 0..60 {
            let key = format!("k{number}");
            set(&mut world, 1 + number % members, &key, "v");
            expected.insert((hash_of_key(key.as_bytes()), bytes(&key)));
        }
        calm(&mut world, Span::secs(2));
        for number in (0..60).step_by(7) {
            let key = format!("k{number}");
            remove(&mut world, 1, &key);
            expected.remove(&(hash_of_key(key.as_bytes()), bytes(&key)));
        }
        calm(&mut world, Span::secs(1));
        if members == 3 {
            // Each node has a replica of everything.
            let whole = plain(&mut world, 2, Operation::Scan { from: Cursor::at(0), limit: 1000 });
            assert!(matches!(whole, Outcome::Page { next: None, .. }), "{whole:?}");
        }
        let expected: Vec<Bytes> = expected.into_iter().map(|(_, key)| key).collect();
        for limit in [1, 7, 1000] {
            for node in 1..=members {
                assert_eq!(scan(&mut world, node, limit), expected, "{limit} at {node}");
            }
        }
    }
}

#[test]
fn partitions_are_examined_as_the_catalog_has_them_and_owed_until_they_are_refilled() {
    let replicas = Settings::from([(String::from("replicas"), String::from("1"))]);
    let mut record = Keyspace::new("k", LaneId(16), ENGINE.name, replicas, 1);
    let place = |node| Partition { node: NodeId(node), since: 1, is_settled: node != 2 };
    record.partitions = [1, 2].map(place).to_vec();
    record.former.push(Tenure { partition: 1, since: 1, node: NodeId(3) });
    let settings =
        causal::Settings::usual(Shape::new(2, 1), None, Tokens::new(b"secret", ClusterId(1)));
    let mut lane = Causal::new(settings);
    assert_eq!(lane.parts(), [Part::unknown()], "it has heard of nothing");
    lane.volatile.record = Some(Arc::new(record));
    let parts = lane.parts();
    assert!(parts.len() == 2 && parts.iter().all(|part| part.owes && part.quorum == 1));
    let without = |part: &Part, node| part.without(&[NodeId(node)], |_| false);
    assert_eq!((without(&parts[0], 1), without(&parts[0], 2)), (Left::Nothing, Left::Enough));
    assert_eq!(without(&parts[1], 3), Left::Nothing, "who has it now still fetches it");
    assert_eq!([1, 2, 3].map(|node| parts[1].seats_of(NodeId(node))), [0, 1, 1]);
    assert!(parts[0].range.contains(0) && parts[1].range.contains(u64::MAX));
    assert!(!parts[0].range.contains(1 << 63) && parts[1].range.contains(1 << 63));
    lane.durable.map = Some(Map::of(&first(Shape::new(2, 1), &[NodeId(1), NodeId(2)])));
    (lane.volatile.is_settled, lane.volatile.has_refilled) = (true, true);
    assert!(lane.parts().iter().all(|part| !part.owes));
}

#[test]
fn a_context_of_a_get_and_a_write_without_one_know_nothing_of_each_other() {
    let mut world = world(3, &[]);
    put(&mut world, 1, "k", "old", Bytes::new());
    let (_, context) = get(&mut world, 1, "k");
    set(&mut world, 1, "k", "blind");
    let delete = Operation::delete_over(bytes("k"), context);
    let told = ask(&mut world, 1, delete);
    let Outcome::Deleted { context, .. } = told else { panic!("{told:?}") };
    assert!(context.is_empty(), "there is a sibling that the client has not seen");
    assert_eq!(read(&mut world, 1, "k"), Outcome::value(Some(bytes("blind"))));
}

#[test]
fn what_the_engine_cannot_do_is_refused_and_nothing_is_changed() {
    let mut world = world(3, &[]);
    let put = Item::Put { key: bytes("k"), value: bytes("v"), expiry: Expiry::Never };
    let transaction = Operation::Transact { items: [put].into(), name: None };
    let refused = Outcome::Refused(Refusal::Unsupported);
    assert_eq!(plain(&mut world, 1, transaction), refused);
    assert_eq!(read(&mut world, 2, "k"), Outcome::value(None));
}
