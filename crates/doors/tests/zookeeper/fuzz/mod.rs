//! The door under many requests of its own format: each opcode with any fields that it may have,
//! the same changed at random, and a host behind that answers in any order, fails, and ends things.
//!
//! | file | what it holds |
//! |---|---|
//! | `honest.rs` | well-formed requests, and what each must ask of the engine |
//! | `harm.rs` | what is changed in them |
//! | `host.rs` | the host behind the door, and what must hold whatever comes |
//!
//! Each test takes so many cases that it ends soon. Longer: `make fuzz`, which sets the variable
//! below. What a case does follows from its number alone, and a failure names it.

mod harm;
mod honest;
mod host;

use crate::hostile::told;
use crate::wire::{frame, split};
use crate::world::{CONNECT, Known, World, door, keyspace, opened, replied};
use crate::world::{REGISTERS, TREES};
use harm::harm;
use honest::{OPCODES, request};
use host::Host;
use quorate_doors::Protocol;
use quorate_kernel::limits::JUTE_FRAME_BYTES_MAX;
use quorate_kernel::rng::Rng;
use quorate_kernel::tree::Act;

/// How often each test takes as many cases as it does by itself, and other ones each time.
const ROUNDS: &str = "QUORATE_ZOOKEEPER_ROUNDS";

/// Runs so many cases, or more where that is asked for. A case that panics is named.
fn each_case(count: u64, case: impl Fn(&mut Rng)) {
    let set = std::env::var(ROUNDS).ok();
    let rounds: u64 = set
        .map_or(1, |text| text.parse().unwrap_or_else(|_| panic!("{ROUNDS} is no number: {text}")));
    for seed in 0..rounds * count {
        let _named = Named(seed);
        case(&mut Rng::new(seed));
    }
}

/// Says which case was under way, if that panics.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("it was case {}", self.0);
        }
    }
}

/// A new connection at a door, before anything came.
fn at(door: Box<dyn Protocol>) -> World {
    World::at(door, vec![keyspace("default", 1, &REGISTERS), keyspace("trees", 2, &TREES)])
}

/// What a word of a new connection answers.
fn word(door: Box<dyn Protocol>, word: &[u8; 4]) -> (Box<dyn Protocol>, String) {
    let mut world = at(door);
    world.receive(word);
    let text = String::from_utf8_lossy(&world.take()).into_owned();
    let World { door, session, .. } = world;
    drop(session);
    (door, text)
}

#[test]
fn what_is_well_formed_is_asked_as_it_was_meant_and_answered_in_its_form() {
    let asked = std::cell::RefCell::new(std::collections::BTreeSet::new());
    each_case(3_000, |rng| {
        let mut world = World::open();
        let opcode = *rng.pick(&OPCODES).expect("there are some");
        let request = request(opcode, rng);
        world.receive(&request.bytes);
        let Some(act) = &request.act else {
            assert!(world.asked.operations.is_empty(), "{request:?}");
            assert_eq!(host::header(&split(&world.take()).0[0]).0, request.xid);
            return;
        };
        assert_eq!(world.act(), act, "{request:?}");
        let told = told(act);
        let code = host::code_of(act, &told);
        world.complete(0, replied(9, told));
        let output = world.take();
        let (frames, rest) = split(&output);
        assert!(rest.is_empty() && frames.len() == 1, "{request:?}");
        let zxid = if matches!(act, Act::Authenticate { .. }) { 0 } else { 9 };
        assert_eq!(host::header(&frames[0]), (request.xid, zxid, code), "{request:?}");
        assert_eq!(world.session.is_closing(), *act == Act::Close || code == -115);
        asked.borrow_mut().insert(opcode);
    });
    let asked = asked.into_inner();
    assert!(OPCODES.iter().all(|opcode| asked.contains(opcode)), "each is asked: {asked:?}");
}

#[test]
fn whatever_is_changed_is_answered_in_order_or_ends_its_connection_alone() {
    let harmed = std::cell::Cell::new(0u64);
    each_case(3_000, |rng| {
        let mut bytes = frame(CONNECT);
        if rng.below(8) == 0 {
            harm(&mut bytes, rng);
        }
        for _ in 0..rng.below(12) {
            let opcode = *rng.pick(&OPCODES).expect("there are some");
            let mut one = request(opcode, rng).bytes;
            if rng.below(3) == 0 {
                harm(&mut one, rng);
                harmed.set(harmed.get() + 1);
            }
            bytes.extend(one);
        }
        let mut host = Host::new(at(door(Box::new(Known))), &bytes);
        host.run(rng);
        let world = host.end(rng);
        // Whoever comes next finds nothing of it.
        let World { door, session, .. } = world;
        drop(session);
        let (door, known) = word(door, b"mntr");
        assert!(known.contains("zk_outstanding_requests\t0\n"), "{known}");
        let mut next = at(door);
        next.receive(&frame(CONNECT));
        next.tell(opened());
        assert_eq!(split(&next.take()).0.len(), 1, "another client is served");
    });
    assert!(harmed.get() >= 1_000, "{} were changed", harmed.get());
}

#[test]
fn a_frame_of_any_length_takes_no_more_room_than_its_limit() {
    each_case(300, |rng| {
        let mut world = World::open();
        let limit = JUTE_FRAME_BYTES_MAX as u64;
        let length = match rng.below(4) {
            0 => rng.between(limit - 2, limit + 2),
            1 => rng.next() as u32 as u64,
            2 => limit + 1,
            _ => rng.below(limit),
        } as u32;
        let came = rng.below(64) as usize;
        let mut bytes = length.to_be_bytes().to_vec();
        bytes.extend((0..came).map(|_| rng.next() as u8));
        world.receive(&bytes);
        let begun = world.session.begun_bytes(&world.input);
        assert!(begun <= 4 + JUTE_FRAME_BYTES_MAX && world.asked.operations.len() <= 1);
        if u64::from(length) > limit {
            assert!(world.is_over(), "{length} bytes are no frame");
            assert!(world.input.is_empty(), "nothing of it is kept");
        } else if length as usize > came {
            assert_eq!(begun, 4 + length as usize, "its room is known before it comes");
            assert!(world.session.is_waiting_for_rest(&world.input));
        }
    });
}
