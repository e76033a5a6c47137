//! Clients of the world: they read, and repeat a write until they hear of it.

use super::machine::{Command, KEYS, Request};
use super::world::{Event, World};
use crate::vsr::{Op, Replica};
use quorate_kernel::ids::Ticket;
use quorate_kernel::time::{Span, Time};
use std::format;

/// What a client waits for.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    pub command: Command,
    pub began: Time,
    pub asked_at: Time,
}

/// A client does one thing after the other; a write it repeats until it hears of it.
#[derive(Debug, Default)]
pub struct Client {
    pub number: u32,
    pub open: Option<Write>,
    /// Whom it asks next.
    pub hint: usize,
}

impl World {
    pub fn show(&mut self, node: usize, ticket: Ticket) {
        let it = &mut self.nodes[node];
        let Some((_, key, began)) = it.reads.remove(&ticket) else { return };
        let value = it.machine.items.get(&key).copied().unwrap_or_default();
        let applied = it.replica.as_ref().map_or(Op(0), Replica::applied);
        self.judge.shown(key, value, applied, began, self.now);
    }

    pub fn acknowledge(&mut self, request: Request) {
        let client = &mut self.clients[request.client as usize];
        let Some(write) = client.open.filter(|write| write.command.request == request) else {
            return;
        };
        client.open = None;
        self.judge.acknowledge(request, write.began, self.now);
    }

    /// A client asks for something new, or again.
    pub fn client(&mut self, client: usize) {
        let pause = Span(Span::millis(2).0 + self.rng.below(Span::millis(40).0));
        self.queue.push(self.now + pause, Event::Client { client });
        let node = self.clients[client].hint % self.nodes.len();
        if self.rng.below(3) == 0 {
            let key = self.rng.below(u64::from(KEYS)) as u8;
            self.read(client, node, key);
            return;
        }
        let patience = Span::millis(300);
        let write = match self.clients[client].open {
            Some(write) if self.now - write.asked_at < patience => return,
            Some(write) => write,
            None => {
                let key = self.rng.below(u64::from(KEYS)) as u8;
                self.clients[client].number += 1;
                let request =
                    Request { client: client as u32, number: self.clients[client].number };
                Write { command: Command { request, key }, began: self.now, asked_at: self.now }
            }
        };
        self.clients[client].open = Some(Write { asked_at: Time(0), ..write });
        if self.write(node, write.command) {
            self.clients[client].open = Some(Write { asked_at: self.now, ..write });
        } else {
            self.clients[client].hint += 1;
        }
    }

    /// Another client comes, with a write of this register.
    pub fn client_comes(&mut self, key: u8) -> Command {
        let request = Request { client: self.clients.len() as u32, number: 1 };
        let command = Command { request, key };
        let open = Some(Write { command, began: self.now, asked_at: self.now });
        self.clients.push(Client { number: 1, open, hint: 0 });
        command
    }

    /// Asks a node for a write; false if it is refused.
    pub fn write(&mut self, node: usize, command: Command) -> bool {
        if !self.is_up(node) || self.paused.contains_key(&node) {
            return false;
        }
        let (is_proposed, happened) = self.nodes[node].propose(self.now, command);
        self.after(node, happened);
        if is_proposed {
            let request = command.request;
            self.note(|| {
                format!("client asks {} for {}:{}", node + 1, request.client, request.number)
            });
            self.turn(node, |_, _| {});
        }
        is_proposed
    }

    /// Asks a node to read a register; false if it is refused.
    pub fn read(&mut self, client: usize, node: usize, key: u8) -> bool {
        if !self.is_up(node) || self.paused.contains_key(&node) {
            return false;
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let mut is_taken = false;
        let happened = self.nodes[node].call(self.now, |replica, _| {
            is_taken = replica.read(ticket).is_ok();
        });
        self.after(node, happened);
        if is_taken {
            self.nodes[node].reads.insert(ticket, (client as u32, key, self.now));
            self.note(|| format!("client reads register {key} at {}", node + 1));
            self.turn(node, |_, _| {});
        } else if let Some(client) = self.clients.get_mut(client) {
            client.hint += 1;
        }
        is_taken
    }

    /// No client asks for anything any more.
    pub fn stop_clients(&mut self) {
        self.queue.retain(|event| !matches!(event, Event::Client { .. }));
    }
}
