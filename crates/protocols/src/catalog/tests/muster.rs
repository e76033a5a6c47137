//! A keyspace begins on hosts that answer, whoever seems to be there.

use super::settled::told;
use super::world::{World, create, node};
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::{Birth, CatalogRefusal, KeyspaceOrder, NewKeyspace, Settings};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::time::Span;
use std::collections::BTreeSet;
use std::string::ToString;
use std::vec::Vec;

const SOON: Span = Span::secs(3);
const OFTEN: Span = Span::millis(50);

/// Four hosts, the last of which is down; the first has heard nothing of that.
fn one_is_down() -> World {
    let mut world = World::founded(4, 4);
    world.run(SOON);
    world.hosts[0].stale = Some(world.ring_of(0));
    world.crash(3);
    world
}

fn made(world: &mut World, name: &str, engine: &str, replicas: &str) -> Outcome {
    let settings = Settings::from([("replicas".to_string(), replicas.to_string())]);
    let KeyspaceOrder::Create(asked) = create(name, engine) else { panic!("it creates") };
    let order = KeyspaceOrder::Create(NewKeyspace { settings, ..asked });
    let ticket = world.order(0, order, SOON);
    world.run(SOON);
    world.answers[&ticket].clone()
}

/// The nodes that the newest keyspace begins on.
fn nodes(world: &World) -> BTreeSet<NodeId> {
    let keyspace = told(world, 0);
    let views = match &keyspace.birth {
        Birth::Groups(views) => views.clone(),
        Birth::Groupless => Vec::new(),
    };
    let members = views.iter().flat_map(|view| view.members().to_vec());
    members.chain(keyspace.partitions.iter().map(|place| place.node)).collect()
}

#[test]
fn a_keyspace_begins_on_hosts_that_answer() {
    for engine in ["groups", "places"] {
        for replicas in ["1", "3"] {
            let mut world = one_is_down();
            assert_eq!(made(&mut world, "q", engine, replicas), Outcome::Noted);
            let there = BTreeSet::from([0, 1, 2].map(node));
            assert_eq!(nodes(&world), there, "{engine} with {replicas} replicas");
        }
    }
}

/// What is waited for is said.
#[test]
fn too_few_hosts_that_answer_are_too_few() {
    let mut world = one_is_down();
    let told = made(&mut world, "q", "places", "5");
    let few = CatalogRefusal::Hosts { needed: 5, there: 3 };
    assert_eq!(told, Outcome::Refused(Refusal::Catalog(few)));
}

/// What those that answer cannot hold begins on the others too: one of them may be slow.
#[test]
fn who_does_not_answer_is_taken_where_the_others_are_too_few() {
    for engine in ["groups", "places"] {
        let mut world = one_is_down();
        world.crash(2);
        assert_eq!(made(&mut world, "q", engine, "3"), Outcome::Noted);
        let (there, down) = (BTreeSet::from([0, 1].map(node)), BTreeSet::from([2, 3].map(node)));
        let nodes = nodes(&world);
        assert!(there.is_subset(&nodes) && !nodes.is_disjoint(&down), "{engine}: {nodes:?}");
        if let Birth::Groups(views) = &told(&world, 0).birth {
            assert!(views.iter().all(|view| view.members().len() == 3), "{views:?}");
        }
    }
}

/// A host that loses the question once is asked again.
#[test]
fn who_misses_a_question_is_not_left_out() {
    let mut world = World::founded(4, 4);
    world.run(SOON);
    let ticket = world.order(0, create("q", "places"), SOON);
    world.drop_messages();
    world.run(SOON);
    assert_eq!(world.answers[&ticket], Outcome::Noted);
    assert_eq!(nodes(&world), BTreeSet::from([0, 1, 2, 3].map(node)));
}

/// What else is decided says nothing of who is there: whoever asks goes on asking.
#[test]
fn a_keyspace_is_made_while_much_else_is_decided() {
    let mut world = one_is_down();
    let ticket = world.order(0, create("q", "places"), SOON);
    for replicas in ["1", "2"].iter().cycle() {
        if world.answers.contains_key(&ticket) {
            break;
        }
        let settings = Settings::from([("replicas".to_string(), replicas.to_string())]);
        let name = "default".to_string();
        world.order(1, KeyspaceOrder::Alter { name, settings }, SOON);
        world.run(OFTEN);
    }
    assert_eq!(world.answers[&ticket], Outcome::Noted);
}

/// Its time is over before all have answered. Those that have are no members that agreed to it.
#[test]
fn who_says_that_it_is_there_has_agreed_to_nothing() {
    let mut world = one_is_down();
    let ticket = world.order(0, create("q", "places"), OFTEN);
    world.run(SOON);
    let none = Refusal::NoQuorum { reached: 0, needed: 2 };
    assert_eq!(world.answers[&ticket], Outcome::Refused(none));
    assert_eq!(world.names(1), ["default"]);
    assert_eq!(made(&mut world, "q", "places", "3"), Outcome::Noted);
}
