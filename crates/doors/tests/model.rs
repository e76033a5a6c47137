//! A pipeline whose operations end in any order gives the replies of one command after the other.

mod common;

use common::World;
use proptest::prelude::*;
use quorate_kernel::rng::Rng;

fn key() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "d", "e"])
}

fn command() -> impl Strategy<Value = String> {
    let value = 0..1000u32;
    prop_oneof![
        4 => (key(), value.clone()).prop_map(|(k, v)| format!("SET {k} {v}")),
        4 => key().prop_map(|k| format!("GET {k}")),
        2 => key().prop_map(|k| format!("DEL {k}")),
        1 => (key(), key(), value).prop_map(|(k, l, v)| format!("MSET {k} {v} {l} {v}9 {k} {v}8")),
        1 => (key(), key()).prop_map(|(k, l)| format!("MGET {k} {l} {k}")),
        1 => (key(), key()).prop_map(|(k, l)| format!("DEL {k} {l} {k}")),
        1 => (key(), key()).prop_map(|(k, l)| format!("EXISTS {k} {l}")),
        1 => key().prop_map(|k| format!("STRLEN {k}")),
        1 => Just(String::from("KEYS *")),
        1 => Just(String::from("DBSIZE")),
        1 => Just(String::from("RANDOMKEY")),
        1 => Just(String::from("SCAN 0 COUNT 2")),
        1 => Just(String::from("PING")),
        1 => Just(String::from("HELLO 3")),
        1 => Just(String::from("RESET")),
        1 => Just(String::from("SELECT other")),
        1 => Just(String::from("CLIENT REPLY SKIP")),
        1 => Just(String::from("INCR a")),
        1 => Just(String::from("NOSUCH 'x y'")),
    ]
}

/// One command after the other, each answered before the next is sent.
fn one_by_one(commands: &[String]) -> Vec<u8> {
    let mut world = World::default();
    let mut replies = Vec::new();
    for line in commands {
        replies.extend_from_slice(world.ask(line).as_bytes());
    }
    replies
}

/// All at once in pieces, operations ending and replies taken in an order drawn from the seed.
fn shuffled(commands: &[String], seed: u64) -> Vec<u8> {
    let mut world = World::default();
    let mut rng = Rng::new(seed);
    let bytes: String = commands.iter().map(|line| format!("{line}\r\n")).collect();
    let (mut rest, mut replies) = (bytes.as_bytes(), Vec::new());
    while !rest.is_empty() || !world.started.0.is_empty() || !world.session.is_idle() {
        match rng.below(3) {
            0 => {
                let length = rng.below(40).min(rest.len() as u64) as usize;
                let (piece, later) = rest.split_at(length);
                rest = later;
                world.receive(piece);
            }
            1 if !world.started.0.is_empty() => {
                let index = rng.below(world.started.0.len() as u64) as usize;
                world.complete(index);
            }
            _ => replies.extend_from_slice(&world.take()),
        }
    }
    replies.extend_from_slice(&world.take());
    replies
}

proptest! {
    #[test]
    fn any_order_of_outcomes_gives_the_replies_of_one_by_one(
        commands in prop::collection::vec(command(), 0..40),
        seed: u64,
    ) {
        let expected = String::from_utf8(one_by_one(&commands)).expect("text");
        let got = String::from_utf8(shuffled(&commands, seed)).expect("text");
        prop_assert_eq!(got, expected);
    }
}
