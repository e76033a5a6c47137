//! Several things in one request, byte for byte.

use crate::wire::{Field, answer, request};
use crate::world::{STAT, World, stat};
use bytes::Bytes;
use quorate_kernel::tree::{Acl, Act, Failure, Item, Kind, Told};

const END: [Field<'_>; 3] = [("type", "ffffffff"), ("done", "01"), ("err", "ffffffff")];
const PATH: Field<'_> = ("path", "00000002 2f61");
const VERSION: Field<'_> = ("version", "00000003");
const DATA: Field<'_> = ("data", "00000002 6869");
const ACL: [Field<'_>; 4] = [
    ("access list", "00000001"),
    ("permissions", "0000001f"),
    ("scheme", "00000005 776f726c64"),
    ("id", "00000006 616e796f6e65"),
];

fn header(kind: &'static str) -> [Field<'static>; 3] {
    [("type", kind), ("done", "00"), ("err", "ffffffff")]
}

fn create(kind: &'static str, flags: &'static str) -> Vec<Field<'static>> {
    [&header(kind)[..], &[PATH, DATA], &ACL, &[("flags", flags)]].concat()
}

fn element(kind: &'static str, record: &[Field<'static>]) -> Vec<Field<'static>> {
    [&header(kind)[..], record].concat()
}

/// The header of an element that was done.
fn done(kind: &'static str, record: &[Field<'static>]) -> Vec<Field<'static>> {
    [&[("type", kind), ("done", "00"), ("err", "00000000")], record].concat()
}

/// An element that was not.
fn undone(code: &'static str) -> [Field<'static>; 4] {
    [("type", "ffffffff"), ("done", "00"), ("err", code), ("code", code)]
}

fn made(kind: Kind) -> Item {
    let (path, data) = ("/a".to_string(), Some(Bytes::from_static(b"hi")));
    Item::Create { path, data, acl: Acl::open(), kind, sequential: false }
}

/// All that a multi may write, and what that asks.
fn writes() -> (Vec<Field<'static>>, Vec<Item>) {
    let path = || "/a".to_string();
    let ttl: Vec<Field<'static>> =
        [&create("00000015", "00000005")[..], &[("ttl", "0000000000000001")]].concat();
    let fields = [
        create("00000001", "00000000"),
        create("0000000f", "00000001"),
        create("00000013", "00000004"),
        ttl,
        element("00000002", &[PATH, VERSION]),
        element("00000005", &[PATH, DATA, VERSION]),
        element("0000000d", &[PATH, VERSION]),
        END.to_vec(),
    ];
    let (version, data) = (Some(3), Some(Bytes::from_static(b"hi")));
    let items = vec![
        made(Kind::Persistent),
        made(Kind::Ephemeral),
        made(Kind::Container),
        made(Kind::Ttl(1)),
        Item::Delete { path: path(), version },
        Item::Set { path: path(), data, version },
        Item::Check { path: path(), version },
    ];
    (fields.concat(), items)
}

#[test]
fn all_writes_are_done_together() {
    let (fields, items) = writes();
    let made = || Ok(Told::Created { path: "/a".to_string(), stat: stat() });
    let told = vec![
        made(),
        made(),
        made(),
        made(),
        Ok(Told::Done),
        Ok(Told::Stat(stat())),
        Ok(Told::Done),
    ];
    let whole: Vec<Field<'_>> = [&[PATH], STAT].concat();
    let answered = [
        done("00000001", &[PATH]),
        done("0000000f", &whole),
        done("0000000f", &whole),
        done("0000000f", &whole),
        done("00000002", &[]),
        done("00000005", STAT),
        done("0000000d", &[]),
        END.to_vec(),
    ];
    let answered = answer(1, 9, 0, &answered.concat());
    let mut world = World::open();
    world.one(&request(1, 14, &fields), &Act::All(items), Ok(Told::Many(told)), &answered);
}

#[test]
fn if_one_fails_each_says_so() {
    let (fields, items) = writes();
    let told = vec![
        Err(Failure::NotDone),
        Err(Failure::NotDone),
        Err(Failure::Exists),
        Err(Failure::NotTried),
        Err(Failure::NotTried),
        Err(Failure::NotTried),
        Err(Failure::NotTried),
    ];
    let later = undone("fffffffe");
    let answered = [
        &undone("00000000")[..],
        &undone("00000000"),
        &undone("ffffff92"),
        &later,
        &later,
        &later,
        &later,
        &END,
    ];
    let answered = answer(1, 9, 0, &answered.concat());
    let mut world = World::open();
    world.one(&request(1, 14, &fields), &Act::All(items.clone()), Ok(Told::Many(told)), &answered);
    // All of it may be too much.
    let quota = answer(2, 9, -125, &[]);
    world.one(&request(2, 14, &fields), &Act::All(items), Err(Failure::Quota), &quota);
}

#[test]
fn what_cannot_be_asked_is_refused_in_its_place() {
    let mut world = World::open();
    let bad = ("path", "00000001 61");
    let fields = [
        element("00000002", &[PATH, VERSION]),
        element("00000002", &[bad, VERSION]),
        element("00000002", &[bad, VERSION]),
        create("00000001", "00000009"),
        END.to_vec(),
    ];
    let answered =
        [&undone("00000000")[..], &undone("fffffff8"), &undone("fffffffe"), &undone("fffffffe")];
    let answered = [&answered.concat()[..], &END].concat();
    world.at_once(&request(1, 14, &fields.concat()), &answer(1, 0, 0, &answered));
    world.at_once(&request(2, 14, &END), &answer(2, 0, 0, &END));
    world.at_once(&request(2, 22, &END), &answer(2, 0, 0, &END));
}

#[test]
fn reads_stand_each_by_itself_and_are_not_watched() {
    let path = || "/a".to_string();
    let watch = ("watch", "01");
    let fields = [
        element("00000004", &[PATH, watch]),
        element("00000004", &[("path", "00000001 61"), watch]),
        element("00000008", &[PATH, watch]),
        element("00000004", &[PATH, watch]),
        END.to_vec(),
    ];
    let act = Act::Each(vec![
        Item::Get { path: path(), watch: false },
        Item::Children { path: path(), watch: false },
        Item::Get { path: path(), watch: false },
    ]);
    let told = vec![
        Ok(Told::Data { data: Some(Bytes::from_static(b"hi")), stat: stat() }),
        Ok(Told::Children { names: vec!["b".to_string()], stat: stat() }),
        Err(Failure::NoAuth),
    ];
    let answered = [
        done("00000004", &[&[DATA], STAT].concat()),
        undone("fffffff8").to_vec(),
        done("00000008", &[("count", "00000001"), ("b", "00000001 62")]),
        undone("ffffff9a").to_vec(),
        END.to_vec(),
    ];
    let mut world = World::open();
    let answered = answer(1, 9, 0, &answered.concat());
    world.one(&request(1, 22, &fields.concat()), &act, Ok(Told::Many(told)), &answered);
}

#[test]
fn what_is_no_multi_is_malformed() {
    let mut world = World::open();
    let set_acl = element("00000007", &[PATH]);
    let read = element("00000004", &[PATH, ("watch", "00")]);
    let written = element("00000002", &[PATH, VERSION]);
    for (opcode, wrong) in [(14, &set_acl), (14, &read), (22, &written)] {
        let fields = [&wrong[..], &END].concat();
        world.at_once(&request(1, opcode, &fields), &answer(1, 0, -5, &[]));
    }
    world.at_once(&request(2, 14, &written), &answer(2, 0, -5, &[]));
    world.at_once(&request(2, 14, &header("00000002")), &answer(2, 0, -5, &[]));
    world.at_once(&request(2, 14, &[]), &answer(2, 0, -5, &[]));
}
