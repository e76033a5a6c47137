//! How many members groups should have, altered while they serve.

use super::promises::SOON;
use super::seats::{LONG, fill, founded, has_all};
use super::world::World;
use crate::serializable::rules::ENGINE;
use quorate_kernel::ids::{GroupId, LaneId};
use quorate_kernel::keyspace::{Keyspace, Settings};
use quorate_kernel::news::News;
use quorate_kernel::process::Process;
use quorate_kernel::time::Span;
use std::string::ToString;
use std::sync::Arc;

impl World {
    /// An operator has said how many replicas the keyspace should have; hosts that are down learn
    /// it when they start.
    pub fn alter(&mut self, replicas: usize) {
        self.settings.replicas = replicas;
        self.say_settings();
    }

    /// An operator has said how many groups the keyspace should have.
    pub fn alter_groups(&mut self, groups: u64) {
        self.settings.groups = groups;
        self.say_settings();
    }

    fn say_settings(&mut self) {
        let (replicas, groups) = (self.settings.replicas, self.settings.groups as usize);
        let value = self.settings.value_bytes_max;
        let words = [("replicas", replicas), ("value", value), ("groups", groups)];
        let words = words.map(|(name, number)| (name.to_string(), number.to_string()));
        let settings = ENGINE.complete(&Settings::from(words)).expect("they can be set");
        let keyspace = Arc::new(Keyspace::new("k", LaneId(17), ENGINE.name, settings, 3));
        for at in 0..self.hosts.len() {
            if self.is_up(at) {
                self.turn(at, |process, cx| process.on_news(News::Keyspace(&keyspace), cx));
            }
        }
    }

    fn have_sizes(&self, groups: usize, size: usize) -> bool {
        let seats = self.seats();
        seats.len() == groups && seats.values().all(|(_, members)| members.len() == size)
    }
}

#[test]
fn groups_grow_and_shrink_to_what_is_altered_and_keep_their_keys() {
    let mut world = founded(5, 4);
    let keys = fill(&mut world);
    world.gather(4..6);
    for replicas in [5, 1, 2, 3] {
        world.alter(replicas);
        let is_done = |world: &mut World| world.have_sizes(4, replicas);
        assert!(world.run_until(LONG, is_done), "{replicas} replicas: {:?}", world.seats());
        has_all(&mut world, 0, &keys);
        has_all(&mut world, 4, &keys);
    }
}

#[test]
fn who_starts_after_replicas_were_altered_has_the_groups_of_the_beginning() {
    let mut world = founded(5, 4);
    let keys = fill(&mut world);
    world.gather(4..6);
    world.crash(0);
    world.alter(5);
    world.run(SOON);
    (1..5).for_each(|at| world.crash(at));
    (0..5).for_each(|at| world.restart(at));
    assert!(world.run_until(LONG, |world| world.have_sizes(4, 5)), "{:?}", world.seats());
    (0..5).for_each(|at| has_all(&mut world, at, &keys));
}

/// One of three is dead when two are wished for: it is the one that goes, whichever it is.
#[test]
fn who_is_dead_goes_first_and_the_others_go_on() {
    for victim in 0..3 {
        for replicas in [2, 1] {
            let mut world = founded(3, 1);
            let keys = fill(&mut world);
            world.crash(victim);
            world.suspect(victim, true);
            world.run(SOON);
            world.alter(replicas);
            // Before it has failed for good.
            let is_done = |world: &mut World| world.have_sizes(1, replicas);
            assert!(world.run_until(Span::secs(20), is_done), "{:?}", world.seats());
            let (_, members) = world.seats().into_values().next().expect("it is led");
            assert!(!members.contains(&world.hosts[victim].me.node), "host {victim} goes");
            has_all(&mut world, (victim + 1) % 3, &keys);
        }
    }
}

/// Nobody knows yet that a host is dead: the group does not become one of the dead and one other.
#[test]
fn no_group_shrinks_to_members_of_which_most_are_not_there() {
    for victim in 0..3 {
        let mut world = founded(3, 1);
        let keys = fill(&mut world);
        world.crash(victim);
        world.run(Span::secs(1));
        world.alter(2);
        world.run(Span::secs(5));
        has_all(&mut world, (victim + 1) % 3, &keys);
        world.suspect(victim, true);
        assert!(world.run_until(LONG, |world| world.have_sizes(1, 2)));
        has_all(&mut world, (victim + 2) % 3, &keys);
    }
}

#[test]
fn fewer_replicas_do_without_who_has_failed_where_nobody_can_take_its_seat() {
    let mut world = founded(5, 1);
    let keys = fill(&mut world);
    world.gather(4..6);
    world.alter(5);
    assert!(world.run_until(LONG, |world| world.have_sizes(1, 5)));
    world.crash(4);
    world.suspect(4, true);
    world.run(Span::secs(61));
    world.alter(3);
    assert!(world.run_until(LONG, |world| world.have_sizes(1, 3)), "{:?}", world.seats());
    let (_, members) = world.seats().into_values().next().expect("it is led");
    assert!(!members.contains(&world.hosts[4].me.node), "it goes first");
    has_all(&mut world, 0, &keys);
}

/// A seat is to be taken by a newcomer when the group is to have fewer of them: nobody takes it.
#[test]
fn nobody_takes_a_seat_that_is_to_go() {
    for is_heard in [false, true] {
        let mut world = founded(6, 1);
        let keys = fill(&mut world);
        world.gather(4..6);
        world.alter(5);
        assert!(world.run_until(LONG, |world| world.have_sizes(1, 5)));
        world.crash(4);
        world.suspect(4, true);
        world.run(Span::secs(61));
        (0..5).for_each(|other| world.part(5, other));
        world.gather(6..7);
        let newcomer = world.hosts[5].me.node;
        let is_wished = |world: &World| {
            let hosts = world.hosts.iter().flat_map(|host| &host.process);
            let mut wishes = hosts.filter_map(|it| it.groups.get(&GroupId(1))?.seat.wished());
            wishes.any(|wish| wish.contains(&newcomer))
        };
        assert!(world.run_to(SOON, is_wished), "it is to take the seat");
        world.alter(3);
        // The seats are looked at every second.
        world.run(Span::millis(1500));
        if is_heard {
            world.cut.clear();
        }
        let is_done = |world: &mut World| world.have_sizes(1, 3);
        assert!(world.run_until(Span::secs(20), is_done), "{:?}", world.seats());
        let (_, members) = world.seats().into_values().next().expect("it is led");
        assert!(!members.contains(&world.hosts[4].me.node), "the dead one goes first");
        assert!(!members.contains(&newcomer), "{members:?}");
        has_all(&mut world, 0, &keys);
        world.cut.clear();
        assert!(world.run_until(Span::secs(90), |world| world.holds(5) == 0), "it is not needed");
    }
}
