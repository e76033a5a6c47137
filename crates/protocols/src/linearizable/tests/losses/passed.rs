//! Hosts that have passed through a membership which was over when they heard of it, and losses
//! that are found out while others name them.

use crate::linearizable::tests::traps::schedule;

/// One that has come back in vain holds all that was complete before. It loses power with the
/// others, and is the first to go on; those that it is named to go on too.
#[test]
fn who_passed_through_a_membership_and_goes_on_keeps_nobody_waiting() {
    schedule(
        "nodes 3 spare 4 periodic first 100 brisk
         given put 7 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         cut 3
         ring all 1:1 2:2 4:4
         run 1s
         view 1 3 1 2 3
         view 2 3 1 2 3
         view 4 3 1 2 3
         view 1 4 1 2 5
         view 2 4 1 2 5
         view 4 4 1 2 5
         deliver Invite
         drop ListA 5->
         cut 5
         view 1 5 1 5 6
         view 2 5 1 5 6
         deliver Invite
         drop ListA 6->
         cut 6
         crash 1
         crash 2
         crash 4
         restart 1 forgot
         restart 2 forgot
         restart 4 forgot
         view 3 3 1 2 3
         view 3 4 1 2 5
         view 3 5 1 5 6
         view 4 5 1 5 6
         view 5 5 1 5 6
         crash 3
         restart 3 forgot
         ring all 1:1 2:2 3:5 4:4 5:3 6:6
         mend 3
         mend 5
         mend 6
         drop ListA 1->
         drop ListA 2->
         drop ListA 4->
         deliver ListA 3->
         deliver ListB ->3
         deliver Lacks ->3
         deliver ListA 3->
         deliver ListB ->3
         deliver Lacks ->3
         deliver ListA 3->
         deliver ListB ->3
         deliver FetchA 3->
         deliver FetchB ->3
         show 3 ready
         # last 3: ready true
         drop all
         run 9s
         show 1 ready
         # last 1: ready true
         show 5 ready
         # last 5: ready true
         given get 7 k
         # told get k: value a",
    );
}
