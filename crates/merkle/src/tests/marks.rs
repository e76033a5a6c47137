//! What the baseline costs in counts, and that it converges.

use super::super::Merkle;
use bytes::Bytes;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::time::Span;
use quorate_protocols::testing::siblings::context_of;
use quorate_protocols::testing::world::{Setup, World};
use std::format;
use std::string::ToString;
use std::vec::Vec;

type MerkleWorld = World<Merkle>;

fn world(members: u64, options: &[&str]) -> MerkleWorld {
    let options = options.iter().map(|option| option.to_string()).collect();
    World::new(&Setup { members, options, ..Setup::default() })
}

fn deliver_all(world: &mut MerkleWorld) {
    while !world.flights.is_empty() {
        world.deliver(0);
    }
}

fn calm(world: &mut MerkleWorld, span: Span) {
    let step = Span::millis(20);
    for _ in 0..span.0.div_ceil(step.0) {
        deliver_all(world);
        world.tick(step);
    }
    deliver_all(world);
    world.log.clear();
}

fn ask(world: &mut MerkleWorld, node: u64, operation: Operation) -> Outcome {
    let number = world.request(node, operation, Span::secs(1));
    if world.answers[number].1.is_none() {
        deliver_all(world);
    }
    match world.answers[number].1.clone() {
        Some(outcome) => outcome,
        other => panic!("{other:?}"),
    }
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn get(world: &mut MerkleWorld, node: u64, key: &str) -> (Vec<Bytes>, Bytes) {
    match ask(world, node, Operation::get_all(bytes(key), None)) {
        Outcome::Values { values, context } => (values.into_vec(), context),
        other => panic!("{other:?}"),
    }
}

fn put(world: &mut MerkleWorld, node: u64, key: &str, value: &str, context: Bytes) -> Bytes {
    let (key, value) = (bytes(key), bytes(value));
    context_of(&ask(world, node, Operation::put_over(key, value, context, None)))
        .expect("it was written")
}

#[test]
fn anti_entropy_alone_brings_every_update_to_every_replica() {
    let mut world = world(5, &["lazy", "partitions=16", "replicas=3", "width=3"]);
    for number in 0..60 {
        put(&mut world, 1 + number % 5, &format!("k{number}"), "v", Bytes::new());
        // The same at another node, of which this one knows nothing.
        put(&mut world, 1 + (number + 1) % 5, &format!("k{number}"), "w", Bytes::new());
    }
    calm(&mut world, Span::secs(3));
    for node in 1..=5 {
        assert_eq!(
            world.field(node, "unequal"),
            "0",
            "all trees of {node} are equal to its peers'"
        );
        for number in 0..60 {
            let mut values = get(&mut world, node, &format!("k{number}")).0;
            values.sort();
            assert_eq!(values, [bytes("v"), bytes("w")], "k{number} at {node}");
        }
    }
}

#[test]
fn tombstones_stay_for_ever() {
    let mut world = world(3, &[]);
    for number in 0..100 {
        let key = format!("k{number}");
        let context = put(&mut world, 1, &key, "v", Bytes::new());
        ask(&mut world, 1, Operation::delete_over(bytes(&key), context));
    }
    calm(&mut world, Span::secs(10));
    for node in 1..=3 {
        assert_eq!(get(&mut world, node, "k7").0, [] as [Bytes; 0]);
        // Map, birth and list of replicas are stored beside them.
        assert_eq!((world.stored(node), &world.field(node, "keys")[..]), (100 + 3, "100"));
        assert_eq!(world.field(node, "unequal"), "0");
    }
}

#[test]
fn a_replica_that_forgot_is_filled_and_uses_no_dot_twice() {
    let mut world = world(3, &[]);
    put(&mut world, 1, "k", "a", Bytes::new());
    calm(&mut world, Span::millis(500));
    world.crash(1);
    world.restart(1, true);
    assert_eq!(world.field(1, "joining"), "1");
    // A blind write at the newcomer: the dot is its own, so the old value stays beside it.
    put(&mut world, 1, "k", "b", Bytes::new());
    calm(&mut world, Span::secs(2));
    assert_eq!(world.field(1, "joining"), "0");
    for node in 1..=3 {
        let mut values = get(&mut world, node, "k").0;
        values.sort();
        assert_eq!(values, [bytes("a"), bytes("b")]);
    }
}

#[test]
fn a_replaced_hosts_partitions_are_filled_by_exchanges() {
    let options = ["partitions=6".to_string(), "replicas=3".to_string()].to_vec();
    let mut world: MerkleWorld =
        World::new(&Setup { members: 3, spares: 1, options, ..Setup::default() });
    for number in 0..30 {
        put(&mut world, 1 + number % 3, &format!("k{number}"), "v", Bytes::new());
    }
    calm(&mut world, Span::millis(500));
    let moves = [quorate_protocols::testing::siblings::Move { out: 1, into: 4, gone: true }];
    for node in 2..=4 {
        world.place(node, &moves);
    }
    world.cut.insert(1);
    calm(&mut world, Span::secs(4));
    assert_eq!(world.field(4, "joining"), "0");
    assert_eq!(world.field(4, "unequal"), "0");
    assert_eq!(world.field(4, "keys"), world.field(2, "keys"));
}
