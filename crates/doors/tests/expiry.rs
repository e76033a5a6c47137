//! Keys that end by themselves, in a keyspace whose engine has that.

mod common;

use common::{CHANGES, EXPIRY, World, keyspace};
use quorate_kernel::ids::LaneId;
use quorate_kernel::operation::Operation;
use quorate_kernel::time::{Span, WallTime};
use quorate_kernel::transaction::Item;

fn world() -> World {
    let mut world = World::default();
    world.set_keyspaces(vec![keyspace("default", 1, &EXPIRY)]);
    world
}

/// Time passes.
fn wait(world: &mut World, ms: u64) {
    world.clock.now = world.clock.now + Span::millis(ms);
    world.clock.wall = WallTime(world.clock.wall.0 + ms as i64);
}

fn asks(world: &mut World, table: &[(&str, &str)]) {
    for (line, said) in table {
        assert_eq!(world.ask(line), format!("{said}\r\n"), "{line}");
    }
}

/// The replies are those of Redis 7.0.15. Its clock says 1700000100250.
#[test]
fn ends_are_set_and_told_as_in_redis() {
    let mut world = world();
    asks(
        &mut world,
        &[
            ("TTL a", ":-2"),
            ("PEXPIRETIME a", ":-2"),
            ("EXPIRE a 10", ":0"),
            ("PERSIST a", ":0"),
            ("SET a 1", "+OK"),
            ("TTL a", ":-1"),
            ("EXPIRETIME a", ":-1"),
            ("EXPIRE a 10 XX", ":0"),
            ("EXPIRE a 10 GT", ":0"),
            ("EXPIRE a 10 XX LT", ":0"),
            ("EXPIRE a 10 nx", ":1"),
            ("EXPIRE a 20 NX", ":0"),
            ("TTL a", ":10"),
            ("PTTL a", ":10000"),
            ("EXPIRETIME a", ":1700000110"),
            ("PEXPIRETIME a", ":1700000110250"),
            ("EXPIRE a 20 LT", ":0"),
            ("EXPIRE a 20 GT XX", ":1"),
            ("PEXPIRE a 15000 XX LT", ":1"),
            ("PTTL a", ":15000"),
            ("APPEND a 2", ":2"),
            ("INCR a", ":13"),
            ("SETRANGE a 0 2", ":2"),
            ("PTTL a", ":15000"),
            ("PERSIST a", ":1"),
            ("PERSIST a", ":0"),
            ("EXPIREAT a 1700000200", ":1"),
            ("PTTL a", ":99750"),
            ("PEXPIREAT a 1700000200250", ":1"),
            ("TTL a", ":100"),
            ("SET a 2 KEEPTTL", "+OK"),
            ("TTL a", ":100"),
            ("SET a 2", "+OK"),
            ("TTL a", ":-1"),
        ],
    );
}

#[test]
fn values_are_set_with_their_ends() {
    let mut world = world();
    asks(
        &mut world,
        &[
            ("SETEX a 10 1", "+OK"),
            ("TTL a", ":10"),
            ("PSETEX a 1500 1", "+OK"),
            ("TTL a", ":2"),
            ("SET a 1 ex 100", "+OK"),
            ("TTL a", ":100"),
            ("SET a 2 PX 5000 NX", "$-1"),
            ("SET a 2 XX PX 5000 GET", "$1\r\n1"),
            ("PTTL a", ":5000"),
            ("SET a 2 EXAT 1700000200", "+OK"),
            ("EXPIRETIME a", ":1700000200"),
            ("SET a 2 PXAT 1700000200001", "+OK"),
            ("PEXPIRETIME a", ":1700000200001"),
            ("SET b 1 NX PX 100", "+OK"),
            ("GETEX b", "$1\r\n1"),
            ("PTTL b", ":100"),
            ("GETEX b EX 7", "$1\r\n1"),
            ("TTL b", ":7"),
            ("GETEX b PXAT 1700000100300", "$1\r\n1"),
            ("PTTL b", ":50"),
            ("GETEX b PERSIST", "$1\r\n1"),
            ("TTL b", ":-1"),
            ("GETEX none EX 7", "$-1"),
            ("SETEX b 1 x", "+OK"),
        ],
    );
    wait(&mut world, 1000);
    asks(&mut world, &[("GET b", "$-1"), ("TTL b", ":-2"), ("EXISTS a b", ":1")]);
}

#[test]
fn what_is_wrong_is_said_as_in_redis() {
    let mut world = world();
    let time = |name| format!("-ERR invalid expire time in '{name}' command");
    let number = "-ERR value is not an integer or out of range".to_string();
    let syntax = "-ERR syntax error".to_string();
    let nx = "-ERR NX and XX, GT or LT options at the same time are not compatible".to_string();
    let gt = "-ERR GT and LT options at the same time are not compatible".to_string();
    let arity = |name| format!("-ERR wrong number of arguments for '{name}' command");
    for (line, said) in [
        ("SET a 1 EX 0", time("set")),
        ("SET a 1 PX -1", time("set")),
        ("SET a 1 EX 9223372036854775807", time("set")),
        ("SET a 1 PX 9223372036854775807", time("set")),
        ("SET a 1 EX x", number.clone()),
        ("SET a 1 EX x FOO", syntax.clone()),
        ("SET a 1 EX", syntax.clone()),
        ("SET a 1 EX 1 PX 1", syntax.clone()),
        ("SET a 1 EX 1 KEEPTTL", syntax.clone()),
        ("SET a 1 PERSIST", syntax.clone()),
        ("SETEX a 0 1", time("setex")),
        ("SETEX a x 1", number.clone()),
        ("PSETEX a -5 1", time("psetex")),
        ("SETEX a 1", arity("setex")),
        ("GETEX a EX 0", time("getex")),
        ("GETEX a KEEPTTL", syntax.clone()),
        ("GETEX a PERSIST EX 1", syntax),
        ("EXPIRE a", arity("expire")),
        ("EXPIRE a x", number),
        ("EXPIRE a 9223372036854775807", time("expire")),
        ("PEXPIRE a 9223372036854775807", time("pexpire")),
        ("EXPIREAT a 9223372036854775", time("")),
        ("EXPIRE a 1 NX XX", nx.clone()),
        ("EXPIRE a 1 GT NX", nx),
        ("EXPIRE a 1 GT LT XX", gt),
        ("EXPIRE a 1 FOO", "-ERR Unsupported option FOO".to_string()),
    ] {
        match line {
            // The last second that there is a number for.
            "EXPIREAT a 9223372036854775" => assert_eq!(world.ask(line), ":0\r\n"),
            _ => assert_eq!(world.ask(line), format!("{said}\r\n"), "{line}"),
        }
    }
    assert_eq!(world.ask("EXISTS a"), ":0\r\n");
}

#[test]
fn times_count_from_exec_on() {
    let mut world = world();
    let queued = ["SET a 1 PX 500 NX", "EXPIREAT b 1700000200", "PTTL a", "PERSIST a", "TTL a"];
    world.ask("SET b 1");
    world.ask("MULTI");
    for line in queued {
        assert_eq!(world.ask(line), "+QUEUED\r\n");
    }
    wait(&mut world, 1000);
    let told = "*5\r\n+OK\r\n:1\r\n:500\r\n:1\r\n:-1\r\n";
    assert_eq!(world.ask("EXEC"), told);
    assert_eq!(world.ask("PEXPIRETIME b"), ":1700000200000\r\n", "of the clock, not from now on");
}

#[test]
fn a_watched_key_that_ends_is_a_change() {
    let mut world = world();
    world.ask("SET a 1 PX 500");
    world.ask("WATCH a");
    world.ask("MULTI");
    world.ask("SET b 1");
    wait(&mut world, 500);
    assert_eq!(world.ask("EXEC"), "*-1\r\n");
    assert_eq!(world.ask("EXISTS b"), ":0\r\n");
}

#[test]
fn what_is_left_is_told_by_the_clock_of_the_reply() {
    let mut world = world();
    world.receive(b"SET a 1 PX 500\r\nPTTL a\r\n");
    world.complete(0);
    wait(&mut world, 200);
    assert_eq!(world.settle(), b"+OK\r\n:300\r\n");
    world.receive(b"GETEX a PX 900\r\n");
    let begun = &world.started.0[..];
    let [(_, _, Operation::Transact { items, .. })] = begun else { panic!("{begun:?}") };
    let at = Some(WallTime(world.clock.wall.0 + 900));
    assert!(matches!(&items[..], [Item::Get { .. }, Item::Expire { at: end, .. }] if *end == at));
    assert_eq!(world.settle(), b"$1\r\n1\r\n");
}

#[test]
fn an_engine_without_expiry_says_so() {
    let mut world = World::default();
    world.set_keyspaces(vec![keyspace("default", 1, &CHANGES)]);
    world.ask("SET a 1");
    for (line, name) in [
        ("EXPIRE a 1", "EXPIRE"),
        ("PERSIST a", "PERSIST"),
        ("SETEX a 1 1", "SETEX"),
        ("SET a 1 KEEPTTL", "SET KEEPTTL"),
        ("SET a 1 NX PX 1", "SET PX"),
        ("GETEX a EX 1", "GETEX"),
    ] {
        let said = world.ask(line);
        let lacks = format!("-ERR {name} needs an engine with expiry; this keyspace is changing");
        assert!(said.starts_with(&lacks), "{said}");
    }
    asks(&mut world, &[("TTL a", ":-1"), ("PEXPIRETIME b", ":-2"), ("GETEX a", "$1\r\n1")]);
}

/// The usual rate limiter: a counter, and behind it how long it lasts.
#[test]
fn a_time_counts_from_when_its_command_is_begun_also_behind_others_of_its_key() {
    for line in ["PEXPIRE a 500", "SET a 1 PX 500", "GETEX a PX 500", "PSETEX a 500 1"] {
        let mut world = world();
        world.receive(format!("INCR a\r\n{line}\r\nPEXPIREAT a 1700000100900 GT\r\n").as_bytes());
        wait(&mut world, 800);
        world.complete(0);
        let (_, _, operation) = &world.started.0[0];
        let Operation::Transact { items, .. } = operation else { panic!("{operation:?}") };
        let ends = format!("{items:?}");
        assert!(ends.contains("WallTime(1700000101550)"), "{line}: {ends}");
        world.complete(0);
        let (_, _, operation) = &world.started.0[0];
        assert!(format!("{operation:?}").contains("WallTime(1700000100900)"), "{operation:?}");
        world.settle();
        assert_eq!(world.ask("PTTL a"), ":500\r\n", "{line}");
    }
}

#[test]
fn times_count_from_when_exec_is_begun_where_it_waits() {
    let mut world = world();
    asks(&mut world, &[("MULTI", "+OK"), ("SET a 1 PX 500", "+QUEUED"), ("GET b", "+QUEUED")]);
    wait(&mut world, 300);
    // What is read before it comes late.
    world.receive(
        b"DISCARD\r\nGET a\r\nMULTI\r\nSET a 1 PX 500\r\nSET b 1 PXAT 1800000000000\r\nEXEC\r\n",
    );
    wait(&mut world, 800);
    world.settle();
    assert_eq!(world.ask("PTTL a"), ":500\r\n");
    assert_eq!(world.ask("PEXPIRETIME b"), ":1800000000000\r\n", "this one counts from nothing");
}

/// What reads and writes brings values, too.
#[test]
fn what_writes_and_brings_large_values_is_done_a_few_at_a_time() {
    let mut world = world();
    let pipeline: String = (0..1000).map(|n| format!("GETEX k{n} PERSIST\r\n")).collect();
    world.receive(pipeline.as_bytes());
    assert!(world.started.0.len() < 100, "no value was seen yet: {}", world.started.0.len());
}

/// Whoever reads how long a key lasts has read whether it is there.
#[test]
fn what_was_read_of_a_watched_keys_end_is_as_it_was_watched() {
    for read in ["TTL a", "PTTL a", "EXPIRETIME a", "PEXPIRETIME a"] {
        let mut world = world();
        let write = |world: &mut World, operation| world.map.apply(LaneId(1), operation);
        world.ask("WATCH a");
        write(&mut world, Operation::put("a".into(), "1".into()));
        world.ask(read);
        write(&mut world, Operation::delete("a".into()));
        asks(&mut world, &[("MULTI", "+OK"), ("SET b 1", "+QUEUED"), ("EXEC", "*-1")]);
        // One that is there, and lasts longer than before, is as it was.
        write(&mut world, Operation::put("a".into(), "1".into()));
        asks(&mut world, &[("WATCH a", "+OK"), ("EXPIRE a 9", ":1")]);
        world.ask(read);
        asks(&mut world, &[("PERSIST a", ":1"), ("MULTI", "+OK"), ("EXEC", "*0")]);
    }
}
