//! `CGET`, `CSET` and `CDEL`: arguments in, operations out; outcomes in, replies out.

mod common;

use bytes::Bytes;
use common::{REGISTERS, SIBLINGS, World};
use quorate_kernel::engine::{Capability, Engine};
use quorate_kernel::ids::LaneId;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::values::Values;
use quorate_kernel::write::ContextError;

/// A session on a causal keyspace, whose operations this test answers.
fn world() -> World {
    let mut world = World::default();
    let mut keyspaces = common::keyspaces();
    keyspaces.push(common::keyspace("carts", 3, &SIBLINGS));
    world.set_keyspaces(keyspaces);
    assert_eq!(world.ask("SELECT carts"), "+OK\r\n");
    world
}

fn taken(world: &mut World) -> String {
    String::from_utf8_lossy(&world.take()).into_owned()
}

/// Sends a command, answers the operation it starts, and returns both ends.
fn ask(world: &mut World, command: &[u8], outcome: Outcome) -> (Operation, String) {
    world.receive(command);
    assert_eq!(world.started.0.len(), 1, "one operation");
    let (number, lane, operation) = world.started.0.remove(0);
    assert_eq!(lane, LaneId(3));
    world.complete_with(number, outcome);
    (operation, taken(world))
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[test]
fn a_context_and_values_go_out_and_the_context_comes_back() {
    let mut world = world();
    let values = vec![bytes("a"), bytes("bb")];
    let told = Outcome::Values { values: values.into(), context: bytes("ctx") };
    let (operation, reply) = ask(&mut world, b"CGET k\r\n", told);
    assert_eq!(operation, Operation::get_all(bytes("k"), None));
    assert_eq!(reply, "*2\r\n$3\r\nctx\r\n*2\r\n$1\r\na\r\n$2\r\nbb\r\n");
    let absent = Outcome::Values { values: Values::None, context: bytes("c") };
    assert_eq!(ask(&mut world, b"cget k\r\n", absent).1, "*2\r\n$1\r\nc\r\n*0\r\n");
    let alone = Outcome::Values { values: Values::One(bytes("v")), context: bytes("c") };
    assert_eq!(ask(&mut world, b"cget k\r\n", alone).1, "*2\r\n$1\r\nc\r\n*1\r\n$1\r\nv\r\n");
    let written = Outcome::Written { context: bytes("next") };
    let (operation, reply) = ask(&mut world, b"CSET k ctx v\r\n", written);
    let (key, value, context) = (bytes("k"), bytes("v"), bytes("ctx"));
    assert_eq!(operation, Operation::put_over(key, value, context, None));
    assert_eq!(reply, "$4\r\nnext\r\n");
    let blind = b"*3\r\n$4\r\nCDEL\r\n$1\r\nk\r\n$0\r\n\r\n";
    let deleted = Outcome::Deleted { existed: false, context: bytes("next") };
    let (operation, reply) = ask(&mut world, blind, deleted);
    assert_eq!(reply, "$4\r\nnext\r\n");
    let (key, context) = (bytes("k"), Bytes::new());
    assert_eq!(operation, Operation::delete_over(key, context));
}

#[test]
fn refusals_say_what_is_wrong_and_a_get_what_to_do() {
    let mut world = world();
    let forged = Outcome::Refused(Refusal::Context(ContextError::Forged));
    let (_, reply) = ask(&mut world, b"CSET k ctx v\r\n", forged);
    assert!(reply.starts_with("-ERR the context was not made by this cluster"), "{reply}");
    let siblings = Outcome::Refused(Refusal::Siblings { count: 3 });
    let (operation, reply) = ask(&mut world, b"GET k\r\n", siblings);
    assert_eq!(operation, Operation::get(bytes("k")));
    assert!(reply.starts_with("-SIBLINGS the key has 3 siblings"), "{reply}");
    let long = format!("*3\r\n$4\r\nCDEL\r\n$1\r\nk\r\n$70000\r\n{}\r\n", "x".repeat(70_000));
    world.receive(long.as_bytes());
    let reply = taken(&mut world);
    assert!(reply.starts_with("-ERR context of 70000 bytes is over the limit"), "{reply}");
}

#[test]
fn a_keyspace_of_registers_has_no_siblings() {
    let mut world = World::default();
    for (command, instead) in [("CGET k", "GET"), ("CSET k c v", "SET"), ("CDEL k c", "DEL")] {
        let reply = world.ask(command);
        let name = command.split(' ').next().expect("a word");
        let text = format!(
            "-ERR {name} needs an engine with values side by side; this keyspace is linearizable: \
             use {instead}, or use a keyspace of the engine causal\r\n"
        );
        assert_eq!(reply, text);
    }
}

#[test]
fn what_an_engine_cannot_do_is_refused_from_what_it_can() {
    const NEW: Engine =
        Engine { name: "new", can: &[Capability::Siblings, Capability::Transactions], ..REGISTERS };
    let mut world = World::default();
    let mut keyspaces = common::keyspaces();
    keyspaces.push(common::keyspace("new", 3, &NEW));
    world.set_keyspaces(keyspaces);
    assert_eq!(world.ask("SELECT new"), "+OK\r\n");
    for (line, name, needs) in [
        ("GET k", "GET", "plain values"),
        ("SET k v", "SET", "plain values"),
        ("MGET k l", "MGET", "plain values"),
        ("DEL k l", "DEL", "plain values"),
        ("SCAN 0", "SCAN", "listings of keys"),
        ("DBSIZE", "DBSIZE", "listings of keys"),
    ] {
        let text = format!(
            "-ERR {name} needs an engine with {needs}; this keyspace is new: use a keyspace of the \
             engine linearizable or causal\r\n"
        );
        assert_eq!(world.ask(line), text);
    }
    assert!(world.started.0.is_empty(), "nothing was asked of the engine");
}
