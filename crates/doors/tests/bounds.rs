//! What one connection can take: operations, values, time.

mod common;

use bytes::Bytes;
use common::World;
use quorate_doors::Session as _;
use quorate_kernel::limits::{CLIENT_OPERATIONS_MAX, CLIENT_READ_BYTES_MAX, PIPELINE_COMMANDS_MAX};
use quorate_kernel::operation::Outcome;

#[test]
fn a_long_pipeline_is_held_back_and_resumed() {
    let mut world = World::default();
    let total = PIPELINE_COMMANDS_MAX * 3;
    let bytes: String = (0..total).map(|n| format!("SET k{n} v\r\n")).collect();
    world.receive(bytes.as_bytes());
    assert_eq!(world.started.0.len() + 1, PIPELINE_COMMANDS_MAX, "one is kept for a watch");
    assert!(!world.session.wants_input() && !world.input.is_empty());
    assert_eq!(world.settle(), b"+OK\r\n".repeat(total));
    assert!(world.session.wants_input() && world.session.is_idle());
}

#[test]
fn a_command_on_many_keys_takes_turns() {
    let mut world = World::default();
    let keys = CLIENT_OPERATIONS_MAX * 3;
    let line: String = (0..keys).map(|n| format!("$5\r\n{n:05}\r\n$1\r\nv\r\n")).collect();
    world.receive(format!("*{}\r\n$4\r\nMSET\r\n{line}PING\r\n", keys * 2 + 1).as_bytes());
    assert_eq!(world.started.0.len() + 1, CLIENT_OPERATIONS_MAX);
    assert_eq!(world.settle(), b"+OK\r\n+PONG\r\n");
    assert!(world.ask("DBSIZE").starts_with(':'));
    let line: String = (0..keys).map(|n| format!("$5\r\n{n:05}\r\n")).collect();
    world.receive(format!("*{}\r\n$6\r\nEXISTS\r\n{line}", keys + 1).as_bytes());
    assert_eq!(world.settle(), format!(":{keys}\r\n").as_bytes());
}

/// How many reads are under way follows from how long values were, and recovers when they are
/// short.
#[test]
fn large_values_are_read_few_at_a_time() {
    let mut world = World::default();
    let pipeline: String = (0..4000).map(|n| format!("GET k{n}\r\n")).collect();
    world.receive(pipeline.as_bytes());
    let (length, mut most) = (1 << 20, 0);
    assert!(world.started.0.len() < 100, "no value was seen yet");
    for n in 0..2000 {
        let (number, ..) = world.started.0.remove(0);
        let value = Bytes::from(vec![b'v'; if n < 200 { length } else { 10 }]);
        world.complete_with(number, Outcome::value(Some(value)));
        world.take();
        if n == 199 {
            let few = CLIENT_READ_BYTES_MAX / length + 1;
            assert!((1..=few).contains(&world.started.0.len()));
        }
        most = most.max(world.started.0.len());
    }
    assert!(most > CLIENT_OPERATIONS_MAX / 2, "short values: {most} at a time");
}

/// One request must not take the core's time, nor memory that nobody counts.
#[test]
fn long_patterns_and_many_names_are_refused() {
    let mut world = World::default();
    let long = "b".repeat(1025);
    let over = "-ERR pattern of 1025 bytes is over the limit of 1024\r\n";
    let asked = ["KEYS {}", "SCAN 0 MATCH {}", "CONFIG GET {}", "COMMAND LIST FILTERBY PATTERN {}"];
    for command in asked {
        assert_eq!(world.ask(&command.replace("{}", &long)), over, "{command}");
        assert!(!world.ask(&command.replace("{}", &long[1..])).starts_with('-'), "{command}");
    }
    let over = "-ERR 1025 names or patterns are over the limit of 1024\r\n";
    for command in ["COMMAND INFO", "COMMAND DOCS", "CONFIG GET"] {
        assert_eq!(world.ask(&format!("{command}{}", " get".repeat(1025))), over, "{command}");
        assert!(!world.ask(&format!("{command}{}", " get".repeat(1024))).starts_with('-'));
    }
    // Replies that wait for one before them are counted, and no more commands are read for them.
    let behind = |count: usize| format!("GET slow\r\n{}", "COMMAND\r\n".repeat(count));
    world.receive(behind(1000).as_bytes());
    assert!(world.session.held_bytes() < CLIENT_READ_BYTES_MAX + 64 * 1024);
    assert!(!world.session.wants_input());
    world.settle();
}

/// Of arguments without bytes it is their number that takes memory.
#[test]
fn the_places_of_many_arguments_and_values_count_as_memory() {
    let mut world = World::default();
    let count = 10_000;
    let empty = "$0\r\n\r\n".repeat(count - 1);
    world.receive(format!("*{}\r\n$4\r\nMGET\r\n{empty}", count + 1).as_bytes());
    let begun = world.session.begun_bytes(&world.input);
    assert!(begun > empty.len() + 8 * (count - 10), "{begun} bytes, the places included");
    world.receive(b"$1\r\nk\r\n");
    let held = world.session.held_bytes();
    assert!(held > empty.len() + (8 + size_of::<Option<Bytes>>()) * (count - 10), "{held} bytes");
    assert_eq!(world.settle(), format!("*{count}\r\n{}", "$-1\r\n".repeat(count)).as_bytes());
    assert_eq!(world.session.held_bytes(), 0);
}
