//! Several things at one moment or none, and nodes that are made with their parents.

use super::super::{Answer, Command, Question};
use super::world::*;
use bytes::Bytes;
use quorate_kernel::limits::TREE_PARENTS_MAX;
use quorate_kernel::tree::{
    ALL, Acl, CREATE, Failure, Item, Kind, Stat, Told, TreeReply, What, Zxid,
};

fn put(world: &mut World, path: &str, text: &str) -> Result<Told, Failure> {
    world.told(Command::Put(anybody(), path.into(), data(text))).told
}

fn of_ann() -> Acl {
    Acl { permissions: ALL, id: digest("ann") }
}

#[test]
fn what_is_done_together_is_one_change_and_sees_what_was_before_in_it() {
    let mut world = World::new();
    world.done(create("/old", ""));
    let items = [
        create("/a", ""),
        create("/a/b", "x"),
        checked("/a/b", Some(0)),
        set("/a/b", "yy", Some(0)),
        sequential(of_kind("/a/n", "", Kind::Container)),
        delete("/old", None),
    ];
    world.news();
    let reply = world.told(Command::All(anybody(), items.to_vec()));
    let set = Stat { version: 1, data_length: 2, ..made(2, 100) };
    let mut first = made(2, 100);
    let told = [
        created("/a", first),
        created("/a/b", Stat { data_length: 1, ..first }),
        Ok(Told::Done),
        Ok(Told::Stat(set)),
        created("/a/n0000000001", first),
        Ok(Told::Done),
    ];
    assert_eq!(reply, TreeReply { zxid: Zxid(2), told: Ok(Told::Many(told.into())) });
    (first.children, first.cversion) = (2, 2);
    assert_eq!(world.stat("/a"), first);
    assert_eq!((world.stat("/").pzxid, world.zxid()), (Zxid(2), 2));
    assert_eq!(
        world.news(),
        [
            node(2, "/a", What::Created),
            node(2, "/a/b", What::Created),
            node(2, "/a/b", What::Data),
            node(2, "/a/n0000000001", What::Created),
            node(2, "/old", What::Deleted),
        ]
    );
}

#[test]
fn if_one_fails_nothing_of_all_is_done() {
    let mut world = World::new();
    let who = world.open(1);
    world.done(create("/a", ""));
    let before = world.member.machine.objects().clone();
    world.news();
    let items = [
        set("/a", "x", None),
        ephemeral("/e"),
        delete("/a", Some(0)),
        create("/b", ""),
        create("/c", ""),
    ];
    let told = world.all(&who, &items);
    let (not_done, not_tried) = (Err(Failure::NotDone), Err(Failure::NotTried));
    let failed = Err(Failure::BadVersion);
    let all = [not_done.clone(), not_done, failed, not_tried.clone(), not_tried];
    assert_eq!(told, Ok(Told::Many(all.into())));
    assert_eq!(world.news(), []);
    assert_eq!(world.member.machine.objects(), &before);
    assert_eq!(world.all(&who, &[]), Ok(Told::Many([].into())));
    let reads = world.all(&who, &[checked("/a", None)]);
    assert_eq!((reads, world.zxid()), (Ok(Told::Many([Ok(Told::Done)].into())), 2));
}

#[test]
fn a_node_may_come_and_go_at_one_moment() {
    let mut world = World::new();
    let who = world.open(1);
    let items = [ephemeral("/e"), delete("/e", None), create("/e", ""), create("/e/a", "")];
    assert!(world.all(&who, &items).is_ok_and(|told| matches!(
        told,
        Told::Many(all) if all.iter().all(Result::is_ok)
    )));
    assert_eq!(world.stat("/e").ephemeral_owner.0, 0);
    assert_eq!(world.stat("/").cversion, 2);
}

#[test]
fn checks_alone_are_a_question() {
    let mut world = World::new();
    world.done(create("/a", ""));
    let ask = |world: &World, items: &[Item]| match world
        .ask(&Question::All(anybody(), items.to_vec()))
    {
        Answer::Told(TreeReply { zxid: Zxid(1), told: Ok(Told::Many(all)) }) => all,
        other => panic!("all is told, not {other:?}"),
    };
    let holds = checked("/a", Some(0));
    assert_eq!(ask(&world, &[holds.clone(), holds.clone()]), [Ok(Told::Done), Ok(Told::Done)]);
    let all = [holds.clone(), checked("/a", Some(1)), holds.clone()];
    assert_eq!(
        ask(&world, &all),
        [Err(Failure::NotDone), Err(Failure::BadVersion), Err(Failure::NotTried)]
    );
    for item in [get("/a"), create("/b", "")] {
        let told = ask(&world, &[holds.clone(), item]);
        assert_eq!(told, [Err(Failure::NotDone), Err(Failure::BadArguments)]);
    }
}

#[test]
fn a_read_is_nothing_that_is_done_with_others() {
    let mut world = World::new();
    let told = world.told(Command::One(anybody(), set("/zookeeper", "", None)));
    assert_eq!(told.told, Err(Failure::NoAuth));
    // A host would not put it into its log; one that did answers all the same.
    for item in [exists("/"), get("/"), children("/"), Item::GetAcl { path: "/".into() }] {
        let told = world.member.machine.look(|on| {
            <super::super::Tree as crate::smr::Machine>::execute(
                &Command::All(anybody(), [create("/a", ""), item].into()),
                on,
            )
        });
        let all = [Err(Failure::NotDone), Err(Failure::BadArguments)];
        let told_many = TreeReply { zxid: Zxid(0), told: Ok(Told::Many(all.into())) };
        assert_eq!(told, Answer::Told(told_many));
    }
}

#[test]
fn a_node_is_put_with_its_parents() {
    let mut world = World::new();
    world.done(create("/a", "x"));
    world.news();
    let stat = Stat { data_length: 3, ..made(2, 100) };
    assert_eq!(put(&mut world, "/a/b/c", "one"), Ok(Told::Stat(stat)));
    assert_eq!(world.stat("/a/b"), Stat { children: 1, cversion: 1, ..made(2, 100) });
    assert_eq!(world.news(), [node(2, "/a/b", What::Created), node(2, "/a/b/c", What::Created)]);
    world.now_ms = 150;
    let stat = Stat { mzxid: Zxid(3), mtime: 150, version: 1, data_length: 2, ..stat };
    assert_eq!(put(&mut world, "/a/b/c", "22"), Ok(Told::Stat(stat)));
    assert_eq!(world.news(), [node(3, "/a/b/c", What::Data)]);
    assert!(put(&mut world, "/", "x").is_ok());
}

#[test]
fn what_cannot_be_put_leaves_nothing() {
    let mut world = World::new();
    let who = world.open(1);
    world.one(&who, ephemeral("/e")).unwrap();
    world.done(with_acl(create("/a", ""), &[of_ann()]));
    let before = world.member.machine.objects().clone();
    for (path, failure) in [
        ("/e/a/b", Failure::NoChildrenForEphemerals),
        ("/a/b/c", Failure::NoAuth),
        ("/a", Failure::NoAuth),
        ("/zookeeper/config", Failure::NoAuth),
        ("/zookeeper/a", Failure::NoAuth),
        ("/b/", Failure::BadArguments),
        ("b", Failure::BadArguments),
    ] {
        assert_eq!(put(&mut world, path, ""), Err(failure), "{path}");
    }
    let deep = |count: usize| "/p".repeat(count);
    assert_eq!(put(&mut world, &deep(TREE_PARENTS_MAX + 1), ""), Err(Failure::Quota));
    let large = Bytes::from(std::vec![0; 1024 * 1024 + 1]);
    let told = world.told(Command::Put(anybody(), "/b/c".into(), large)).told;
    assert_eq!(told, Err(Failure::Quota));
    assert_eq!(world.member.machine.objects(), &before);
    assert!(put(&mut world, &deep(TREE_PARENTS_MAX), "").is_ok());
}

#[test]
fn parents_are_made_below_a_node_that_lets_its_client_make_children() {
    for permissions in 0..=ALL {
        let mut world = World::new();
        let list = [Acl { permissions, ..of_ann() }];
        world.done(with_acl(create("/a", ""), &list));
        for (who, may) in [(anybody(), false), (user("ann"), permissions & CREATE != 0)] {
            let told = world.told(Command::Put(who, "/a/b/c".into(), data("x"))).told;
            assert_eq!(told.is_ok(), may, "with {permissions}: {told:?}");
            assert!(may || told == Err(Failure::NoAuth), "with {permissions}: {told:?}");
            assert_eq!([world.is_there("/a/b"), world.is_there("/a/b/c")], [may; 2]);
        }
    }
}
