//! How connections begin.

use crate::wire::{frame, framed};
use crate::world::{
    CONNECT, PASSWORD, REGISTERS, SESSION, TREES, World, hex, keyspace, opened, refused,
};
use quorate_kernel::ids::LaneId;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::tree::{Connect, SessionEvent, Zxid};
use quorate_kernel::watch::Event;

const OPENED: &[(&str, &str)] = &[
    ("protocol version", "00000000"),
    ("time-out", "00002710"),
    ("session", "010000000000002a"),
    ("password", "00000010 30313233343536373839616263646566"),
];

const EXPIRED: &[(&str, &str)] = &[
    ("protocol version", "00000000"),
    ("time-out", "00000000"),
    ("session", "0000000000000000"),
    ("password", "00000010 00000000000000000000000000000000"),
];

const READ_ONLY: &[(&str, &str)] = &[("read only", "00")];

/// A client that goes on with its session.
const AGAIN: &[(&str, &str)] = &[
    ("protocol version", "00000000"),
    ("last zxid seen", "000000010000002a"),
    ("time-out", "00007530"),
    ("session", "010000000000002a"),
    ("password", "00000010 30313233343536373839616263646566"),
    ("read only", "01"),
];

fn expired() -> Outcome {
    Outcome::More(vec![Event::Session(SessionEvent::Expired)])
}

#[test]
fn a_new_client_is_given_a_session() {
    let mut world = World::default();
    world.receive(&frame(CONNECT));
    let connect = Connect {
        session: None,
        timeout_ms: 10_000,
        seen: Zxid(0),
        peer: Some([10, 0, 0, 1].into()),
    };
    let [(_, lane, asked)] = world.asked.watches[..] else { panic!("a session was asked for") };
    assert_eq!((lane, asked), (LaneId(2), connect));
    assert!(!world.session.wants_input(), "nothing is asked for before there is a session");
    assert!(world.take().is_empty());
    world.tell(opened());
    assert_eq!(hex(&world.take()), hex(&frame(&[OPENED, READ_ONLY].concat())));
    assert!(world.session.wants_input() && !world.session.is_closing());
}

#[test]
fn an_old_client_is_answered_without_the_last_byte() {
    let mut world = World::default();
    world.receive(&frame(&CONNECT[..5]));
    world.tell(opened());
    assert_eq!(hex(&world.take()), hex(&frame(OPENED)));
    let mut world = World::default();
    world.receive(&frame(&CONNECT[..5]));
    world.tell(expired());
    assert_eq!(hex(&world.take()), hex(&frame(EXPIRED)));
}

#[test]
fn a_client_goes_on_with_its_session_or_hears_that_it_has_none() {
    let mut world = World::default();
    world.receive(&frame(AGAIN));
    let connect = Connect {
        session: Some((SESSION, PASSWORD)),
        timeout_ms: 30_000,
        seen: Zxid(0x1_0000_002a),
        peer: Some([10, 0, 0, 1].into()),
    };
    assert_eq!(world.asked.watches[0].2, connect);
    world.tell(opened());
    assert_eq!(hex(&world.take()), hex(&frame(&[OPENED, READ_ONLY].concat())));

    for outcome in [expired(), refused(Refusal::NoSession)] {
        let mut world = World::default();
        world.receive(&frame(AGAIN));
        world.tell(outcome);
        assert_eq!(hex(&world.take()), hex(&frame(&[EXPIRED, READ_ONLY].concat())));
        assert!(world.is_over());
    }
}

#[test]
fn a_password_of_another_length_is_that_of_no_session() {
    let mut world = World::default();
    let mut fields = AGAIN.to_vec();
    fields[4] = ("password", "00000011 3031323334353637383961626364656600");
    world.receive(&frame(&fields));
    assert!(world.asked.watches.is_empty());
    assert_eq!(hex(&world.take()), hex(&frame(&[EXPIRED, READ_ONLY].concat())));
    assert!(world.is_over());
    // A new client may show none.
    let mut world = World::default();
    let mut fields = CONNECT.to_vec();
    fields[4] = ("password", "ffffffff");
    world.receive(&frame(&fields));
    assert_eq!(world.asked.watches[0].2.session, None);
}

#[test]
fn numbers_below_0_say_nothing() {
    let mut world = World::default();
    let mut fields = CONNECT.to_vec();
    fields[1] = ("last zxid seen", "ffffffffffffffff");
    fields[2] = ("time-out", "80000000");
    world.receive(&frame(&fields));
    let Connect { timeout_ms, seen, .. } = world.asked.watches[0].2;
    assert_eq!((timeout_ms, seen), (0, Zxid(0)));
}

#[test]
fn the_keyspace_is_the_first_that_has_a_tree() {
    let lane = |keyspaces| {
        let mut world = World::serving(keyspaces);
        world.receive(&frame(CONNECT));
        world.asked.watches.first().map(|(_, lane, _)| *lane)
    };
    let trees = |number| keyspace("trees", number, &TREES);
    assert_eq!(lane(vec![trees(3), None, trees(4)]), Some(LaneId(3)));
    assert_eq!(lane(vec![keyspace("a", 4, &REGISTERS), trees(3)]), Some(LaneId(3)));
    assert_eq!(lane(vec![None, keyspace("a", 1, &REGISTERS)]), None);
}

#[test]
fn without_a_tree_or_the_service_the_connection_is_closed() {
    let mut world = World::serving(vec![keyspace("a", 1, &REGISTERS)]);
    world.receive(&frame(CONNECT));
    assert!(world.is_over() && world.asked.watches.is_empty());
    for why in [Refusal::Stopping, Refusal::Overloaded, Refusal::OutcomeUnknown, Refusal::NotOpen] {
        let mut world = World::default();
        world.receive(&frame(CONNECT));
        world.tell(refused(why));
        assert!(world.is_over());
    }
}

#[test]
fn half_a_request_waits_and_one_that_is_none_closes() {
    let whole = frame(CONNECT);
    for end in 0..whole.len() {
        let mut world = World::default();
        world.receive(&whole[..end]);
        assert!(world.session.wants_input() && world.asked.watches.is_empty());
        assert_eq!(world.session.is_waiting_for_rest(&world.input), end > 0);
        let begun = if end >= 4 { whole.len() } else { end };
        assert_eq!(world.session.begun_bytes(&world.input), begun);
        world.receive(&whole[end..]);
        assert_eq!(world.asked.watches.len(), 1);
    }
    for end in 4..whole.len() - 1 {
        let mut world = World::default();
        world.receive(&framed(&whole[4..end]));
        assert!(world.is_over(), "{end} bytes are not enough");
    }
}

#[test]
fn a_host_that_ends_lets_who_connects_know_first() {
    let mut world = World::default();
    world.receive(&frame(CONNECT));
    world.session.finish();
    assert!(!world.session.is_closing());
    world.tell(opened());
    assert!(!world.take().is_empty() && world.is_over());
}
