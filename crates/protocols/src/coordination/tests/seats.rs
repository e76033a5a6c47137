//! Hosts that join, leave and are replaced while sessions work: nobody loses a session, an event or
//! a command by it.

use super::order::names;
use super::world::{Client, SOON, TIMEOUT, World, led, settings};
use crate::coordination::GROUP;
use crate::coordination::tree::tests::world::{create, ephemeral, sequential, set};
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::operation::{Control, Outcome};
use quorate_kernel::part::Holds;
use quorate_kernel::process::Process;
use quorate_kernel::ring::Standing;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::tree::{Act, Told, What};
use std::format;
use std::vec::Vec;

const LONG: Span = Span::secs(60);

/// So many hosts, the first three of which have founded the group and take part.
fn founded(count: u64) -> World {
    let mut settings = settings(3, Durability::Sync);
    settings.failed = Span::millis(500);
    let mut world = led(World::new(7, count, settings));
    world.gather(1..4);
    world
}

impl World {
    /// The members, as who leads has it.
    fn members(&self) -> Vec<u64> {
        let Some(leader) = self.leader() else { return Vec::new() };
        let process = self.hosts[leader].process.as_ref().expect("it leads");
        let hosted = process.hosted.as_ref().expect("it leads");
        hosted.replica.configuration().members.iter().map(|node| node.0).collect()
    }

    /// Whether a host has something of the group.
    fn holds(&self, at: usize) -> bool {
        self.hosts[at].process.as_ref().is_some_and(|process| process.hosted.is_some())
    }

    /// Who holds what, as a host answers to an operator who asks about a host that leaves.
    fn examine(&mut self, at: usize, leaver: u64) -> Outcome {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let deadline = self.now + Span::secs(3);
        let control = Control::Examine { from: 0, leaver: Some(NodeId(leaver)) };
        self.turn(at, |process, cx| process.on_control(ticket, control, deadline, cx));
        self.answer(ticket)
    }
}

/// Clients that work all the time: one of them follows everything, and all make nodes.
struct Work {
    clients: Vec<Client>,
    asked: Vec<Ticket>,
}

impl Work {
    fn new(world: &mut World, hosts: &[usize]) -> Work {
        let clients: Vec<Client> = hosts.iter().map(|at| world.open(*at)).collect();
        assert!(world.one(&clients[0], create("/q", "")).is_ok());
        for (number, client) in clients.iter().enumerate() {
            assert!(world.one(client, ephemeral(&format!("/e{number}"))).is_ok());
        }
        let act = Act::Follow { path: "/q".into(), recursive: true };
        assert_eq!(world.act(&clients[0], act), Ok(Told::Done));
        Work { clients, asked: Vec::new() }
    }

    /// They work until something holds.
    fn until(&mut self, world: &mut World, most: Span, mut holds: impl FnMut(&World) -> bool) {
        let end = world.now + most;
        while !holds(world) {
            assert!(world.now < end, "{:?}", world.members());
            for client in &self.clients {
                self.asked.push(world.send_one(client, sequential(create("/q/", ""))));
            }
            world.run(Span::millis(100));
        }
    }

    /// All that they asked was done once, and was told, and they have their sessions.
    fn finish(self, world: &mut World) {
        for ticket in &self.asked {
            assert!(world.reply(*ticket).is_ok());
        }
        let at = self.clients[0].at;
        assert_eq!(names(world, at, "/q").len(), self.asked.len());
        assert_eq!(world.act(&self.clients[0], Act::Sync { path: "/".into() }), Ok(Told::Done));
        let changes = world.changes(&self.clients[0]);
        assert_eq!(changes.len(), self.asked.len(), "each is told");
        assert!(changes.iter().all(|(_, what)| *what == What::Created));
        for (number, client) in self.clients.iter().enumerate() {
            assert_eq!(world.ended(client), None);
            assert!(world.is_there(at, &format!("/e{number}")));
        }
        world.mend();
        assert!(world.run_until(SOON, |world| world.leader().is_some()));
    }
}

#[test]
fn a_host_that_joins_takes_the_seat_of_one_that_leaves_while_sessions_work() {
    let mut world = founded(5);
    let leader = world.leader().expect("somebody leads");
    // One is at a host that is no member, one at the host that leads, and leaves.
    let mut work = Work::new(&mut world, &[4, leader]);
    world.gather(4..5);
    work.until(&mut world, SOON, |world| world.now.0 > 3_000_000_000);
    world.stand(leader, Standing::Leaving);
    let left = leader as u64 + 1;
    work.until(&mut world, LONG, |world| {
        !world.members().is_empty() && !world.members().contains(&left) && !world.holds(leader)
    });
    assert_eq!(world.members().len(), 3);
    work.finish(&mut world);
    for host in 0..4 {
        let Outcome::Examined(told) = world.examine(host, left) else { panic!("it is told") };
        assert!(told.parts.iter().all(|part| part.is_free_of(NodeId(left))), "{told:?}");
        let all = told.parts.iter().flat_map(|part| &part.holders);
        assert!(all.clone().count() == 3 && all.clone().all(|it| it.holds == Holds::Confirmed));
    }
    // It starts again, and finds nothing, though it has founded the group.
    world.crash(leader);
    world.restart(leader);
    assert!(!world.holds(leader));
    let one = world.open(leader);
    assert!(world.one(&one, set("/q", "x", None)).is_ok(), "it serves clients all the same");
}

#[test]
fn a_host_that_fails_is_replaced_while_sessions_work() {
    let mut world = founded(4);
    world.gather(4..5);
    world.run(Span::secs(1));
    for at in 0..2 {
        let third = (0..4).find(|it| *it != at && world.holds(*it)).expect("it is there");
        let before = world.members();
        let failed = before.iter().map(|node| *node as usize - 1).find(|it| *it != third);
        let failed = failed.expect("there are three");
        let spare = (0..4).find(|it| !before.contains(&(*it as u64 + 1))).expect("one has none");
        let mut work = Work::new(&mut world, &[third, spare]);
        world.crash(failed);
        world.suspect(failed, true);
        work.until(&mut world, LONG, |world| {
            let members = world.members();
            members.contains(&(spare as u64 + 1)) && !members.contains(&(failed as u64 + 1))
        });
        let end = world.now + Span::secs(1);
        work.until(&mut world, SOON, |world| world.now >= end);
        let clients = work.clients.clone();
        work.finish(&mut world);
        world.restart(failed);
        world.suspect(failed, false);
        assert!(world.run_until(LONG, |world| !world.holds(failed)), "it keeps nothing");
        for client in &clients {
            assert_eq!(world.act(client, Act::Close), Ok(Told::Done));
            world.leave(client);
        }
        for name in names(&mut world, third, "/q") {
            let delete = crate::coordination::tree::tests::world::delete;
            assert!(world.anyone(third, delete(&format!("/q/{name}"), None)).is_ok());
        }
        let delete = crate::coordination::tree::tests::world::delete("/q", None);
        assert!(world.anyone(third, delete).is_ok());
    }
}

#[test]
fn all_hosts_are_replaced_one_after_the_other_and_a_session_goes_on() {
    let mut world = founded(6);
    world.gather(4..7);
    let mut work = Work::new(&mut world, &[5]);
    for at in 0..3 {
        world.stand(at, Standing::Leaving);
        work.until(&mut world, LONG, |world| {
            let members = world.members();
            members.len() == 3 && !members.contains(&(at as u64 + 1)) && !world.holds(at)
        });
        world.crash(at);
        world.stand(at, Standing::Left);
    }
    assert_eq!(world.members(), [4, 5, 6]);
    work.finish(&mut world);
    let entries = world.logs[&GROUP].values().filter(|entry| entry.is_none()).count();
    assert!(entries >= 4, "members have changed: {entries}");
}

#[test]
fn the_sessions_of_a_host_that_is_gone_for_good_end_in_their_time() {
    let mut world = founded(4);
    world.gather(4..5);
    let [stays, moves] = [world.open(3), world.open(3)];
    assert!(world.one(&stays, ephemeral("/stays")).is_ok());
    assert!(world.one(&moves, ephemeral("/moves")).is_ok());
    world.crash(3);
    world.stand(3, Standing::Left);
    let gone = world.now;
    let moved = world.attach(&moves, 0);
    while world.now - gone < Span(TIMEOUT.0 - Span::millis(600).0) {
        assert!(world.is_there(0, "/stays"), "{:?}", world.now - gone);
        assert_eq!(world.act(&moved, Act::Ping), Ok(Told::Done));
        world.run(Span::millis(200));
    }
    for _ in 0..15 {
        assert_eq!(world.act(&moved, Act::Ping), Ok(Told::Done));
        world.run(Span::millis(200));
    }
    assert!(!world.is_there(0, "/stays") && world.is_there(0, "/moves"));
    world.agree();
}
