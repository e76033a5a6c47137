//! Listings of keys.

mod members;
mod pages;

use super::world::World;
use bytes::Bytes;
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::operation::{Cursor, Operation, Outcome};
use quorate_kernel::process::{Process, Request};
use quorate_kernel::time::Span;
use std::vec::Vec;

/// A client asks a node for a page of keys.
pub fn list(world: &mut World, node: NodeId, from: &Cursor, limit: u32) -> Ticket {
    list_for(world, node, (from, limit), 100)
}

/// The same, which must have been answered in so many rounds.
fn list_for(world: &mut World, node: NodeId, (from, limit): (&Cursor, u32), rounds: u64) -> Ticket {
    let ticket = Ticket(u64::MAX - world.rng.next() / 2);
    let deadline = world.now + Span(world.settings.round.0 * rounds);
    let operation = Operation::Scan { from: from.clone(), limit };
    let request = Request { operation, deadline };
    world.with_host(node, |engine, cx| engine.on_request(ticket, request, cx));
    ticket
}

/// A page, and where the next one begins.
pub fn page(
    world: &mut World,
    node: NodeId,
    from: &Cursor,
    limit: u32,
) -> (Vec<Bytes>, Option<Cursor>) {
    let ticket = list(world, node, from, limit);
    match world.wait(ticket) {
        Outcome::Page { keys, next } => (keys, next),
        other => panic!("{other:?} is no page"),
    }
}

/// All keys, by pages of about so many; each is asked of another node, after a few rounds.
fn walk(world: &mut World, limit: u32, mut meanwhile: impl FnMut(&mut World)) -> Vec<Bytes> {
    let (mut all, mut from) = (Vec::new(), Cursor::default());
    loop {
        let node = world.any();
        let (keys, next) = page(world, node, &from, limit);
        all.extend(keys);
        let Some(next) = next else { return all };
        assert!(next > from, "a listing comes to its end");
        from = next;
        meanwhile(world);
    }
}
