//! Seats that change: hosts that join, are drained, fail, or were away while all was changed.

use super::promises::{SOON, bytes, key_of, led};
use super::world::{Host, World, settings};
use crate::groups::Leads;
use crate::serializable::lane::{Message, groups::hosted::Hosted};
use crate::vsr::{self, Epoch, Status, ViewNumber};
use bytes::Bytes;
use core::fmt::Display;
use quorate_kernel::ids::{GroupId, NodeId, Ticket};
use quorate_kernel::operation::{Control, Operation, Outcome, Refusal};
use quorate_kernel::part::{Await, Holds, Part};
use quorate_kernel::process::{Inspect, Process};
use quorate_kernel::ring::Standing;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

pub const LONG: Span = Span::secs(60);

/// So many hosts, of which the first three have founded groups, and take part.
pub fn founded(hosts: u64, groups: u64) -> World {
    let mut world = World::new(7, hosts, settings(3, 3, groups, Durability::Sync));
    let is_led = |world: &mut World| (1..=groups).all(|it| world.leader(GroupId(it)).is_some());
    assert!(world.run_until(SOON, is_led), "every group has a primary");
    world.gather(1..4);
    world
}

pub fn fill(world: &mut World) -> Vec<Bytes> {
    let keys: Vec<Bytes> = (0..40).map(|number| format!("k{number}").into()).collect();
    for key in &keys {
        let put = Operation::put(key.clone(), key.clone());
        assert_eq!(world.ask(0, put, SOON), Outcome::written());
    }
    keys
}

pub fn has_all(world: &mut World, host: usize, keys: &[Bytes]) {
    for key in keys {
        let told = world.ask(host, Operation::get(key.clone()), SOON);
        assert_eq!(told, Outcome::value(Some(key.clone())));
    }
}

impl World {
    /// The members of each group, as its primary knows them, with the epoch.
    pub fn seats(&self) -> BTreeMap<GroupId, (u64, Vec<NodeId>)> {
        let mut seats = BTreeMap::new();
        for process in self.hosts.iter().flat_map(|host: &Host| &host.process) {
            for (group, hosted) in process.groups.iter().filter(|(_, it)| it.member.leads()) {
                let configuration = hosted.replica.configuration();
                let of = (configuration.epoch.0, configuration.members.to_vec());
                if seats.get(group).is_none_or(|(epoch, _)| *epoch < of.0) {
                    seats.insert(*group, of);
                }
            }
        }
        seats
    }

    /// How many seats each host has.
    fn counts(&self) -> BTreeMap<u64, usize> {
        let mut counts = BTreeMap::new();
        for (_, members) in self.seats().into_values() {
            members.iter().for_each(|node| *counts.entry(node.0).or_default() += 1);
        }
        counts
    }

    /// How many groups a host has something of.
    pub fn holds(&self, at: usize) -> usize {
        self.hosts[at].process.as_ref().map_or(0, |process| process.groups.len())
    }

    /// What a host answers to an operator.
    fn examine(&mut self, at: usize, leaver: Option<u64>) -> Outcome {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let deadline = self.now + Span::secs(3);
        let control = Control::Examine { from: 0, leaver: leaver.map(NodeId) };
        self.turn(at, |process, cx| process.on_control(ticket, control, deadline, cx));
        let is_told = |world: &mut World| world.answers.iter().any(|(_, of, _)| *of == ticket);
        assert!(self.run_until(SOON, is_told), "it is answered by its deadline");
        let place = self.answers.iter().position(|(_, of, _)| *of == ticket);
        self.answers.remove(place.expect("it was answered")).2
    }
}

fn parts(outcome: Outcome) -> Vec<Part> {
    match outcome {
        Outcome::Examined(examination) => examination.parts,
        other => panic!("{other:?} tells no parts"),
    }
}

#[test]
fn a_host_that_joins_takes_its_share_of_seats_and_no_group_moves_twice() {
    let groups = 16;
    let mut world = founded(4, groups);
    let keys = fill(&mut world);
    world.gather(4..5);
    let is_even = |world: &mut World| {
        let counts = world.counts();
        counts.len() == 4 && counts.values().all(|count| *count == 12)
    };
    assert!(world.run_until(LONG, is_even), "{:?}", world.counts());
    world.run(Span::secs(5));
    let changes: u64 = world.seats().values().map(|(epoch, _)| epoch - 1).sum();
    assert_eq!(changes, 12, "each seat of the newcomer is one change");
    let holds = |host| world.holds(host);
    assert_eq!((0..4).map(holds).collect::<Vec<_>>(), [12; 4], "nobody keeps what it lost");
    has_all(&mut world, 3, &keys);
}

#[test]
fn a_host_that_is_drained_is_free_when_others_have_all() {
    let groups = 4;
    let mut world = founded(4, groups);
    let keys = fill(&mut world);
    world.gather(4..5);
    world.stand(1, Standing::Leaving);
    let awaits = parts(world.examine(0, Some(2)));
    assert!(awaits.iter().any(|part| !part.is_free_of(NodeId(2))), "it has seats");
    let is_empty = |world: &mut World| world.holds(1) == 0;
    assert!(world.run_until(LONG, is_empty), "{:?}", world.seats());
    for host in 0..4 {
        let parts = parts(world.examine(host, Some(2)));
        assert_eq!(parts.len() as u64, groups);
        assert!(parts.iter().all(|part| part.is_free_of(NodeId(2))), "{parts:?}");
        let holds = |part: &Part| part.holders.iter().all(|it| it.holds == Holds::Confirmed);
        assert!(parts.iter().all(|part| part.holders.len() == 3 && holds(part)), "{parts:?}");
    }
    // A restart finds nothing, though it has founded every group.
    world.crash(1);
    world.restart(1);
    assert_eq!(world.holds(1), 0);
    has_all(&mut world, 1, &keys);
    world.crash(1);
    world.stand(1, Standing::Left);
    has_all(&mut world, 3, &keys);
}

#[test]
fn who_may_still_be_taken_in_is_awaited() {
    let mut world = founded(4, 1);
    // It is no member, and it takes part: it may become one.
    world.gather(4..5);
    let parts = parts(world.examine(0, Some(4)));
    let awaited: Vec<_> = parts[0].awaited.iter().map(|it| it.what).collect();
    assert_eq!(awaited, [Await::Refrain; 3]);
}

#[test]
fn who_fails_for_long_is_replaced_by_a_host_that_is_there() {
    let mut world = founded(5, 2);
    let keys = fill(&mut world);
    world.gather(4..6);
    world.run(Span::secs(10));
    world.crash(0);
    world.crash(3);
    world.suspect(0, true);
    world.suspect(3, true);
    world.run(Span::secs(30));
    assert!(world.seats().values().any(|(_, members)| members.contains(&NodeId(1))), "not yet");
    let is_replaced = |world: &mut World| {
        let is_there = |node: &NodeId| ![1, 4].contains(&node.0);
        world
            .seats()
            .values()
            .all(|(_, members)| members.len() == 3 && members.iter().all(is_there))
    };
    assert!(world.run_until(LONG, is_replaced), "{:?}", world.seats());
    has_all(&mut world, 4, &keys);
    // Who comes back finds that others have its seats, and drops what it has.
    world.restart(0);
    assert!(world.run_until(SOON, |world| world.holds(0) == 0), "it holds {}", world.holds(0));
}

#[test]
fn a_ring_that_knows_few_hosts_takes_no_seat_away() {
    let mut world = led(settings(3, 3, 1, Durability::Sync));
    world.gather(1..2);
    world.run(Span::secs(10));
    let members = world.seats()[&GroupId(1)].1.len();
    assert_eq!(members, 3, "those that it does not know are there, as far as anybody knows");
}

#[test]
fn who_was_away_while_all_were_replaced_hears_of_it_and_lets_go() {
    let mut world = founded(6, 1);
    let keys = fill(&mut world);
    // It hears nobody while all members are replaced, itself too.
    (0..6).filter(|other| *other != 0).for_each(|other| world.part(0, other));
    world.gather(4..7);
    (0..3).for_each(|host| world.stand(host, Standing::Leaving));
    let are_new = |world: &mut World| {
        world.seats().get(&GroupId(1)).is_some_and(|(_, it)| *it == [4, 5, 6].map(NodeId))
    };
    assert!(world.run_until(LONG, are_new), "{:?}", world.seats());
    assert!(world.run_until(LONG, |world| world.holds(1) + world.holds(2) == 0), "they let go");
    let told = world.examine(0, None);
    assert_eq!(told, Outcome::Refused(Refusal::NoQuorum { reached: 1, needed: 2 }));
    world.cut.clear();
    assert!(world.run_until(SOON, |world| world.holds(0) == 0), "{:?}", world.show());
    has_all(&mut world, 0, &keys);
}

#[test]
fn who_has_let_go_follows_nobody_into_an_earlier_epoch() {
    let mut world = founded(6, 1);
    let old = world.leader(GroupId(1)).expect("somebody leads");
    (0..6).filter(|other| *other != old).for_each(|other| world.part(old, other));
    world.gather(4..7);
    (0..3).for_each(|host| world.stand(host, Standing::Leaving));
    let is_over = |world: &mut World| (0..3).all(|at| at == old || world.holds(at) == 0);
    assert!(world.run_until(LONG, is_over), "{:?}", world.seats());
    // It still takes itself for the primary, and now hears those that were members with it.
    world.cut.clear();
    (0..3).for_each(|one| (3..6).for_each(|other| world.part(one, other)));
    let put = Operation::put(bytes("k"), bytes("v"));
    let told = world.ask(old, put, Span::secs(3));
    assert!(matches!(told, Outcome::Refused(Refusal::OutcomeOpen { .. })), "{told:?}");
    for at in (0..3).filter(|at| *at != old) {
        let process = world.hosts[at].process.as_ref().expect("it is up");
        let learns = |it: &Hosted| it.replica.status() == Status::Learner;
        assert!(process.groups.values().all(learns), "{:?}", world.show());
    }
    world.cut.clear();
    assert!(world.run_until(Span::secs(90), |world| world.holds(old) == 0), "{:?}", world.show());
}

#[test]
fn who_is_asked_for_the_parts_believes_members_rather_than_hints() {
    let mut world = founded(7, 1);
    // This host holds nothing, and has heard nothing since the begin.
    (0..6).for_each(|other| world.part(6, other));
    world.gather(4..5);
    world.stand(2, Standing::Leaving);
    let is_new =
        |world: &mut World| world.seats().get(&GroupId(1)).is_some_and(|(epoch, _)| *epoch == 2);
    assert!(world.run_until(LONG, is_new));
    world.cut.clear();
    let parts = parts(world.examine(6, None));
    let holders: Vec<u64> = parts[0].holders.iter().map(|holder| holder.node.0).collect();
    assert_eq!(holders, [1, 2, 4]);
}

#[test]
fn a_value_outlives_all_hosts_that_it_was_written_on() {
    let mut world = founded(6, 1);
    let put = Operation::put(key_of(1, 1), bytes("v"));
    assert_eq!(world.ask(0, put, SOON), Outcome::written());
    world.gather(4..7);
    for host in 0..3 {
        world.stand(host, Standing::Leaving);
        let is_empty = |world: &mut World| world.holds(host) == 0;
        assert!(world.run_until(LONG, is_empty), "{:?}", world.seats());
        world.crash(host);
        world.stand(host, Standing::Left);
    }
    let told = world.ask(3, Operation::get(key_of(1, 1)), SOON);
    assert_eq!(told, Outcome::value(Some(bytes("v"))));
}

#[test]
fn a_group_below_its_majority_says_so_at_once_and_whom_it_waits_for() {
    let mut world = founded(3, 1);
    let put = |value| Operation::put(bytes("k"), bytes(value));
    assert_eq!(world.ask(0, put("v"), SOON), Outcome::written());
    for host in [1, 2] {
        world.crash(host);
        world.suspect(host, true);
    }
    world.run(Span::secs(1));
    let refused = Outcome::Refused(Refusal::Minority { view: 1, suspected: 2, members: 3 });
    let began = world.now;
    assert_eq!(world.ask(0, put("w"), SOON), refused);
    assert_eq!(world.ask(0, Operation::get(bytes("k")), SOON), refused);
    assert!(world.now - began < Span::secs(1), "nobody waits until the deadline");
    let process = world.hosts[0].process.as_ref().expect("it is up");
    let waits = process.groups[&GroupId(1)].replica.waits_for(world.now);
    assert_eq!(waits, [2, 3].map(NodeId));
    let mut shown = Shown::default();
    process.inspect(&mut shown);
    let waits = waits.iter().map(|node| format!("{node}")).collect::<Vec<_>>().join(" ");
    assert_eq!(shown.0[..], [&waits[..]], "an operator sees it");
    let parts = process.known_parts();
    let here = parts[0].here.as_ref().expect("it is a member");
    assert_eq!((&here.status[..], &here.moving), ("waiting", &format!("waits for {waits}")));
    world.restart(1);
    world.suspect(1, false);
    assert_eq!(world.ask(0, Operation::get(bytes("k")), SOON), Outcome::value(Some(bytes("v"))));
    assert_eq!(world.ask(0, put("w"), SOON), Outcome::written(), "nothing of the first is left");
}

/// Who follows hears nobody but the primary.
#[test]
fn in_a_group_of_five_nobody_waits_while_all_are_there() {
    let mut world = World::new(7, 5, settings(5, 5, 1, Durability::Sync));
    assert!(world.run_until(SOON, |world| world.leader(GroupId(1)).is_some()));
    world.run(Span::secs(2));
    for host in &world.hosts {
        let parts = host.process.as_ref().expect("it is up").known_parts();
        let here = parts[0].here.as_ref().expect("it is a member");
        assert_eq!((&here.status[..], &here.moving[..]), ("ready", "-"), "{}", here.role);
    }
}

/// What is shown of whom groups wait for.
#[derive(Default)]
struct Shown(Vec<String>);

impl Inspect for Shown {
    fn field(&mut self, _: &'static str, _: &dyn Display) {}

    fn row(&mut self, _: &'static str, cells: &[(&'static str, &dyn Display)]) {
        let waits = cells.iter().filter(|(name, _)| *name == "waits_for");
        self.0.extend(waits.map(|(_, value)| value.to_string()));
    }
}

#[test]
fn a_wish_ends_with_the_view_of_who_had_it() {
    let mut world = founded(4, 1);
    let leader = world.leader(GroupId(1)).expect("somebody leads");
    let leaver = (leader + 1) % 3;
    // The newcomer is wished for, and cannot copy.
    (0..3).for_each(|other| world.part(3, other));
    world.gather(4..5);
    world.stand(leaver, Standing::Leaving);
    let has_wish = |world: &World| {
        let process = world.hosts[leader].process.as_ref().expect("it is up");
        process.groups[&GroupId(1)].seat.wished().is_some()
    };
    assert!(world.run_until(SOON, |world| has_wish(world)), "somebody has to take the seat");
    (0..3).filter(|it| *it != leader).for_each(|other| world.part(leader, other));
    let is_other = |world: &mut World| world.leader(GroupId(1)).is_some_and(|it| it != leader);
    assert!(world.run_until(SOON, is_other), "the others go on");
    // It leads no more once it hears of them; by then nobody wishes for anything.
    world.stand(leaver, Standing::Up);
    world.stand(3, Standing::Leaving);
    world.cut.clear();
    world.run(Span::secs(3));
    let parts = parts(world.examine(0, Some(4)));
    assert!(parts[0].is_free_of(NodeId(4)), "{:?}", parts[0].awaited);
    assert!(!has_wish(&world));
}

#[test]
fn who_has_only_heard_of_an_epoch_is_not_in_it() {
    let mut world = founded(4, 1);
    world.gather(4..5);
    let leaver = (world.leader(GroupId(1)).expect("somebody leads") + 1) % 3;
    let node = world.hosts[leaver].me.node;
    let others: Vec<usize> = (0..3).filter(|at| *at != leaver).collect();
    let members = others.iter().chain([&3]).map(|at| world.hosts[*at].me.node).collect();
    let view = ViewNumber::first(Epoch(2));
    let leads = Leads { group: GroupId(1), members, view, serves: false };
    for at in others.iter().copied().chain([leaver, 3]) {
        let (member, leads) = (world.hosts[others[0]].me, leads.clone());
        world.turn(at, |process, cx| process.on_message(member, Message::Leads(leads), cx));
    }
    let told = world.examine(others[0], Some(node.0));
    assert_eq!(told, Outcome::Refused(Refusal::NoQuorum { reached: 0, needed: 2 }));
}

#[test]
fn who_is_released_and_wished_for_in_one_frame_begins_with_nothing() {
    let mut world = founded(4, 1);
    fill(&mut world);
    world.gather(4..5);
    world.stand(1, Standing::Leaving);
    let group = GroupId(1);
    let owes = |world: &World| {
        let process = world.hosts[1].process.as_ref().expect("it is up");
        process.groups.get(&group).is_some_and(|hosted| hosted.replica.owes())
    };
    assert!(world.run_to(LONG, owes), "it was removed");
    (0..4).filter(|other| *other != 1).for_each(|other| world.part(1, other));
    let replica = &world.hosts[1].process.as_ref().expect("it is up").groups[&group].replica;
    let (epoch, held) = (replica.configuration().epoch, replica.commit());
    let members = replica.configuration().members.clone();
    let (view, commit, end, round) = (ViewNumber::first(epoch), held, held, 0);
    let beat = vsr::Message::Beat { view, commit, end, round, held };
    for node in members.iter() {
        let from = world.hosts[node.0 as usize - 1].me;
        let started = vsr::Message::EpochStarted { epoch };
        let parts = Vec::from([(group, started), (group, beat.clone())]);
        world.turn(1, |process, cx| process.on_message(from, Message::Log(parts), cx));
    }
    assert!(!owes(&world), "a majority is in the epoch");
    world.run(Span::secs(1));
    world.crash(1);
    world.restart(1);
    assert!(world.run_until(Span::secs(90), |world| world.holds(1) == 0), "{:?}", world.show());
}
