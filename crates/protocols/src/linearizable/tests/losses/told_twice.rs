//! What a member tells twice, or of two memberships, where everything was lost.

use crate::linearizable::tests::traps::schedule;
use std::format;
use std::string::String;

/// What this one of five is told of a loss by all but the fifth.
fn is_told(node: u64, others: &[u64]) -> String {
    let to = |other: &u64| format!("deliver ListA {node}->{other}\n");
    let asks: String = others.iter().map(to).collect();
    format!(
        "deliver ListA {node}->1
         drop ListA {node}->
         deliver ListB 1->{node}
         drop Lacks 1->{node}
         {asks}
         deliver ListB ->{node}
         drop Lacks ->{node}\n"
    )
}

/// This one hears the fifth too, and waits for the others all the same.
fn hears_the_last(node: u64) -> String {
    format!(
        "deliver ListA {node}->5
         deliver ListB 5->{node}
         drop Lacks 5->{node}
         show {node} ready
         # last {node}: ready false\n"
    )
}

/// A put is seen, and everything is lost; then its record comes to the fifth, late.
const TAKEN_LATE: &str = "put 6 k a within 60s
     deliver ReadA
     deliver ReadB
     delay WriteA 6->5
     deliver WriteA
     drop WriteB
     given get 6 k
     # told get k: value a
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
     release
     deliver WriteA 6->5
     drop WriteB
     cut 6";

/// One of five that lost everything had taken a put of before. It lists it to one, and forgets once
/// more before the others hear it. They do not go on before that one has listed what it took.
#[test]
fn what_one_heard_of_who_forgot_once_more_comes_not_back() {
    let (two, three, four) =
        (is_told(2, &[1, 3, 4]), is_told(3, &[1, 2, 4]), is_told(4, &[1, 2, 3]));
    let last: String = (2..=4).map(hears_the_last).collect();
    schedule(&format!(
        "nodes 5 spare 1 memory first 100 brisk
         given put 6 k x
         # told put k x: written
         {TAKEN_LATE}
         deliver ListA 1->
         deliver ListB ->1
         deliver Lacks ->1
         deliver ListA 1->
         drop ListA 2->
         drop ListA 3->
         drop ListA 4->
         drop ListA 5->
         deliver ListB ->1
         deliver Lacks ->1
         deliver ListA 1->
         deliver ListB ->1
         drop Lacks ->1
         deliver FetchA 1->5
         delay FetchB 5->1
         {two}
         {three}
         {four}
         drop ListA 5->
         crash 5
         restart 5 forgot
         drop ListA 5->
         {last}
         release
         deliver FetchB 5->1
         run 5s
         given get 2 k
         # told get k: value a"
    ));
}

/// A member was replaced, and came back before the one that had replaced it was complete: it keeps
/// for that one what it had, and lacks data itself.
const KEPT: &str = "given put 5 k a
     # told put k a: written
     view 1 2 1 2 4
     view 2 2 1 2 4
     view 3 2 1 2 4
     deliver Invite
     drop ListA 4->
     view 1 3 1 2 3
     view 2 3 1 2 3
     view 3 3 1 2 3
     view 4 3 1 2 3
     deliver Invite
     drop all
     show 3 slots_kept
     # last 3: slots_kept 1";

/// The other two lose everything, and it is counted as a loss: what was kept is part of what is
/// left, for who finds out the loss, whoever that is.
#[test]
fn what_was_kept_of_a_former_membership_is_what_is_left() {
    let lost = "crash 1
         crash 2
         restart 1 forgot
         restart 2 forgot";
    schedule(&format!(
        "nodes 3 spare 2 memory first 100 brisk
         {KEPT}
         {lost}
         drop ListA 2->
         deliver ListA 1->
         deliver ListB ->1
         deliver Lacks ->1
         deliver ListA 1->4
         deliver ListB ->1
         deliver Lacks ->1
         deliver ListA 1->
         deliver ListB ->1
         deliver Lacks ->1
         deliver ListA 1->
         deliver ListB ->1
         deliver FetchA 1->3
         deliver FetchB ->1
         show 1 ready
         # last 1: ready true
         run 5s
         given get 5 k
         # told get k: value a"
    ));
    schedule(&format!(
        "nodes 3 spare 2 memory first 100 brisk
         {KEPT}
         {lost}
         drop all
         tick 1s
         drop ListA 1->
         drop ListA 2->
         drop ListA 4->
         run 5s
         show 3 ready
         # last 3: ready true
         given get 5 k
         # told get k: value a"
    ));
}

/// Two that came one after the other need what the second has kept. It says of that data that it
/// is complete. That its present membership lacks data does not take this back.
#[test]
fn what_was_kept_is_not_taken_back_by_who_tells_it() {
    let again = "tick 200ms
         tick 200ms
         tick 200ms
         tick 200ms
         tick 200ms
         tick 200ms
         drop ListA 3->
         deliver ListA 4->3
         deliver 3->4
         deliver ListA 4->1
         deliver 1->4\n";
    schedule(&format!(
        "nodes 3 spare 2 first 100 brisk
         {KEPT}
         cut 2
         {again}
         {again}
         {again}
         {again}
         deliver FetchA 4->
         deliver FetchB ->4
         show 4 ready
         # last 4: ready true"
    ));
}
/// While who was replaced is away, a key is deleted and the tombstone removed: then all members had
/// everything. What it kept still has the value, and is given up when it comes back.
#[test]
fn what_was_kept_is_given_up_when_tombstones_are_removed() {
    let kept = |back: &str, removed: &str, last: &str| {
        schedule(&format!(
            "nodes 3 spare 2 first 100 brisk
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
             {back}
             {removed}
             show 3 slots_kept
             # last 3: slots_kept {last}"
        ));
    };
    let back = "view 1 3 1 2 3
         view 2 3 1 2 3
         view 3 3 1 2 3
         view 4 3 1 2 3
         mend 3
         ring all 1:1 2:2 3:3
         deliver Invite 1->3
         deliver Invite 2->3";
    let removed = "run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1";
    kept(removed, back, "0");
    kept("", back, "1");
}

/// After a loss who goes on has heard all members of its view, those that came since too.
#[test]
fn a_newcomer_hears_who_came_after_it_once_everything_was_lost() {
    schedule(
        "nodes 3 spare 2 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver Invite
         drop all
         crash 1
         crash 2
         crash 3
         crash 4
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         restart 4 forgot
         drop ListA 1->
         drop ListA 2->
         drop ListA 3->
         deliver ListA
         deliver ListB
         deliver Lacks
         deliver ListA
         deliver ListB
         deliver Lacks
         view 1 3 1 4 5
         view 2 3 1 4 5
         view 4 3 1 4 5
         cut 5
         deliver ListA 4->
         deliver ListB ->4
         drop Lacks ->4
         show 4 ready
         # last 4: ready false
         mend 5
         run 5s
         show 4 ready
         # last 4: ready true",
    );
}
