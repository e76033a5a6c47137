//! Losses that are found out while the members of a group change: those that came last are heard,
//! and what was deleted meanwhile stays so.

use crate::linearizable::tests::traps::schedule;
use std::format;

/// A put was seen, and its record comes late to who was not asked. Two of the members are replaced.
const SEEN: &str = "given put 6 k x
     # told put k x: written
     put 6 k a within 60s
     deliver ReadA
     deliver ReadB
     drop WriteA 6->1
     deliver WriteA
     drop WriteB
     given get 6 k
     # told get k: value a
     view 1 2 1 2 4
     view 2 2 1 2 4
     view 3 2 1 2 4
     deliver Invite
     drop ListA 4->
     view 1 3 1 4 5
     view 2 3 1 4 5
     deliver Invite
     drop ListA 5->";

/// Those that had the record are gone: one forgot, the other is removed. It comes to the member
/// that came last, late.
const LOST: &str = "crash 2
     crash 3
     restart 3 forgot
     drop ListA 3->
     tick 300ms
     deliver WriteA 6->1
     deliver WriteB 1->6
     deliver WriteA 6->5
     drop WriteA
     drop all
     cut 6
     cut 5";

/// All but the last hear each other, and wait for it. Whoever was told of another put since is not
/// told of the first again.
const NOT_BACK: &str = "drop all
     ring all 1:1 2:4 3:5 4:3 5:6 6:2:left
     run 1s
     show 4 ready
     # last 4: ready false
     mend 5
     run 3s
     given put 4 k c
     # told put k c: written
     given get 4 k
     # told get k: value c
     run 3s
     show 5 ready
     # last 5: ready true
     cut 1
     get 4 k
     run 1s
     # told get k: value c";

/// The view changes while a newcomer copies, and then it finds out the loss.
#[test]
fn a_loss_is_found_out_with_those_that_came_last() {
    schedule(&format!(
        "nodes 3 spare 3 memory first 100 brisk
         {SEEN}
         view 4 3 1 4 5
         {LOST}
         ring 4 1:1 2:4 3:5 4:3 5:6 6:2:left
         tick 200ms
         deliver ListA 4->
         deliver ListB ->4
         deliver Lacks ->4
         tick 200ms
         drop ListA 3->
         tick 200ms
         deliver ListA 4->
         deliver ListB ->4
         deliver Lacks ->4
         # last 4 gets Lacks of 3
         {NOT_BACK}"
    ));
}

/// Who has left asks what has become of the group before it goes on after a loss: it counts as
/// complete for the others then.
#[test]
fn who_has_left_goes_on_with_those_that_came_last() {
    schedule(&format!(
        "nodes 3 spare 3 memory first 100 brisk
         {SEEN}
         {LOST}
         ring 3 1:1 2:4 3:5 4:3 5:6 6:2:left
         tick 300ms
         deliver ListA 3->
         deliver ListB ->3
         deliver Lacks ->3
         deliver ListA 3->
         deliver ListB ->3
         deliver Lacks ->3
         deliver ListA 3->
         deliver ListB ->3
         # last 3 gets ListB of 4
         view 4 3 1 4 5
         {NOT_BACK}"
    ));
}

/// While a host is away a key is deleted and the tombstone removed. It hears later that it was
/// chosen again and replaced once more, and keeps for others what it had when it left; after a loss
/// it tells nothing of that.
#[test]
fn who_passed_through_a_membership_tells_nothing_that_was_deleted_before() {
    schedule(
        "nodes 3 spare 2 periodic first 100 brisk
         given put 5 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         cut 3
         ring all 1:1 2:2 4:4
         run 1s
         given delete 5 k
         # told delete k: deleted 1
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         view 1 3 1 2 3
         view 2 3 1 2 3
         view 4 3 1 2 3
         view 1 4 1 2 5
         view 2 4 1 2 5
         cut 5
         run 100ms
         view 3 3 1 2 3
         view 3 4 1 2 5
         crash 4
         ring all 1:1 2:2 3:5 4:4:left 5:3
         crash 2
         restart 2 forgot
         ring 2 1:1 2:2 3:5 4:4:left 5:3
         mend 3
         mend 5
         run 3s
         show 5 ready
         # last 5: ready true
         given get 5 k
         # told get k: nothing",
    );
}
