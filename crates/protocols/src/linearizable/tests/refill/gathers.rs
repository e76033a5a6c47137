//! Members in memory that forget while their group becomes smaller.

use crate::linearizable::tests::traps::schedule;
use std::format;
use std::string::String;

/// Five members in memory; a put is held by 1, 2 and 3; 3 is shrunk out, and 2 forgets before any
/// of those that stay has gathered.
fn shrunk_and_forgotten(cut: &[u64], then: &str) {
    let cut = cut.iter().map(|node| format!("cut {node}\n")).collect::<String>();
    schedule(&format!(
        "nodes 5 memory first 100 brisk
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 1->4
         drop WriteA 1->5
         deliver WriteA
         deliver WriteB
         # told put k a: written
         view 1 2 1 2 4 5
         view 2 2 1 2 4 5
         view 3 2 1 2 4 5
         view 4 2 1 2 4 5
         view 5 2 1 2 4 5
         drop all
         {cut}
         crash 2
         restart 2 forgot
         {then}"
    ));
}

/// The member that was shrunk out is a source for the one that forgot: those that stay may hold the
/// put no more than once.
#[test]
fn who_was_shrunk_out_remembers_for_those_that_stay() {
    shrunk_and_forgotten(
        &[1],
        "run 2s
         get 2 k
         run 1s
         # told get k: value a",
    );
}

/// Without it, all others must be heard, or one that has gathered.
#[test]
fn who_forgets_in_a_group_that_gathers_waits_for_enough() {
    shrunk_and_forgotten(
        &[1, 3],
        "run 2s
         get 4 k within 300ms
         run 1s
         # told get k: ..
         show 2 groups_lacking_data
         # last 2: groups_lacking_data 1
         mend 1
         run 2s
         get 2 k
         run 1s
         # told get k: value a",
    );
}

/// One that has gathered holds all that was complete before, so who forgets later needs neither the
/// member that left nor every other one.
#[test]
fn who_has_gathered_stands_for_those_that_have_not() {
    schedule(
        "nodes 5 memory first 100 brisk
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 1->4
         drop WriteA 1->5
         deliver WriteA
         deliver WriteB
         # told put k a: written
         view 1 2 1 2 4 5
         view 2 2 1 2 4 5
         view 3 2 1 2 4 5
         view 4 2 1 2 4 5
         view 5 2 1 2 4 5
         run 1s
         crash 2
         cut 3
         cut 1
         restart 2 forgot
         run 2s
         get 2 k
         run 1s
         # told get k: value a",
    );
}

/// From three to two, the one that was shrunk out may be the only other one that holds a put.
#[test]
fn the_third_of_three_remembers_until_the_second_has_gathered() {
    schedule(
        "nodes 3 memory first 100 brisk
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 1->2
         deliver WriteA
         deliver WriteB
         # told put k a: written
         view 1 2 1 2
         view 2 2 1 2
         view 3 2 1 2
         drop all
         crash 1
         restart 1 forgot
         run 2s
         get 2 k
         run 1s
         # told get k: value a",
    );
}

/// Who has left a group that is even now missed a delete before, and the others have removed the
/// tombstone since.
pub(super) fn removed_without_the_third(keyspace: &str, then: &str) {
    schedule(&format!(
        "nodes 3 {keyspace} first 100 brisk
         given put 1 k v
         # told put k v: written
         cut 3
         given delete 1 k
         # told delete k: deleted 1
         view 1 2 1 2
         view 2 2 1 2
         ring all 1:1 2:2 3:3:leaving
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         show 2 tombstones_purged
         # last 2: tombstones_purged 1
         {then}"
    ));
}

/// The same, and member 2 is down, and the one that has left can be reached.
fn left_before_a_removal(keyspace: &str, then: &str) {
    let reached = "crash 2
         mend 3
         run 1s
         show 3 groups_kept_for_others
         # last 3: groups_kept_for_others 1\n";
    removed_without_the_third(keyspace, &[reached, then].concat());
}

/// Who forgot has seen the removal itself, and does not ask the one that has left.
#[test]
fn who_has_left_brings_nothing_back_that_was_deleted() {
    left_before_a_removal(
        "memory",
        "restart 2 forgot
         run 2s
         show 2 ready
         # last 2: ready true
         given get 1 k
         # told get k: nothing",
    );
}

/// The same, where the others are in the next view already when they list.
#[test]
fn who_has_left_brings_nothing_back_while_others_are_a_view_ahead() {
    left_before_a_removal(
        "spare 1 memory",
        "view 1 3 1 2 4
         drop all
         restart 2 forgot
         deliver ListA
         deliver ListB
         run 2s
         show 2 ready
         # last 2: ready true
         show 2 view
         # last 2: view 3
         given get 2 k
         # told get k: nothing",
    );
}

/// A newcomer that lacks data acknowledges a put, and forgets it after the group has shrunk to an
/// even size. Those that stay gather, and the group grows: now that they are a view ahead, nobody
/// says of the even one that it stands for the others. Who forgot hears members of the view that it
/// is in, as it would after a restart.
#[test]
fn a_newcomer_that_forgot_hears_enough_where_the_group_grows_meanwhile() {
    let members = |version: u64, told: &[u64], members: &str| -> String {
        told.iter().map(|node| format!("view {node} {version} {members}\n")).collect()
    };
    let (replaced, shrunk, grown) = (
        members(2, &[1, 2, 3, 4], "1 2 3 4 6"),
        members(3, &[1, 2, 3, 4, 6], "1 2 3 6"),
        members(4, &[1, 2, 6], "1 2 3 6 7"),
    );
    schedule(&format!(
        "nodes 5 spare 2 memory first 100 brisk
         {replaced}
         deliver Invite
         drop all
         put 3 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 3->1
         drop WriteA 3->2
         deliver WriteA
         deliver WriteB
         # told put k a: written
         {shrunk}
         drop all
         crash 6
         run 1s
         cut 3
         cut 4
         cut 6
         restart 6 forgot
         {grown}
         run 1s
         show 7 ready
         # last 7: ready true
         mend 6
         run 3s
         show 6 groups_lacking_data
         # last 6: groups_lacking_data 0
         get 6 k
         run 1s
         # told get k: value a"
    ));
}

/// A group of two grows, and one of the two forgets before the newcomer has heard anything. The
/// other holds all that was complete, which is enough for the newcomer; both together are enough
/// for the one that forgot.
#[test]
fn a_newcomer_of_a_group_of_two_needs_one_of_them() {
    schedule(
        "nodes 2 spare 1 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 3
         view 2 2 1 2 3
         drop all
         crash 2
         restart 2 forgot
         run 3s
         show 3 groups_lacking_data
         # last 3: groups_lacking_data 0
         show 2 groups_lacking_data
         # last 2: groups_lacking_data 0
         cut 1
         get 2 k
         run 1s
         # told get k: value a",
    );
}

/// Both members of a group that became smaller forget. Who left holds a copy: nothing is given up
/// until it is lost or removed too. It is not enough, for what it holds may have been replaced or
/// deleted since; and if it came later, it would bring that back.
#[test]
fn members_that_have_all_forgotten_wait_for_who_left() {
    for then in ["crash 3\nrestart 3 forgot", "crash 3\nring all 1:1 2:2 3:3:left"] {
        schedule(&format!(
            "nodes 3 memory first 100 brisk
             given put 1 k a
             # told put k a: written
             view 1 2 1 2
             view 2 2 1 2
             drop all
             cut 3
             given delete 1 k
             # told delete k: deleted 1
             crash 1
             crash 2
             restart 1 forgot
             restart 2 forgot
             run 3s
             show 1 ready
             # last 1: ready false
             mend 3
             run 3s
             show 1 ready
             # last 1: ready false
             {then}
             run 3s
             show 1 ready
             # last 1: ready true
             given get 1 k
             # told get k: nothing
             given get 2 k
             # told get k: nothing"
        ));
    }
}

/// A removal had come to its first step at all members before somebody left, and to its second at
/// some. That a member is led to the second afterwards does not say that all have gathered.
#[test]
fn a_removal_that_began_before_the_view_does_not_say_that_all_have_gathered() {
    schedule(
        "nodes 3 spare 1 memory first 100 brisk hasty
         given put 1 x a
         # told put x a: written
         given delete 1 x
         # told delete x: deleted 1
         put 4 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 4->1
         deliver WriteA
         deliver WriteB
         # told put k a: written
         put 4 j a
         deliver ReadA
         deliver ReadB
         drop WriteA 4->1
         deliver WriteA
         deliver WriteB
         # told put j a: written
         ring all 1:1 2:2 3:3
         tick 100ms
         deliver Beats
         tick 100ms
         tick 100ms
         deliver FloorA
         deliver FloorB
         drop all
         tick 100ms
         deliver TombstonesA
         deliver TombstonesB
         drop FloorA 1->2
         deliver FloorA
         drop all
         view 1 2 1 2
         view 2 2 1 2
         view 3 2 1 2
         drop ListA 1->
         deliver ListA 2->1
         deliver ListB 1->2
         show 2 ready
         # last 2: ready true
         drop all
         get 4 j
         deliver ReadA
         deliver ReadB
         deliver ReadA
         deliver ReadB
         deliver WriteA
         deliver WriteB
         deliver FloorA
         drop all
         crash 4
         cut 3
         crash 2
         restart 2 forgot
         deliver ListA
         deliver ListB
         run 2s
         mend 3
         run 2s
         given get 1 k
         # told get k: value a",
    );
}
