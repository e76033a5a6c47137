//! Members that leave a group that gets nobody for them, and a cluster that ends as a whole.

use crate::linearizable::tests::traps::schedule;

/// The members that stay gather what the first one to leave may have held for them, before the next
/// one leaves.
#[test]
fn two_members_that_leave_take_nothing_with_them() {
    schedule(
        "nodes 3 first 100 brisk
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 1->3
         deliver WriteA 1->2
         deliver WriteB
         # told put k a: written
         crash 2
         ring 1 1:1 2:2:left 3:3
         ring 3 1:1 2:2:left 3:3
         run 4s
         show 3 view
         # last 3: view 2
         ring 1 1:1:left 3:3
         ring 3 1:1:left 3:3
         run 4s
         show 3 view
         # last 3: view 3
         get 3 k
         run 1s
         # told get k: value a",
    );
}

/// A newcomer that gets its data only when the group has shrunk to an even size gathers like the
/// other members, and is then as ready as they.
#[test]
fn a_newcomer_that_lags_behind_a_departure_gathers_too() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         deliver Invite
         drop ListA
         cut 4
         view 1 3 1 4
         view 2 3 1 4
         run 1s
         mend 4
         run 4s
         show 4 view
         # last 4: view 3
         get 4 k
         run 1s
         # told get k: value a",
    );
}

/// While the cluster is shut down clients are refused, what is under way ends, and nobody is
/// replaced, whoever falls silent.
#[test]
fn a_cluster_that_is_shut_down_finishes_and_changes_nothing() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         put 1 k a
         deliver ReadA
         closing all 1:1 2:2 3:3 a4:4
         put 2 k b
         # told put k b: refused: the node is shutting down
         get 4 k
         # told get k: refused: the node is shutting down
         run 1s
         # told put k a: written
         closing all 1:1 2:2 a4:4 3:3:suspected
         run 5s
         show 1 view
         # last 1: view 1
         ring all 1:1 2:2 a4:4 3:3:suspected
         run 5s
         show 1 view
         # last 1: view 2",
    );
}

/// A member is suspected, and a host that could take its place is taken for alive and is not: a
/// host that has just started knows no better.
#[test]
fn nobody_comes_in_place_of_a_member_before_it_answers() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         given put 1 k a
         # told put k a: written
         crash 3
         crash 4
         ring all 1:1 2:2 3:3:suspected 4:4
         run 3s
         show 1 view
         # last 1: view 1
         restart 4
         run 2s
         show 1 view
         # last 1: view 2
         show 4 ready
         # last 4: ready true
         given get 4 k
         # told get k: value a",
    );
}
