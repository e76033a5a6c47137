//! Who may do what with a node.

use super::super::Who;
use super::world::*;
use quorate_kernel::tree::{
    ADMIN, ALL, Acl, CREATE, DELETE, Failure, Id, Item, READ, Told, WRITE, Zxid,
};
use std::string::ToString;
use std::vec::Vec;

fn entry(permissions: u32, scheme: &str, id: &str) -> Acl {
    Acl { permissions, id: Id { scheme: scheme.into(), id: id.into() } }
}

fn of_user(permissions: u32, name: &str) -> Acl {
    Acl { permissions, id: digest(name) }
}

fn acl_of(world: &World, who: &Who, path: &str) -> Result<Vec<Acl>, Failure> {
    match world.read(who, Item::GetAcl { path: path.into() })? {
        Told::Acl { acl, .. } => Ok(acl),
        other => panic!("a list is told, not {other:?}"),
    }
}

fn set_acl(path: &str, acl: &[Acl]) -> Item {
    Item::SetAcl { path: path.into(), acl: acl.to_vec(), version: None }
}

fn from(peer: &str) -> Who {
    Who { peer: Some(peer.parse().expect("it is an address")), ..anybody() }
}

#[test]
fn each_permission_is_for_what_zookeeper_asks_it_for() {
    let of = |permissions| {
        let mut world = World::new();
        world.done(create("/a", ""));
        world.done(create("/a/b", ""));
        world.done(set_acl("/a/b", &[of_user(ALL, "nobody")]));
        world.done(set_acl("/a", &[of_user(permissions, "ann")]));
        world
    };
    let ann = user("ann");
    let items: [(&str, Item, u32); 8] = [
        ("create", create("/a/c", ""), CREATE),
        ("delete", delete("/a/b", None), DELETE),
        ("set", set("/a", "x", None), WRITE),
        ("set list", set_acl("/a", &Acl::open()), ADMIN),
        ("get", get("/a"), READ),
        ("children", children("/a"), READ),
        ("check", checked("/a", None), READ),
        ("list", Item::GetAcl { path: "/a".into() }, READ | ADMIN),
    ];
    for (name, item, needs) in &items {
        for permissions in 0..=ALL {
            let mut world = of(permissions);
            let one = |world: &mut World, who: &Who| match item.is_write() {
                true => world.one(who, item.clone()),
                false => world.read(who, item.clone()),
            };
            assert_eq!(one(&mut world, &anybody()), Err(Failure::NoAuth), "{name}");
            assert_eq!(one(&mut world, &user("bob")), Err(Failure::NoAuth), "{name}");
            let may = permissions & needs != 0;
            let told = one(&mut world, &ann);
            assert_eq!(told.is_ok(), may, "{name} with {permissions}: {told:?}");
            assert!(may || told == Err(Failure::NoAuth), "{name} with {permissions}: {told:?}");
        }
    }
    let world = of(0);
    assert!(world.read(&anybody(), exists("/a")).is_ok(), "whether a node is there is no secret");
    assert_eq!(world.read(&ann, Item::CountBelow { path: "/a".into() }), Err(Failure::NoAuth));
}

#[test]
fn what_is_wrong_is_found_in_the_order_of_zookeeper() {
    let mut world = World::new();
    world.done(create("/a", ""));
    world.done(create("/a/b", ""));
    world.done(set_acl("/a", &[of_user(ALL, "ann")]));
    world.done(set_acl("/a/b", &[of_user(ALL, "ann")]));
    let one = |world: &mut World, item| world.one(&anybody(), item);
    let no_list = |path| with_acl(create(path, ""), &[]);
    assert_eq!(one(&mut world, no_list("/x/y")), Err(Failure::InvalidAcl));
    assert_eq!(one(&mut world, no_list("x")), Err(Failure::BadArguments));
    assert_eq!(one(&mut world, create("/a/b", "")), Err(Failure::NoAuth));
    assert_eq!(one(&mut world, delete("/a/x", Some(9))), Err(Failure::NoAuth));
    assert_eq!(one(&mut world, set("/a/b", "", Some(9))), Err(Failure::NoAuth));
    assert_eq!(one(&mut world, set_acl("/x", &[])), Err(Failure::InvalidAcl));
    assert_eq!(one(&mut world, set_acl("/x", &Acl::open())), Err(Failure::NoNode));
    assert_eq!(world.one(&user("ann"), delete("/a", Some(9))), Err(Failure::BadVersion));
}

#[test]
fn auth_is_whoever_the_client_has_shown_that_it_is() {
    let mut world = World::new();
    let auth = [entry(ALL, "auth", "")];
    let who = Who { ids: Vec::from([digest("ann"), digest("bob")]), ..anybody() };
    assert!(world.one(&who, with_acl(create("/a", ""), &auth)).is_ok());
    let both = [of_user(ALL, "ann"), of_user(ALL, "bob")];
    assert_eq!(acl_of(&world, &user("bob"), "/a"), Ok(both.to_vec()));
    assert_eq!(world.read(&anybody(), get("/a")), Err(Failure::NoAuth));
    let none = world.one(&anybody(), with_acl(create("/b", ""), &auth));
    assert_eq!(none, Err(Failure::InvalidAcl), "it has shown nothing");
    let peer = Id { scheme: "ip".into(), id: "10.0.0.1".into() };
    let known = Who { ids: Vec::from([peer]), ..from("10.0.0.1") };
    let none = world.one(&known, with_acl(create("/b", ""), &auth));
    assert_eq!(none, Err(Failure::InvalidAcl), "an address is nothing that is shown");
    let mixed = [entry(READ, "world", "anyone"), entry(WRITE, "auth", ""), of_user(WRITE, "ann")];
    assert!(world.one(&user("ann"), set_acl("/a", &mixed)).is_ok());
    let list = [entry(READ, "world", "anyone"), entry(WRITE, "digest", "ann:x")];
    assert_eq!(acl_of(&world, &anybody(), "/a"), Ok(list.to_vec()), "nothing is in it twice");
    assert_eq!(world.stat("/a").aversion, 1);
}

#[test]
fn digests_are_shown_to_those_alone_who_may_set_them() {
    let mut world = World::new();
    let list = [entry(READ, "world", "anyone"), of_user(ALL, "ann"), entry(ALL, "ip", "::1")];
    world.done(with_acl(create("/a", ""), &list));
    assert_eq!(acl_of(&world, &user("ann"), "/a"), Ok(list.to_vec()));
    let mut hidden = list.to_vec();
    hidden[1].id.id = "ann:x".to_string();
    assert_eq!(acl_of(&world, &anybody(), "/a"), Ok(hidden.clone()));
    assert_eq!(acl_of(&world, &user("bob"), "/a"), Ok(hidden));
    world.done(create("/b", ""));
    assert_eq!(acl_of(&world, &anybody(), "/b"), Ok(Acl::open()));
}

#[test]
fn a_list_of_nobody_who_is_known_is_refused() {
    let mut world = World::new();
    let bad = [
        ("world", "everyone"),
        ("world", ""),
        ("x509", "CN=a"),
        ("sasl", "ann"),
        ("super", "ann"),
        ("", ""),
        ("digest", "ann"),
        ("digest", "ann:"),
        ("digest", "ann:b:c"),
        ("ip", ""),
        ("ip", "10.0.0"),
        ("ip", "10.0.0.1/33"),
        ("ip", "10.0.0.1/-1"),
        ("ip", "10.0.0.1/"),
        ("ip", "::1/129"),
        ("ip", "localhost"),
    ];
    for (scheme, id) in bad {
        let list = [entry(ALL, "world", "anyone"), entry(READ, scheme, id)];
        let told = world.one(&user("ann"), with_acl(create("/a", ""), &list));
        assert_eq!(told, Err(Failure::InvalidAcl), "{scheme}:{id}");
        let told = world.one(&user("ann"), set_acl("/", &list));
        assert_eq!(told, Err(Failure::InvalidAcl), "{scheme}:{id}");
    }
    let many = (0..257).map(|number| entry(number, "world", "anyone")).collect::<Vec<_>>();
    assert_eq!(world.one(&anybody(), set_acl("/", &many)), Err(Failure::InvalidAcl));
    assert_eq!(world.zxid(), 0);
    assert!(world.one(&anybody(), set_acl("/", &many[1..])).is_ok());
}

#[test]
fn a_list_that_is_too_long_is_refused_also_with_what_the_client_has_shown() {
    let mut world = World::new();
    let name = |bytes: usize| "n".repeat(bytes - ":digest".len());
    for (bytes, told) in [(1024, Ok(())), (1025, Err(Failure::InvalidAcl))] {
        let (who, list) = (user(&name(bytes)), [of_user(ALL, &name(bytes))]);
        assert_eq!(list[0].id.id.len(), bytes);
        assert_eq!(world.one(&who, set_acl("/", &list)).map(|_| ()), told, "{bytes} are given");
        let auth = [entry(ALL, "auth", "")];
        assert_eq!(world.one(&who, set_acl("/", &auth)).map(|_| ()), told, "{bytes} are shown");
        assert_eq!(world.one(&user(&name(1024)), set_acl("/", &Acl::open())).map(|_| ()), Ok(()));
    }
    let ids = (0..4).map(|number| digest(&number.to_string())).collect();
    let who = Who { ids, ..anybody() };
    let auth = |count: u32| (1..=count).map(|of| entry(of, "auth", "")).collect::<Vec<_>>();
    assert_eq!(world.one(&who, set_acl("/", &auth(65))), Err(Failure::InvalidAcl));
    assert!(world.one(&who, set_acl("/", &auth(64))).is_ok());
}

#[test]
fn an_address_may_do_what_its_network_may() {
    let cases = [
        ("10.1.2.3", "10.1.2.3", true),
        ("10.1.2.3", "10.1.2.4", false),
        ("10.1.0.0/16", "10.1.255.7", true),
        ("10.1.0.0/16", "10.2.0.0", false),
        ("10.1.2.3/0", "192.168.0.1", true),
        ("10.1.2.2/31", "10.1.2.3", true),
        ("10.1.2.2/31", "10.1.2.4", false),
        ("10.1.2.3", "::ffff:10.1.2.3", true),
        ("::ffff:10.1.2.3", "10.1.2.3", true),
        ("10.0.0.0/0", "::1", false),
        ("fd00::/8", "fd12::1", true),
        ("fd00::/8", "fe00::1", false),
        ("::1", "::1", true),
        ("::1", "::2", false),
        ("::/0", "fe80::1", true),
    ];
    for (network, peer, may) in cases {
        let mut world = World::new();
        world.done(with_acl(create("/a", ""), &[entry(READ, "ip", network)]));
        let told = world.read(&from(peer), get("/a"));
        assert_eq!(told.is_ok(), may, "{peer} in {network}");
        assert_eq!(world.read(&anybody(), get("/a")), Err(Failure::NoAuth));
    }
}

#[test]
fn a_list_is_set_without_any_other_change() {
    let mut world = World::new();
    world.done(create("/a", "x"));
    let before = world.stat("/a");
    world.news();
    world.now_ms = 900;
    world.done(set_acl("/a", &[of_user(ALL, "ann")]));
    let mut stat = before;
    stat.aversion = 1;
    assert_eq!((world.stat("/a"), world.zxid()), (stat, 2));
    assert_eq!(world.news(), []);
    assert_eq!(world.stat("/").pzxid, Zxid(1));
}
