//! Limits of parts of the tree, as ZooKeeper's tools set them.

use super::super::{Answer, Command, Node, Object, Quota, Tree, exceeded};
use super::reads::large;
use super::world::*;
use crate::coordination::keys;
use crate::smr::tests::member::{client, from};
use crate::smr::{Execution, Machine, Objects};
use bytes::Bytes;
use quorate_kernel::limits::{TREE_COUNTED_MAX, TREE_QUOTA_NAMES_MAX};
use quorate_kernel::path::Path;
use quorate_kernel::tree::{
    ALL, Acl, CREATE, Failure, Id, Item, Kind, READ, Told, TreeReply, Zxid,
};
use std::format;
use std::string::String;
use std::vec::Vec;

/// What ZooKeeper's shell makes for a limit, as it makes it.
fn limit(world: &mut World, path: &str, limits: &str) {
    let mut at = String::from("/zookeeper/quota");
    for name in path.split('/').skip(1) {
        at = format!("{at}/{name}");
        if !world.is_there(&at) {
            world.done(Item::Create {
                path: at.clone(),
                data: None,
                acl: Acl::open(),
                kind: Kind::Persistent,
                sequential: false,
            });
        }
    }
    world.done(create(&format!("{at}/zookeeper_limits"), limits));
    world.done(create(&format!("{at}/zookeeper_stats"), "count=0,bytes=0"));
}

fn limits_of(path: &str) -> String {
    format!("/zookeeper/quota{path}/zookeeper_limits")
}

fn stats_of(path: &str) -> String {
    format!("/zookeeper/quota{path}/zookeeper_stats")
}

fn text(world: &World, path: &str) -> String {
    match world.read(&anybody(), get(path)) {
        Ok(Told::Data { data: Some(data), .. }) => String::from_utf8(data.to_vec()).expect("text"),
        other => panic!("{path} has data, not {other:?}"),
    }
}

fn counts(world: &World, path: &str) -> String {
    text(world, &stats_of(path))
}

fn one(world: &mut World, item: Item) -> Result<Told, Failure> {
    world.one(&anybody(), item)
}

/// A tree in which `/a` has three bytes, and one node below it with two.
fn small() -> World {
    let mut world = World::new();
    world.done(create("/a", "abc"));
    world.done(create("/a/b", "de"));
    world
}

#[test]
fn what_is_there_is_counted_and_what_comes_and_goes() {
    let mut world = small();
    world.done(create("/ab", "not below"));
    limit(&mut world, "/a", "count=-1,bytes=-1");
    assert_eq!(counts(&world, "/a"), "count=2,bytes=5");
    world.done(create("/a/b/c", "1234"));
    assert_eq!(counts(&world, "/a"), "count=3,bytes=9");
    world.done(set("/a/b", "", None));
    world.done(Item::Set { path: "/a".into(), data: None, version: None });
    assert_eq!(counts(&world, "/a"), "count=3,bytes=4");
    world.done(set("/ab", "", None));
    world.done(delete("/a/b/c", None));
    world.done(delete("/a/b", None));
    world.done(delete("/a", None));
    assert_eq!(counts(&world, "/a"), "count=0,bytes=0");
    world.told(Command::Put(anybody(), "/a/x/y".into(), data("12")));
    assert_eq!(counts(&world, "/a"), "count=3,bytes=2", "what is made again is limited too");
}

#[test]
fn nobody_is_told_that_counts_have_changed_and_versions_stay() {
    let mut world = small();
    limit(&mut world, "/a", "");
    let (before, _) = (world.stat(&stats_of("/a")), world.news());
    world.done(create("/a/c", ""));
    let after = world.stat(&stats_of("/a"));
    assert_eq!((after.version, after.mzxid, after.mtime), (0, before.mzxid, before.mtime));
    assert_eq!(after.data_length, "count=3,bytes=5".len() as u32);
    assert_eq!(world.news().len(), 1);
}

#[test]
fn a_hard_limit_refuses_what_would_pass_it_and_nothing_is_changed() {
    let mut world = small();
    limit(&mut world, "/a", "count=1,bytes=1=;byteHardLimit=8;countHardLimit=3");
    let told = one(&mut world, create("/a/c", "1234"));
    assert_eq!(told, Err(Failure::Quota), "four bytes are too many");
    assert_eq!(one(&mut world, set("/a/b", "123456", None)), Err(Failure::Quota));
    assert!(one(&mut world, create("/a/c", "123")).is_ok());
    assert_eq!(counts(&world, "/a"), "count=3,bytes=8");
    let zxid = world.zxid();
    assert_eq!(one(&mut world, create("/a/d", "")), Err(Failure::Quota), "a fourth node");
    let put = Command::Put(anybody(), "/a/d/e".into(), data(""));
    assert_eq!(world.told(put).told, Err(Failure::Quota));
    assert_eq!((counts(&world, "/a"), world.zxid()), ("count=3,bytes=8".into(), zxid));
    // As ZooKeeper tells it, whatever the version.
    assert_eq!(one(&mut world, set("/a", "1234", Some(9))), Err(Failure::Quota));
    assert!(one(&mut world, create("/b", "it is limited nowhere")).is_ok());
}

#[test]
fn what_makes_less_of_it_is_done_though_there_is_more_than_a_limit_says() {
    let mut world = small();
    limit(&mut world, "/a", "byteHardLimit=1;countHardLimit=1");
    assert_eq!(one(&mut world, set("/a", "abcd", None)), Err(Failure::Quota));
    assert!(one(&mut world, set("/a", "ab", None)).is_ok(), "still more than one byte");
    assert!(one(&mut world, set("/a", "yz", None)).is_ok(), "as many as before");
    assert!(one(&mut world, delete("/a/b", None)).is_ok());
    assert_eq!(one(&mut world, create("/a/b", "")), Err(Failure::Quota));
    world.done(set(&limits_of("/a"), "countHardLimit=2", None));
    assert!(one(&mut world, create("/a/b", "")).is_ok());
}

#[test]
fn several_things_are_counted_together_and_all_of_them_or_none() {
    let mut world = small();
    limit(&mut world, "/a", "countHardLimit=4");
    let items = [create("/a/c", ""), create("/a/d", ""), create("/a/e", "")];
    let told = world.all(&anybody(), &items);
    let failed = [Err(Failure::NotDone), Err(Failure::NotDone), Err(Failure::Quota)];
    assert_eq!(told, Ok(Told::Many(failed.into())));
    assert_eq!(counts(&world, "/a"), "count=2,bytes=5");
    let items = [delete("/a/b", None), create("/a/c", ""), create("/a/d", ""), create("/a/e", "")];
    assert!(matches!(world.all(&anybody(), &items), Ok(Told::Many(told)) if told[3].is_ok()));
    assert_eq!(counts(&world, "/a"), "count=4,bytes=3");
    // The limit holds from its place among them on.
    let lower = [set(&limits_of("/a"), "countHardLimit=9", None), create("/a/f", "")];
    assert!(matches!(world.all(&anybody(), &lower), Ok(Told::Many(told)) if told[1].is_ok()));
}

#[test]
fn nodes_that_end_by_themselves_are_counted() {
    let mut world = small();
    limit(&mut world, "/a", "countHardLimit=4");
    let ann = world.open(1);
    world.one(&ann, ephemeral("/a/e")).expect("there is room");
    world.done(of_kind("/a/t", "12", Kind::Ttl(5)));
    assert_eq!(world.one(&ann, ephemeral("/a/f")), Err(Failure::Quota));
    assert_eq!(counts(&world, "/a"), "count=4,bytes=7");
    world.run(Command::Close(ann));
    world.now_ms += 10;
    let seen = world.stat("/a/t").mzxid;
    world.told(Command::Reap { path: "/a/t".into(), seen }).told.expect("its time has passed");
    assert_eq!(counts(&world, "/a"), "count=2,bytes=5");
}

#[test]
fn a_limit_lasts_as_long_as_its_node() {
    let mut world = small();
    limit(&mut world, "/a", "countHardLimit=2");
    world.done(delete(&stats_of("/a"), None));
    assert_eq!(one(&mut world, create("/a/c", "")), Err(Failure::Quota), "it is not shown, and is");
    world.done(delete(&limits_of("/a"), None));
    assert!(one(&mut world, create("/a/c", "")).is_ok());
    // Made as somebody makes it who goes away, it goes too.
    let ann = world.open(1);
    let item = of_kind(&limits_of("/a"), "countHardLimit=1", Kind::Ephemeral);
    world.one(&ann, item).expect("it may be made");
    assert_eq!(one(&mut world, create("/a/d", "")), Err(Failure::Quota));
    world.run(Command::Close(ann));
    assert!(one(&mut world, create("/a/d", "")).is_ok());
}

#[test]
fn no_limit_is_where_another_would_count_the_same() {
    let mut world = small();
    limit(&mut world, "/a", "");
    world.done(create("/zookeeper/quota/a/b", ""));
    assert_eq!(one(&mut world, create(&limits_of("/a/b"), "")), Err(Failure::BadArguments));
    world.done(delete(&limits_of("/a"), None));
    world.done(create(&limits_of("/a/b"), ""));
    assert_eq!(one(&mut world, create(&limits_of("/a"), "")), Err(Failure::BadArguments));
    limit(&mut world, "/a-", "");
    world.done(create("/zookeeper/quota/zookeeper", ""));
    for path in ["", "/zookeeper"] {
        let told = one(&mut world, create(&limits_of(path), ""));
        assert_eq!(told, Err(Failure::BadArguments), "the root, and what the tree has for itself");
    }
}

/// Every change looks at so many nodes above it, however deep it is.
#[test]
fn what_is_limited_has_few_names_and_what_is_below_any_number() {
    let mut world = small();
    let most = "/d".repeat(TREE_QUOTA_NAMES_MAX);
    let mut put = |path: &str, text: &str| {
        let put = Command::Put(anybody(), path.into(), data(text));
        world.told(put).told.map(|_| ())
    };
    assert_eq!(put(&limits_of(&format!("{most}/d")), ""), Err(Failure::BadArguments));
    assert_eq!(put(&limits_of(&most), "countHardLimit=240"), Ok(()));
    assert_eq!(put(&stats_of(&most), ""), Ok(()));
    assert_eq!(put(&format!("{most}{}", "/d".repeat(239)), ""), Ok(()), "255 names");
    assert_eq!(put(&format!("{most}/e"), ""), Err(Failure::Quota));
    assert_eq!(counts(&world, &most), "count=240,bytes=0");
}

#[test]
fn limits_are_read_as_zookeeper_writes_them_and_what_cannot_be_read_is_refused() {
    let of = |text: &str| Quota::of(Some(&data(text)));
    let quota = of("count=5,bytes=-1=;byteHardLimit=7;countHardLimit=-1").expect("it is one");
    assert_eq!((quota.soft.nodes, quota.soft.bytes), (Some(5), None));
    assert_eq!((quota.hard.nodes, quota.hard.bytes), (None, Some(7)));
    assert_eq!(Quota::of(None), Ok(Quota::default()));
    assert_eq!((of(""), of("count=,later=3;;")), (Ok(Quota::default()), Ok(Quota::default())));
    for text in ["count", "count=x", "count=5,bytes", "=", "count=99999999999999999999"] {
        let wanted = if text == "=" { Ok(Quota::default()) } else { Err(Failure::BadArguments) };
        assert_eq!(of(text), wanted, "{text}");
    }
    assert_eq!(Quota::of(Some(&Bytes::from_static(b"\xff"))), Err(Failure::BadArguments));
    let mut world = small();
    limit(&mut world, "/a", "countHardLimit=2");
    let told = one(&mut world, set(&limits_of("/a"), "many", None));
    assert_eq!(told, Err(Failure::BadArguments));
    assert_eq!(one(&mut world, create("/a/c", "")), Err(Failure::Quota), "it stays as it was");
    world.done(create("/zookeeper/quota/x", ""));
    assert_eq!(one(&mut world, create(&limits_of("/x"), "many")), Err(Failure::BadArguments));
    world.done(create("/zookeeper_limits", "it limits nothing elsewhere"));
}

#[test]
fn what_is_counted_cannot_be_set() {
    let mut world = small();
    limit(&mut world, "/a", "");
    let told = world.done(set(&stats_of("/a"), "count=0,bytes=0", Some(0)));
    assert!(matches!(told, Told::Stat(stat) if stat.version == 1 && stat.data_length == 15));
    assert_eq!(counts(&world, "/a"), "count=2,bytes=5");
    world.told(Command::Put(anybody(), stats_of("/a"), data("nonsense")));
    assert_eq!(counts(&world, "/a"), "count=2,bytes=5");
}

#[test]
fn who_may_set_limits_says_the_list_of_the_node_of_all() {
    let mut world = small();
    let ann = user("ann");
    let acl = Vec::from([
        Acl { permissions: READ, id: Id::anyone() },
        Acl { permissions: ALL, id: digest("ann") },
    ]);
    world.done(Item::SetAcl { path: "/zookeeper/quota".into(), acl, version: None });
    let told = one(&mut world, create("/zookeeper/quota/a", ""));
    assert_eq!(told, Err(Failure::NoAuth));
    let list = [Acl { permissions: CREATE, id: digest("ann") }];
    let made = world.one(&ann, with_acl(create("/zookeeper/quota/a", ""), &list));
    made.expect("she may");
    assert_eq!(one(&mut world, create(&limits_of("/a"), "")), Err(Failure::NoAuth));
    let limits = create(&limits_of("/a"), "countHardLimit=2");
    world.one(&ann, with_acl(limits, &list)).expect("she may");
    assert_eq!(one(&mut world, set(&limits_of("/a"), "", None)), Err(Failure::NoAuth));
    assert_eq!(one(&mut world, delete(&limits_of("/a"), None)), Err(Failure::NoAuth));
    assert_eq!(one(&mut world, create("/a/c", "")), Err(Failure::Quota), "it holds for all");
}

#[test]
fn it_is_known_how_many_are_above_a_limit() {
    let mut world = small();
    let known = |world: &World| exceeded(world.member.machine.objects());
    limit(&mut world, "/a", "count=2,bytes=9");
    limit(&mut world, "/c", "count=-1,bytes=2");
    assert_eq!(known(&world), 0);
    world.done(create("/a/c", "a soft limit refuses nothing"));
    world.done(create("/c", "123"));
    assert_eq!(known(&world), 2);
    world.done(set("/c", "12", None));
    assert_eq!(known(&world), 1);
    world.done(set(&limits_of("/a"), "count=3,bytes=99", None));
    assert_eq!(known(&world), 0);
    world.done(set(&limits_of("/a"), "countHardLimit=1", None));
    assert_eq!(known(&world), 1, "what was there before is above a hard one");
    world.done(delete(&limits_of("/a"), None));
    assert_eq!(known(&world), 0);
}

#[test]
fn the_end_of_a_session_does_not_step_over_all_quotas_that_end_with_it_again_and_again() {
    const EACH: usize = 120;
    let mut world = World::new();
    world.done(create("/zz", ""));
    world.done(create("/zookeeper/quota/zz", ""));
    let ann = world.open(1);
    for kind in 0..3 {
        let item = |at| match kind {
            0 => create(&format!("/zookeeper/quota/zz/x{at}"), ""),
            1 => of_kind(&limits_of(&format!("/zz/x{at}")), "count=9", Kind::Ephemeral),
            _ => ephemeral(&format!("/zz/y{at}")),
        };
        let told = world.all(&ann, &(0..EACH).map(item).collect::<Vec<_>>());
        assert!(matches!(told, Ok(Told::Many(told)) if told.iter().all(Result::is_ok)));
    }
    let mut on = Execution::new(world.member.machine.objects(), 0);
    let told = Tree::execute(&Command::Close(ann), &mut on);
    assert!(matches!(told, Answer::Told(TreeReply { told: Ok(_), .. })), "{told:?}");
    assert!(on.steps() < 20 * 2 * EACH, "{} steps for {} nodes", on.steps(), 2 * EACH);
}

#[test]
fn no_more_is_counted_by_one_command_than_so_many_nodes() {
    let mut world = World::new();
    for path in ["/zookeeper/quota/a", "/c", "/zookeeper/quota/c"] {
        world.done(create(path, ""));
    }
    // With the two above them they are as many.
    let mut objects = large(&mut world, TREE_COUNTED_MAX - 2, |at| format!("{at}"));
    let told = |objects: &Objects<Tree>, items: &[Item]| {
        let command = Command::All(anybody(), items.to_vec());
        match Tree::execute(&command, &mut Execution::new(objects, 0)) {
            Answer::Told(TreeReply { told: Ok(Told::Many(told)), .. }) => {
                told.last().map(|last| last.clone().map(|_| ()))
            }
            other => panic!("all are told, not {other:?}"),
        }
    };
    let limits = create(&limits_of("/a"), "");
    assert_eq!(told(&objects, core::slice::from_ref(&limits)), Some(Ok(())));
    let both = [create(&limits_of("/c"), ""), limits.clone()];
    assert_eq!(told(&objects, &both), Some(Err(Failure::Quota)), "all of a command together");
    let key = keys::node(Path::of("/a/b/more").expect("it is a path"));
    objects.insert(key, Object::Node(Node::made(Zxid(3), 0)));
    assert_eq!(told(&objects, &[limits]), Some(Err(Failure::Quota)));
}

/// Entries are executed one after the other: one that counts again and again holds up all others.
#[test]
fn no_more_is_counted_by_all_commands_of_an_entry_than_so_many_nodes() {
    // With the two above them each count of the nodes is a little more than this part.
    const PARTS: usize = 32;
    let mut world = World::new();
    for path in ["/zookeeper/quota/a", "/c", "/zookeeper/quota/c"] {
        world.done(create(path, ""));
    }
    let before = world.member.machine.objects().clone();
    for (key, object) in large(&mut world, TREE_COUNTED_MAX / PARTS, |at| format!("{at}")) {
        if !before.contains_key(&key) {
            world.member.put(key, object);
        }
    }
    let mut next = 1;
    let mut told = |items: &[Item]| -> Vec<Option<Failure>> {
        let command = |item: &Item| Command::One(anybody(), item.clone());
        let commands: Vec<Command> = items.iter().map(command).collect();
        let answers = world.member.ask(1000, from(client(8, 1), next), &commands);
        next += commands.len() as u64;
        let failure = |answer| match answer {
            Answer::Told(TreeReply { told, .. }) => told.err(),
            other => panic!("it is told, not {other:?}"),
        };
        answers.into_iter().map(failure).collect()
    };
    let (limits, lifted) = (create(&limits_of("/a"), ""), delete(&limits_of("/a"), None));
    let other = create(&limits_of("/c"), "");
    let again = (0..PARTS).flat_map(|_| [limits.clone(), lifted.clone()]);
    let answers = told(&again.chain([limits.clone(), other.clone()]).collect::<Vec<_>>());
    let (done, refused) = answers.split_at(2 * PARTS - 2);
    assert!(done.iter().all(Option::is_none), "{done:?}");
    let quota = Some(Failure::Quota);
    let wanted = [quota, Some(Failure::NoNode), quota, quota];
    assert_eq!(refused, wanted, "counted in vain is counted");
    assert_eq!(told(&[limits, other]), [None, None], "the next entry counts anew");
}
