//! Nodes are made, set and removed, and their stats are those that ZooKeeper's clients know.

use super::super::Command;
use super::world::*;
use quorate_kernel::tree::{Acl, Failure, Item, Kind, Stat, Told, What, Zxid};
use std::string::String;

#[test]
fn what_is_there_before_the_first_command() {
    let world = World::new();
    let first = Stat { cversion: -1, children: 1, ..Stat::default() };
    assert_eq!(world.stat("/"), first);
    assert_eq!(world.stat("/zookeeper"), Stat { cversion: -2, children: 2, ..Stat::default() });
    assert_eq!(world.stat("/zookeeper/config"), Stat::default());
    assert_eq!(world.stat("/zookeeper/quota"), Stat::default());
    assert_eq!(world.zxid(), 0);
}

#[test]
fn a_node_is_made_once_below_a_node_that_is_there() {
    let mut world = World::new();
    let mut stat = made(1, 100);
    stat.data_length = 3;
    let told = world.one(&anybody(), create("/a", "one"));
    assert_eq!(told, created("/a", stat));
    assert_eq!(world.stat("/a"), stat);
    let root = Stat { cversion: 0, children: 2, pzxid: Zxid(1), ..Stat::default() };
    assert_eq!(world.stat("/"), root);
    assert_eq!(world.news(), [node(1, "/a", What::Created)]);

    let one = |world: &mut World, item| world.one(&anybody(), item);
    assert_eq!(one(&mut world, create("/a", "two")), Err(Failure::Exists));
    assert_eq!(one(&mut world, create("/", "")), Err(Failure::Exists));
    assert_eq!(one(&mut world, create("/b/c", "")), Err(Failure::NoNode));
    for path in ["", "a", "/a/", "/a//b", "/./a", "/a/..", "/a\0"] {
        assert_eq!(one(&mut world, create(path, "")), Err(Failure::BadArguments), "{path:?}");
    }
    assert_eq!(world.told(Command::One(anybody(), create("/a", ""))).zxid, Zxid(1));
    assert_eq!((world.stat("/"), world.stat("/a"), world.zxid()), (root, stat, 1));
    assert_eq!(world.news(), []);
}

#[test]
fn no_data_is_not_empty_data() {
    let mut world = World::new();
    let path = || String::from("/a");
    let (acl, kind, sequential) = (Acl::open(), Kind::Persistent, false);
    let item = Item::Create { path: path(), data: None, acl, kind, sequential };
    let stat = made(1, 100);
    assert_eq!(world.one(&anybody(), item), created("/a", stat));
    assert_eq!(world.read(&anybody(), get("/a")), Ok(Told::Data { data: None, stat }));
    let stat = Stat { mzxid: Zxid(2), version: 1, ..stat };
    assert_eq!(world.done(set("/a", "", None)), Told::Stat(stat));
    let told = Told::Data { data: Some(data("")), stat };
    assert_eq!(world.read(&anybody(), get("/a")), Ok(told));
    let stat = Stat { mzxid: Zxid(3), version: 2, ..stat };
    let item = Item::Set { path: path(), data: None, version: Some(1) };
    assert_eq!(world.done(item), Told::Stat(stat));
    assert_eq!(world.read(&anybody(), get("/a")), Ok(Told::Data { data: None, stat }));
    let stat = Stat { mzxid: Zxid(4), version: 3, data_length: 3, ..stat };
    assert_eq!(world.done(set("/a", "two", None)), Told::Stat(stat));
}

#[test]
fn a_node_knows_how_often_and_when_it_and_its_children_were_changed() {
    let mut world = World::new();
    world.done(create("/a", "one"));
    world.now_ms = 200;
    let mut stat = Stat { mzxid: Zxid(2), mtime: 200, version: 1, data_length: 2, ..made(1, 100) };
    assert_eq!(world.done(set("/a", "22", None)), Told::Stat(stat));
    world.now_ms = 300;
    assert!(matches!(world.done(create("/a/b", "")), Told::Created { .. }));
    assert!(matches!(world.done(create("/a/c", "")), Told::Created { .. }));
    (stat.cversion, stat.children, stat.pzxid) = (2, 2, Zxid(4));
    assert_eq!(world.stat("/a"), stat);
    assert_eq!(world.done(delete("/a/b", None)), Told::Done);
    (stat.cversion, stat.children, stat.pzxid) = (3, 1, Zxid(5));
    assert_eq!(world.stat("/a"), stat);
    world.done(set("/a/c", "x", Some(0)));
    assert_eq!(world.stat("/a"), stat, "what a child has is not the parent's");
    let acl = Acl::open();
    stat.aversion = 1;
    let told = world.done(Item::SetAcl { path: "/a".into(), acl, version: Some(0) });
    assert_eq!((told, world.stat("/a")), (Told::Stat(stat), stat));
    world.done(delete("/a/c", Some(1)));
    (stat.cversion, stat.children, stat.pzxid) = (4, 0, Zxid(8));
    assert_eq!(world.stat("/a"), stat);
    assert_eq!(
        world.news(),
        [
            node(1, "/a", What::Created),
            node(2, "/a", What::Data),
            node(3, "/a/b", What::Created),
            node(4, "/a/c", What::Created),
            node(5, "/a/b", What::Deleted),
            node(6, "/a/c", What::Data),
            node(8, "/a/c", What::Deleted),
        ]
    );
}

#[test]
fn the_version_must_be_the_one_that_is_asked_for() {
    let mut world = World::new();
    world.done(create("/a", ""));
    world.done(set("/a", "x", Some(0)));
    let one = |world: &mut World, item| world.one(&anybody(), item);
    for version in [0, 2, -1] {
        let of = Some(version);
        assert_eq!(one(&mut world, set("/a", "", of)), Err(Failure::BadVersion));
        assert_eq!(one(&mut world, delete("/a", of)), Err(Failure::BadVersion));
        assert_eq!(world.read(&anybody(), checked("/a", of)), Err(Failure::BadVersion));
    }
    let acl = |version| Item::SetAcl { path: "/a".into(), acl: Acl::open(), version };
    assert_eq!(one(&mut world, acl(Some(1))), Err(Failure::BadVersion));
    assert_eq!(world.read(&anybody(), checked("/a", Some(1))), Ok(Told::Done));
    assert_eq!(world.read(&anybody(), checked("/a", None)), Ok(Told::Done));
    assert_eq!(world.zxid(), 2);
    assert_eq!(world.done(delete("/a", Some(1))), Told::Done);
    for item in [set("/a", "", None), delete("/a", None), acl(None)] {
        assert_eq!(one(&mut world, item), Err(Failure::NoNode));
    }
    assert_eq!(world.read(&anybody(), checked("/a", None)), Err(Failure::NoNode));
}

#[test]
fn a_node_with_children_is_not_removed() {
    let mut world = World::new();
    world.done(create("/a", ""));
    world.done(create("/a/b", ""));
    world.done(create("/a-", ""));
    let delete_of = |world: &mut World, path| world.one(&anybody(), delete(path, None));
    assert_eq!(delete_of(&mut world, "/a"), Err(Failure::NotEmpty));
    assert_eq!(delete_of(&mut world, "/b/c"), Err(Failure::NoNode));
    assert_eq!(delete_of(&mut world, "/a/b"), Ok(Told::Done));
    assert_eq!(delete_of(&mut world, "/a"), Ok(Told::Done));
    assert_eq!(world.names("/"), ["a-", "zookeeper"]);
}

#[test]
fn what_was_there_before_all_stays_and_nothing_comes_to_it() {
    let mut world = World::new();
    let one = |world: &mut World, item| world.one(&anybody(), item);
    for path in ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"] {
        assert_eq!(one(&mut world, delete(path, None)), Err(Failure::BadArguments), "{path}");
    }
    for path in ["/zookeeper/a", "/zookeeper/quota", "/zookeeper/config/a"] {
        assert_eq!(one(&mut world, create(path, "")), Err(Failure::NoAuth), "{path}");
    }
    assert_eq!(one(&mut world, create("/zookeeper", "")), Err(Failure::Exists));
    assert_eq!(one(&mut world, delete("/zookeeper/a", None)), Err(Failure::NoAuth));
    assert_eq!(one(&mut world, set("/zookeeper/config", "", None)), Err(Failure::NoAuth));
    assert_eq!((world.zxid(), world.news()), (0, [].into()));
    assert!(one(&mut world, set("/", "x", Some(0))).is_ok());
}

#[test]
fn versions_and_counts_wrap() {
    let mut world = World::new();
    world.done(create("/a", ""));
    world.alter("/a", |node| {
        (node.version, node.aversion, node.creates) = (i32::MAX, i32::MAX, i32::MAX);
    });
    world.done(set("/a", "", Some(i32::MAX)));
    let acl = Acl::open();
    world.done(Item::SetAcl { path: "/a".into(), acl, version: Some(i32::MAX) });
    let told = world.done(sequential(of_kind("/a/n", "", Kind::Persistent)));
    assert!(matches!(told, Told::Created { path, .. } if path == "/a/n2147483647"));
    let stat = world.stat("/a");
    // Twice the least number is 0 when it has wrapped, less one child.
    assert_eq!((stat.version, stat.aversion, stat.cversion), (i32::MIN, i32::MIN, -1));
    let told = world.done(sequential(create("/a/n", "")));
    assert!(matches!(told, Told::Created { path, .. } if path == "/a/n-2147483648"));
}
