//! What may be in a log, and how large anything may be.

use super::super::{Answer, Command, Meta, Object, Question, Tree, Who};
use super::world::*;
use crate::coordination::keys;
use crate::smr::{Machine, Objects};
use bytes::Bytes;
use quorate_kernel::limits::{
    TRANSACTION_BYTES_MAX, TRANSACTION_ITEMS_MAX, TREE_BYTES_MAX, TREE_DATA_BYTES_MAX,
    TREE_IDS_MAX, TREE_NODES_MAX, TREE_PATH_BYTES_MAX,
};
use quorate_kernel::tree::{Failure, Item, SessionId, Told, Zxid};
use std::format;
use std::string::String;
use std::vec;
use std::vec::Vec;

fn is_sound(command: &Command) -> bool {
    Tree::is_sound(command)
}

fn large(path: &str, bytes: usize) -> Item {
    Item::Set { path: path.into(), data: Some(Bytes::from(vec![0; bytes])), version: None }
}

#[test]
fn what_no_gateway_makes_is_not_put_into_a_log() {
    let one = |item| Command::One(anybody(), item);
    assert!(is_sound(&one(create("/a", ""))) && is_sound(&one(create("nonsense", ""))));
    for item in [exists("/"), get("/"), children("/"), checked("/", None)] {
        assert!(!is_sound(&one(item)));
    }
    let all = |items: &[Item]| is_sound(&Command::All(anybody(), items.to_vec()));
    assert!(all(&[]) && all(&[checked("/", None), delete("/a", None)]));
    assert!(!all(&[create("/a", ""), get("/")]));
    let item = create("/a", "");
    assert!(all(&vec![item.clone(); TRANSACTION_ITEMS_MAX]));
    assert!(!all(&vec![item; TRANSACTION_ITEMS_MAX + 1]));
    assert!(is_sound(&one(large("/a", TRANSACTION_BYTES_MAX - 2))));
    assert!(!is_sound(&one(large("/a", TRANSACTION_BYTES_MAX - 1))));
    let ids = |count| Who { ids: vec![digest("ann"); count], ..anybody() };
    assert!(is_sound(&Command::Close(ids(TREE_IDS_MAX))));
    assert!(!is_sound(&Command::Close(ids(TREE_IDS_MAX + 1))));
    let ask = |item| Command::Ask(Question::One(anybody(), item));
    let long = "x".repeat(4 * 1024 + 1);
    for item in [exists("/"), get("/"), checked("/", None)] {
        assert!(is_sound(&ask(item)));
    }
    assert!(is_sound(&Command::Ask(Question::Sync(anybody()))));
    assert!(!is_sound(&Command::Ask(Question::Sync(ids(TREE_IDS_MAX + 1)))));
    for item in [create("/a", ""), delete("/a", None), children("/"), get(&long)] {
        assert!(!is_sound(&ask(item)));
    }
    assert!(!is_sound(&Command::Ask(Question::List("/".into(), 1))));
    for command in [
        Command::Open { gateway: gateway(1), timeout_ms: 0 },
        Command::Attach { gateway: gateway(1), session: SessionId(0) },
        Command::Expire { session: SessionId(1), attached: 1 },
        Command::Reap { path: "nonsense".into(), seen: Zxid(1) },
        Command::Put(anybody(), "nonsense".into(), Bytes::new()),
    ] {
        assert!(is_sound(&command), "{command:?}");
    }
}

#[test]
fn a_node_has_so_many_bytes_and_no_more() {
    let mut world = World::new();
    let data = |bytes| Some(Bytes::from(vec![1; bytes]));
    let of = |bytes| {
        let mut item = create("/a", "");
        if let Item::Create { data: is, .. } = &mut item {
            *is = data(bytes);
        }
        item
    };
    assert_eq!(world.one(&anybody(), of(TREE_DATA_BYTES_MAX + 1)), Err(Failure::Quota));
    assert!(!world.is_there("/a"));
    assert!(world.one(&anybody(), of(TREE_DATA_BYTES_MAX)).is_ok());
    let mut one = |bytes| world.one(&anybody(), large("/a", bytes));
    assert_eq!(one(TREE_DATA_BYTES_MAX + 1), Err(Failure::Quota));
    assert!(one(TREE_DATA_BYTES_MAX).is_ok());
    assert_eq!(world.stat("/a").data_length, 1 << 20);
}

#[test]
fn the_longest_path_fits_all_keys() {
    let mut world = World::new();
    let who = world.open(1);
    let path: String = format!("/{}", "a".repeat(TREE_PATH_BYTES_MAX - 1));
    assert!(world.one(&who, ephemeral(&path)).is_ok());
    let longer = path + "a";
    assert_eq!(world.one(&who, ephemeral(&longer)), Err(Failure::BadArguments));
    world.member.store();
    world.member.restart();
    assert_eq!(world.names("/").len(), 2);
    let longest = world.member.machine.objects().keys().map(Bytes::len).max();
    assert_eq!(longest, Some(TREE_PATH_BYTES_MAX + 9));
}

/// What a command is answered in a tree of this size, and the size behind it.
fn in_tree_of(meta: impl FnOnce(&mut Meta), commands: &[Command]) -> (Vec<Answer>, Meta) {
    let mut world = World::new();
    world.done(create("/a", "four"));
    world.replace(keys::META, |object| {
        let Object::Meta(of) = object else { panic!("it is what is known of all") };
        meta(of);
    });
    let answers = world.member.ask(1, crate::smr::tests::member::from(gateway(6), 1), commands);
    let objects: &Objects<Tree> = world.member.machine.objects();
    let Object::Meta(meta) = objects[&keys::META] else { panic!("it is what is known of all") };
    (answers, meta)
}

fn told(answers: &[Answer]) -> Vec<Result<(), Failure>> {
    let told = |answer: &Answer| match answer {
        Answer::Told(reply) => reply.told.clone().map(drop),
        other => panic!("it is told, not {other:?}"),
    };
    answers.iter().map(told).collect()
}

#[test]
fn a_tree_has_so_many_nodes_and_bytes_and_no_more() {
    let one = |item| Command::One(anybody(), item);
    let commands = [
        one(create("/b", "")),
        one(create("/c", "")),
        one(set("/a", "fives", None)),
        one(delete("/a", None)),
        one(create("/c", "")),
    ];
    let (done, full) = (Ok(()), Err(Failure::Quota));
    let (answers, meta) = in_tree_of(|meta| meta.nodes = TREE_NODES_MAX - 1, &commands);
    assert_eq!(told(&answers), [done, full, done, done, done]);
    assert_eq!(meta.nodes, TREE_NODES_MAX);
    let (answers, meta) = in_tree_of(|meta| meta.bytes = TREE_BYTES_MAX - 2, &commands);
    assert_eq!(told(&answers), [done, full, full, done, done]);
    assert_eq!(meta.bytes, TREE_BYTES_MAX - "/afour".len() as u64 + "/c".len() as u64);
    // One that is too large already, as of an earlier version, may shrink.
    let shrinks = [one(set("/a", "123", None)), one(delete("/a", None))];
    let (answers, _) = in_tree_of(|meta| meta.bytes = TREE_BYTES_MAX + 99, &shrinks);
    assert_eq!(told(&answers), [done, done]);
}

#[test]
fn what_an_object_takes_is_about_what_it_holds() {
    let mut world = World::new();
    world.done(create("/a", "12345"));
    let bytes =
        |world: &World| -> usize { world.member.machine.objects().values().map(Tree::bytes).sum() };
    let before = bytes(&world);
    assert_eq!(world.done(set("/a", "1234567", None)), Told::Stat(world.stat("/a")));
    assert_eq!(bytes(&world), before + 2);
}

#[test]
fn the_time_of_a_clock_gone_wrong_is_the_latest() {
    let mut world = World::new();
    world.now_ms = u64::MAX;
    world.done(create("/a", ""));
    assert_eq!(world.stat("/a"), made(1, i64::MAX));
}
