//! The whole cluster ends at one time.

use super::world::{World, node};
use crate::overlay::message::Message;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::operation::{Control, Outcome};
use quorate_kernel::ring::Closing;
use quorate_kernel::time::Span;
use std::vec::Vec;

fn stages(world: &World) -> Vec<Closing> {
    (0..world.len()).map(|host| world.ring(host).closing).collect()
}

/// What the host of an overlay does: says that it is idle, and ends when it shall.
fn obey(world: &mut World, span: Span, is_busy: impl Fn(usize) -> bool) {
    let end = world.now + span;
    while world.now < end {
        world.run(Span::millis(100));
        for host in 0..world.len() {
            match world.ring(host).closing {
                Closing::Finishing if world.is_up(host) && !is_busy(host) => {
                    world.tell(host, Control::Idle);
                }
                Closing::Over => world.crash(host),
                _ => {}
            }
        }
    }
}

fn suspicions(world: &World) -> usize {
    let hosts = 0..world.len();
    hosts.map(|host| world.ring(host).hosts().iter().filter(|seen| seen.is_suspected).count()).sum()
}

fn closed(world: &World) -> Option<Vec<NodeId>> {
    match world.answers.last() {
        Some(Outcome::Closed { silent }) => Some(silent.clone()),
        _ => None,
    }
}

#[test]
fn all_hosts_end_when_all_are_idle() {
    let mut world = World::founded(61, 5);
    world.tell(2, Control::Shutdown);
    world.run(Span::secs(5));
    assert_eq!(stages(&world), [Closing::Finishing; 5], "nobody ends before all are idle");
    for host in [0, 1, 2, 3] {
        world.tell(host, Control::Idle);
    }
    world.run(Span::secs(1));
    assert_eq!(closed(&world), None, "one is busy");
    obey(&mut world, Span::secs(2), |_| false);
    assert_eq!(closed(&world), Some(Vec::new()));
    assert!((0..5).all(|host| !world.is_up(host)));
    assert_eq!(suspicions(&world), 0);
}

#[test]
fn a_lossy_network_delays_and_does_no_more() {
    for seed in 0..20 {
        let mut world = World::founded(6200 + seed, 4);
        world.loss_ppm = 200_000;
        world.tell(0, Control::Shutdown);
        obey(&mut world, Span::secs(20), |_| false);
        assert_eq!(closed(&world), Some(Vec::new()), "seed {seed}");
        assert!((0..4).all(|host| !world.is_up(host)), "seed {seed}");
    }
}

#[test]
fn who_is_cut_off_is_named_and_runs_on() {
    let mut world = World::founded(63, 4);
    world.partition(|host| u8::from(host == 3));
    world.tell(0, Control::Shutdown);
    obey(&mut world, Span::secs(5), |_| false);
    assert_eq!(closed(&world), Some(Vec::from([node(3)])));
    assert!((0..3).all(|host| !world.is_up(host)));
    assert!(world.is_up(3) && world.ring(3).closing == Closing::No);
}

#[test]
fn a_host_that_never_gets_idle_is_not_waited_for_for_ever() {
    let mut world = World::founded(64, 3);
    world.tell(0, Control::Shutdown);
    obey(&mut world, Span::secs(9), |host| host == 1);
    assert_eq!(closed(&world), None);
    obey(&mut world, Span::secs(3), |host| host == 1);
    assert_eq!(closed(&world), Some(Vec::new()), "it was told to end all the same");
}

/// Nobody is left half closed when the host that was asked dies.
#[test]
fn hosts_that_were_told_end_without_the_one_that_told_them() {
    let mut world = World::founded(65, 3);
    world.tell(0, Control::Shutdown);
    world.run(Span::secs(1));
    world.crash(0);
    obey(&mut world, Span::secs(20), |_| false);
    assert!(world.is_up(1) && world.is_up(2));
    assert_eq!(suspicions(&world), 0, "who was told suspects nobody");
    obey(&mut world, Span::secs(20), |_| false);
    assert!(!world.is_up(1) && !world.is_up(2));
}

#[test]
fn two_hosts_may_be_asked_and_one_only_once() {
    let mut world = World::founded(66, 4);
    world.tell(0, Control::Shutdown);
    world.tell(1, Control::Shutdown);
    let twice = world.order(1, Control::Shutdown);
    assert!(matches!(twice, Outcome::Refused(_)), "{twice:?}");
    obey(&mut world, Span::secs(10), |_| false);
    assert!((0..4).all(|host| !world.is_up(host)));
    let is_refused = |told: &&Outcome| matches!(told, Outcome::Refused(_));
    assert_eq!(world.answers.iter().filter(is_refused).count(), 2, "the slower one is told so");
    let silent = world.answers.iter().find_map(|told| match told {
        Outcome::Closed { silent } => Some(silent.len()),
        _ => None,
    });
    assert_eq!(silent, Some(0));
}

#[test]
fn a_restarted_host_knows_nothing_of_it() {
    let mut world = World::founded(67, 3);
    world.tell(0, Control::Shutdown);
    obey(&mut world, Span::secs(3), |_| false);
    (0..3).for_each(|host| world.start(host));
    world.run(Span::secs(10));
    assert_eq!(stages(&world), [Closing::No; 3]);
    assert_eq!(suspicions(&world), 0);
}

/// What the world drops, because it is for an earlier start, would otherwise end the host.
#[test]
fn one_word_is_enough_to_close() {
    let mut world = World::founded(68, 3);
    let from = Incarnation { node: node(1), start: Start(1) };
    world.inject(from, 0, Message::Close { is_over: true });
    assert_eq!(stages(&world), [Closing::Over, Closing::No, Closing::No]);
}
