//! Clients that are gone: what is dropped for them, and how much is put into the log for that.

use super::*;
use crate::serializable::rules::FORGET_MAX;
use crate::serializable::{Client, Entry};

/// Nothing more was heard of a client.
fn is_gone(world: &mut World, client: u64) {
    world.handle_primary(ONE, Input::ClientGone(Client(client)));
}

fn outcomes(world: &World) -> usize {
    world.state(ONE).head.outcomes.len()
}

/// A lane says each second who is gone: while the log stands, and while another group has to be
/// told how a transaction has ended, that is not put into it again and again.
#[test]
fn that_a_client_is_gone_is_logged_once() {
    let mut world = two();
    let acts = [("1x", put("a")), ("2x", put("b"))];
    let ticket = world.commit_tx(tx(9, 7), &[], &acts);
    commit_all(&mut world);
    assert!(world.deliver(|it| is_vote(&it.message)));
    world.commit(ONE, usize::MAX);
    assert!(world.is_committed(ticket), "the other group has not heard of it");
    let before = outcomes(&world);
    for _ in 0..3 {
        is_gone(&mut world, 7);
        assert_eq!(world.groups[ONE].tail.len(), 1, "the log stands");
    }
    world.commit(ONE, usize::MAX);
    assert_eq!(outcomes(&world), before, "another group may ask");
    is_gone(&mut world, 7);
    assert!(world.groups[ONE].tail.is_empty(), "nothing is left to be dropped");
    world.run_ms(2000);
    assert!(outcomes(&world) < before, "all have applied it");
    world.check_quiet();
    world.check_equal();
}

#[test]
fn clients_that_are_gone_are_dropped_some_at_a_time() {
    let mut world = World::new(1);
    let count = FORGET_MAX as u64 + 9;
    for client in 1..=count {
        world.commit_tx(tx(client, client), &[], &[("1x", put("a"))]);
        world.commit(ONE, usize::MAX);
    }
    assert_eq!(outcomes(&world), count as usize);
    (1..=count).for_each(|client| is_gone(&mut world, client));
    let is_logged = |entry: &bytes::Bytes| {
        matches!(Entry::of(entry).expect("it is an entry"), Entry::ClientGone { .. })
    };
    assert_eq!(world.groups[ONE].tail.len(), FORGET_MAX);
    assert!(world.groups[ONE].tail.iter().all(is_logged));
    world.commit(ONE, usize::MAX);
    assert_eq!(outcomes(&world), 9, "the others wait until they are named again");
    (1..=count).for_each(|client| is_gone(&mut world, client));
    world.settle();
    assert_eq!(outcomes(&world), 0);
    world.check_quiet();
}
