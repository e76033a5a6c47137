//! Requests that read, and their answers, byte for byte.

use crate::wire::{Field, about, answer, get, ping, request};
use crate::world::{STAT, World, replied, stat};
use bytes::Bytes;
use quorate_kernel::tree::{Acl, Act, Failure, Id, Item, Told};

fn path() -> String {
    "/a".to_string()
}

#[test]
fn nodes_are_read_with_and_without_a_watch() {
    let mut world = World::open();
    for (hex, watch) in [("00", false), ("01", true), ("ff", true)] {
        let field: &[Field<'_>] = &[("watch", hex)];
        let act = Act::One(Item::Exists { path: path(), watch });
        let told = || Ok(Told::Stat(stat()));
        world.one(&about(1, 3, "/a", field), &act, told(), &answer(1, 9, 0, STAT));

        let act = Act::One(Item::Get { path: path(), watch });
        let data = Some(Bytes::from_static(b"hi"));
        let told = Ok(Told::Data { data, stat: stat() });
        let fields = [&[("data", "00000002 6869")], STAT].concat();
        world.one(&about(2, 4, "/a", field), &act, told, &answer(2, 9, 0, &fields));

        let act = Act::One(Item::Children { path: path(), watch });
        let told = || Ok(Told::Children { names: vec!["b".into(), "cd".into()], stat: stat() });
        let names = [("count", "00000002"), ("b", "00000001 62"), ("cd", "00000002 6364")];
        world.one(&about(3, 8, "/a", field), &act, told(), &answer(3, 9, 0, &names));
        let fields = [&names, STAT].concat();
        world.one(&about(4, 12, "/a", field), &act, told(), &answer(4, 9, 0, &fields));
    }
}

#[test]
fn who_looks_for_an_absent_node_is_told_so_by_an_error() {
    let mut world = World::open();
    let act = Act::One(Item::Exists { path: path(), watch: true });
    let absent = answer(1, 9, -101, &[]);
    world.one(&about(1, 3, "/a", &[("watch", "01")]), &act, Err(Failure::NoNode), &absent);
}

#[test]
fn empty_data_is_an_empty_buffer_and_no_data_is_none() {
    let mut world = World::open();
    let act = Act::One(Item::Get { path: path(), watch: false });
    for (hex, data) in [("00000000", Some(Bytes::new())), ("ffffffff", None)] {
        let told = Ok(Told::Data { data, stat: stat() });
        let fields = [&[("data", hex)], STAT].concat();
        world.one(&get(1, "/a", false), &act, told, &answer(1, 9, 0, &fields));
    }
}

#[test]
fn access_lists_counts_ephemerals_and_ids_are_read() {
    let mut world = World::open();
    let id = Id { scheme: "digest".to_string(), id: "u:x".to_string() };
    let acl = vec![Acl { permissions: 31, id }];
    let fields = [
        ("count", "00000001"),
        ("permissions", "0000001f"),
        ("scheme", "00000006 646967657374"),
        ("id", "00000003 753a78"),
    ];
    let act = Act::One(Item::GetAcl { path: path() });
    let told = Ok(Told::Acl { acl, stat: stat() });
    world.one(&about(1, 6, "/a", &[]), &act, told, &answer(1, 9, 0, &[&fields, STAT].concat()));

    let act = Act::One(Item::CountBelow { path: path() });
    let count = |count| [("count", count)];
    let told = Ok(Told::Count(300));
    world.one(&about(2, 104, "/a", &[]), &act, told, &answer(2, 9, 0, &count("0000012c")));
    let told = Ok(Told::Count(u64::MAX));
    world.one(&about(2, 104, "/a", &[]), &act, told, &answer(2, 9, 0, &count("7fffffff")));

    let paths = [("count", "00000001"), ("/a/b", "00000004 2f612f62")];
    for (asked, prefix) in [("00000002 2f61", "/a"), ("ffffffff", "/"), ("00000001 20", "/")] {
        let act = Act::One(Item::Ephemerals { prefix: prefix.to_string() });
        let told = Ok(Told::Paths(vec!["/a/b".to_string()]));
        let asked = request(3, 103, &[("prefix", asked)]);
        world.one(&asked, &act, told, &answer(3, 9, 0, &paths));
    }

    let id = |scheme: &str, id: &str| Id { scheme: scheme.to_string(), id: id.to_string() };
    let told = Ok(Told::Ids(vec![id("ip", "::1"), id("digest", "u:aGk=")]));
    let fields = [
        ("count", "00000002"),
        ("scheme", "00000002 6970"),
        ("user", "00000003 3a3a31"),
        ("scheme", "00000006 646967657374"),
        ("user", "00000001 75"),
    ];
    world.one(&request(4, 107, &[]), &Act::WhoAmI, told, &answer(4, 9, 0, &fields));
}

#[test]
fn pings_and_syncs_are_answered_by_the_engine() {
    let mut world = World::open();
    world.one(&ping(), &Act::Ping, Ok(Told::Done), &answer(-2, 9, 0, &[]));
    let act = Act::Sync { path: path() };
    let synced = [("path", "00000002 2f61")];
    world.one(&about(1, 9, "/a", &[]), &act, Ok(Told::Done), &answer(1, 9, 0, &synced));
}

#[test]
fn a_listing_that_no_client_would_read_is_an_error() {
    let mut world = World::open();
    // A header of 16 bytes, a count of 4, and 5 for each name: the longest that is read has one
    // byte less than the limit.
    let (names, most) = (|count: usize| vec!["b".to_string(); count], (0xf_ffff - 1 - 20) / 5);
    for (count, code) in [(most, 0i32), (most + 1, -5)] {
        world.receive(&about(1, 8, "/a", &[("watch", "00")]));
        let told = Ok(Told::Children { names: names(count), stat: stat() });
        world.complete(0, replied(9, told));
        let read = world.take();
        assert_eq!(read[16..20], code.to_be_bytes());
        assert_eq!(read.len(), if code == 0 { 4 + 20 + 5 * count } else { 20 });
    }
    assert!(!world.session.is_closing());
}

#[test]
fn what_is_behind_a_record_is_passed_over() {
    let mut world = World::open();
    let act = Act::One(Item::Get { path: path(), watch: true });
    let asked = about(1, 4, "/a", &[("watch", "01"), ("of a later version", "ffffff")]);
    world.one(&asked, &act, Err(Failure::NoNode), &answer(1, 9, -101, &[]));
}
