//! Writes that wait for room in the stream.
//!
//! Clients may write faster than the log takes it, and while nobody leads nothing is done at all. A
//! write of a client that finds no room waits in its client's queue, with what comes behind it, and
//! clients take turns as there is room again. As in ZooKeeper nobody's connection is closed for
//! it, as long as its write can wait. Who has no session is told that there is no room: it has
//! nothing in front that it waits for.

use super::Gateway;
use crate::coordination::{Context, Coordination};
use quorate_kernel::ids::Ticket;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::Time;

impl Gateway {
    /// Whether a client's write may go into the stream now: nobody overtakes who waits for room.
    pub(super) fn takes_writes(&self) -> bool {
        (self.stream.has_room() && self.turns.is_empty()) || mutant!("tree_cuts_who_finds_no_room")
    }

    /// Whether the write in front of a client's queue may go into the stream: there is room, or it
    /// waits for some, and what it has asked before it is answered, or goes ahead.
    pub(super) fn may_write(&mut self, client: Ticket, now: Time) -> bool {
        let has_room = self.stream.has_room();
        if !has_room {
            self.wait_for_room(client);
        }
        has_room && self.put_ahead(client, now)
    }

    /// What is in front of a client's queue waits until there is room.
    pub(super) fn wait_for_room(&mut self, client: Ticket) {
        let Some(connection) = self.connections.get_mut(&client) else { return };
        if connection.turn.is_none() {
            probe!("coordination/waits_for_room");
            self.last_turn += 1;
            connection.turn = Some(self.last_turn);
            self.turns.insert(self.last_turn, client);
        }
    }
}

impl Coordination {
    /// Those that wait for room go on in turn, each as far as there is any.
    pub(super) fn give_room(&mut self, cx: &mut Context<'_>) {
        while self.gateway.stream.has_room()
            && !mutant!("tree_waits_for_room_for_ever")
            && let Some(first) = self.gateway.turns.first_entry()
        {
            let client = first.remove();
            if let Some(connection) = self.gateway.connections.get_mut(&client) {
                connection.turn = None;
            }
            self.go_on(client, cx);
        }
    }
}
