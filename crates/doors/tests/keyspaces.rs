//! Keyspaces that come and go while a client is connected.

mod common;

use common::{REGISTERS, World, keyspace, keyspaces};
use quorate_doors::{Serving, Session as _};
use quorate_kernel::ids::LaneId;
use quorate_kernel::operation::{Outcome, Refusal};
use std::sync::Arc;

/// The keyspaces of all worlds, and one more; a number that was given away stays empty.
fn change(world: &mut World, with: &[(usize, &str)]) {
    let mut keyspaces = keyspaces();
    for (number, name) in with {
        keyspaces.resize(keyspaces.len().max(*number + 1), None);
        let open = || keyspace(name, 1 + *number as u32, &REGISTERS);
        keyspaces[*number] = if name.is_empty() { None } else { open() };
    }
    world.set_keyspaces(keyspaces);
}

#[test]
fn a_client_finds_new_keyspaces_by_name_and_number_and_loses_dropped_ones() {
    let mut world = World::default();
    let unknown = "-ERR no keyspace is named 'fresh'; there are: default, other\r\n";
    assert_eq!(world.ask("SELECT fresh"), unknown);
    change(&mut world, &[(3, "fresh")]);
    assert_eq!(world.ask("SELECT fresh"), "+OK\r\n");
    assert_eq!(world.ask("SET k v"), "+OK\r\n");
    assert_eq!(world.ask("SELECT 0"), "+OK\r\n");
    assert_eq!(world.ask("GET k"), "$-1\r\n", "it is another keyspace");
    assert_eq!(world.ask("SELECT 3"), "+OK\r\n");
    assert_eq!(world.ask("GET k"), "$1\r\nv\r\n");
    assert_eq!(world.ask("SELECT 2"), "-ERR DB index is out of range\r\n", "nobody has it");
    assert_eq!(world.ask("SELECT "), "-ERR wrong number of arguments for 'select' command\r\n");

    // It is dropped under the client's feet: what is in hand is ended by the node, what comes later
    // is told where to go.
    world.receive(b"GET k\r\n");
    change(&mut world, &[(3, "")]);
    let (number, lane, _) = world.started.0.remove(0);
    assert_eq!(lane, LaneId(4));
    world.complete_with(number, Outcome::Refused(Refusal::NotOpen));
    let said = "-ERR the keyspace is not open on this host; nothing was changed\r\n";
    assert_eq!(&world.take()[..], said.as_bytes());
    let gone =
        "-ERR the keyspace 3 of this connection is not there: SELECT one of: default, other\r\n";
    for command in ["GET k", "SET k v", "MSET k v", "DEL a b", "SCAN 0", "CGET k", "INCR k"] {
        assert_eq!(world.ask(command), gone, "{command}");
    }
    assert_eq!(world.ask("PING"), "+PONG\r\n");
    assert_eq!(world.ask("SELECT 3"), "-ERR DB index is out of range\r\n");
    assert_eq!(world.ask("SELECT default"), "+OK\r\n");
}

/// The table is shorter than the number of a connection if the dropped keyspace had the highest.
#[test]
fn a_client_of_a_number_beyond_the_table_is_told_so() {
    let mut world = World::default();
    change(&mut world, &[(5, "last")]);
    assert_eq!(world.ask("SELECT last"), "+OK\r\n");
    change(&mut world, &[]);
    assert_eq!(world.ask("PING"), "+PONG\r\n");
    let gone =
        "-ERR the keyspace 5 of this connection is not there: SELECT one of: default, other\r\n";
    assert_eq!(world.ask("SET k v"), gone);
    assert_eq!(world.ask("SELECT 0"), "+OK\r\n");
    assert_eq!(world.ask("SET k v"), "+OK\r\n");
}

#[test]
fn number_0_is_the_keyspace_named_default_once_the_first_was_dropped() {
    let mut world = World::default();
    assert_eq!(world.ask("SET k v"), "+OK\r\n");
    change(&mut world, &[(0, "")]);
    let gone = "-ERR the keyspace 0 of this connection is not there: SELECT one of: other\r\n";
    assert_eq!(world.ask("GET k"), gone);
    assert_eq!(world.ask("SELECT 0"), "-ERR DB index is out of range\r\n");
    change(&mut world, &[(0, ""), (4, "default")]);
    assert_eq!(world.ask("GET k"), "$-1\r\n", "it began empty");
    assert_eq!(world.ask("SET k new"), "+OK\r\n");
    assert_eq!(world.ask("SELECT 4"), "+OK\r\n");
    assert_eq!(world.ask("GET k"), "$3\r\nnew\r\n");
}

#[test]
fn a_host_that_knows_no_keyspace_yet_says_that_it_is_starting() {
    let mut world = World::default();
    world.session.set_serving(&Arc::new(Serving::default()));
    assert_eq!(world.ask("PING"), "+PONG\r\n");
    let said =
        "-ERR the host is starting and does not know its keyspaces yet; nothing was changed\r\n";
    for command in ["SET k v", "GET k", "SELECT default", "SELECT 0", "INCR k"] {
        assert_eq!(world.ask(command), said, "{command}");
    }
}

#[test]
fn what_the_answer_of_a_delete_does_not_say_stands_in_its_documentation() {
    let mut world = World::default();
    for name in ["del", "unlink"] {
        let told = world.ask(&format!("COMMAND DOCS {name}"));
        assert!(told.contains("not atomic beside other writes of the same key"), "{told}");
    }
}
