//! Who missed a removal of tombstones, and still tells what was deleted.

use crate::linearizable::tests::traps::schedule;
use std::format;

/// Of five the fifth leaves while it is cut off. A removal that was announced before goes on, and
/// ends, and nobody has heard from all others that they have gathered. Who forgets then knows it
/// from the removal, and does not ask who has left.
#[test]
fn who_lists_for_a_removal_knows_that_all_have_gathered() {
    schedule(
        "nodes 5 memory first 100 brisk hasty
         given put 1 k v
         # told put k v: written
         cut 5
         given delete 1 k
         # told delete k: deleted 1
         ring all 1:1 2:2 3:3 4:4 5:5
         tick 100ms
         deliver FloorA
         deliver FloorB
         drop all
         view 1 2 1 2 3 4
         view 2 2 1 2 3 4
         view 3 2 1 2 3 4
         view 4 2 1 2 3 4
         ring all 1:1 2:2 3:3 4:4 5:5:leaving
         deliver ListA
         deliver ListB
         tick 50ms
         deliver FloorA
         deliver FloorB
         tick 50ms
         tick 50ms
         drop Beats
         deliver TombstonesA
         deliver TombstonesB
         deliver FloorA
         deliver FloorB
         deliver DropA
         show 4 tombstones_purged
         # last 4: tombstones_purged 1
         drop all
         crash 4
         mend 5
         view 5 2 1 2 3 4
         cut 1
         cut 2
         cut 3
         restart 4 forgot
         run 100ms
         mend 1
         mend 2
         mend 3
         run 1s
         show 4 ready
         # last 4: ready true
         given get 4 k
         # told get k: nothing",
    );
}

/// Two miss a removal, and hear later that they were chosen again and replaced. Those that came
/// after them lose power.
const MISSED: &str = "given put 7 k a
     # told put k a: written
     view 1 2 1 2 4
     view 2 2 1 2 4
     view 3 2 1 2 4
     cut 3
     ring all 1:1 2:2 4:4
     run 1s
     view 1 3 1 4 5
     view 2 3 1 4 5
     view 4 3 1 4 5
     cut 2
     ring all 1:1 4:4 5:5
     run 1s
     given delete 7 k
     # told delete k: deleted 1
     run 4s
     show 1 tombstones_purged
     # last 1: tombstones_purged 1
     view 1 4 1 3 4
     view 4 4 1 3 4
     view 5 4 1 3 4
     view 1 5 1 2 4
     view 4 5 1 2 4
     view 1 6 1 4 6
     view 4 6 1 4 6
     deliver Invite ->6
     drop all
     view 3 3 1 4 5
     view 3 4 1 3 4
     view 3 5 1 2 4
     view 3 6 1 4 6
     view 2 4 1 3 4
     view 2 5 1 2 4
     view 2 6 1 4 6
     show 3 slots_kept
     # last 3: slots_kept 1
     crash 5
     crash 1
     crash 4
     restart 1 forgot
     restart 4 forgot
     ring all 1:1 2:2 3:3 4:4 5:5:left 6:6
     drop all
     mend 2
     mend 3";

/// One of the two finds out the loss by what the others say of themselves, and hears the other one
/// before anybody that knows of the removal. What was listed then is not fetched after that.
#[test]
fn what_was_listed_before_a_removal_was_heard_of_is_not_fetched_after_it() {
    schedule(&format!(
        "nodes 3 spare 4 periodic first 100 brisk
         {MISSED}
         tick 400ms
         deliver ListA 2->
         drop ListB ->2
         deliver Lacks ->2
         deliver ListA 2->
         drop ListB ->2
         deliver Lacks ->2
         deliver ListA 2->3
         deliver ListB 3->2
         deliver ListA 2->
         deliver ListB ->2
         drop Lacks ->2
         deliver 2->3
         deliver 3->2
         show 2 moved_keys
         # last 2: moved_keys 0"
    ));
}

/// A newcomer is replaced before it has heard anything, a key is deleted, and the tombstone is
/// removed. It hears of that, and gets the value all the same from one that had left before. Then
/// it is chosen again, and the members lose what they had: it tells nothing of that time.
#[test]
fn what_was_got_of_who_had_left_is_as_old_as_that() {
    let replaced = "view 4 3 1 2 5";
    for durability in ["memory", "periodic"] {
        for [before, after] in [[replaced, ""], ["", replaced]] {
            schedule(&format!(
                "nodes 3 spare 2 {durability} first 100 brisk
                 given put 1 k a
                 # told put k a: written
                 view 1 2 1 2 4
                 view 2 2 1 2 4
                 view 3 2 1 2 4
                 deliver Invite
                 drop all
                 cut 3
                 cut 4
                 view 1 3 1 2 5
                 view 2 3 1 2 5
                 ring all 1:1 2:2 3:5
                 run 2s
                 given delete 1 k
                 # told delete k: deleted 1
                 run 4s
                 show 1 tombstones_purged
                 # last 1: tombstones_purged 1
                 {before}
                 mend 4
                 mend 3
                 tick 200ms
                 drop ListA 4->2
                 deliver ListA 4->1
                 deliver ListB 1->4
                 drop ListA 4->2
                 deliver ListA 4->
                 deliver ListB ->4
                 deliver FetchA
                 deliver FetchB
                 show 4 moved_keys
                 # last 4: moved_keys 1
                 {after}
                 view 1 4 1 2 4
                 view 2 4 1 2 4
                 view 5 4 1 2 4
                 deliver Invite
                 drop all
                 cut 3
                 crash 1
                 crash 2
                 crash 5
                 restart 1 forgot
                 restart 2 forgot
                 restart 5 forgot
                 run 5s
                 show 1 ready
                 # last 1: ready true
                 given get 1 k
                 # told get k: nothing"
            ));
        }
    }
}

/// A removal has come to its second step at one of three, and its leader turns to other things: the
/// group goes on, and one leaves that has not come so far. Those that stay lose power. What it has
/// is heard with the rest, and it comes to the removal first.
#[test]
fn who_left_while_a_removal_was_at_its_second_step_is_heard() {
    schedule(
        "nodes 3 spare 2 periodic first 100 brisk hasty
         given put 1 x a
         # told put x a: written
         given delete 1 x
         # told delete x: deleted 1
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
         drop all
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver Invite
         drop all
         view 1 3 1 4 5
         view 2 3 1 4 5
         view 4 3 1 4 5
         deliver Invite
         drop all
         crash 1
         crash 4
         restart 1 forgot
         restart 4 forgot
         run 6s
         show 4 ready
         # last 4: ready true
         show 1 ready
         # last 1: ready true
         show 5 ready
         # last 5: ready true",
    );
}

/// The same, where it is invited late, by one that has heard of the removal since, and still has
/// on its disk what was deleted then.
#[test]
fn what_was_got_of_who_had_left_is_no_younger_for_a_late_invitation() {
    schedule(
        "nodes 3 spare 2 periodic first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         delay Invite 1->4
         drop all
         cut 3
         cut 4
         view 1 3 1 2 5
         view 2 3 1 2 5
         ring all 1:1 2:2 3:5
         run 2s
         given delete 1 k
         # told delete k: deleted 1
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         crash 3
         restart 3 forgot
         mend 3
         mend 4
         deliver ListA 3->1
         deliver ListA 3->2
         deliver ListB ->3
         deliver ListA 3->1
         deliver ListA 3->2
         deliver ListB ->3
         show 3 transfers
         # last 3: transfers 0
         drop all
         tick 300ms
         drop Beats
         release
         deliver Invite 1->4
         deliver Invite 3->4
         show 4 groups
         # last 4: groups 1
         drop ListA 4->2
         deliver ListA 4->
         deliver ListB ->4
         deliver FetchA
         deliver FetchB
         show 4 moved_keys
         # last 4: moved_keys 1
         view 4 3 1 2 5
         drop all
         view 1 4 1 2 4
         view 2 4 1 2 4
         view 5 4 1 2 4
         deliver Invite
         drop all
         cut 3
         crash 1
         crash 2
         crash 5
         restart 1 forgot
         restart 2 forgot
         restart 5 forgot
         run 5s
         show 1 ready
         # last 1: ready true
         given get 1 k
         # told get k: nothing",
    );
}
