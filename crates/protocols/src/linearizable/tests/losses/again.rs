//! What is heard after a loss of those that it concerned in another start, or that have left.

use crate::linearizable::tests::traps::schedule;
use std::format;
use std::string::String;

/// A put has two acknowledgements from before a loss. A member that forgot once more since gives it
/// no third, and is heard by those that go on.
#[test]
fn a_member_that_forgot_again_is_heard() {
    schedule(
        "nodes 5 spare 1 memory first 100 brisk
         put 6 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 6->2
         deliver WriteA 6->3
         deliver WriteB
         drop WriteA
         # told nothing
         cut 6
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
         crash 4
         restart 4 forgot
         drop all
         mend 6
         tick 100ms
         deliver WriteA 6->4
         deliver WriteB 4->6
         # told put k a: refused..
         cut 6
         run 3s
         show 2 ready
         # last 2: ready true
         show 3 ready
         # last 3: ready true
         show 5 ready
         # last 5: ready true
         show 4 ready
         # last 4: ready true
         cut 4
         get 2 k
         run 1s
         # told get k: nothing",
    );
}

/// Of seven one is gone and three forgot. One of the complete ones forgets before it is heard: the
/// others wait for those that are complete, as they would have done had it forgotten before.
#[test]
fn who_was_complete_when_others_went_on_is_waited_for() {
    was_complete_when_others_went_on("", "");
    // What is known of the loss is not forgotten with the view.
    let is_known = "deliver ListA\ndeliver Lacks\ndrop all";
    let views: String = (1..=6).map(|node| format!("view {node} 2 1 2 3 4 5 6 8\n")).collect();
    was_complete_when_others_went_on(is_known, &views);
}

fn was_complete_when_others_went_on(is_known: &str, then: &str) {
    schedule(&format!(
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
         {is_known}
         crash 6
         restart 6 forgot
         {then}
         run 3s
         show 1 ready
         # last 1: ready false"
    ));
}

/// Who left an even view before it had everything has forgotten nothing, and holds a put; its host
/// may have been restarted before it came.
#[test]
fn who_left_before_it_had_everything_is_heard() {
    left_before_it_had_everything("", "drop ListA 4->");
    // The others know of it.
    let heard = "drop ListA 4->1\ndrop ListA 4->2\ndrop ListA 4->3
         deliver ListA 4->5\ndeliver ListB 5->4\ndrop Lacks";
    left_before_it_had_everything("crash 5\nrestart 5 forgot", heard);
}

fn left_before_it_had_everything(restarted: &str, heard: &str) {
    schedule(&format!(
        "nodes 4 spare 2 memory first 100 brisk
         {restarted}
         given put 6 k x
         # told put k x: written
         given put 6 k y
         # told put k y: written
         view 1 2 1 2 3 4 5
         view 2 2 1 2 3 4 5
         view 3 2 1 2 3 4 5
         view 4 2 1 2 3 4 5
         deliver Invite
         drop all
         put 5 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 5->3
         drop WriteA 5->4
         deliver WriteA
         deliver WriteB
         # told put k a: written
         view 5 3 1 2 3 4
         view 1 3 1 2 3 4
         view 2 3 1 2 3 4
         view 3 3 1 2 3 4
         view 4 3 1 2 3 4
         drop all
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
         {heard}
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
         cut 5
         tick 250ms
         tick 250ms
         drop ListA 2->
         deliver ListA
         drop Lacks
         deliver ListB
         deliver ListA
         drop Lacks
         deliver ListB
         show 3 ready
         # last 3: ready false
         mend 5
         run 5s
         show 2 ready
         # last 2: ready true
         given get 3 k
         # told get k: value a"
    ));
}

/// A newcomer that was replaced before it had everything is such a one.
#[test]
fn a_newcomer_that_was_replaced_before_it_had_everything_is_heard() {
    replaced_before_it_had_everything("", "drop ListA 3->");
    // The others know of it.
    let heard = "drop ListA 3->1\ndrop ListA 3->2
         deliver ListA 3->4\ndeliver ListB 4->3\ndrop Lacks";
    replaced_before_it_had_everything("crash 4\nrestart 4 forgot", heard);
}

fn replaced_before_it_had_everything(restarted: &str, heard: &str) {
    schedule(&format!(
        "nodes 3 spare 3 memory first 100 brisk
         {restarted}
         given put 6 k x
         # told put k x: written
         given put 6 k y
         # told put k y: written
         view 1 2 1 2 3 4
         view 2 2 1 2 3 4
         view 3 2 1 2 3 4
         deliver Invite
         drop all
         put 4 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 4->3
         deliver WriteA
         deliver WriteB
         # told put k a: written
         view 4 3 1 2 3 5
         view 1 3 1 2 3 5
         view 2 3 1 2 3 5
         view 3 3 1 2 3 5
         deliver Invite
         drop all
         crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         drop ListA 2->
         {heard}
         deliver ListA
         deliver Lacks
         deliver ListA
         deliver Lacks
         drop ListB 4->
         drop ListA 1->4
         deliver ListA
         drop Lacks
         deliver ListB
         show 1 ready
         # last 1: ready false
         cut 4
         tick 250ms
         tick 250ms
         drop ListA 5->
         deliver ListA
         drop Lacks
         deliver ListB
         deliver ListA
         drop Lacks
         deliver ListB
         show 2 ready
         # last 2: ready false
         mend 4
         run 5s
         show 5 ready
         # last 5: ready true
         cut 1
         given get 5 k
         # told get k: value a"
    ));
}

/// Two found out that all three had lost everything. One went on, and the third forgot once more:
/// what that one lists, and then says of itself, is news to the second.
#[test]
fn who_forgot_again_confirms_nothing_that_was_asked_before() {
    schedule(
        "nodes 3 spare 1 memory first 100 brisk
         put 4 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 4->2
         delay WriteA
         crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         drop ListA 3->
         deliver ListA
         deliver Lacks
         deliver ListA
         drop ListB 3->2
         deliver Lacks
         deliver ListA
         drop ListB 3->2
         drop Lacks
         deliver ListB
         show 1 ready
         # last 1: ready true
         show 2 ready
         # last 2: ready false
         release
         deliver WriteA
         deliver WriteB
         # told put k a: refused..
         cut 1
         crash 3
         restart 3 forgot
         drop all
         tick 250ms
         tick 250ms
         drop ListA 3->
         deliver ListA 2->3
         deliver ListB 3->2
         deliver Lacks 3->2
         run 2s
         show 2 ready
         # last 2: ready false",
    );
}
