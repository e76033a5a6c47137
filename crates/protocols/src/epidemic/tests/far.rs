//! Times that are far ahead, of one node whose disk may be damaged.

use super::copies::{asked, emptied};
use super::joining::{number, page};
use super::world::{World, put};
use crate::epidemic::message::{Message, SnapshotB};
use crate::epto::LogicalTime;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::EPTO_CLOCK_JUMP_MAX;
use quorate_kernel::operation::Outcome;

/// These are ready and send all that they have: the node is ready then, and its clock not far.
fn joins_near(mut world: World, node: NodeId, donors: &[NodeId]) {
    for donor in donors {
        let usual = page(&world, node, number(&world, node, *donor), 3, true);
        world.say(*donor, node, Message::SnapshotB(usual));
    }
    world.run(2);
    assert!(world.state(node).is_whole());
    assert!(world.state(node).epto.clock() < LogicalTime(EPTO_CLOCK_JUMP_MAX));
}

/// One page of one node, whose disk may be damaged, moves no clock far where others are ready.
#[test]
fn what_one_says_moves_no_clock_where_others_are_ready() {
    let (mut world, node, members) = emptied(71);
    let first = page(&world, node, number(&world, node, members[0]), 1 << 61, false);
    world.say(members[0], node, Message::SnapshotB(SnapshotB { is_ready: false, ..first }));
    joins_near(world, node, &members[1..3]);
}

/// Also if that one is ready, once others were heard: what no ball may say no page may.
#[test]
fn what_no_ball_may_say_no_page_may() {
    let (mut world, node, members) = emptied(71);
    assert!(matches!(world.done("x", put("1")), Outcome::Written { .. }));
    world.run(20);
    assert!(world.state(node).epto.has_clock());
    asked(&mut world, node, &members[..3]);
    let far = page(&world, node, number(&world, node, members[0]), 1 << 61, true);
    world.say(members[0], node, Message::SnapshotB(far));
    joins_near(world, node, &members[1..3]);
}
