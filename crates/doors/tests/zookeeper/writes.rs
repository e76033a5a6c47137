//! Requests that change nodes, and their answers, byte for byte.

use crate::wire::{Field, about, answer, request};
use crate::world::{STAT, World, stat};
use bytes::Bytes;
use quorate_kernel::tree::{Acl, Act, Failure, Id, Item, Kind, Told};

/// What follows the path of a node to be made: data, an access list, flags.
pub const MADE: &[Field<'_>] = &[
    ("data", "00000002 6869"),
    ("access list", "00000001"),
    ("permissions", "0000001f"),
    ("scheme", "00000005 776f726c64"),
    ("id", "00000006 616e796f6e65"),
];

fn with(flags: &'static str) -> Vec<Field<'static>> {
    [MADE, &[("flags", flags)]].concat()
}

fn create(path: &str, kind: Kind, sequential: bool) -> Item {
    let (path, data) = (path.to_string(), Some(Bytes::from_static(b"hi")));
    Item::Create { path, data, acl: Acl::open(), kind, sequential }
}

fn created() -> Result<Told, Failure> {
    Ok(Told::Created { path: "/a1".to_string(), stat: stat() })
}

const PATH: Field<'_> = ("path", "00000003 2f6131");

#[test]
fn each_kind_of_node_is_made() {
    let mut world = World::open();
    let kinds = [
        ("00000000", Kind::Persistent, false),
        ("00000001", Kind::Ephemeral, false),
        ("00000002", Kind::Persistent, true),
        ("00000003", Kind::Ephemeral, true),
        ("00000004", Kind::Container, false),
    ];
    let stat = [&[PATH], STAT].concat();
    for (flags, kind, sequential) in kinds {
        let act = Act::One(create("/a", kind, sequential));
        world.one(&about(1, 1, "/a", &with(flags)), &act, created(), &answer(1, 9, 0, &[PATH]));
        world.one(&about(2, 15, "/a", &with(flags)), &act, created(), &answer(2, 9, 0, &stat));
    }
    let container = Act::One(create("/a", Kind::Container, false));
    let made = about(3, 19, "/a", &with("00000004"));
    world.one(&made, &container, created(), &answer(3, 9, 0, &stat));
    for (flags, sequential) in [("00000005", false), ("00000006", true)] {
        let ttl = Act::One(create("/a", Kind::Ttl(60_000), sequential));
        let fields = [&with(flags)[..], &[("ttl", "000000000000ea60")]].concat();
        world.one(&about(4, 21, "/a", &fields), &ttl, created(), &answer(4, 9, 0, &stat));
    }
}

#[test]
fn a_number_may_be_the_whole_name() {
    let mut world = World::open();
    let act = Act::One(create("/a/", Kind::Persistent, true));
    let made = about(1, 1, "/a/", &with("00000002"));
    world.one(&made, &act, created(), &answer(1, 9, 0, &[PATH]));
    world.at_once(&about(2, 1, "/a/", &with("00000000")), &answer(2, 0, -8, &[]));
}

#[test]
fn absent_data_is_not_empty_but_absent_texts_are() {
    let mut world = World::open();
    let fields = [
        ("data", "ffffffff"),
        ("access list", "00000001"),
        ("permissions", "00000001"),
        ("scheme", "00000004 61757468"),
        ("id", "ffffffff"),
        ("flags", "00000000"),
    ];
    let id = Id { scheme: "auth".to_string(), id: String::new() };
    let acl = vec![Acl { permissions: 1, id }];
    let (path, data, kind) = ("/a".to_string(), None, Kind::Persistent);
    let act = Act::One(Item::Create { path, data, acl, kind, sequential: false });
    world.one(&about(1, 1, "/a", &fields), &act, created(), &answer(1, 9, 0, &[PATH]));

    let fields = [("data", "00000000"), ("access list", "ffffffff"), ("flags", "00000000")];
    let (path, data) = ("/a".to_string(), Some(Bytes::new()));
    let act = Act::One(Item::Create { path, data, acl: vec![], kind, sequential: false });
    let invalid = answer(2, 9, -114, &[]);
    world.one(&about(2, 1, "/a", &fields), &act, Err(Failure::InvalidAcl), &invalid);
}

#[test]
fn nodes_are_removed_and_set() {
    let mut world = World::open();
    for (hex, version) in [("ffffffff", None), ("00000003", Some(3)), ("fffffffe", Some(-2))] {
        let act = Act::One(Item::Delete { path: "/a".to_string(), version });
        let removed = about(1, 2, "/a", &[("version", hex)]);
        world.one(&removed, &act, Ok(Told::Done), &answer(1, 9, 0, &[]));
    }
    let (path, data) = ("/a".to_string(), Some(Bytes::from_static(b"hi")));
    let act = Act::One(Item::Set { path, data, version: Some(3) });
    let set = about(2, 5, "/a", &[("data", "00000002 6869"), ("version", "00000003")]);
    world.one(&set, &act, Ok(Told::Stat(stat())), &answer(2, 9, 0, STAT));

    let id = Id { scheme: "ip".to_string(), id: "::1".to_string() };
    let acl = vec![Acl { permissions: 17, id }];
    let act = Act::One(Item::SetAcl { path: "/a".to_string(), acl, version: None });
    let fields = [
        ("access list", "00000001"),
        ("permissions", "00000011"),
        ("scheme", "00000002 6970"),
        ("id", "00000003 3a3a31"),
        ("version", "ffffffff"),
    ];
    let set = about(3, 7, "/a", &fields);
    world.one(&set, &act, Ok(Told::Stat(stat())), &answer(3, 9, 0, STAT));
}

#[test]
fn each_failure_has_its_code() {
    let codes = [
        (Failure::NoNode, -101),
        (Failure::NoAuth, -102),
        (Failure::BadVersion, -103),
        (Failure::NoChildrenForEphemerals, -108),
        (Failure::Exists, -110),
        (Failure::NotEmpty, -111),
        (Failure::InvalidAcl, -114),
        (Failure::NotFollowed, -121),
        (Failure::Quota, -125),
        (Failure::BadArguments, -8),
        (Failure::Unimplemented, -6),
    ];
    let mut world = World::open();
    for (failure, code) in codes {
        let act = Act::One(Item::Delete { path: "/a".to_string(), version: None });
        let removed = about(1, 2, "/a", &[("version", "ffffffff")]);
        world.one(&removed, &act, Err(failure), &answer(1, 9, code, &[]));
        assert!(!world.session.is_closing());
    }
}

#[test]
fn what_cannot_be_asked_is_refused_without_the_engine() {
    let mut world = World::open();
    let removed = [("version", "ffffffff")];
    for path in ["", "a", "/a/", "/a//b", "/a/../b", "/\0"] {
        world.at_once(&about(1, 2, path, &removed), &answer(1, 0, -8, &[]));
    }
    let absent = request(2, 2, &[("path", "ffffffff"), removed[0]]);
    world.at_once(&absent, &answer(2, 0, -5, &[]));
    let not_utf8 = request(2, 2, &[("path", "00000002 2fff"), removed[0]]);
    world.at_once(&not_utf8, &answer(2, 0, -8, &[]));
    for flags in ["00000005", "00000006", "00000007", "ffffffff"] {
        world.at_once(&about(3, 1, "/a", &with(flags)), &answer(3, 0, -8, &[]));
    }
    let bad = [("00000005", "0000000000000000"), ("00000006", "0000010000000000")];
    for (flags, ttl) in bad.into_iter().chain([("00000000", "0000000000000001")]) {
        let fields = [&with(flags)[..], &[("ttl", ttl)]].concat();
        world.at_once(&about(4, 21, "/a", &fields), &answer(4, 0, -8, &[]));
    }
    // Records that end too early, or announce what does not come.
    world.at_once(&request(5, 1, &[]), &answer(5, 0, -5, &[]));
    world.at_once(&about(6, 2, "/a", &[("version", "ffff")]), &answer(6, 0, -5, &[]));
    world.at_once(&request(7, 5, &[("path", "7fffffff 2f61")]), &answer(7, 0, -5, &[]));
    world.at_once(&request(7, 5, &[("path", "fffffffe 2f61")]), &answer(7, 0, -5, &[]));
}

#[test]
fn requests_that_nothing_does_have_a_code_and_the_connection_stays() {
    let mut world = World::open();
    for opcode in [-10, -1, 0, 10, 13, 20, 23, 99, 102, 108, i32::MAX, i32::MIN] {
        world.at_once(&request(1, opcode, &[]), &answer(1, 0, -6, &[]));
    }
    world.at_once(&request(2, 16, &[]), &answer(2, 0, -123, &[]));
    assert!(!world.session.is_closing());
}

#[test]
fn data_is_as_long_as_can_be_read_back() {
    let set = |bytes: usize| {
        let mut body = [&1i32.to_be_bytes()[..], &5i32.to_be_bytes(), b"\0\0\0\x02/a"].concat();
        body.extend_from_slice(&(bytes as u32).to_be_bytes());
        body.resize(body.len() + bytes, 7);
        body.extend_from_slice(&(-1i32).to_be_bytes());
        crate::wire::framed(&body)
    };
    let mut world = World::open();
    world.at_once(&set(0xf_ffff - 88), &answer(1, 0, -125, &[]));
    world.receive(&set(0xf_ffff - 89));
    let Act::One(Item::Set { data, .. }) = world.act().clone() else { panic!("it is set") };
    assert_eq!(data.as_ref().map(Bytes::len), Some(0xf_ffff - 89));
    world.complete(0, crate::world::replied(9, Ok(Told::Stat(stat()))));
    world.take();
    world.receive(&crate::wire::get(2, "/a", false));
    world.complete(0, crate::world::replied(9, Ok(Told::Data { data, stat: stat() })));
    let read = world.take();
    assert_eq!(read.len(), 4 + 0xf_ffff - 1);
    assert_eq!(read[4 + 12..4 + 16], [0; 4], "no error");
}
