//! What of a node is where, and what partitions say to each other of it.

use super::super::{Command, SEEN_MAX, Volery, slot};
use super::pair::{Pair, path_at};
use crate::coordination::keys;
use crate::coordination::tree::tests::world::*;
use crate::coordination::tree::{self, Answer, Question, Who};
use crate::smr::partitioned::{Answered, Machine as _, PartitionId, Partitions, Placement};
use quorate_kernel::tree::{Acl, Failure, Item, Refollow, SessionId, Told, Zxid};
use std::format;
use std::vec::Vec;

fn one(item: Item) -> tree::Command {
    tree::Command::One(anybody(), item)
}

fn ask(item: Item) -> tree::Command {
    tree::Command::Ask(Question::One(anybody(), item))
}

fn of(command: tree::Command) -> Command {
    Command { now_ms: 1, seen: Zxid(0), command }
}

/// What a node has, and the last change of it.
fn got(pair: &mut Pair, path: &str) -> (Vec<u8>, Zxid) {
    match pair.told(ask(get(path))).told {
        Ok(Told::Data { data: Some(data), stat }) => (data.to_vec(), stat.mzxid),
        other => panic!("{path} has something: {other:?}"),
    }
}

#[test]
fn what_is_read_and_set_of_a_node_is_of_its_partition_and_the_tree_is_of_all() {
    let placement = Placement::even(4);
    let to = |command| Volery::destinations(&of(command), &placement);
    let own: Partitions = [placement.of(slot("/a"))].into_iter().collect();
    let acl = Item::SetAcl { path: "/a".into(), acl: Acl::open(), version: None };
    for command in [
        ask(get("/a")),
        ask(exists("/a")),
        ask(children("/a")),
        one(set("/a", "x", None)),
        tree::Command::All(anybody(), Vec::from([checked("/a", None), set("/a", "x", None)])),
    ] {
        assert_eq!(to(command), own);
    }
    for command in [
        one(create("/a", "")),
        one(delete("/a", None)),
        one(acl),
        tree::Command::All(anybody(), Vec::from([checked("/a", None), create("/b", "")])),
        tree::Command::Put(anybody(), "/a".into(), data("")),
        tree::Command::Open { gateway: gateway(1), timeout_ms: 1 },
        tree::Command::Close(anybody()),
        tree::Command::Reap { path: "/a".into(), seen: Zxid(1) },
    ] {
        assert_eq!(to(command), placement.partitions());
    }
    let both = to(tree::Command::Ask(Question::Each(anybody(), Vec::from([get("/a"), get("/b")]))));
    let expected: Partitions =
        ["/a", "/b"].into_iter().map(|path| placement.of(slot(path))).collect();
    assert_eq!(both, expected);
    assert!(!to(ask(Item::Ephemerals { prefix: "/".into() })).is_empty(), "somebody answers");
    assert!(!to(tree::Command::Ask(Question::Sync(anybody()))).is_empty());
}

#[test]
fn what_cannot_be_done_over_partitions_is_not_ordered() {
    let is_sound = |command| Volery::is_sound(&of(command));
    assert!(is_sound(ask(get("/a"))) && is_sound(one(create("/a", ""))));
    assert!(!is_sound(tree::Command::Begin { life: 1 }));
    let again = Question::Refollow(anybody(), Refollow::default());
    assert!(!is_sound(tree::Command::Ask(again)));
    assert!(!is_sound(one(get("/a"))), "a read is a question");
    let seen = Zxid(SEEN_MAX.0 + 1);
    assert!(!Volery::is_sound(&Command { seen, ..of(ask(get("/a"))) }));
}

#[test]
fn only_its_partition_has_what_a_node_has_and_the_root_has_something() {
    let (mut pair, path) = (Pair::new(), path_at(1, 0));
    pair.told(one(create(&path, "made")));
    for (key, has) in [
        (keys::node(quorate_kernel::path::Path::of(&path).unwrap()), [true, true]),
        (keys::content(&path), [false, true]),
        (keys::data(&path), [false, true]),
    ] {
        assert_eq!([0, 1].map(|it| pair.object(it, &key).is_some()), has, "{key:?}");
    }
    assert_eq!(got(&mut pair, &path).0, b"made");
    assert_eq!(got(&mut pair, "/").0, b"");
}

#[test]
fn nobody_limits_anything() {
    let mut pair = Pair::new();
    for item in [create("/zookeeper/quota/a", ""), set("/zookeeper/quota", "", None)] {
        assert_eq!(pair.told(one(item)).told, Err(Failure::NoAuth));
    }
}

#[test]
fn a_removed_node_sends_no_data_and_leaves_none() {
    let (mut pair, path) = (Pair::new(), path_at(1, 0));
    pair.told(one(create(&path, &"much ".repeat(1000))));
    // It has more than all of the tree, which counts no data.
    pair.told(one(set(&path, "", Some(0))));
    pair.told(one(set(&path, &"more ".repeat(1000), Some(1))));
    assert!(pair.signals.is_empty(), "a set is its partition's alone");
    let wrong = pair.told(one(delete(&path, Some(1))));
    assert_eq!(wrong.told, Err(Failure::BadVersion), "all know the owner's version");
    assert_eq!(pair.told(one(delete(&path, Some(2)))).told, Ok(Told::Done));
    let sent = pair.signals.iter().flat_map(|signal| signal.variables.keys());
    let sent: Vec<_> = sent.collect();
    assert!(sent.contains(&&keys::content(&path)) && !sent.contains(&&keys::data(&path)));
    assert_eq!(pair.signals.len(), 2, "one signal each way, with what the other needs");
    assert_eq!(pair.object(1, &keys::data(&path)), None);
}

#[test]
fn content_moves_with_its_slot_and_who_asks_the_earlier_owner_is_sent_on() {
    let (mut pair, path) = (Pair::new(), path_at(1, 0));
    pair.told(one(create(&path, "made")));
    let set_to = pair.told(one(set(&path, "set", None))).zxid;
    let before = pair.placement.clone();
    pair.moves(&path, 0);
    assert_eq!(pair.asks_by(&before, ask(get(&path))), Answered::Retry(1));
    assert_eq!(pair.asks_by(&before, one(set(&path, "lost", None))), Answered::Retry(1));
    assert_eq!(got(&mut pair, &path), (b"set".to_vec(), set_to));
    assert!(pair.object(0, &keys::data(&path)).is_some());
    assert!(pair.object(1, &keys::data(&path)).is_none());
    let next = pair.told(one(set(&path, "again", Some(1)))).zxid;
    assert!(next > set_to, "the slot counts on where it was");
}

#[test]
fn the_end_of_a_session_asks_for_all_its_nodes_at_once() {
    let mut pair = Pair::new();
    let opened = pair.asks(tree::Command::Open { gateway: gateway(1), timeout_ms: 10 });
    let Answer::Open { session, .. } = opened else { panic!("{opened:?}") };
    let who = Who { session: Some(session), ..anybody() };
    let paths: Vec<_> = (0..8).map(|at| path_at(at % 2, u64::from(at))).collect();
    for path in &paths {
        pair.told(tree::Command::One(who.clone(), ephemeral(path)));
        pair.told(one(set(path, "set", None)));
    }
    let unguarded = tree::Command::Expire { session, attached: 2 };
    assert!(matches!(pair.asks(unguarded), Answer::Told(_)), "it was never attached so often");
    assert!(matches!(pair.told(ask(exists(&paths[0]))).told, Ok(Told::Stat(_))));
    let ends = tree::Command::Expire { session, attached: 1 };
    assert_eq!(pair.asks(ends.clone()), Answer::Expired);
    assert_eq!(pair.signals.len(), 4, "each signals, and sends what it has of the nodes");
    for path in &paths {
        assert_eq!(pair.told(ask(exists(path))).told, Err(Failure::NoNode));
    }
    let late = tree::Command::One(who, create("/late", ""));
    assert_eq!(pair.told(late).told, Err(Failure::SessionExpired));
    assert_eq!(pair.asks(ends), Answer::Expired);
}

#[test]
fn numbers_grow_at_a_node_whoever_changes_it() {
    let (mut pair, path) = (Pair::new(), path_at(1, 0));
    pair.told(one(create(&path, "")));
    let mut last = Zxid(0);
    for at in 0..5 {
        let set_to = pair.told(one(set(&path, "set", None))).zxid;
        assert!(set_to > last, "a set is behind what was made below");
        last = set_to;
        if at % 2 == 0 {
            let below = format!("{path}/{at}");
            let Ok(Told::Created { stat, .. }) = pair.told(one(create(&below, ""))).told else {
                panic!("{below} is made")
            };
            assert!(stat.czxid > last, "a child is made behind what its parent was set to");
            last = stat.czxid;
        }
    }
    for at in [0, 2, 4] {
        let zxid = pair.told(one(delete(&format!("{path}/{at}"), None))).zxid;
        assert!(zxid > last);
        last = zxid;
    }
    let set_to = pair.told(one(set(&path, "last", None))).zxid;
    let gone = pair.told(one(delete(&path, None))).zxid;
    assert!(gone > set_to && set_to > last, "it is removed behind what it was set to");
}

#[test]
fn a_sequential_name_counts_what_all_partitions_have_made() {
    let mut pair = Pair::new();
    let made = |pair: &mut Pair| match pair.told(one(sequential(create("/n", "")))).told {
        Ok(Told::Created { path, .. }) => path,
        other => panic!("it is made: {other:?}"),
    };
    assert_eq!([made(&mut pair), made(&mut pair)], ["/n0000000000", "/n0000000001"]);
    assert_eq!(pair.told(one(delete("/n0000000001", None))).told, Ok(Told::Done));
    assert_eq!(made(&mut pair), "/n0000000002", "no number comes again");
}

#[test]
fn several_things_of_two_partitions_are_done_all_or_none() {
    let (mut pair, here, there) = (Pair::new(), path_at(0, 0), path_at(1, 1));
    pair.told(one(create(&here, "")));
    pair.told(one(create(&there, "")));
    let both = |version| {
        let items = Vec::from([set(&here, "a", None), set(&there, "b", version)]);
        tree::Command::All(anybody(), items)
    };
    let failed = pair.told(both(Some(7))).told;
    let expected = [Err(Failure::NotDone), Err(Failure::BadVersion)];
    assert_eq!(failed, Ok(Told::Many(expected.into())));
    assert_eq!((got(&mut pair, &here).0, got(&mut pair, &there).0), (b"".into(), b"".into()));
    let done = pair.told(both(Some(0)));
    assert_eq!(got(&mut pair, &here), (b"a".to_vec(), done.zxid));
    assert_eq!(got(&mut pair, &there), (b"b".to_vec(), done.zxid), "it is one change");
    assert_ne!(pair.placement.of(slot(&here)), PartitionId(1));
    assert_eq!(
        pair.asks(tree::Command::Expire { session: SessionId(0), attached: 0 }),
        Answer::Expired
    );
}
