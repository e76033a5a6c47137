//! In which order answers and events leave, and how much may wait.

use crate::wire::{about, answer, event, get, ping, request, split};
use crate::world::{SESSION, World, changed, hex, replied, stat};
use bytes::Bytes;
use quorate_kernel::limits::{
    CLIENT_OPERATIONS_MAX, CLIENT_PENDING_BYTES_MAX, CLIENT_QUEUE_BYTES_MAX, CLIENT_READ_BYTES_MAX,
};
use quorate_kernel::operation::Outcome;
use quorate_kernel::rng::Rng;
use quorate_kernel::tree::{Act, Failure, Item, Told, What};

/// No such node: the shortest answer.
fn absent() -> Outcome {
    replied(9, Err(Failure::NoNode))
}

fn not_there(xid: i32) -> Vec<u8> {
    answer(xid, 9, -101, &[])
}

/// Sends reads of a path, watched or not, numbered from 1.
fn reading(paths: &[(&str, bool)]) -> World {
    let mut world = World::open();
    for (xid, (path, watch)) in (1..).zip(paths) {
        world.receive(&get(xid, path, *watch));
    }
    assert_eq!(world.asked.operations.len(), paths.len(), "all are in hand at once");
    world
}

#[test]
fn answers_leave_in_the_order_of_requests() {
    let mut world = World::open();
    for xid in 1..=3 {
        world.receive(&get(xid, "/a", false));
    }
    world.receive(&ping());
    world.receive(&request(4, 16, &[]));
    // The ping, the third read, then the second, and at last the first.
    for index in [3, 2, 1] {
        world.complete(index, absent());
        assert!(world.take().is_empty(), "the first is not answered");
    }
    world.complete(0, absent());
    let pong = answer(-2, 9, -101, &[]);
    let all = [not_there(1), not_there(2), not_there(3), pong, answer(4, 0, -123, &[])];
    assert_eq!(hex(&world.take()), hex(&all.concat()));
    assert_eq!(world.session.held_bytes(), 0);
}

#[test]
fn an_outcome_counts_once() {
    let mut world = reading(&[("/a", false), ("/b", false), ("/c", false)]);
    let number = world.asked.operations[1].0;
    world.complete(1, absent());
    world.complete_number(number, replied(9, Ok(Told::Done)));
    world.complete(0, absent());
    world.complete_number(number, absent());
    assert_eq!(hex(&world.take()), hex(&[not_there(1), not_there(2)].concat()));
    world.complete(0, absent());
    assert_eq!(hex(&world.take()), hex(&not_there(3)));
}

#[test]
fn an_event_is_before_every_answer_that_comes_later() {
    let mut world = reading(&[("/a", false), ("/a", false), ("/a", false)]);
    world.complete(1, absent());
    world.tell(changed("/a", What::Data));
    assert_eq!(hex(&world.take()), hex(&event(3, "/a")), "it does not wait for an answer");
    world.complete(0, absent());
    world.complete(0, absent());
    assert_eq!(hex(&world.take()), hex(&[not_there(1), not_there(2), not_there(3)].concat()));
}

#[test]
fn an_event_is_behind_the_answer_from_which_on_its_node_is_watched() {
    let watched: [(&str, Vec<u8>, Outcome, Vec<u8>); 5] = [
        ("/a", get(2, "/a", true), absent(), not_there(2)),
        ("/a", about(2, 3, "/a", &[("watch", "01")]), absent(), not_there(2)),
        ("/a", about(2, 8, "/a", &[("watch", "01")]), absent(), not_there(2)),
        (
            "/a/b",
            about(2, 106, "/a", &[("recursive", "00000001")]),
            replied(9, Ok(Told::Done)),
            answer(2, 9, 0, &[("error", "00000000")]),
        ),
        (
            "/b",
            request(2, 101, &[("zxid", "0000000000000001"), ("none", "000000000000000000000000")]),
            replied(9, Ok(Told::Done)),
            answer(2, 9, 0, &[]),
        ),
    ];
    for (path, begins, outcome, answered) in watched {
        let mut world = World::open();
        world.receive(&get(1, "/x", false));
        world.receive(&begins);
        world.receive(&get(3, "/a", false));
        world.complete(1, outcome);
        world.tell(changed(path, What::Data));
        world.tell(changed("/other/node", What::Data));
        let at_once = world.take();
        world.complete(1, absent());
        world.complete(0, absent());
        let later = world.take();
        let is_every = path == "/b";
        let other = event(3, "/other/node");
        let (first, second) = if is_every { (vec![], other) } else { (other, vec![]) };
        assert_eq!(hex(&at_once), hex(&first), "an event of another node is not held back");
        let rest = [not_there(1), answered, event(3, path), second, not_there(3)].concat();
        assert_eq!(hex(&later), hex(&rest));
        assert_eq!(world.session.held_bytes(), 0);
    }
}

#[test]
fn an_event_waits_for_no_answer_that_was_known_without_the_engine() {
    let mut world = reading(&[("/a", true)]);
    world.receive(&request(2, 16, &[]));
    world.tell(changed("/a", What::Data));
    assert_eq!(hex(&world.take()), hex(&event(3, "/a")));
}

/// Whatever order outcomes and events come in, what is said of them in `queue` holds.
#[test]
fn any_order_keeps_the_promises() {
    const PATHS: [&str; 3] = ["/a", "/b", "/c"];
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let mut world = World::open();
        // What came from the engine, in this order: answers by xid, events by their number.
        let (mut came, mut left, mut events, mut xid) = (Vec::new(), Vec::new(), 0, 0);
        let mut watches: Vec<(i32, usize)> = Vec::new();
        for _ in 0..60 {
            match rng.below(3) {
                0 => {
                    xid += 1;
                    let path = rng.below(3) as usize;
                    let watch = rng.below(2) == 0;
                    if watch {
                        watches.push((xid, path));
                    }
                    world.receive(&get(xid, PATHS[path], watch));
                }
                1 if !world.asked.operations.is_empty() => {
                    let index = rng.below(world.asked.operations.len() as u64) as usize;
                    // Operations are numbered from 0 in their order, requests from 1.
                    came.push((world.asked.operations[index].0 as i32 + 1, 0, 0));
                    world.complete(index, absent());
                }
                _ => {
                    events += 1;
                    let path = rng.below(3) as usize;
                    came.push((-1, events, path));
                    world.tell(changed(PATHS[path], What::Data));
                }
            }
            left.extend_from_slice(&world.take());
        }
        while !world.asked.operations.is_empty() {
            came.push((world.asked.operations[0].0 as i32 + 1, 0, 0));
            world.complete(0, absent());
        }
        left.extend_from_slice(&world.take());
        check(&came, &watches, &left, xid);
    }
}

/// Checks what left against what came.
fn check(came: &[(i32, i32, usize)], watches: &[(i32, usize)], left: &[u8], last: i32) {
    let (frames, rest) = split(left);
    assert!(rest.is_empty());
    let xid = |frame: &Vec<u8>| i32::from_be_bytes(frame[..4].try_into().expect("4 bytes"));
    let order: Vec<i32> = frames.iter().map(xid).collect();
    let answers: Vec<i32> = order.iter().copied().filter(|xid| *xid > 0).collect();
    assert_eq!(answers, (1..=last).collect::<Vec<i32>>());
    let told = came.iter().filter(|(xid, ..)| *xid < 0).count();
    assert_eq!(order.len(), last as usize + told, "each event leaves once");
    // An answer to a watched read that came before an event of its node leaves before it. Events of
    // one node look alike, so they are counted.
    for (at, (_, _, path)) in came.iter().enumerate().filter(|(_, (xid, ..))| *xid < 0) {
        let name = b"abc"[*path];
        let is_of = |frame: &Vec<u8>| xid(frame) < 0 && frame.last() == Some(&name);
        let before = came[..at].iter().filter(|(xid, _, other)| *xid < 0 && other == path).count();
        let places = frames.iter().enumerate().filter(|(_, frame)| is_of(frame));
        let place = places.map(|(place, _)| place).nth(before).expect("it has left");
        for (answer, ..) in came[..at].iter().filter(|(xid, ..)| *xid > 0) {
            if watches.contains(&(*answer, *path)) {
                assert!(order[..place].contains(answer), "the watch begins before its event");
            }
        }
        // An answer that came later leaves behind it, unless it holds back one of those.
        let begun = |xid: i32| watches.contains(&(xid, *path));
        let held = came[..at].iter().map(|(xid, ..)| *xid).filter(|xid| begun(*xid)).max();
        for (answer, ..) in came[at..].iter().filter(|(xid, ..)| *xid > held.unwrap_or(0)) {
            assert!(order[place..].contains(answer), "the event is before answer {answer}");
        }
    }
}

#[test]
fn requests_in_hand_are_bounded_and_go_on_by_themselves() {
    let mut world = World::open();
    // The session is one too, and there is room for a ping.
    let most = CLIENT_OPERATIONS_MAX - 2;
    let all: Vec<u8> = (0..2000).flat_map(|_| ping()).collect();
    world.receive(&all);
    assert_eq!(world.asked.operations.len(), most);
    assert!(!world.session.wants_input());
    world.complete(0, replied(9, Ok(Told::Done)));
    assert_eq!(world.asked.operations.len(), most, "one more was read");
    let mut answers = 1;
    while !world.asked.operations.is_empty() {
        world.complete(0, replied(9, Ok(Told::Done)));
        answers += 1;
    }
    assert_eq!(answers, 2000);
    assert_eq!(world.take().len(), 2000 * 20);
}

#[test]
fn bytes_of_requests_in_hand_are_bounded() {
    let mut world = World::open();
    let long = about(1, 5, "/a", &[("data", &crate::wire::text(&"v".repeat(900_000))), VERSION]);
    let mut sent = 0;
    while world.session.wants_input() {
        world.receive(&long);
        sent += 1;
    }
    assert!(sent * long.len() >= CLIENT_PENDING_BYTES_MAX);
    assert!(world.session.held_bytes() < CLIENT_PENDING_BYTES_MAX + long.len());
    world.complete(0, replied(9, Ok(Told::Stat(stat()))));
    assert!(world.session.wants_input());
}

const VERSION: crate::wire::Field<'_> = ("version", "ffffffff");

#[test]
fn a_client_that_takes_no_answers_is_not_read_from() {
    let mut world = World::open();
    let data = || Told::Data { data: Some(Bytes::from(vec![7; 500_000])), stat: stat() };
    world.receive(&get(1, "/a", false));
    world.complete(0, replied(9, Ok(data())));
    world.receive(&(2..1000).flat_map(|xid| get(xid, "/a", false)).collect::<Vec<u8>>());
    let ahead = world.asked.operations.len();
    assert!(ahead * 500_000 <= CLIENT_READ_BYTES_MAX, "{ahead} long answers may come");
    while !world.asked.operations.is_empty() {
        world.complete(0, replied(9, Ok(data())));
    }
    assert!(world.session.output().len() >= CLIENT_QUEUE_BYTES_MAX);
    assert!(world.session.held_bytes() <= CLIENT_READ_BYTES_MAX + 1_000_000);
    assert!(!world.session.wants_input());
    world.take();
    assert!(!world.asked.operations.is_empty(), "it goes on by itself");
    let act = Act::One(Item::Get { path: "/a".to_string(), watch: false });
    assert_eq!(world.asked.operations[0].2.act, act);
}

#[test]
fn a_client_that_is_not_read_is_kept_by_one_ping_at_a_time() {
    let mut world = reading(&[("/a", false)]);
    for _ in 0..2 {
        world.session.on_unread(&mut world.asked);
        assert_eq!(world.asked.operations.len(), 2);
        let (number, _, ask) = &world.asked.operations[1];
        assert_eq!((*number, ask.session, &ask.act), (u32::MAX - 1, Some(SESSION), &Act::Ping));
    }
    world.complete(1, replied(9, Ok(Told::Done)));
    assert!(world.take().is_empty(), "its client has not asked for it");
    world.session.on_unread(&mut world.asked);
    assert_eq!(world.asked.operations.len(), 2);
    world.complete(0, absent());
    assert_eq!(hex(&world.take()), hex(&not_there(1)));
    // Nothing is kept for who has no session yet, or no more.
    let mut world = World::default();
    world.session.on_unread(&mut world.asked);
    assert!(world.asked.operations.is_empty());
    let mut world = World::open();
    world.session.finish();
    world.session.on_unread(&mut world.asked);
    assert!(world.asked.operations.is_empty());
}
