//! What was taken over without a copy stays in doubt, and for how long.

use crate::epidemic::Level;
use crate::epidemic::keys::wire_key;
use crate::epidemic::message::Message;
use crate::epidemic::pending::What;
use crate::epidemic::replica::range::{Range, leaf, position};
use crate::epidemic::tests::joining::put_at;
use crate::epidemic::tests::world::{World, put, value};
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::operation::Outcome;
use quorate_kernel::receipt::Receipt;
use std::boxed::Box;
use std::format;
use std::vec::Vec;

/// These have taken all over without a copy: `x` is not there.
fn lose(world: &mut World, nodes: &[NodeId]) {
    for node in nodes {
        world.with_host(*node, |engine, cx| {
            engine.state.drop_part(&Range::ALL);
            engine.state.behind.end(&Range::ALL, &mut engine.state.writes);
            engine.begin_doubt(&Range::ALL, &[Range::ALL]);
            engine.flush(cx);
        });
    }
}

fn three(seed: u64) -> (World, Vec<NodeId>) {
    let mut world = World::new(3, Level::Strong, seed);
    world.settle();
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    world.run(20);
    let nodes = world.up();
    (world, nodes)
}

fn doubts(world: &World, nodes: &[NodeId]) -> Vec<u32> {
    nodes.iter().map(|node| world.state(*node).doubt.count()).collect()
}

/// What is read of `x`, and whether it is degraded.
fn read(world: &mut World) -> (Option<Bytes>, bool) {
    let outcome = world.done("x", What::Get);
    let Outcome::Values { context, .. } = &outcome else { panic!("{outcome:?}") };
    let receipt = Receipt::of_context(context).expect("answers carry receipts");
    (value(&outcome), receipt.is_degraded)
}

const ALL: u32 = 1 << 16;

/// Neither a start ends it, nor is who takes over of them alone in less doubt. When all have said
/// that they lack the same this is all that there is.
#[test]
fn a_start_does_not_end_it_and_who_joins_is_told() {
    let (mut world, mut nodes) = three(521);
    lose(&mut world, &nodes);
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::CopyA { .. })));
    world.run(100);
    assert_eq!(doubts(&world, &nodes), [ALL; 3], "they are equal, and lack the same");
    world.stop(nodes[2]);
    world.start(nodes[2]);
    world.settle();
    let newcomer = world.add();
    world.start(newcomer);
    nodes.push(newcomer);
    world.settle();
    world.run(100);
    assert_eq!(doubts(&world, &nodes), [ALL; 4]);
    assert_eq!(read(&mut world), (None, true), "and reads say so");
    world.cut = None;
    world.run(200);
    assert_eq!(doubts(&world, &nodes), [0; 4], "nobody is left who could have it");
    assert_eq!(read(&mut world), (None, false));
    world.stop(nodes[1]);
    world.start(nodes[1]);
    assert_eq!(doubts(&world, &nodes), [0; 4], "what has ended is stored, too");
}

/// One that had it is down: it may come back, and bring it.
#[test]
fn only_who_had_a_copy_ends_it_or_that_none_is_left() {
    for comes_back in [true, false] {
        let (mut world, nodes) = three(522);
        let (copy, rest) = (nodes[0], &nodes[1..]);
        world.stop(copy);
        lose(&mut world, rest);
        world.run(200);
        assert_eq!(doubts(&world, rest), [ALL; 2], "they lack the same");
        assert_eq!(read(&mut world), (None, true));
        if comes_back {
            world.start(copy);
            world.settle();
            world.run(200);
            assert_eq!(doubts(&world, &nodes), [0; 3]);
            let key = wire_key(b"x");
            let has = |node: &&NodeId| world.state(**node).store.held(&key, None).is_some();
            assert_eq!(nodes.iter().filter(has).count(), 3, "and it has brought it");
            assert_eq!(read(&mut world), (Some(Bytes::from_static(b"1")), false));
            continue;
        }
        // Its operator says that it does not.
        world.kill(copy);
        for node in rest {
            let host = world.hosts.get_mut(node).expect("it is there");
            let others = host.engine.state.hints.iter().filter(|peer| peer.who.node != copy);
            let others = others.cloned().collect();
            host.engine.hint(others);
        }
        world.run(300);
        assert_eq!(doubts(&world, rest), [0; 2], "nobody is left who could have it");
    }
}

/// One of them has a part of what is lost: it may have been taking it over when that was lost.
#[test]
fn what_one_has_some_of_is_doubted_until_all_have_that() {
    let (mut world, nodes) = three(524);
    lose(&mut world, &nodes);
    let keys: Vec<Bytes> = (0..100).map(|one| wire_key(format!("key {one}").as_bytes())).collect();
    keys.iter().for_each(|key| put_at(&mut world, nodes[2], key, 1));
    for _ in 0..1000 {
        world.run(1);
        for node in &nodes[..2] {
            let state = world.state(*node);
            let lacks = keys.iter().filter(|key| state.store.held(key, None).is_none());
            let is_doubted = |key: &&Bytes| state.doubt.has(leaf(position(key)));
            assert!(lacks.into_iter().all(|key| is_doubted(&key)), "it is read as if it were not");
        }
    }
    assert_eq!(doubts(&world, &nodes), [0; 3], "then it ends");
}

/// It loses its place while it is in doubt, and takes another one.
#[test]
fn who_stands_still_is_in_doubt_still() {
    let (mut world, nodes) = three(523);
    lose(&mut world, &nodes);
    world.cut = Some(Box::new(|_, _, message| matches!(message, Message::CopyA { .. })));
    world.with_host(nodes[1], |engine, cx| engine.leave_place(cx));
    assert!(!world.state(nodes[1]).is_whole());
    world.settle();
    assert_eq!(doubts(&world, &nodes), [ALL; 3]);
}
