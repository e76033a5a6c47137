//! What other groups tell while clients have filled a group: it is heard, and ends.

use super::*;
use crate::serializable::{Act, Cause, rules};
use bytes::Bytes;
use std::vec;

const MIB: usize = 1024 * 1024;

fn large(bytes: usize) -> Act {
    let value = crate::serializable::Raw(Bytes::from(vec![b'x'; bytes]));
    Act::Put { value, expiry: crate::serializable::Expiry::Never }
}

/// Transactions that wait for a key, as large as a primary may have in hand; an older one holds it.
/// They begin with `10.10`.
fn fill_hands(world: &mut World, at: usize, name: &str) {
    let other = if at == ONE { "2held" } else { "1held" };
    world.commit_at(at, tx(5, 5), &[], &[(name, put("h")), (other, put("h"))]);
    world.commit(at, usize::MAX);
    let room = rules::IN_HAND_BYTES_MAX / (8 * MIB);
    for client in 10..=10 + room as u64 {
        let acts = [(name, large(8 * MIB)), (other, put("a"))];
        world.commit_at(at, tx(client, client), &[], &acts);
    }
    let late = world.commit_at(at, tx(90, 90), &[], &[(name, put("a")), (other, put("a"))]);
    let refused = Some(&Reply::Refused(crate::serializable::Refused::Busy));
    assert!(at != ONE || world.answer(late) == refused, "no client may ask for more");
    assert!(world.groups[at].tail.is_empty(), "they wait");
}

/// What waits here is aborted by the group that decides: the fuller this one is, the more it needs
/// to hear that.
#[test]
fn a_full_group_ends_what_it_has_received() {
    let mut world = World::new(2);
    fill_hands(&mut world, TWO, "2x");
    let abort = |counter: u64| {
        let (tx, group) = (tx(counter, counter), GroupId(1));
        Input::Message(Message::Decision { tx, group, outcome: Err(Cause::Timeout) })
    };
    world.handle_primary(TWO, abort(12));
    assert_eq!(world.groups[TWO].tail.len(), 1, "it ends");
    world.net.clear();
    world.commit(TWO, usize::MAX);
    let applied = |it: &Message| matches!(it, Message::Applied { tx: id, .. } if *id == tx(12, 12));
    assert!(world.net.iter().any(|it| applied(&it.message)), "and is told no more");
    let before = world.groups[TWO].replicas[0].member.in_hand();
    world.handle_primary(TWO, abort(13));
    world.commit(TWO, usize::MAX);
    assert_eq!(world.groups[TWO].replicas[0].member.in_hand(), before - 1);
}
