//! Invitations that come too late, and how often they are sent.

use crate::linearizable::Linearizable;
use crate::linearizable::group::Standing;
use crate::linearizable::message::{Beat, Known, Message};
use crate::linearizable::tests::random::rings::up;
use crate::linearizable::tests::traps::schedule;
use crate::testing::world::{Setup, World};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::process::Process;
use quorate_kernel::ring::Closing;
use quorate_kernel::time::Span;
use quorate_kernel::view::ViewId;
use std::vec::Vec;

/// A member has come, was replaced and has let go. Now the invitation arrives that was sent first:
/// it has voted in its view, and others are in a later one, so it does not go back.
#[test]
fn an_invitation_that_comes_late_leads_nobody_back() {
    schedule(
        "nodes 3 spare 2 first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         delay Invite
         run 1s
         show 4 ready
         # last 4: ready true
         view 1 3 1 2 5
         view 2 3 1 2 5
         view 4 3 1 2 5
         ring all 1:1 2:2 5:5 a3:3 a4:4
         run 3s
         show 4 groups
         # last 4: groups 0
         release
         deliver Invite
         show 4 groups
         # last 4: groups 0",
    );
}

/// For a second a node hears something else of node 4 each millisecond, and nothing of others.
fn news(world: &mut World<Linearizable>, node: u64, view: ViewId, standings: [Standing; 2]) {
    let from = Incarnation { node: NodeId(4), start: Start(1) };
    for step in 0..1000 {
        let standing = standings[step % 2];
        let beat = Beat { view, standing, known: Known::default(), asks: false };
        let news = Message::Beats(Vec::from([beat]));
        world.step(node, |process, cx| process.on_message(from, news, cx));
        world.tick(Span::millis(1));
        world.flights.clear();
    }
}

fn count(world: &World<Linearizable>, begin: &str) -> usize {
    world.log.iter().filter(|line| line.starts_with(begin)).count()
}

/// News of the one that it owes an invitation are a reason for who has left to look at its groups,
/// but not each time, nor to invite each time: two that have left, and owe each other one, would
/// keep each other busy without end.
#[test]
fn news_of_who_is_owed_an_invitation_are_followed_at_a_pace() {
    let setup = Setup { members: 3, spares: 1, first: Some(0x100), ..Setup::default() };
    let mut world = World::new(&setup);
    let next = world.view(2, &[1, 2, 4]);
    world.decide(3, &next);
    news(&mut world, 3, next.id, [Standing::Outside, Standing::Busy]);
    // Between two looks that are due, every 250 ms, are sixteen more at most.
    let looks = count(&world, "3: timer Maintain");
    assert!((32..=72).contains(&looks), "{looks} looks");
    let invitations = count(&world, "3: Invite to 4");
    assert!((2..=6).contains(&invitations), "{invitations} invitations");
}

/// So it is with news of a host that shall learn what the group has, and does not.
#[test]
fn who_shall_learn_is_asked_at_a_pace() {
    let setup = Setup { members: 3, spares: 1, first: Some(0x100), ..Setup::default() };
    let mut world = World::new(&setup);
    world.crash(4);
    let hosts = up(&[(1, 1), (2, 2), (4, 4), (0xa3, 3)]);
    (1..=3).for_each(|node| world.announce(node, &hosts, Closing::No));
    for _ in 0..100 {
        world.tick(Span::millis(20));
        while !world.flights.is_empty() {
            world.deliver(0);
        }
    }
    world.log.clear();
    let view = world.view(1, &[1, 2, 3]);
    news(&mut world, 1, view.id, [Standing::Busy, Standing::Forgot]);
    let looks = count(&world, "1: timer Maintain");
    assert!((32..=72).contains(&looks), "{looks} looks");
    let questions = count(&world, "1: Learn to 4");
    assert!((2..=6).contains(&questions), "{questions} questions");
}
