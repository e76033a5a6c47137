//! Members that have left a group of even size, and those that forget while it gathers.

use super::gathers::removed_without_the_third;
use crate::linearizable::tests::traps::schedule;
use std::format;
use std::string::String;

/// Who is chosen again, never comes and is let go is a member in name only: that it has seen no
/// removal of tombstones says nothing of who has gathered since.
#[test]
fn who_left_without_having_come_says_nothing_of_those_that_gather() {
    schedule(
        "nodes 3 spare 1 memory first 100 brisk
         given put 1 x v
         # told put x v: written
         cut 3
         view 1 2 1 2 4
         view 2 2 1 2 4
         deliver Invite
         run 2s
         given delete 1 x
         # told delete x: deleted 1
         ring all 1:1 2:2 4:4
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 1->2
         deliver WriteA
         deliver WriteB
         # told put k a: written
         view 1 3 1 2 3
         view 2 3 1 2 3
         view 4 3 1 2 3
         drop all
         view 1 4 1 2
         view 2 4 1 2
         drop all
         ring all 1:1 2:2 3:3:leaving 4:4:leaving
         crash 1
         mend 3
         restart 1 forgot
         deliver ListA 1->3
         deliver ListB 3->1
         run 2s
         get 1 k
         run 1s
         # told get k: value a",
    );
}

/// Who was shrunk out is removed for good before anybody has gathered, and one of the two that stay
/// forgets. What the leaver alone had is lost, as whoever removed it was told; the two go on.
fn removed_before_anybody_gathered(spare: &str, then: &str) {
    schedule(&format!(
        "nodes 3 {spare} memory first 100 brisk
         given put 1 j a
         # told put j a: written
         view 1 2 1 2
         view 2 2 1 2
         view 3 2 1 2
         drop all
         crash 3
         crash 1
         restart 1 forgot
         run 3s
         show 1 groups_lacking_data
         # last 1: groups_lacking_data 1
         ring all 1:1 2:2 3:3:left
         run 5s
         show 1 groups_lacking_data
         # last 1: groups_lacking_data 0
         {then}"
    ));
}

#[test]
fn who_left_and_was_removed_is_not_waited_for() {
    removed_before_anybody_gathered(
        "",
        "given get 1 j
         # told get j: value a",
    );
}

/// A leaver that forgot, and has on its disk what was deleted since it left, is refilled by members
/// that have removed the tombstone: that it hears them now is no reason to believe what it holds.
#[test]
fn who_left_and_was_refilled_brings_nothing_back_that_was_deleted() {
    removed_without_the_third(
        "spare 1 periodic",
        "mend 3
         view 3 2 1 2
         crash 3
         restart 3 forgot
         deliver ListA
         deliver ListB
         crash 2
         view 1 3 1 2 4
         drop all
         restart 2 forgot
         deliver ListA
         deliver ListB
         run 2s
         given get 2 k
         # told get k: nothing",
    );
}

/// The leaver has heard one source that has removed the tombstone, and one that has not.
#[test]
fn who_passed_through_brings_nothing_back_that_was_deleted() {
    schedule(
        "nodes 3 spare 2 memory first 100 brisk
         cut 3
         view 1 2 1 2 4
         view 2 2 1 2 4
         deliver Invite
         run 2s
         given put 4 x v
         # told put x v: written
         cut 4
         given delete 1 x
         # told delete x: deleted 1
         view 1 3 1 2 3
         view 2 3 1 2 3
         drop all
         view 1 4 1 2
         view 2 4 1 2
         ring all 1:1 2:2 3:3:leaving 4:4:leaving
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         view 1 5 1 2 5
         drop all
         crash 2
         mend 3
         mend 4
         run 2s
         restart 2 forgot
         deliver ListA
         deliver ListB
         run 2s
         given get 2 x
         # told get x: nothing",
    );
}

/// What one member knows of a loss of long ago is no reason for one that forgot now to go on
/// without a leaver that can be reached again.
#[test]
fn a_loss_of_others_takes_no_place_of_a_leaver() {
    removed_before_anybody_gathered(
        "spare 1",
        "view 1 3 1 2 4
         view 2 3 1 2 4
         deliver Invite
         drop ListA 4->1
         run 2s
         put 2 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 2->1
         deliver WriteA
         deliver WriteB
         # told put k a: written
         view 1 4 1 4
         view 2 4 1 4
         view 4 4 1 4
         drop all
         ring all 1:1 2:2:leaving 3:3:left 4:4
         cut 2
         crash 4
         restart 4 forgot
         run 5s
         show 4 groups_lacking_data
         # last 4: groups_lacking_data 1
         mend 2
         run 4s
         get 4 k
         run 1s
         # told get k: value a",
    );
}

/// A leaver that went for good after all had gathered is missed by nobody: while one member has
/// everything, those that forgot wait for each other.
#[test]
fn a_leaver_that_is_gone_is_no_reason_to_give_up() {
    let members: String = (1..=5).map(|node| format!("view {node} 2 1 2 4 5\n")).collect();
    schedule(&format!(
        "nodes 5 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         {members}
         run 2s
         crash 3
         ring all 1:1 2:2 3:3:left 4:4 5:5
         run 1s
         put 2 k b
         deliver ReadA
         deliver ReadB
         drop WriteA 2->1
         deliver WriteA
         deliver WriteB
         # told put k b: written
         crash 2
         crash 4
         crash 5
         restart 2 forgot
         restart 4 forgot
         restart 5 forgot
         ring all 1:1 2:2 3:3:left 4:4 5:5
         run 5s
         show 2 groups_lacking_data
         # last 2: groups_lacking_data 1"
    ));
}

/// Half of a group of two is enough for a newcomer that was replaced before it had everything, also
/// after a restart.
#[test]
fn a_newcomer_that_left_needs_one_of_two() {
    schedule(
        "nodes 2 spare 2 first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 3
         view 2 2 1 2 3
         deliver Invite
         drop all
         view 1 3 1 2 4
         view 2 3 1 2 4
         view 3 3 1 2 4
         deliver Invite
         drop all
         crash 3
         restart 3
         crash 2
         run 5s
         show 4 groups_lacking_data
         # last 4: groups_lacking_data 0",
    );
}

/// A leaver has stored a put while it lacked data, and hears later, from members that have removed
/// the tombstone, what it lacked.
#[test]
fn who_left_busy_brings_nothing_back_that_was_deleted() {
    schedule(
        "nodes 3 spare 2 memory first 100 brisk
         cut 3
         view 1 2 1 2 4
         view 2 2 1 2 4
         deliver Invite
         drop all
         given put 1 x v
         # told put x v: written
         cut 4
         given delete 1 x
         # told delete x: deleted 1
         view 1 3 1 2
         view 2 3 1 2
         view 4 3 1 2
         ring all 1:1 2:2 3:3:leaving 4:4:leaving
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         mend 4
         tick 400ms
         deliver ListA 4->1
         deliver ListA 4->2
         deliver ListB 1->4
         deliver ListB 2->4
         drop all
         view 1 4 1 2 5
         drop all
         crash 2
         restart 2 forgot
         deliver ListA
         deliver ListB
         run 2s
         given get 2 x
         # told get x: nothing",
    );
}

/// A leaver has seen the first step of a removal that goes on without it.
#[test]
fn who_left_after_the_first_step_brings_nothing_back_that_was_deleted() {
    schedule(
        "nodes 3 spare 1 memory first 100 brisk
         given put 1 k v
         # told put k v: written
         cut 3
         given delete 1 k
         # told delete k: deleted 1
         mend 3
         ring all 1:1 2:2 3:3
         run 800ms
         cut 3
         view 1 2 1 2
         view 2 2 1 2
         ring all 1:1 2:2 3:3:leaving
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         show 2 tombstones_purged
         # last 2: tombstones_purged 1
         crash 2
         mend 3
         run 1s
         show 3 groups_kept_for_others
         # last 3: groups_kept_for_others 1
         view 1 3 1 2 4
         drop all
         restart 2 forgot
         deliver ListA
         deliver ListB
         run 2s
         given get 2 k
         # told get k: nothing",
    );
}

/// A leaver that was chosen again lists what it kept of the membership before.
#[test]
fn who_left_and_came_again_brings_nothing_back_that_was_deleted() {
    schedule(
        "nodes 5 memory first 100 brisk
         given put 1 x v
         # told put x v: written
         cut 5
         given delete 1 x
         # told delete x: deleted 1
         view 1 2 1 2 3 4
         view 2 2 1 2 3 4
         view 3 2 1 2 3 4
         view 4 2 1 2 3 4
         ring all 1:1 2:2 3:3 4:4 5:5:leaving
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         mend 5
         view 5 2 1 2 3 4
         crash 4
         view 1 3 1 2 3 4 5
         view 2 3 1 2 3 4 5
         view 3 3 1 2 3 4 5
         deliver Invite
         drop all
         restart 4 forgot
         drop ListA 4->3
         deliver ListA
         deliver ListB
         run 2s
         given get 4 x
         # told get x: nothing",
    );
}

/// Who has left was down while the group went on, and forgot. The only member that it knows of has
/// let go since, and tells it what has become of the group.
#[test]
fn who_has_left_hears_that_the_group_went_on() {
    schedule(
        "nodes 1 spare 2 memory first 100 brisk
         view 1 2 2
         deliver Invite
         deliver ListA
         deliver ListB
         crash 1
         view 2 3 3
         ring all 1:1:leaving 2:2:leaving 3:3
         run 3s
         restart 1 forgot
         ring 1 1:1:leaving 2:2:leaving 3:3
         run 6s
         show 1 ready
         # last 1: ready true
         show 1 transfers
         # last 1: transfers 0",
    );
}
