//! How connections end: by the client, by the engine, by the host.

use crate::wire::{about, answer, close, get, request};
use crate::world::{World, changed, hex, refused, replied};
use bytes::Bytes;
use quorate_doors::Shortage;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::time::Span;
use quorate_kernel::tree::{Act, Failure, SessionEvent, Told, What};
use quorate_kernel::watch::Event;

fn absent() -> Outcome {
    replied(9, Err(Failure::NoNode))
}

const DIGEST: &[crate::wire::Field<'_>] =
    &[("type", "00000000"), ("scheme", "00000006 646967657374"), ("credential", "00000003 753a70")];

#[test]
fn a_session_that_is_closed_is_answered_and_ends() {
    let expired = || Outcome::More(vec![Event::Session(SessionEvent::Expired)]);
    for (is_first, outcome) in
        [(true, expired()), (true, refused(Refusal::NoSession)), (false, expired())]
    {
        let mut world = World::open();
        world.receive(&[get(1, "/a", false), close(2), get(3, "/b", false)].concat());
        assert_eq!(world.asked.operations.len(), 2, "nothing is read behind it");
        assert_eq!(world.asked.operations[1].2.act, Act::Close);
        world.complete(0, absent());
        // The session ends by it, which may be told before or after.
        if is_first {
            world.tell(outcome.clone());
            assert!(!world.session.is_closing());
        }
        world.complete(0, replied(10, Ok(Told::Done)));
        let told = [answer(1, 9, -101, &[]), answer(2, 10, 0, &[])].concat();
        assert_eq!(hex(&world.take()), hex(&told));
        world.tell(outcome);
        assert!(world.is_over());
    }
}

#[test]
fn who_the_client_is_is_shown_to_the_engine() {
    let mut world = World::open();
    let (scheme, credential) = ("digest".to_string(), Bytes::from_static(b"u:p"));
    let act = Act::Authenticate { scheme, credential };
    world.one(&request(-4, 100, DIGEST), &act, Ok(Told::Done), &answer(-4, 0, 0, &[]));
    // Some clients number it like any other.
    world.one(&request(5, 100, DIGEST), &act, Ok(Told::Done), &answer(5, 0, 0, &[]));
}

#[test]
fn who_is_not_who_it_says_is_told_so_and_loses_its_connection() {
    for failure in [Failure::AuthFailed, Failure::Unimplemented, Failure::BadArguments] {
        let mut world = World::open();
        world.receive(&get(1, "/a", false));
        world.receive(&request(-4, 100, DIGEST));
        world.receive(&get(2, "/b", false));
        world.complete(1, replied(9, Err(failure)));
        assert!(!world.session.is_closing() && !world.session.wants_input());
        world.complete(0, absent());
        world.complete(0, absent());
        let told = [answer(1, 9, -101, &[]), answer(-4, 0, -115, &[])].concat();
        assert_eq!(hex(&world.take()), hex(&told));
        assert!(world.is_over());
    }
    let mut world = World::open();
    world.at_once(&request(-4, 100, &DIGEST[..2]), &answer(-4, 0, -115, &[]));
    assert!(world.is_over());
}

#[test]
fn an_unknown_outcome_ends_the_connection_behind_what_is_known() {
    let unknown = [
        refused(Refusal::OutcomeUnknown),
        refused(Refusal::Overloaded),
        refused(Refusal::Stopping),
        refused(Refusal::NotOpen),
        refused(Refusal::NoRoute),
        replied(9, Err(Failure::SessionMoved)),
        // What is no answer to a read.
        replied(9, Ok(Told::Done)),
        Outcome::Noted,
    ];
    for outcome in unknown {
        let mut world = World::open();
        for xid in 1..=4 {
            world.receive(&get(xid, "/a", false));
        }
        world.complete(3, absent());
        world.complete(1, outcome);
        assert!(!world.session.wants_input());
        assert!(!world.session.is_closing(), "the first one may be answered");
        world.complete(1, absent());
        world.complete(0, absent());
        assert_eq!(hex(&world.take()), hex(&answer(1, 9, -101, &[])));
        assert!(world.is_over());
        assert_eq!(world.session.held_bytes(), 0);
    }
}

#[test]
fn a_session_that_has_ended_is_told_by_its_requests() {
    for outcome in [refused(Refusal::NoSession), replied(0, Err(Failure::SessionExpired))] {
        let mut world = World::open();
        for xid in 1..=3 {
            world.receive(&get(xid, "/a", false));
        }
        world.complete(1, outcome);
        world.complete(0, absent());
        let told = [answer(1, 9, -101, &[]), answer(2, 0, -112, &[])].concat();
        assert_eq!(hex(&world.take()), hex(&told));
        assert!(world.is_over());
    }
}

#[test]
fn what_is_too_much_for_the_engine_has_a_code() {
    let what = "transaction";
    for (why, code) in [
        (Refusal::TooLarge { what, length: 2, limit: 1 }, -125),
        (Refusal::TooMany { count: 2, limit: 1 }, -125),
        (Refusal::Node(Failure::BadArguments), -8),
    ] {
        let mut world = World::open();
        world.receive(&about(1, 2, "/a", &[("version", "ffffffff")]));
        world.complete(0, refused(why));
        assert_eq!(hex(&world.take()), hex(&answer(1, 0, code, &[])));
        assert!(world.session.wants_input());
    }
}

#[test]
fn a_host_that_ends_answers_what_was_read() {
    for is_told_by_engine in [false, true] {
        let mut world = World::open();
        world.receive(&get(1, "/a", false));
        if is_told_by_engine {
            world.tell(refused(Refusal::Stopping));
        } else {
            world.session.finish();
        }
        world.receive(&get(2, "/a", false));
        assert!(!world.session.is_closing() && !world.session.wants_input());
        if !is_told_by_engine {
            world.tell(changed("/a", What::Data));
            assert_eq!(hex(&world.take()), hex(&crate::wire::event(3, "/a")));
        }
        world.complete(0, absent());
        assert_eq!(hex(&world.take()), hex(&answer(1, 9, -101, &[])));
        assert!(world.is_over());
    }
    let mut world = World::default();
    world.session.finish();
    assert!(world.is_over());
}

#[test]
fn a_request_without_room_or_end_ends_the_connection() {
    let (door, bytes, taken, limit) = ("zookeeper", 9, 8, 7);
    let memory = Shortage::Memory { door, bytes, taken, limit };
    for shortage in [memory, Shortage::Unfinished { since: Span::secs(1) }] {
        let mut world = World::open();
        world.receive(&get(1, "/a", false));
        world.receive(&get(2, "/a", false)[..9]);
        assert!(world.session.is_waiting_for_rest(&world.input));
        assert_eq!(world.session.begun_bytes(&world.input), get(2, "/a", false).len());
        world.session.refuse(&shortage);
        world.complete(0, absent());
        assert_eq!(hex(&world.take()), hex(&answer(1, 9, -101, &[])));
        assert!(world.is_over());
        assert!(world.door.turn_away(&shortage).is_empty(), "there are no words for it");
    }
}

#[test]
fn what_is_no_frame_ends_the_connection_and_harms_nothing_before_it() {
    let bad: [&[u8]; 6] = [
        &[0xff, 0xff, 0xff, 0xff],
        &[0x80, 0, 0, 0],
        &[0, 0x10, 0, 0],
        b"ruok",
        &[0, 0, 0, 0],
        &[0, 0, 0, 7, 0, 0, 0, 1, 0, 0, 0],
    ];
    for bytes in bad {
        let mut world = World::open();
        world.receive(&[&get(1, "/a", false)[..], bytes, &get(2, "/a", false)].concat());
        assert_eq!(world.asked.operations.len(), 1, "nothing is read behind it");
        assert!(!world.session.wants_input());
        world.complete(0, absent());
        assert_eq!(hex(&world.take()), hex(&answer(1, 9, -101, &[])));
        assert!(world.is_over());
    }
    let mut world = World::open();
    world.receive(&[0, 0x0f, 0xff, 0xff]);
    assert!(world.session.wants_input(), "so long a frame may come");
}
