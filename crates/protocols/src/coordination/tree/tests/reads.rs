//! What is asked, and changes nothing.

use super::super::{Answer, Node, Object, Question, Tree, Who, ask};
use super::world::*;
use crate::coordination::keys;
use crate::smr::{Execution, Objects};
use quorate_kernel::limits::{TRANSACTION_BYTES_MAX, TREE_COUNTED_MAX, TREE_PAGE_MAX};
use quorate_kernel::path::Path;
use quorate_kernel::tree::{ALL, Acl, Failure, Item, Refollow, Stat, Told, TreeReply, What, Zxid};
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

fn count(world: &World, path: &str) -> Result<Told, Failure> {
    world.read(&anybody(), Item::CountBelow { path: path.into() })
}

fn owned(world: &World, who: &Who, prefix: &str) -> Result<Told, Failure> {
    world.read(who, Item::Ephemerals { prefix: prefix.into() })
}

#[test]
fn a_node_is_shown_as_it_is() {
    let mut world = World::new();
    world.done(create("/a", "one"));
    for name in ["/a/b", "/a/B", "/a/é", "/a/b.c", "/a/b/c", "/a-b", "/a/10"] {
        world.done(create(name, ""));
    }
    let stat = Stat { data_length: 3, children: 5, cversion: 5, pzxid: Zxid(8), ..made(1, 100) };
    assert_eq!(world.read(&anybody(), exists("/a")), Ok(Told::Stat(stat)));
    assert_eq!(world.read(&anybody(), get("/a")), Ok(Told::Data { data: Some(data("one")), stat }));
    let names = texts(&["10", "B", "b", "b.c", "é"]);
    assert_eq!(world.read(&anybody(), children("/a")), Ok(Told::Children { names, stat }));
    let acl = Acl::open();
    let told = world.read(&anybody(), Item::GetAcl { path: "/a".into() });
    assert_eq!(told, Ok(Told::Acl { acl, stat }));
    assert_eq!(world.names("/"), ["a", "a-b", "zookeeper"]);
    assert_eq!(world.names("/a-b"), Vec::<String>::new());
}

#[test]
fn what_is_not_there_is_not_read() {
    let world = World::new();
    let acl = |path: &str| Item::GetAcl { path: path.into() };
    for (path, failure) in [("/a", Failure::NoNode), ("/a/", Failure::BadArguments)] {
        for item in [exists(path), get(path), children(path), acl(path), checked(path, None)] {
            assert_eq!(world.read(&anybody(), item), Err(failure));
        }
        assert_eq!(count(&world, path), Err(failure));
    }
    for item in [create("/a", ""), delete("/a", None), set("/", "", None)] {
        assert_eq!(world.read(&anybody(), item), Err(Failure::BadArguments), "it is no question");
    }
}

#[test]
fn all_nodes_below_a_node_are_counted_and_no_others() {
    let mut world = World::new();
    for path in ["/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/e", "/a!", "/a!/x", "/a0", "/a0/x"] {
        world.done(create(path, ""));
    }
    assert_eq!(count(&world, "/a"), Ok(Told::Count(4)));
    assert_eq!(count(&world, "/a/b"), Ok(Told::Count(2)));
    assert_eq!(count(&world, "/a/e"), Ok(Told::Count(0)));
    assert_eq!(count(&world, "/a!"), Ok(Told::Count(1)));
    assert_eq!(count(&world, "/"), Ok(Told::Count(9 + 3)));
}

#[test]
fn a_session_is_told_of_its_own_nodes() {
    let mut world = World::new();
    let (who, other) = (world.open(1), world.open(2));
    world.done(create("/a", ""));
    for path in ["/b", "/a/c", "/a/b"] {
        world.one(&who, ephemeral(path)).unwrap();
    }
    world.one(&other, ephemeral("/a/d")).unwrap();
    let paths = |paths: &[&str]| Ok(Told::Paths(texts(paths)));
    assert_eq!(owned(&world, &who, ""), paths(&["/a/b", "/a/c", "/b"]));
    assert_eq!(owned(&world, &who, "/"), paths(&["/a/b", "/a/c", "/b"]));
    assert_eq!(owned(&world, &who, "/a"), paths(&["/a/b", "/a/c"]));
    assert_eq!(owned(&world, &who, "/a/c"), paths(&["/a/c"]));
    assert_eq!(owned(&world, &who, "a"), paths(&[]));
    assert_eq!(owned(&world, &other, "/"), paths(&["/a/d"]));
    assert_eq!(owned(&world, &anybody(), "/"), Err(Failure::BadArguments));
}

#[test]
fn several_reads_fail_each_by_itself() {
    let mut world = World::new();
    world.done(create("/a", "x"));
    let items = [get("/b"), get("/a"), create("/c", ""), checked("/a", Some(0))];
    let stat = Stat { data_length: 1, ..made(1, 100) };
    let told = [
        Err(Failure::NoNode),
        Ok(Told::Data { data: Some(data("x")), stat }),
        Err(Failure::BadArguments),
        Ok(Told::Done),
    ];
    let answer = world.ask(&Question::Each(anybody(), items.to_vec()));
    let told = Ok(Told::Many(told.into()));
    assert_eq!(answer, Answer::Told(TreeReply { zxid: Zxid(1), told }));
}

#[test]
fn who_follows_again_is_told_what_has_changed_since() {
    let mut world = World::new();
    for path in ["/same", "/set", "/gone", "/again", "/parent", "/parent/old"] {
        world.done(create(path, ""));
    }
    let seen = Zxid(world.zxid());
    world.done(set("/set", "", None));
    world.done(delete("/gone", None));
    world.done(delete("/again", None));
    world.done(create("/again", ""));
    world.done(create("/parent/new", ""));
    world.done(create("/new", ""));
    let refollow = Refollow {
        seen,
        data: texts(&["/set", "/same", "/gone", "/again", "/parent", "bad/"]),
        absent: texts(&["/new", "/none", "/same"]),
        children: texts(&["/parent", "/same", "/gone", "/set", "/again"]),
        persistent: texts(&["/set", "/gone"]),
        recursive: texts(&["/"]),
    };
    let changed = [
        ("/set", What::Data),
        ("/gone", What::Deleted),
        ("/again", What::Data),
        ("bad/", What::Deleted),
        ("/new", What::Created),
        ("/same", What::Created),
        ("/parent", What::Children),
        ("/gone", What::Deleted),
        ("/again", What::Children),
    ];
    let changed = changed.map(|(path, what)| (path.to_string(), what)).to_vec();
    let answer = world.ask(&Question::Refollow(anybody(), refollow.clone()));
    assert_eq!(answer, Answer::Changed { zxid: Zxid(12), changed });
    let all = Refollow { seen: Zxid(12), absent: texts(&["/none"]), ..refollow };
    let all = Refollow { data: texts(&["/set"]), children: texts(&["/again"]), ..all };
    let answer = world.ask(&Question::Refollow(anybody(), all));
    assert_eq!(answer, Answer::Changed { zxid: Zxid(12), changed: Vec::new() });
}

#[test]
fn all_paths_are_listed_once_in_pages() {
    let mut world = World::new();
    for path in ["/b", "/a", "/a/c", "/a-", "/a/b", "/a-/x", "/b/a"] {
        world.done(create(path, ""));
    }
    // What nobody may read is listed too: the list is for whoever looks after all.
    let closed = [Acl { permissions: ALL, id: digest("ann") }];
    world.done(with_acl(create("/c", ""), &closed));
    let page = |from: &str, most| match world.ask(&Question::List(from.into(), most)) {
        Answer::Paths { paths, next } => (paths, next),
        other => panic!("paths are listed, not {other:?}"),
    };
    let all = [
        "/",
        "/a",
        "/a-",
        "/b",
        "/c",
        "/zookeeper",
        "/a/b",
        "/a/c",
        "/a-/x",
        "/b/a",
        "/zookeeper/config",
        "/zookeeper/quota",
    ];
    assert_eq!(page("", 99), (texts(&all), None));
    assert_eq!(page("/", 99).0, all);
    for most in 0..13 {
        let (mut from, mut paths) = (Some(String::new()), Vec::new());
        while let Some(at) = from {
            let (more, next) = page(&at, most);
            assert!(more.len() <= most.max(1) as usize && !more.is_empty());
            paths.extend(more);
            from = next;
        }
        assert_eq!(paths, all, "pages of {most}");
    }
    assert_eq!(page("/aa", 1), (texts(&["/b"]), Some("/c".into())), "it need not be there");
    assert_eq!(page("/zookeeper/z", 1), (Vec::new(), None));
}

#[test]
fn a_page_of_paths_has_bounds() {
    let mut world = World::new();
    let items = |range: core::ops::Range<usize>, name: &str| {
        range.map(|number| create(&format!("/{number:05}{name}"), "")).collect::<Vec<_>>()
    };
    for at in 0..5 {
        world.all(&anybody(), &items(at * 1000..(at + 1) * 1000, "")).unwrap();
    }
    let page = |world: &World| match world.ask(&Question::List("/0".into(), u32::MAX)) {
        Answer::Paths { paths, next } => (paths.len(), next),
        other => panic!("paths are listed, not {other:?}"),
    };
    assert_eq!(page(&world), (TREE_PAGE_MAX, Some("/04096".into())));
    let mut world = World::new();
    world.all(&anybody(), &items(0..100, &"x".repeat(16_000))).unwrap();
    let count = page(&world).0;
    assert!((65..67).contains(&count), "{count} paths of 16 kB each");
}

/// A tree with so many nodes below `/a/b`, which are put there past all commands.
pub fn large(world: &mut World, count: usize, name: impl Fn(usize) -> String) -> Objects<Tree> {
    world.done(create("/a", ""));
    world.done(create("/a/b", ""));
    let mut objects = world.member.machine.objects().clone();
    let below = keys::children(Path::of("/a/b").expect("it is a path"));
    for at in 0..count {
        let key = [&below[..], name(at).as_bytes()].concat();
        objects.insert(key.into(), Object::Node(Node::made(Zxid(3), 0)));
    }
    objects
}

fn read(objects: &Objects<Tree>, question: Question) -> Result<Told, Failure> {
    match ask(&question, &Execution::new(objects, 0)) {
        Answer::Told(reply) => reply.told,
        other => panic!("{other:?} tells nothing"),
    }
}

#[test]
fn no_more_than_some_nodes_are_counted() {
    let mut world = World::new();
    let count = TREE_COUNTED_MAX;
    let mut objects = large(&mut world, count, |at| format!("{at}"));
    let of = |path: &str| Question::One(anybody(), Item::CountBelow { path: path.into() });
    assert_eq!(read(&objects, of("/a")), Ok(Told::Count(count as u64 + 1)));
    let key = keys::node(Path::of("/a/b/more").expect("it is a path"));
    objects.insert(key, Object::Node(Node::made(Zxid(3), 0)));
    assert_eq!(read(&objects, of("/a")), Err(Failure::Quota));
    assert_eq!(read(&objects, of("/")), Ok(Told::Count(5)), "of all it is known");
}

#[test]
fn a_list_for_which_there_is_no_room_is_not_made() {
    let mut world = World::new();
    let length = 16 * 1000;
    let count = TRANSACTION_BYTES_MAX / (length + 4);
    let name = |at| format!("{at:0length$}");
    let mut objects = large(&mut world, count, name);
    let list = || children("/a/b");
    let one = |objects: &Objects<Tree>| read(objects, Question::One(anybody(), list()));
    let is_whole = |told| matches!(told, Ok(Told::Children { names, .. }) if names.len() == count);
    assert!(is_whole(one(&objects)));
    let items = Vec::from([exists("/a"), list(), list(), exists("/a"), get("/a")]);
    let Ok(Told::Many(told)) = read(&objects, Question::Each(anybody(), items)) else {
        panic!("each is told")
    };
    let are: Vec<bool> = told.iter().map(Result::is_ok).collect();
    assert_eq!(are, [true, true, false, false, false], "nothing is looked for in vain");
    let below = keys::children(Path::of("/a/b").expect("it is a path"));
    let key = [&below[..], name(count).as_bytes()].concat();
    objects.insert(key.into(), Object::Node(Node::made(Zxid(3), 0)));
    assert_eq!(one(&objects), Err(Failure::Quota));
}
