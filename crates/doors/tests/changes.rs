//! Changes of values where they stand, in a keyspace whose engine has them.

mod common;

use common::{CHANGES, TRANSACTIONS, World, keyspace};
use quorate_doors::Session as _;
use quorate_kernel::operation::{Operation, Outcome, Refusal};

fn world() -> World {
    let mut world = World::default();
    world.set_keyspaces(vec![keyspace("default", 1, &CHANGES)]);
    world
}

#[test]
fn changes_answer_as_those_of_redis() {
    let integer = "-ERR value is not an integer or out of range\r\n";
    let mut world = world();
    for (line, said) in [
        ("INCR n", ":1\r\n"),
        ("INCRBY n 41", ":42\r\n"),
        ("DECR n", ":41\r\n"),
        ("DECRBY n 40", ":1\r\n"),
        ("INCRBY n x", integer),
        ("DECRBY n -9223372036854775808", "-ERR decrement would overflow\r\n"),
        ("INCRBY n 9223372036854775807", "-ERR increment or decrement would overflow\r\n"),
        ("GET n", "$1\r\n1\r\n"),
        ("INCRBYFLOAT n 0.5", "$3\r\n1.5\r\n"),
        ("INCR n", integer),
        ("INCRBYFLOAT n x", "-ERR value is not a valid float\r\n"),
        ("APPEND a xy", ":2\r\n"),
        ("APPEND a z", ":3\r\n"),
        ("INCRBYFLOAT a 1", "-ERR value is not a valid float\r\n"),
        ("SETRANGE a 1 __", ":3\r\n"),
        ("SETRANGE a -1 _", "-ERR offset is out of range\r\n"),
        ("SETRANGE a 1048576 _", "-ERR value of 1048577 bytes is over the limit of 1048576\r\n"),
        ("GETSET a 1", "$3\r\nx__\r\n"),
        ("SETNX a 2", ":0\r\n"),
        ("SETNX b 2", ":1\r\n"),
        ("SET a 3 NX", "$-1\r\n"),
        ("SET a 3 XX", "+OK\r\n"),
        ("SET a 4 GET", "$1\r\n3\r\n"),
        ("SET c 5 NX GET", "$-1\r\n"),
        ("SET c 6 NX GET", "$1\r\n5\r\n"),
        ("SET c 7 XX NX", "-ERR syntax error\r\n"),
        ("GETDEL c", "$1\r\n5\r\n"),
        ("GETDEL c", "$-1\r\n"),
        ("GETEX a", "$1\r\n4\r\n"),
        ("MSETNX a 1 z 1", ":0\r\n"),
        ("EXISTS z", ":0\r\n"),
        ("MSETNX y 1 z 1", ":1\r\n"),
        ("MSETNX y 1 z", "-ERR wrong number of arguments for 'msetnx' command\r\n"),
        ("MGET y z a", "*3\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n4\r\n"),
    ] {
        assert_eq!(world.ask(line), said, "{line}");
    }
    let refused = world.ask("EVALSHA 0 0");
    assert_eq!(refused, "-ERR EVALSHA needs scripts, which this server does not offer\r\n");
    let refused = world.ask("SET a 1 EX 5");
    assert!(refused.starts_with("-ERR SET EX needs an engine with expiry"), "{refused}");
}

#[test]
fn keys_are_renamed_and_copied_as_by_redis() {
    let mut world = world();
    world.set_keyspaces(vec![keyspace("default", 1, &CHANGES), keyspace("other", 2, &CHANGES)]);
    for (line, said) in [
        ("RENAME a b", "-ERR no such key\r\n"),
        ("RENAMENX a b", "-ERR no such key\r\n"),
        ("COPY a b", ":0\r\n"),
        ("MSET a 1 b 2", "+OK\r\n"),
        ("RENAMENX a b", ":0\r\n"),
        ("COPY a b", ":0\r\n"),
        ("COPY a b REPLACE", ":1\r\n"),
        ("GET b", "$1\r\n1\r\n"),
        ("RENAME a b", "+OK\r\n"),
        ("EXISTS a", ":0\r\n"),
        ("RENAMENX b a", ":1\r\n"),
        ("RENAME a a", "+OK\r\n"),
        ("RENAMENX a a", ":0\r\n"),
        ("COPY a c DB 0", ":1\r\n"),
        ("MGET a b c", "*3\r\n$1\r\n1\r\n$-1\r\n$1\r\n1\r\n"),
        ("COPY a a", "-ERR source and destination objects are the same\r\n"),
        ("COPY a b DB", "-ERR syntax error\r\n"),
        ("COPY a b NX", "-ERR syntax error\r\n"),
        ("COPY a b DB 7", "-ERR DB index is out of range\r\n"),
        ("RENAME a", "-ERR wrong number of arguments for 'rename' command\r\n"),
        ("FLUSHDB now", "-ERR syntax error\r\n"),
        ("FLUSHDB ASYNC", "+OK\r\n"),
        ("KEYS *", "*0\r\n"),
        ("FLUSHDB", "+OK\r\n"),
    ] {
        assert_eq!(world.ask(line), said, "{line}");
    }
    let refused = world.ask("COPY a b DB 1");
    let why = "a transaction is about one keyspace, and the keys of DB are of another";
    assert_eq!(refused, format!("-ERR {why}; nothing was done\r\n"));
    world.receive(b"MULTI\r\nSET a 5\r\nRENAME a b\r\nCOPY a b\r\nRENAME a c\r\nGET b\r\nEXEC\r\n");
    let said = String::from_utf8(world.settle()).expect("text");
    let told = "*5\r\n+OK\r\n+OK\r\n:0\r\n-ERR no such key\r\n$1\r\n5\r\n";
    assert_eq!(said, format!("+OK\r\n{}{told}", "+QUEUED\r\n".repeat(5)));
}

#[test]
fn a_change_that_cannot_be_done_stays_in_its_slot() {
    let mut world = world();
    world.receive(b"SET a x\r\nMULTI\r\nINCR n\r\nINCR a\r\nSETNX a 1\r\nGETSET b 7\r\nEXEC\r\n");
    let said = String::from_utf8(world.settle()).expect("text");
    let told = "*4\r\n:1\r\n-ERR value is not an integer or out of range\r\n:0\r\n$-1\r\n";
    assert_eq!(said, format!("+OK\r\n+OK\r\n{}{told}", "+QUEUED\r\n".repeat(4)));
    assert_eq!(world.ask("GET b"), "$1\r\n7\r\n");
    world.receive(b"MULTI\r\nSET b 1\r\nINCRBY b x\r\nSET b 2 NX XX\r\nINCR b\r\nEXEC\r\n");
    let said = String::from_utf8(world.settle()).expect("text");
    let told = "-ERR value is not an integer or out of range\r\n-ERR syntax error\r\n:2\r\n";
    assert_eq!(said, format!("+OK\r\n{}*4\r\n+OK\r\n{told}", "+QUEUED\r\n".repeat(4)));
    world.ask("MULTI");
    let refused = world.ask("MSETNX k 1");
    assert_eq!(refused, "-ERR MSETNX cannot be done in a transaction; DISCARD ends it\r\n");
    assert!(world.ask("EXEC").starts_with("-EXECABORT"));
}

#[test]
fn several_keys_of_one_command_are_one_operation() {
    let mut world = world();
    for (line, items, said) in [
        ("MSET a 1 b 2 c 3", 3, "+OK\r\n"),
        ("MGET a b x", 3, "*3\r\n$1\r\n1\r\n$1\r\n2\r\n$-1\r\n"),
        ("EXISTS a a x", 3, ":2\r\n"),
        ("DEL a b x", 3, ":2\r\n"),
    ] {
        world.receive(format!("{line}\r\n").as_bytes());
        let begun = &world.started.0[..];
        let [(_, _, Operation::Transact { items: asked, .. })] = begun else { panic!("{begun:?}") };
        assert_eq!(asked.len(), items, "{line}");
        assert_eq!(String::from_utf8(world.settle()).expect("text"), said, "{line}");
    }
    world.receive(b"MSET a 1 b 2\r\n");
    let (number, ..) = world.started.0.remove(0);
    world.complete_with(number, Outcome::Refused(Refusal::OutcomeUnknown));
    assert!(world.take().starts_with(b"-UNKNOWNOUTCOME the deadline passed"));
    let pairs = format!("MSETNX{}", " k v".repeat(513));
    assert!(world.ask(&pairs).starts_with("-ERR a transaction of 1026 items is over the limit"));
    let many = format!("MGET{}", " k".repeat(1025));
    assert!(world.ask(&many).starts_with("-ERR a transaction of 1025 items is over the limit"));
    assert_eq!(world.session.held_bytes(), 0);
}

#[test]
fn an_engine_without_changes_says_so() {
    let mut world = World::default();
    world.set_keyspaces(vec![keyspace("default", 1, &TRANSACTIONS)]);
    for (line, name) in [("INCR a", "INCR"), ("SET a 1 NX", "SET NX"), ("SETNX a 1", "SETNX")] {
        let said = world.ask(line);
        let lacks = format!("-ERR {name} needs an engine with changes in place; this keyspace is");
        assert!(said.starts_with(&lacks), "{said}");
    }
    assert_eq!(world.ask("GETSET a 1"), "$-1\r\n", "it is a read and a put");
    assert_eq!(world.ask("SET a 2 GET"), "$1\r\n1\r\n");
}
