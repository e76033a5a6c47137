//! Keyspaces that come and go while a client is connected.

mod common;

use common::{World, shared};
use quorate_doors::resp::Keyspace;
use quorate_kernel::ids::LaneId;
use quorate_kernel::operation::{Outcome, Refusal};
use std::sync::Arc;

/// The keyspaces of all worlds, and one more; a number that was given away stays empty.
fn change(world: &mut World, with: &[(usize, &str)]) {
    let before = shared();
    let mut keyspaces: Vec<Keyspace> = before.keyspaces().to_vec();
    for (number, name) in with {
        let closed = |number: usize| Keyspace::closed(LaneId(1 + number as u32));
        while keyspaces.len() <= *number {
            keyspaces.push(closed(keyspaces.len()));
        }
        let open = Keyspace { name: (*name).into(), is_open: true, ..keyspaces[0].clone() };
        keyspaces[*number] = match name.is_empty() {
            true => closed(*number),
            false => Keyspace { lane: LaneId(1 + *number as u32), ..open },
        };
    }
    world.session.set_shared(Arc::new(before.with_keyspaces(keyspaces, true)));
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

    // It is dropped under the client's feet: the node says so, and the client can go elsewhere.
    change(&mut world, &[(3, "")]);
    world.receive(b"GET k\r\n");
    let (number, lane, _) = world.started.0.remove(0);
    assert_eq!(lane, LaneId(4));
    world.complete_with(number, Outcome::Refused(Refusal::NotOpen));
    let said = "-ERR the keyspace is not open on this host; nothing was changed\r\n";
    assert_eq!(&world.take()[..], said.as_bytes());
    assert_eq!(world.ask("SELECT 3"), "-ERR DB index is out of range\r\n");
    assert_eq!(world.ask("SELECT default"), "+OK\r\n");
}
