//! A host that is drained: until when it is needed, and how it could be taken in again.

use crate::linearizable::tests::traps::schedule;

/// The one that took the leaver's place has not got everything yet, though the two others have
/// answered: were the leaver to end now, and one of the others to forget, a write that both of them
/// acknowledged would be lost with one fault.
#[test]
fn who_leaves_is_needed_until_the_newcomer_has_everything() {
    schedule(
        "nodes 3 spare 1 memory first 100 brisk
         cut 4
         ring all 1:1 2:2 3:3:leaving 4:4
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         run 1s
         examine 1 500 3
         run 2s
         # told scan 1f4 1: held by 2 of 1 Confirmed, 2 Confirmed, 4 Some; 3 keeps data for \
         others; 4 does not answer
         mend 4
         run 3s
         examine 1 500 3
         run 100ms
         # told scan 1f4 1: held by 2 of 1 Confirmed, 2 Confirmed, 4 Confirmed",
    );
}

/// What only the leaver and one more hold is not lost, if the leaver ends when it may and the other
/// forgets just then.
#[test]
fn who_left_when_it_was_told_takes_nothing_along() {
    schedule(
        "nodes 3 spare 1 memory first 100 brisk
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 1->2
         deliver all
         # told put k a: written
         ring all 1:1 2:2 3:3:leaving 4:4
         run 6s
         examine 1 500 3
         run 100ms
         # told scan 1f4 1: held by 2 of 1 Confirmed, 2 Confirmed, 4 Confirmed
         crash 3
         crash 1
         restart 1 forgot
         ring all 1:1 2:2 3:3:left 4:4
         run 3s
         given get 2 k
         # told get k: value a",
    );
}

/// A proposer that has not heard of the drain wants the leaver back. It takes nothing; before, it
/// copied the data, and became a member after it was said that it could be stopped.
#[test]
fn who_leaves_is_not_taken_in_by_one_that_has_not_heard_of_it() {
    schedule(
        "nodes 3 spare 2 first 100 brisk
         given put 1 k a
         # told put k a: written
         ring all 1:1 2:2 3:3:leaving 4:4
         run 6s
         examine 2 500 3
         run 100ms
         # told scan 1f4 1: held by 2 of 1 Confirmed, 2 Confirmed, 4 Confirmed
         crash 4
         ring 2 1:1 2:2 3:3:leaving 4:4:suspected
         ring 3 1:1 2:2 3:3:leaving 4:4:suspected
         ring 1 1:1 2:2 3:3 4:4:suspected
         run 6s
         show 3 groups groups_kept_for_others
         # last 3: groups_kept_for_others 0
         show 1 view
         # last 1: view 2",
    );
}

/// A member that owes the leaver an invitation could yet send it: the leaver would begin in a view
/// that was decided, and was followed since.
#[test]
fn who_is_owed_an_invitation_is_not_drained() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         cut 4
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         run 1s
         view 1 3 1 2 3
         view 2 3 1 2 3
         ring all 1:1 2:2 3:3 4:4:leaving
         drop all
         mend 4
         examine 1 500 4
         deliver ExamineA
         deliver ExamineB
         run 2s
         # told scan 1f4 1: held by 2 of 1 Confirmed, 2 Confirmed, 3 Confirmed; 1 may take it in \
         again; 2 may take it in again",
    );
}

/// While a member could still bring the leaver in the drain is not done, though the leaver holds
/// nothing: a proposal that one of them has accepted may be found and decided at any time.
#[test]
fn who_may_be_chosen_yet_is_not_drained() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         ring all 1:1 2:2 3:3
         run 1s
         ring all 1:1 2:2 3:3:leaving 4:4
         tick 200ms
         deliver Learn
         deliver ListA
         deliver ListB
         tick 20ms
         deliver Beats
         tick 20ms
         deliver Reconfigure 1->2
         deliver Reconfigure 2->1
         deliver Reconfigure 1->2
         drop all
         cut 1
         ring all 1:1 2:2 3:3 4:4:leaving
         run 1s
         mend 1
         crash 1
         restart 1
         examine 3 500 4
         deliver ExamineA
         deliver ExamineB
         # told scan 1f4 1: held by 2 of 1 Confirmed, 2 Confirmed, 3 Confirmed; 1 may take it in \
         again; 2 may take it in again",
    );
}

/// What the leaver said in an earlier view may have changed since: it is asked again.
#[test]
fn what_who_leaves_said_in_an_earlier_view_counts_no_more() {
    schedule(
        "nodes 3 spare 2 first 100 brisk
         ring all 1:1 2:2 4:4:leaving 5:5 6:3
         examine 1 500 4
         deliver ExamineA 1->4
         view 1 2 1 2 5
         view 2 2 1 2 5
         view 5 2 1 2 5
         deliver ExamineA 1->2
         deliver ExamineB 2->1
         deliver ExamineB 4->1
         cut 4
         run 3s
         # told scan 1f4 1: held by 2 of 1 Confirmed, 2 Confirmed, 5 Some; 4 does not answer; \
         5 has yet to get data",
    );
}
