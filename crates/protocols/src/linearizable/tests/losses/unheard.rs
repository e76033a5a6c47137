//! What a member holds that was not heard when others lost everything: they wait for it.

use crate::linearizable::tests::traps::schedule;
use std::format;

/// Five lose everything; a put has two acknowledgements from before, and gets no third.
#[test]
fn a_put_that_was_under_way_when_all_forgot_is_not_acknowledged_and_lost() {
    schedule(
        "nodes 5 spare 1 memory first 100 brisk
         put 6 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 6->2
         deliver WriteA 6->3
         deliver WriteB
         delay WriteA
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
         drop ListA 2->
         drop ListA 3->
         drop ListA 4->
         drop ListA 5->
         deliver ListA
         deliver Lacks
         deliver ListA
         deliver Lacks
         deliver ListA
         drop Lacks
         deliver ListB
         show 1 ready
         # last 1: ready true
         cut 6
         cut 4
         run 2s
         show 2 ready
         # last 2: ready false
         mend 4
         mend 6
         release
         deliver WriteA 6->4
         deliver WriteB 4->6
         # told put k a: refused..
         run 3s
         show 2 ready
         # last 2: ready true
         show 3 ready
         # last 3: ready true
         cut 4
         cut 5
         get 2 k
         run 1s
         # told get k: nothing",
    );
}

/// The members of a view of four lose everything. A newcomer of the next view, which has forgotten
/// nothing, has stored a put together with two of them; its list is lost on the way.
fn waits_for_a_newcomer(view: &str, not_stored_at: &str) {
    schedule(&format!(
        "nodes 4 spare 1 memory first 100 brisk
         view 1 2 {view}
         view 2 2 {view}
         view 3 2 {view}
         view 4 2 {view}
         deliver Invite
         drop all
         put 5 k a
         deliver ReadA
         deliver ReadB
         {not_stored_at}
         deliver WriteA
         deliver WriteB
         # told put k a: written
         crash 1
         crash 2
         crash 3
         crash 4
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         restart 4 forgot
         drop ListA 2->
         drop ListA 3->
         drop ListA 4->
         deliver ListA
         deliver Lacks
         deliver ListA
         deliver Lacks
         drop ListB 5->
         drop ListA 1->5
         deliver ListA
         drop Lacks
         deliver ListB
         show 1 ready
         # last 1: ready false
         run 5s
         show 1 ready
         # last 1: ready true
         show 5 ready
         # last 5: ready true
         given get 1 k
         # told get k: value a"
    ));
}

#[test]
fn a_newcomer_of_a_group_that_grew_is_heard_when_the_others_forgot() {
    waits_for_a_newcomer("1 2 3 4 5", "drop WriteA 5->3\n         drop WriteA 5->4");
}

#[test]
fn a_newcomer_in_the_place_of_another_is_heard_when_the_others_forgot() {
    waits_for_a_newcomer("1 2 3 5", "drop WriteA 5->3");
}

/// Of seven one is gone for good and three forgot. Each of the others is complete, and none stands
/// for another: a put had its fourth acknowledgement of one of them.
#[test]
fn beside_a_host_that_is_gone_each_complete_member_is_heard() {
    schedule(
        "nodes 7 spare 1 memory first 100 brisk
         put 8 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 8->4
         drop WriteA 8->5
         drop WriteA 8->7
         deliver WriteA
         deliver WriteB
         # told put k a: written
         crash 7
         crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         ring all 1:1 2:2 3:3 4:4 5:5 6:6 7:7:left
         deliver ListA
         deliver ListB
         deliver Lacks
         cut 6
         run 3s
         show 1 ready
         # last 1: ready false
         mend 6
         run 3s
         show 1 ready
         # last 1: ready true
         show 3 ready
         # last 3: ready true
         given get 1 k
         # told get k: value a",
    );
}

/// Two members of five die one after the other while a third forgets. It hears those that are there
/// now: of those that were there when it forgot too few are left, and nobody is replaced as long as
/// it lacks data.
#[test]
fn who_forgot_before_it_heard_anything_hears_the_present_members() {
    schedule(
        "nodes 5 spare 2 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 3 4 6
         view 2 2 1 2 3 4 6
         view 3 2 1 2 3 4 6
         view 4 2 1 2 3 4 6
         view 5 2 1 2 3 4 6
         deliver Invite
         drop all
         crash 6
         crash 4
         cut 6
         restart 6 forgot
         drop all
         view 1 3 1 2 3 6 7
         view 2 3 1 2 3 6 7
         view 3 3 1 2 3 6 7
         view 6 3 1 2 3 6 7
         run 2s
         show 7 ready
         # last 7: ready true
         crash 3
         mend 6
         run 3s
         show 6 groups_lacking_data
         # last 6: groups_lacking_data 0
         given get 6 k
         # told get k: value a",
    );
}
