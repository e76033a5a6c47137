//! Sequential nodes, and nodes that end by themselves.

use super::super::{Answer, Change, Command, Found, reapable};
use super::world::*;
use quorate_kernel::tree::{Failure, Kind, SessionId, Stat, Told, TreeReply, What, Zxid};
use std::string::{String, ToString};
use std::vec::Vec;

fn path_of(told: Told) -> String {
    match told {
        Told::Created { path, .. } => path,
        other => panic!("it is made, not {other:?}"),
    }
}

fn reap(world: &mut World, path: &str, seen: u64) -> Result<Told, Failure> {
    world.told(Command::Reap { path: path.into(), seen: Zxid(seen) }).told
}

fn due(world: &World, now_ms: u64) -> Vec<(String, Zxid)> {
    let found = reapable(world.member.machine.objects(), "", usize::MAX, now_ms);
    assert_eq!(found.next, None);
    found.due
}

#[test]
fn a_sequential_name_counts_all_creates_and_no_number_comes_again() {
    let mut world = World::new();
    world.done(create("/a", ""));
    let next = |world: &mut World, path| path_of(world.done(sequential(create(path, ""))));
    assert_eq!(next(&mut world, "/a/n-"), "/a/n-0000000000");
    assert_eq!(next(&mut world, "/a/n-"), "/a/n-0000000001");
    world.done(create("/a/other", ""));
    world.done(delete("/a/n-0000000001", None));
    world.done(delete("/a/n-0000000000", None));
    assert_eq!(next(&mut world, "/a/m"), "/a/m0000000003");
    assert_eq!(next(&mut world, "/a/"), "/a/0000000004");
    assert_eq!(next(&mut world, "/"), "/0000000001");
    assert_eq!(world.names("/a"), ["0000000004", "m0000000003", "other"]);
    let told = world.one(&anybody(), sequential(create("/b/n", "")));
    assert_eq!(told, Err(Failure::NoNode));
}

#[test]
fn a_sequential_name_that_is_taken_is_not_made() {
    let mut world = World::new();
    world.done(create("/a", ""));
    world.done(create("/a/n0000000001", ""));
    let told = world.one(&anybody(), sequential(create("/a/n", "")));
    assert_eq!(told, Err(Failure::Exists));
    world.done(create("/a/m", ""));
    assert_eq!(path_of(world.done(sequential(create("/a/n", "")))), "/a/n0000000002");
}

#[test]
fn an_ephemeral_node_has_an_owner_and_no_children() {
    let mut world = World::new();
    let who = world.open(1);
    let owned = Stat { ephemeral_owner: SessionId(1), ..made(2, 100) };
    assert_eq!(world.one(&who, ephemeral("/e")), created("/e", owned));
    assert_eq!(world.stat("/e"), owned);
    assert_eq!(world.one(&who, create("/e/a", "")), Err(Failure::NoChildrenForEphemerals));
    let item = sequential(create("/e/a", ""));
    assert_eq!(world.one(&who, item), Err(Failure::NoChildrenForEphemerals));
    assert_eq!(world.one(&anybody(), ephemeral("/f")), Err(Failure::BadArguments));
    assert_eq!(path_of(world.one(&who, sequential(ephemeral("/e"))).unwrap()), "/e0000000001");
    assert_eq!(world.one(&anybody(), delete("/e", None)), Ok(Told::Done));
    assert_eq!(world.one(&who, create("/e", "")), created("/e", made(5, 100)));
}

#[test]
fn a_container_ends_once_it_was_used_and_is_empty() {
    let mut world = World::new();
    let stat = made(1, 100);
    let told = world.one(&anybody(), of_kind("/c", "", Kind::Container));
    assert_eq!(told, created("/c", stat));
    assert_eq!(due(&world, u64::MAX), []);
    assert_eq!(reap(&mut world, "/c", 1), Err(Failure::BadVersion), "it waits for its first child");
    world.done(create("/c/a", ""));
    assert_eq!(due(&world, u64::MAX), []);
    assert_eq!(reap(&mut world, "/c", 2), Err(Failure::NotEmpty));
    world.done(delete("/c/a", None));
    assert_eq!(due(&world, 0), [("/c".to_string(), Zxid(3))]);
    world.news();
    assert_eq!(reap(&mut world, "/c", 3), Ok(Told::Done));
    assert_eq!(world.news(), [node(4, "/c", What::Deleted)]);
    assert_eq!(world.stat("/").pzxid, Zxid(4));
    assert_eq!(reap(&mut world, "/c", 3), Err(Failure::NoNode));
}

#[test]
fn a_node_is_not_reaped_that_has_changed_since_it_was_seen() {
    let mut world = World::new();
    world.done(of_kind("/c", "", Kind::Container));
    world.done(create("/c/a", ""));
    world.done(delete("/c/a", None));
    world.done(create("/c/b", ""));
    world.done(delete("/c/b", None));
    assert_eq!(reap(&mut world, "/c", 3), Err(Failure::BadVersion));
    assert_eq!(reap(&mut world, "/c", 5), Ok(Told::Done));
    world.done(of_kind("/c", "", Kind::Container));
    assert_eq!(reap(&mut world, "/c", 5), Err(Failure::BadVersion), "it is another one");
}

#[test]
fn a_node_with_a_time_to_live_ends_that_long_after_it_was_set() {
    let mut world = World::new();
    world.done(of_kind("/t", "", Kind::Ttl(50)));
    assert_eq!((due(&world, 150), due(&world, 0)), ([].into(), [].into()));
    assert_eq!(due(&world, 151), [("/t".to_string(), Zxid(1))]);
    world.now_ms = 150;
    assert_eq!(reap(&mut world, "/t", 1), Err(Failure::BadVersion), "its time has not passed");
    world.done(set("/t", "x", None));
    assert_eq!(due(&world, 200), []);
    world.now_ms = 201;
    world.done(create("/t/a", ""));
    assert_eq!(reap(&mut world, "/t", 3), Err(Failure::NotEmpty));
    world.done(delete("/t/a", None));
    assert_eq!(due(&world, 201), [("/t".to_string(), Zxid(4))]);
    assert_eq!(reap(&mut world, "/t", 4), Ok(Told::Done));
    assert!(!world.is_there("/t"));
}

#[test]
fn a_time_to_live_has_bounds() {
    let mut world = World::new();
    for ttl_ms in [0, 1 << 40, u64::MAX] {
        let told = world.one(&anybody(), of_kind("/t", "", Kind::Ttl(ttl_ms)));
        assert_eq!(told, Err(Failure::BadArguments));
    }
    world.done(of_kind("/t", "", Kind::Ttl((1 << 40) - 1)));
    assert_eq!(due(&world, 100 + (1 << 40)), [("/t".to_string(), Zxid(1))]);
}

#[test]
fn other_nodes_are_not_reaped() {
    let mut world = World::new();
    let who = world.open(1);
    world.done(create("/p", ""));
    world.one(&who, ephemeral("/e")).unwrap();
    assert_eq!(reap(&mut world, "/p", 2), Err(Failure::BadVersion));
    assert_eq!(reap(&mut world, "/e", 3), Err(Failure::BadVersion));
    assert_eq!(reap(&mut world, "/", 3), Err(Failure::NotEmpty));
    assert_eq!(reap(&mut world, "", 3), Err(Failure::BadArguments));
    assert_eq!(due(&world, u64::MAX), []);
    let done = Answer::Told(TreeReply { zxid: Zxid(3), told: Err(Failure::NoNode) });
    assert_eq!(world.run(Command::Reap { path: "/x".into(), seen: Zxid(1) }), done);
}

#[test]
fn what_is_due_is_found_a_few_nodes_at_a_time() {
    let mut world = World::new();
    for name in ["/a", "/b", "/c", "/d"] {
        let ttl_ms = if name == "/b" { 1000 } else { 1 };
        world.done(of_kind(name, "", Kind::Ttl(ttl_ms)));
    }
    let look = |from: &str, most| reapable(world.member.machine.objects(), from, most, 200);
    let due = |paths: &[(&str, u64)]| {
        paths.iter().map(|(path, zxid)| (path.to_string(), Zxid(*zxid))).collect::<Vec<_>>()
    };
    assert_eq!(look("", 2), Found { due: due(&[("/a", 1)]), next: Some("/c".into()) });
    assert_eq!(look("/c", 2), Found { due: due(&[("/c", 3), ("/d", 4)]), next: None });
    assert_eq!(look("/bb", 1), Found { due: due(&[("/c", 3)]), next: Some("/d".into()) });
    assert_eq!(look("/e", 2), Found::default());
}

#[test]
fn what_ends_with_a_session_ends_in_the_order_of_paths_at_one_moment() {
    let mut world = World::new();
    let who = world.open(1);
    let other = world.open(2);
    world.done(create("/a", ""));
    for path in ["/z", "/a/b", "/b"] {
        world.one(&who, ephemeral(path)).unwrap();
    }
    world.one(&other, ephemeral("/a/other")).unwrap();
    world.one(&who, delete("/b", None)).unwrap();
    world.news();
    let told = world.told(Command::Close(who.clone()));
    assert_eq!((told.zxid, told.told), (Zxid(9), Ok(Told::Done)));
    let ended = Change::Session { session: session(&who), gateway: gateway(1), is_moved: false };
    assert_eq!(world.news(), [node(9, "/a/b", What::Deleted), node(9, "/z", What::Deleted), ended]);
    assert_eq!(world.names("/a"), ["other"]);
    assert_eq!((world.stat("/a").pzxid, world.stat("/").pzxid), (Zxid(9), Zxid(9)));
}
