//! The mistakes that a crash brings to light, each with the shortest schedule in which it would
//! show.

use super::traps::schedule;
use crate::linearizable::Linearizable;
use crate::testing::world::{Setup, World};
use quorate_kernel::ids::{NodeId, Start};
use std::format;
use std::string::String;
use std::vec::Vec;

/// Two starts of one coordinator can choose the same counter and operation number for two puts.
/// Were the timestamps equal, members would hold different values that look the same.
#[test]
fn two_starts_of_a_coordinator_write_different_timestamps() {
    schedule(
        "nodes 3
         hold sync 1
         put 1 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 1->3
         drop all
         crash 1
         restart 1
         put 1 k b
         deliver ReadA 1->2
         deliver ReadB 2->1
         deliver WriteA 1->3
         deliver WriteB 3->1
         # told put k b: written
         drop all
         get 3 k
         deliver ReadA 3->2
         deliver ReadB 2->3
         drop all
         tick 2ms
         deliver all
         # told get k: value b",
    );
}

/// What a member stamps with a view must not leave before that view is synced: after a crash it
/// would stamp an older one again.
#[test]
fn a_stamp_waits_until_its_view_is_synced() {
    schedule(
        "nodes 3 spare 1
         put 1 k a
         deliver ReadA
         deliver ReadB
         hold sync 2
         view 2 2 1 2 4
         deliver WriteA 1->2
         # last 2: holds until synced WriteB to 1: op 1 v1 refused, v2 hint v2(1 2 4)
         crash 2
         restart 2
         show 2 view
         # last 2: view 1",
    );
}

/// A removed member that forgot is still asked by the one who replaced it. It has nothing to give.
#[test]
fn a_removed_member_that_forgot_is_no_source() {
    schedule(
        "nodes 3 spare 2 memory
         put 5 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 5->2
         deliver WriteA 5->3
         deliver WriteB
         # told put k a: written
         drop all
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         crash 3
         restart 3 forgot
         drop all
         tick 250ms
         deliver Invite 1->4
         deliver Invite 2->4
         deliver ListA 4->1
         deliver ListA 4->3
         deliver ListB
         show 4 ready
         # last 4: ready false
         deliver all
         given get 4 k
         # told get k: value a",
    );
}

/// A value that a get shows, or that counts as stored, must be synced at the member that holds it.
#[test]
fn nothing_is_shown_that_a_crash_can_take_back() {
    schedule(
        "nodes 3 spare 1
         put 4 k a
         deliver ReadA
         deliver ReadB
         hold sync 2
         deliver WriteA 4->2
         drop WriteA
         get 3 k
         deliver ReadA 3->2
         drop ReadA
         deliver all
         tick 2ms
         # told nothing
         crash 2
         restart 2
         get 2 k
         deliver ReadA 2->1
         deliver all
         # told get k: nothing",
    );
}

/// An acknowledgement says that the record is synced.
#[test]
fn an_acknowledgement_waits_for_the_sync() {
    schedule(
        "nodes 3 spare 1
         hold sync 2
         put 4 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 4->3
         deliver all
         # told nothing
         sync 2
         deliver all
         # told put k a: written",
    );
}

/// What a member acknowledged before it forgot must not complete a write that is not there any
/// more.
#[test]
fn an_acknowledgement_from_before_the_member_forgot_does_not_count() {
    schedule(
        "nodes 3 spare 1 memory
         put 4 k a
         drop ReadA 4->1
         deliver ReadA
         deliver ReadB
         deliver WriteA 4->1
         deliver WriteB 1->4
         crash 1
         restart 1 forgot
         deliver ListA
         deliver ListB
         show 1 ready
         # last 1: ready true
         deliver WriteA 4->2
         deliver WriteB 2->4
         # told nothing
         drop WriteA
         get 3 k
         deliver ReadA 3->1
         deliver ReadB 1->3
         # told get k: nothing",
    );
}

/// A put that was under way when everything was lost, and that one had acknowledged before, is not
/// told as done.
#[test]
fn a_write_that_read_before_everything_was_lost_is_refused() {
    schedule(
        "nodes 3 spare 1 memory
         put 4 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 4->1
         deliver WriteB 1->4
         drop WriteA 4->3
         crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         drop ListA 1->2
         drop ListA 1->3
         drop ListA 2->1
         drop ListA 2->3
         deliver ListA
         deliver Lacks
         deliver ListA
         deliver Lacks
         deliver ListA
         drop Lacks
         deliver ListB
         show 3 ready
         # last 3: ready true
         deliver WriteA 4->2
         deliver WriteB 2->4
         # told put k a: refused..
         tick 400ms
         deliver all
         show 1 ready
         # last 1: ready true
         get 1 k
         drop ReadA 1->2
         deliver all
         tick 2ms
         deliver all
         # told get k: nothing",
    );
}

/// Members that forget and refill one after the other have each said once that they forgot. Only a
/// second round shows that they had not all forgot at one moment.
#[test]
fn everything_is_lost_only_if_all_had_forgot_at_once() {
    let mut lines = String::from(
        "nodes 5 memory
         given put 5 k a
         # told put k a: written
         crash 1
         restart 1 forgot
         drop all\n",
    );
    for node in 2..=5 {
        // It forgets, says so to node 1, and refills.
        lines += &format!(
            "crash {node}
             restart {node} forgot
             tick 400ms
             deliver ListA 1->{node}
             deliver Lacks {node}->1
             drop ListB {node}->1
             drop ListA 1->
             deliver all
             show {node} ready
             # last {node}: ready true\n"
        );
    }
    schedule(
        &(lines
            + "show 1 ready
               # last 1: ready false
               tick 400ms
               deliver all
               show 1 ready
               # last 1: ready true
               given get 1 k
               # told get k: value a"),
    );
}

/// A source that answers "I forgot" has given nothing, however often it says so.
#[test]
fn two_of_three_that_forgot_stay_silent() {
    schedule(
        "nodes 3 memory
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 1->3
         deliver all
         # told put k a: written
         crash 1
         crash 2
         restart 1 forgot
         restart 2 forgot
         deliver all
         tick 1s
         deliver all
         get 3 k
         deliver all
         # told nothing",
    );
}

/// A newcomer that lacks data acknowledges a write together with a member that has come back, and
/// forgets it. What it asks that member for is what that one holds now, not what it has kept of its
/// earlier membership.
#[test]
fn who_forgot_hears_what_members_that_came_back_hold_now() {
    schedule(
        "nodes 3 spare 1 memory first 100 brisk
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver Invite
         drop all
         view 1 3 1 3 4
         view 2 3 1 3 4
         deliver Invite
         view 4 3 1 3 4
         deliver ListA
         deliver ListB
         drop all
         show 3 groups_lacking_data slots_kept
         # last 3: slots_kept 1
         put 3 k a
         deliver ReadA 3->1
         deliver ReadB 1->3
         drop WriteA 3->1
         deliver WriteA 3->4
         deliver WriteB 4->3
         # told put k a: written
         drop all
         crash 4
         restart 4 forgot
         run 2s
         show 4 ready
         # last 4: ready true
         crash 3
         get 1 k
         run 1s
         # told get k: value a",
    );
}

/// Hosts come, forget and go; what a reply says of those that forgot does not grow with them.
#[test]
fn a_reply_tells_who_forgot_of_its_own_view_alone() {
    let mut world: World<Linearizable> = World::new(&Setup { members: 3, ..Setup::default() });
    let view = world.view(1, &[1, 2, 3]);
    world.step(1, |process, _| {
        for node in 2..=100 {
            process.volatile.crashes.raise(NodeId(node), Start(2));
        }
        let stamp = process.stamp(view.id, 1);
        let told = (1..=100).map(NodeId).filter(|node| stamp.crashes.of(*node) > Start(0));
        assert_eq!(told.collect::<Vec<_>>(), [2, 3].map(NodeId));
        assert_eq!(stamp.crashes.of(NodeId(3)), Start(2));
    });
}
