//! What is watched, and events, byte for byte.

use crate::wire::{about, answer, event, request};
use crate::world::{World, changed, hex, opened, refused, replied};
use quorate_kernel::limits::{CLIENT_QUEUE_BYTES_MAX, CLIENT_READ_BYTES_MAX};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::tree::{Act, Failure, Followed, Refollow, SessionEvent, Told, What, Zxid};
use quorate_kernel::watch::Event;

fn path() -> String {
    "/a".to_string()
}

#[test]
fn each_event_has_its_type() {
    let mut world = World::open();
    let kinds = [
        (What::Created, "00000001"),
        (What::Deleted, "00000002"),
        (What::Data, "00000003"),
        (What::Children, "00000004"),
    ];
    for (what, kind) in kinds {
        world.tell(changed("/a", what));
        let fields = [("type", kind), ("state", "00000003"), ("path", "00000002 2f61")];
        let told = answer(-1, -1, 0, &fields);
        assert_eq!(hex(&world.take()), hex(&told));
    }
}

#[test]
fn nodes_are_watched_until_told_otherwise() {
    let mut world = World::open();
    for (mode, recursive) in [("00000000", false), ("00000001", true)] {
        let act = Act::Follow { path: path(), recursive };
        let watched = about(1, 106, "/a", &[("mode", mode)]);
        world.one(&watched, &act, Ok(Told::Done), &answer(1, 9, 0, &[("error", "00000000")]));
    }
    world.at_once(&about(2, 106, "/a", &[("mode", "00000002")]), &answer(2, 0, -5, &[]));
    world.at_once(&about(3, 106, "a", &[("mode", "00000001")]), &answer(3, 0, -8, &[]));
    let kinds = [
        ("00000001", Followed::Children),
        ("00000002", Followed::Data),
        ("00000003", Followed::Any),
        ("00000004", Followed::Persistent),
        ("00000005", Followed::Recursive),
    ];
    for (opcode, only_check) in [(17, true), (18, false)] {
        for (hex, kind) in kinds {
            let act = Act::Unfollow { path: path(), kind, only_check };
            let asked = about(4, opcode, "/a", &[("type", hex)]);
            world.one(&asked, &act, Ok(Told::Done), &answer(4, 9, 0, &[]));
            let absent = answer(4, 9, -121, &[]);
            world.one(&asked, &act, Err(Failure::NotFollowed), &absent);
        }
        world.at_once(&about(5, opcode, "/a", &[("type", "00000006")]), &answer(5, 0, -5, &[]));
    }
}

#[test]
fn what_was_watched_elsewhere_is_watched_again() {
    let mut world = World::open();
    let fields = [
        ("relative zxid", "0000000000000009"),
        ("data", "00000002 00000002 2f61 00000002 2f62"),
        ("exist", "00000001 00000002 2f63"),
        ("child", "ffffffff"),
        ("persistent", "00000001 00000002 2f64"),
        ("recursive", "00000001 00000001 2f"),
    ];
    let mut refollow = Refollow {
        seen: Zxid(9),
        data: vec!["/a".to_string(), "/b".to_string()],
        absent: vec!["/c".to_string()],
        ..Refollow::default()
    };
    let act = Act::Refollow(refollow.clone());
    world.one(&request(-8, 101, &fields[..4]), &act, Ok(Told::Done), &answer(-8, 9, 0, &[]));
    refollow.persistent = vec!["/d".to_string()];
    refollow.recursive = vec!["/".to_string()];
    let act = Act::Refollow(refollow);
    world.one(&request(-8, 105, &fields), &act, Ok(Told::Done), &answer(-8, 9, 0, &[]));
    // Its second half is no part of the older request, and must be there in the newer one.
    world.at_once(&request(-8, 105, &fields[..4]), &answer(-8, 0, -5, &[]));
    let bad = [fields[0], ("data", "00000001 00000001 61"), fields[2], fields[3]];
    world.at_once(&request(-8, 101, &bad), &answer(-8, 0, -8, &[]));
}

#[test]
fn the_end_of_the_session_ends_the_connection() {
    let expired = || Outcome::More(vec![Event::Session(SessionEvent::Expired)]);
    for outcome in [expired(), refused(Refusal::NoSession), refused(Refusal::OutcomeUnknown)] {
        let mut world = World::open();
        world.receive(&about(1, 4, "/a", &[("watch", "00")]));
        world.tell(changed("/a", What::Data));
        world.tell(outcome);
        assert_eq!(hex(&world.take()), hex(&event(3, "/a")), "what was told before is written");
        assert!(world.is_over());
        world.complete(0, replied(9, Err(Failure::NoNode)));
        world.tell(changed("/a", What::Data));
        world.tell(opened());
        assert!(world.is_over(), "nothing comes behind the end");
    }
}

#[test]
fn a_client_that_takes_nothing_loses_its_connection_and_holds_bounded_memory() {
    let mut world = World::open();
    let most = CLIENT_READ_BYTES_MAX + CLIENT_QUEUE_BYTES_MAX;
    let mut told = 0;
    while !world.session.is_closing() {
        world.tell(changed(&format!("/{}", "n".repeat(10_000)), What::Data));
        told += 1;
        assert!(world.session.held_bytes() <= most + 20_000);
    }
    assert!(told * 10_000 > most / 2, "it is waited for");
    assert_eq!(world.asked.unwatched.len(), 1);
    world.take();
    world.tell(changed("/a", What::Data));
    assert!(world.is_over());
}
