//! Clients that ask more than there is room for wait, and none loses its connection.

use super::world::{Client, World, hosts};
use crate::coordination::gateway::stream::COMMANDS_MAX;
use crate::coordination::tests::order::place;
use crate::coordination::tree::tests::world::{create, get, set};
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::time::Span;
use quorate_kernel::tree::{Act, Told};
use std::format;
use std::vec::Vec;

/// A host that is the gateway of clients and has nothing of the tree.
const GATEWAY: usize = 3;
const EACH: usize = 900;

/// Six clients of a host, each with a node of its own, that hears nobody any more.
fn clients() -> (World, Vec<Client>) {
    let mut world = hosts(4);
    let clients: Vec<Client> = (0..6)
        .map(|number| {
            let client = world.open_with(GATEWAY, Span::secs(60));
            assert!(world.one(&client, create(&format!("/{number}"), "")).is_ok());
            client
        })
        .collect();
    world.isolate(GATEWAY);
    (world, clients)
}

/// A client writes its node so often.
fn write(world: &mut World, client: &Client, number: usize, count: usize) -> Vec<Ticket> {
    let path = format!("/{number}");
    (0..count).map(|n| world.send_one(client, set(&path, &format!("{n}"), None))).collect()
}

#[test]
fn writes_wait_for_room_in_their_clients_order() {
    let (mut world, clients) = clients();
    let each: Vec<Vec<Ticket>> = (0..clients.len())
        .map(|number| write(&mut world, &clients[number], number, EACH))
        .collect();
    assert!(EACH * clients.len() > COMMANDS_MAX + EACH, "two of them find no room");
    // What a client asks behind a write that waits, waits too; that it is there is heard.
    let last = clients.last().expect("there are some");
    let read = world.send_one(last, get("/5"));
    assert_eq!(world.act(last, Act::Ping), Ok(Told::Done));
    let more = world.send_one(&clients[0], set("/0", "more", None));
    assert!(clients.iter().all(|client| world.ended(client).is_none()), "none has ended");
    assert!(world.told(read).is_empty());
    // Somebody without a session has nothing in front, and is told so.
    let plain = world.fill(GATEWAY);
    assert_eq!(plain, 0);
    world.mend();
    for tickets in &each {
        assert!(tickets.iter().all(|ticket| world.reply(*ticket).is_ok()));
        assert!(tickets.iter().map(|ticket| place(&world, *ticket)).is_sorted(), "in their order");
    }
    match world.reply(read) {
        Ok(Told::Data { data, .. }) => assert_eq!(data, Some(format!("{}", EACH - 1).into())),
        other => panic!("{other:?}"),
    }
    // Who asked for more when others waited already comes behind them.
    assert!(place(&world, more) > place(&world, each[5][0]), "clients take turns");
}

#[test]
fn sessions_go_on_where_writes_find_no_room() {
    let (mut world, clients) = clients();
    assert_eq!(world.fill(GATEWAY), COMMANDS_MAX);
    let waits = write(&mut world, &clients[0], 0, 2);
    // One client is gone while its write waits: nothing of it is done.
    let lost = write(&mut world, &clients[1], 1, 1);
    world.leave(&clients[1]);
    assert_eq!(world.answer(lost[0]), Outcome::Refused(Refusal::NoRoute));
    let back = world.go_on(&clients[1], GATEWAY);
    assert!(world.told(back).is_empty(), "it waits for its session");
    world.mend();
    assert!(waits.into_iter().all(|ticket| world.reply(ticket).is_ok()));
    let back = world.opened(GATEWAY, back).expect("its session is there");
    match world.one(&back, get("/1")) {
        Ok(Told::Data { data, .. }) => assert_eq!(data.unwrap_or_default(), ""),
        other => panic!("{other:?}"),
    }
}
