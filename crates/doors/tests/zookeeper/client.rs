//! The client's side of the wire, against the door and byte for byte.

use crate::wire::{about, answer, close, frame, request};
use crate::world::{SESSION, STAT, World, hex, opened, stat};
use bytes::{Bytes, BytesMut};
use quorate_doors::zookeeper::client::{self, AUTH_XID, NO_NODE, NodeQuestion, Said, ServerAnswer};
use quorate_kernel::tree::{Acl, Act, Failure, Id, Item, Kind, SessionId, Told};

fn path() -> String {
    "/a".to_string()
}

/// The answer that a server has sent.
fn read(bytes: &[u8]) -> ServerAnswer {
    let mut input = BytesMut::from(bytes);
    let said = client::next(&mut input, false).expect("a server says it");
    assert!(input.is_empty());
    let Some(Said::Answer(answer)) = said else { panic!("{said:?}") };
    answer
}

#[test]
fn a_session_is_asked_for_and_given() {
    let mut world = World::default();
    world.receive(&client::connect(10_000));
    let [(_, _, asked)] = world.asked.watches[..] else { panic!("a session was asked for") };
    assert_eq!((asked.session, asked.timeout_ms), (None, 10_000));
    world.tell(opened());
    let mut input = BytesMut::from(&world.take()[..]);
    let connected = Said::Connected { session: SESSION, timeout_ms: 10_000 };
    assert_eq!(client::next(&mut input, true), Ok(Some(connected)));
    assert!(input.is_empty());
}

#[test]
fn nodes_are_asked_for_and_read() {
    let mut world = World::open();
    let ask = |xid, question: &NodeQuestion| client::request(xid, question);
    let (data, act) = (Some(Bytes::from_static(b"hi")), |item| Act::One(item));
    let told = Ok(Told::Data { data: data.clone(), stat: stat() });
    let bytes = answer(1, 9, 0, &[&[("data", "00000002 6869")], STAT].concat());
    let get = act(Item::Get { path: path(), watch: false });
    world.one(&ask(1, &NodeQuestion::Data(path())), &get, told, &bytes);
    let told = read(&bytes);
    assert_eq!((told.xid, told.code, told.data()), (1, 0, Ok((data, stat()))));

    let names = vec!["b".to_string(), "cd".to_string()];
    let told = Ok(Told::Children { names: names.clone(), stat: stat() });
    let fields = [("count", "00000002"), ("b", "00000001 62"), ("cd", "00000002 6364")];
    let bytes = answer(2, 9, 0, &fields);
    let list = act(Item::Children { path: path(), watch: false });
    world.one(&ask(2, &NodeQuestion::Children(path())), &list, told, &bytes);
    assert_eq!(read(&bytes).children(), Ok(names));

    let id = Id { scheme: "digest".to_string(), id: "u:x".to_string() };
    let acl = vec![Acl { permissions: 31, id }];
    let fields = [
        ("count", "00000001"),
        ("permissions", "0000001f"),
        ("scheme", "00000006 646967657374"),
        ("id", "00000003 753a78"),
    ];
    let bytes = answer(3, 9, 0, &[&fields, STAT].concat());
    let told = Ok(Told::Acl { acl: acl.clone(), stat: stat() });
    let get = act(Item::GetAcl { path: path() });
    world.one(&ask(3, &NodeQuestion::Acl(path())), &get, told, &bytes);
    assert_eq!(read(&bytes).acl(), Ok(acl));

    let bytes = answer(4, 9, NO_NODE, &[]);
    let list = act(Item::Children { path: path(), watch: false });
    let question = NodeQuestion::Children(path());
    world.one(&ask(4, &question), &list, Err(Failure::NoNode), &bytes);
    assert_eq!((read(&bytes).code, client::error(NO_NODE)), (NO_NODE, "NoNode"));
    assert!(read(&bytes).children().is_err(), "it has none");
}

#[test]
fn whoever_asks_is_shown_and_the_session_ends() {
    let question = NodeQuestion::Authenticate("digest".into(), Bytes::from_static(b"u:x"));
    let fields = [
        ("type", "00000000"),
        ("scheme", "00000006 646967657374"),
        ("credential", "00000003 753a78"),
    ];
    let shown = client::request(7, &question);
    assert_eq!(hex(&shown), hex(&request(AUTH_XID, 100, &fields)), "its number is its own");
    assert_eq!(hex(&client::request(8, &NodeQuestion::Close)), hex(&close(8)));
    assert_eq!(hex(&client::request(9, &NodeQuestion::Acl(path()))), hex(&about(9, 6, "/a", &[])));
}

#[test]
fn what_comes_in_pieces_is_read_when_it_is_whole_and_nonsense_is_refused() {
    let bytes = answer(1, 9, 0, &[("count", "00000000")]);
    let mut input = BytesMut::new();
    for byte in &bytes[..bytes.len() - 1] {
        input.extend_from_slice(&[*byte]);
        assert_eq!(client::next(&mut input, false), Ok(None));
    }
    input.extend_from_slice(&bytes[bytes.len() - 1..]);
    let said = client::next(&mut input, false);
    let Ok(Some(Said::Answer(told))) = said else { panic!("{said:?}") };
    assert_eq!(told.children(), Ok(vec![]));
    let event = frame(&[("xid", "ffffffff"), ("zxid", "ffffffffffffffff"), ("code", "00000000")]);
    assert_eq!(client::next(&mut BytesMut::from(&event[..]), false), Ok(Some(Said::Event)));
    for bad in [&b"\xff\xff\xff\xff"[..], b"\x7f\xff\xff\xff", b"\0\0\0\x01\0"] {
        assert!(client::next(&mut BytesMut::from(bad), false).is_err(), "{bad:?}");
    }
}

#[test]
fn owners_that_are_no_sessions_say_which_kind_of_node_it_is() {
    for (owner, kind) in [
        (0, Kind::Persistent),
        (0x0100_0000_0000_002a, Kind::Ephemeral),
        (0x8000_0000_0000_0000, Kind::Container),
        (0xff00_0000_0000_2710, Kind::Ttl(10_000)),
    ] {
        assert_eq!(client::kind(SessionId(owner)), kind, "{owner:x}");
    }
}
