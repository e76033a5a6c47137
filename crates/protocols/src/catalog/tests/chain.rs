//! Births, races, orders and what is refused.

use super::world::{World, create};
use crate::catalog::message::Message;
use quorate_kernel::ids::{LaneId, NodeId, Start};
use quorate_kernel::keyspace::{Birth, CatalogRefusal, KeyspaceOrder, Settings};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::time::Span;
use std::boxed::Box;
use std::string::ToString;
use std::vec::Vec;

const SOON: Span = Span::secs(2);

fn refusal(world: &World, ticket: quorate_kernel::ids::Ticket) -> CatalogRefusal {
    match world.answers.get(&ticket) {
        Some(Outcome::Refused(Refusal::Catalog(why))) => why.clone(),
        other => panic!("it is refused, and not {other:?}"),
    }
}

fn settings(pairs: &[(&str, &str)]) -> Settings {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

#[test]
fn all_founders_know_the_birth_and_the_first_start_of_its_lanes() {
    let mut world = World::founded(1, 3);
    world.run(SOON);
    for host in 0..3 {
        assert_eq!(
            (world.names(host), world.version(host)),
            (Vec::from(["default".to_string()]), 2)
        );
        let told = world.hosts[host].told.as_ref().expect("it was told");
        let (keyspace, start) = &told.list[0];
        assert_eq!((keyspace.lane, keyspace.created, *start), (LaneId::KEYSPACES, 2, Start(1)));
        let Birth::Groups(views) = &keyspace.birth else { panic!("{:?}", keyspace.birth) };
        assert!(views.iter().all(|view| view.members().len() == keyspace.replicas()));
    }
}

/// Who starts later takes the first views from the record: views of another size under the same
/// name would have quorums that do not meet those of the others.
#[test]
fn what_a_keyspace_began_with_stays_when_its_replicas_are_altered() {
    let mut world = World::founded(1, 5);
    world.run(SOON);
    let told = |world: &World| world.hosts[0].told.as_ref().expect("it was told").list[0].0.clone();
    let before = told(&world);
    let replicas = if before.replicas() == 3 { "5" } else { "3" };
    let (name, settings) = ("default".to_string(), settings(&[("replicas", replicas)]));
    let order = world.order(0, KeyspaceOrder::Alter { name, settings }, SOON);
    world.run(SOON);
    assert_eq!(world.answers[&order], Outcome::Noted);
    let after = told(&world);
    assert_ne!(before.replicas(), after.replicas());
    assert_eq!(before.birth, after.birth);
}

#[test]
fn of_two_creations_of_one_name_one_is_decided_and_the_other_learns_why_not() {
    for seed in 0..60 {
        let mut world = World::founded(seed, 5);
        world.jitter = Span::millis(5);
        world.run(SOON);
        let tickets = [0, 3, 4].map(|host| world.order(host, create("x", "groups"), SOON));
        world.run(SOON);
        let won = tickets.iter().filter(|one| world.answers[*one] == Outcome::Noted).count();
        assert_eq!(won, 1, "seed {seed}: {:?}", world.answers);
        for ticket in tickets.iter().filter(|one| world.answers[*one] != Outcome::Noted) {
            assert_eq!(refusal(&world, *ticket), CatalogRefusal::Exists { name: "x".to_string() });
        }
        assert!((0..5).all(|host| world.names(host) == ["default", "x"]), "seed {seed}");
    }
}

#[test]
fn equal_wishes_of_two_hosts_are_two_wishes() {
    let mut world = World::founded(7, 3);
    let tickets = [0, 1, 2].map(|host| {
        let name = "default".to_string();
        world.order(host, KeyspaceOrder::Drop { name }, SOON)
    });
    world.run(SOON);
    let done = tickets.iter().filter(|one| world.answers[*one] == Outcome::Noted).count();
    assert_eq!(done, 1, "one dropped it: {:?}", world.answers);
}

#[test]
fn a_lane_is_never_given_again_and_what_was_dropped_is_remembered() {
    let mut world = World::founded(2, 3);
    for round in 0..3 {
        let made = world.order(round, create("x", "groups"), SOON);
        world.run(SOON);
        let dropped = world.order(0, KeyspaceOrder::Drop { name: "x".to_string() }, SOON);
        world.run(SOON);
        assert_eq!(
            (&world.answers[&made], &world.answers[&dropped]),
            (&Outcome::Noted, &Outcome::Noted)
        );
    }
    let made = world.order(0, create("x", "groups"), SOON);
    world.run(SOON);
    assert_eq!(world.answers[&made], Outcome::Noted);
    for host in 0..3 {
        let told = world.hosts[host].told.as_ref().expect("it was told");
        assert_eq!(told.list[1].0.lane, LaneId(20));
        assert_eq!(told.dropped, [17, 18, 19].map(LaneId));
    }
}

#[test]
fn what_is_altered_is_known_everywhere_and_what_may_not_be_says_why() {
    let mut world = World::founded(3, 3);
    let alter = |pairs: &[(&str, &str)]| KeyspaceOrder::Alter {
        name: "default".to_string(),
        settings: settings(pairs),
    };
    let ok = world.order(1, alter(&[("replicas", "1")]), SOON);
    world.run(SOON);
    let same = world.order(2, alter(&[("replicas", "1")]), SOON);
    let fixed = world.order(2, alter(&[("durability", "memory")]), SOON);
    let unknown = world.order(2, alter(&[("ttl", "1")]), SOON);
    world.run(SOON);
    assert_eq!((&world.answers[&ok], &world.answers[&same]), (&Outcome::Noted, &Outcome::Noted));
    let (name, why) = ("durability".to_string(), "it says what is on disk".to_string());
    assert_eq!(refusal(&world, fixed), CatalogRefusal::Fixed { name, why });
    assert!(matches!(refusal(&world, unknown), CatalogRefusal::Setting { .. }));
    assert_eq!(world.version(0), 3, "what changes nothing is no decree");
    for host in 0..3 {
        let told = world.hosts[host].told.as_ref().expect("it was told");
        assert_eq!((told.list[0].0.replicas(), told.list[0].0.changed), (1, 3));
    }
}

#[test]
fn orders_that_cannot_be_are_refused_with_the_reason() {
    let mut world = World::founded(4, 2);
    let drop = |name: &str| KeyspaceOrder::Drop { name: name.to_string() };
    let orders = [
        (create("9x", "groups"), "keyspace name `9x` is not allowed"),
        (create("x", "fast"), "unknown engine `fast`; this build has: groups, places"),
        (create("default", "groups"), "there is a keyspace `default` already"),
        (drop("y"), "there is no keyspace `y`"),
        (create("p", "places"), "3 hosts that take part and answer are needed, and 2 are there"),
        (
            KeyspaceOrder::Replace { name: "default".to_string(), partition: 0, to: NodeId(1) },
            "keyspace `default` has 0 partitions, and not number 0",
        ),
    ];
    for (order, why) in orders {
        let ticket = world.order(0, order, SOON);
        world.run(SOON);
        let text = refusal(&world, ticket).to_string();
        assert!(text.starts_with(why), "{text}");
    }
    assert_eq!(world.version(0), 2);
}

#[test]
fn a_host_that_lags_asks_before_it_refuses() {
    let mut world = World::founded(5, 3);
    world.run(SOON);
    // Host 2 does not hear of the drop.
    world.hosts[2].side = 1;
    let dropped = world.order(0, KeyspaceOrder::Drop { name: "default".to_string() }, SOON);
    world.run(Span::millis(50));
    assert_eq!(world.answers[&dropped], Outcome::Noted);
    world.hosts[2].side = 0;
    assert_eq!(world.version(2), 2, "it does not know yet");
    let made = world.order(2, create("default", "groups"), SOON);
    world.run(SOON);
    assert_eq!(world.answers[&made], Outcome::Noted);
    assert_eq!(world.names(1), ["default"]);
}

/// It believes that nothing is left to do: what it does not know yet is a change of the same.
#[test]
fn a_host_that_lags_asks_before_it_says_that_nothing_is_to_be_done() {
    let mut world = World::founded(5, 3);
    world.run(SOON);
    let alter = |replicas: &str| KeyspaceOrder::Alter {
        name: "default".to_string(),
        settings: settings(&[("replicas", replicas)]),
    };
    world.hosts[2].side = 1;
    let first = world.order(0, alter("1"), SOON);
    world.run(Span::millis(50));
    world.hosts[2].side = 0;
    assert_eq!(world.version(2), 2, "it does not know yet");
    let second = world.order(2, alter("3"), SOON);
    world.run(SOON);
    let answers = [first, second].map(|ticket| world.answers[&ticket].clone());
    assert_eq!(answers, [Outcome::Noted, Outcome::Noted]);
    let told = world.hosts[0].told.as_ref().expect("it was told");
    assert_eq!(told.list[0].0.replicas(), 3, "the second came after the first");
}

#[test]
fn a_keyspace_made_online_begins_with_groups_that_cover_the_ring() {
    let mut world = World::founded(6, 4);
    world.run(SOON);
    let made = world.order(3, create("x", "groups"), SOON);
    world.run(SOON);
    assert_eq!(world.answers[&made], Outcome::Noted);
    let told = world.hosts[0].told.as_ref().expect("it was told");
    let Birth::Groups(views) = &told.list[1].0.birth else { panic!("it was made online") };
    assert_eq!(views.len(), 4);
    for partition in [0, 1 << 58, u64::MAX / 2, u64::MAX] {
        let count = views.iter().filter(|view| view.range.contains(partition)).count();
        assert_eq!(count, 1, "{partition} has one group");
    }
    assert!(views.iter().all(|view| view.members().len() == 3));
}

/// No correct peer says so. It is counted, and the host goes on with what it has.
#[test]
fn a_decree_beside_another_one_of_its_number_is_refused() {
    let mut world = World::founded(3, 3);
    world.run(Span::secs(3));
    world.order(0, create("x", "groups"), Span::secs(3));
    world.run(Span::secs(3));
    let stored = &world.hosts[1].lane.as_ref().expect("it is up").state.stored;
    let (number, before) = stored.entries[stored.entries.len() - 2].clone();
    assert_eq!(world.version(1), number + 1);
    // What was decided before is said to be what was decided last.
    let message = Message::Entries { follows: number, entries: Vec::from([before]) };
    world.refused = Some(Vec::new());
    world.deliver(Vec::from([(world.hosts[0].me, Box::new(message))]), 1);
    assert_eq!(world.refused.take(), Some(Vec::from(["two decrees have one number"])));
    world.run(Span::secs(3));
    assert!((0..3).all(|host| world.names(host) == ["default", "x"]));
}
