//! Groups in which nobody is left to ask: what is given up then, and what must not be.

use crate::linearizable::tests::traps::schedule;
use std::format;

/// A member was replaced, and the newcomer lacks data, when all hosts lose it. Nobody is a source,
/// and each waits for another: the members for the newcomer, it for them and for who has left.
#[test]
fn a_full_outage_while_a_newcomer_is_busy_leaves_an_empty_group() {
    // Invited before the outage, or only after it: then the newcomer has nothing to forget.
    for invited in ["deliver Invite\ndrop ListA", "drop Invite"] {
        schedule(&format!(
            "nodes 3 spare 1 memory first 100 brisk
             given put 1 k a
             # told put k a: written
             view 1 2 1 2 4
             view 2 2 1 2 4
             view 3 2 1 2 4
             {invited}
             crash 1
             crash 2
             crash 3
             crash 4
             restart 1 forgot
             restart 2 forgot
             restart 3 forgot
             restart 4 forgot
             run 3s
             show 1 ready
             # last 1: ready true
             show 2 ready
             # last 2: ready true
             show 4 ready view
             # last 4: view 2
             show 4 ready
             # last 4: ready true
             given get 1 k
             # told get k: nothing
             given put 4 k b
             # told put k b: written
             crash 1
             given get 2 k
             # told get k: value b"
        ));
    }
}

/// A newcomer that was suspected was replaced by another one. Each waits for the other.
#[test]
fn a_full_outage_while_two_newcomers_are_busy_leaves_an_empty_group() {
    schedule(
        "nodes 3 spare 2 memory first 100 brisk
         given put 1 k a
         # told put k a: written
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
         crash 2
         crash 3
         crash 4
         crash 5
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         restart 4 forgot
         restart 5 forgot
         run 4s
         show 1 ready
         # last 1: ready true
         show 4 ready
         # last 4: ready true
         show 5 ready
         # last 5: ready true
         given put 4 k b
         # told put k b: written
         given get 1 k
         # told get k: value b",
    );
}

/// One member is complete again after everything was lost when a change is installed, and a
/// newcomer comes that had no part in it. It waits for members that nobody will ever make complete
/// without it.
#[test]
fn a_newcomer_that_comes_after_everything_was_lost_goes_on() {
    for forgot in ["", "crash 4\nrestart 4 forgot"] {
        schedule(&format!(
            "nodes 3 spare 1 memory first 100 brisk
             crash 1
             crash 2
             crash 3
             restart 1 forgot
             restart 2 forgot
             restart 3 forgot
             drop ListA 2->
             drop ListA 3->
             deliver ListA
             deliver Lacks
             deliver ListA
             deliver Lacks
             deliver ListA
             drop Lacks
             deliver ListB
             show 1 ready
             # last 1: ready true
             view 1 2 1 2 4
             view 2 2 1 2 4
             view 3 2 1 2 4
             deliver Invite
             {forgot}
             run 3s
             show 4 ready
             # last 4: ready true
             show 2 ready
             # last 2: ready true
             given put 4 k a
             # told put k a: written"
        ));
    }
}

/// A newcomer was replaced before it came, and everybody forgot. It is among those that its
/// successor waits for, and knows nothing of the group.
#[test]
fn who_was_chosen_and_never_came_is_not_waited_for() {
    schedule(
        "nodes 3 spare 2 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         drop Invite
         view 1 3 1 2 5
         view 2 3 1 2 5
         deliver Invite
         drop ListA
         crash 1
         crash 2
         crash 3
         crash 5
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         restart 5 forgot
         run 3s
         show 5 ready
         # last 5: ready true
         show 1 ready
         # last 1: ready true
         given put 5 k b
         # told put k b: written",
    );
}

/// While who has left still has its data, nothing is given up: the members and the newcomer wait.
#[test]
fn who_has_left_and_kept_its_data_is_waited_for() {
    schedule(
        "nodes 3 spare 1 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver Invite
         drop all
         crash 1
         crash 2
         crash 4
         restart 1 forgot
         restart 2 forgot
         restart 4 forgot
         run 3s
         show 1 ready
         # last 1: ready false
         show 4 ready
         # last 4: ready false
         crash 3
         restart 3 forgot
         run 3s
         show 1 ready
         # last 1: ready true
         show 4 ready
         # last 4: ready true
         given get 1 k
         # told get k: nothing",
    );
}

/// A newcomer that lacks data stores what is written. If it forgets that, hearing the members of
/// the view before is not enough: it acknowledged it after they had left that view.
#[test]
fn a_busy_newcomer_that_forgot_hears_the_members_of_its_own_view_too() {
    schedule(
        "nodes 3 spare 1 memory first 100 brisk
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver Invite
         drop ListA
         put 1 k a
         deliver ReadA 1->2
         deliver ReadB 2->1
         deliver WriteA 1->4
         deliver WriteB 4->1
         # told put k a: written
         drop all
         crash 4
         restart 4 forgot
         cut 1
         run 1s
         get 2 k within 1s
         run 1s
         # told get k: refused..
         mend 1
         run 1s
         show 4 ready
         # last 4: ready true
         crash 1
         get 2 k
         run 1s
         # told get k: value a",
    );
}

/// An answer to the first round that arrives late, or twice, confirms nothing: no loss is found
/// out, and a put that is under way goes on.
#[test]
fn a_late_answer_confirms_nothing() {
    let mut lines = std::string::String::from(
        "nodes 5 memory
         given put 5 k a
         # told put k a: written
         crash 1
         restart 1 forgot
         drop all\n",
    );
    for node in 2..=5 {
        lines += &format!(
            "crash {node}
             restart {node} forgot
             tick 400ms
             deliver ListA 1->{node}
             delay Lacks {node}->1
             delay ListB {node}->1
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
            + "put 5 j b
               deliver ReadA
               deliver ReadB
               delay WriteA
               release
               deliver Lacks
               deliver ListB
               show 1 ready
               # last 1: ready false
               tick 400ms
               deliver all
               # told put j b: written
               show 1 ready
               # last 1: ready true
               given get 1 k
               # told get k: value a"),
    );
}

/// Two of three lose power at once. What they had synced comes back, with what the third has; only
/// what they had not synced yet, and alone had acknowledged, is gone.
#[test]
fn two_of_three_that_lose_power_come_back_with_their_disks() {
    schedule(
        "nodes 3 spare 1 periodic first 100 brisk
         put 4 old a
         deliver ReadA
         deliver ReadB
         drop WriteA 4->1
         deliver all
         # told put old a: written
         put 4 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 4->3
         deliver all
         # told put k a: written
         hold sync 2
         hold sync 3
         put 4 new a
         deliver ReadA
         deliver ReadB
         drop WriteA 4->1
         deliver all
         # told put new a: written
         crash 2
         crash 3
         restart 2 forgot
         restart 3 forgot
         run 1s
         show 2 ready
         # last 2: ready true
         show 3 ready
         # last 3: ready true
         crash 1
         given get 2 old
         # told get old: value a
         given get 3 k
         # told get k: value a
         given get 3 new
         # told get new: nothing",
    );
}

/// The disks of all three have what was synced on two of them.
#[test]
fn all_that_lose_power_come_back_with_what_any_of_them_synced() {
    schedule(
        "nodes 3 spare 1 periodic first 100 brisk
         put 4 old a
         deliver ReadA
         deliver ReadB
         drop WriteA 4->1
         deliver all
         # told put old a: written
         crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         run 1s
         show 1 ready
         # last 1: ready true
         crash 2
         given get 1 old
         # told get old: value a",
    );
}

/// One member lost power long ago and is still away from the others when a second one loses it. The
/// third has what they lack, so nobody goes on without it.
#[test]
fn members_that_lost_power_hear_every_complete_one() {
    schedule(
        "nodes 5 spare 1 periodic first 100 brisk
         hold sync 1
         hold sync 2
         put 6 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 6->1
         deliver WriteA 6->2
         deliver WriteA 6->3
         drop WriteA
         deliver WriteB
         # told put k a: written
         crash 1
         crash 2
         crash 4
         cut 3
         restart 1 forgot
         restart 2 forgot
         restart 4 forgot
         run 1s
         show 1 ready
         # last 1: ready false
         mend 3
         run 1s
         show 1 ready
         # last 1: ready true
         crash 3
         get 4 k
         run 1s
         # told get k: value a",
    );
}
