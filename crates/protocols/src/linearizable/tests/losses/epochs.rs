//! What comes late from before a loss: of another quorum than the one that lost it, or of a
//! transfer.

use crate::linearizable::tests::traps::schedule;
use std::format;
use std::string::String;

/// One of the quorum that a put had read from lost power, and was cut off from the complete member
/// beside which another one goes on.
#[test]
fn who_is_complete_takes_nothing_that_was_read_before_a_loss() {
    let asks = "deliver ListA\ndeliver ListB\ndeliver Lacks";
    schedule(&format!(
        "nodes 3 spare 2 periodic first 100 brisk
         given put 4 k x
         # told put k x: written
         hold sync 1
         hold sync 2
         put 5 k a
         drop ReadA 5->1
         deliver ReadA
         deliver ReadB
         drop WriteA 5->3
         deliver WriteA
         drop WriteB
         given get 4 k
         # told get k: value a
         cut 5
         crash 1
         crash 2
         restart 1 forgot
         restart 2 forgot
         drop ListA 2->
         {asks}
         {asks}
         deliver ListA
         drop ListA 2->
         deliver ListB
         show 1 ready
         show 1 ready
         # last 1: ready true
         given put 4 k c
         # told put k c: written
         given get 4 k
         # told get k: value c
         mend 5
         tick 300ms
         deliver WriteA 5->3
         drop all
         cut 2
         given get 4 k
         # told get k: value c
         run 1s
         # told put k a: refused.."
    ));
}

/// A put was made and seen. All of the quorum that it had read from were replaced before those who
/// came lost everything; or there is but one member; or the group was split.
#[test]
fn what_was_read_from_members_that_were_replaced_is_lost_with_the_others() {
    let three = ["1 2 3", "1 2 6", "1 7 6", "8 7 6"];
    let one = ["1", "6"];
    let split = ["1 2 3"];
    for views in [&three[..], &one, &split] {
        let (count, mut told) = (views[0].split(' ').count(), String::new());
        for (step, version) in views.windows(2).zip(2..) {
            let each = step[0].split(' ');
            each.for_each(|node| told += &format!("view {node} {version} {}\n", step[1]));
            told += "run 2s\n";
        }
        if views.len() == 1 {
            told =
                ["1", "2", "3"].map(|node| format!("split {node} 1 8000000000000000\n")).concat();
        }
        let last = views.last().expect("there are views").split(' ');
        let crash: String = last.clone().map(|node| format!("crash {node}\n")).collect();
        let restart: String = last.map(|node| format!("restart {node} forgot\n")).collect();
        schedule(&format!(
            "nodes {count} spare 5 memory first 100 brisk
             given put 4 k x
             # told put k x: written
             put 5 k a within 60s
             deliver ReadA
             deliver ReadB
             deliver WriteA
             drop WriteB
             given get 4 k
             # told get k: value a
             cut 5
             {told}
             given get 4 k
             # told get k: value a
             {crash}
             {restart}
             run 3s
             given put 4 k c
             # told put k c: written
             given get 4 k
             # told get k: value c
             mend 5
             run 3s
             # told put k a: refused..
             given get 4 k
             # told get k: value c"
        ));
    }
}

/// A member that forgot had asked for a record before the others lost it, and the answer comes
/// after they have gone on.
#[test]
fn a_record_that_was_asked_for_before_a_loss_is_not_taken_after_it() {
    let asks = "deliver ListA\ndeliver ListB\ndeliver Lacks";
    schedule(&format!(
        "nodes 3 spare 1 memory first 100 brisk
         given put 4 k x
         # told put k x: written
         given put 4 k a
         # told put k a: written
         crash 1
         restart 1 forgot
         deliver ListA
         deliver ListB
         deliver FetchA
         delay FetchB
         crash 2
         crash 3
         restart 2 forgot
         restart 3 forgot
         drop ListA 3->
         {asks}
         {asks}
         deliver ListA
         drop ListA 1->
         drop ListA 3->
         deliver ListB
         show 2 ready
         # last 2: ready true
         drop all
         tick 300ms
         tick 300ms
         drop ListA 1->
         {asks}
         {asks}
         show 3 ready
         # last 3: ready true
         given put 4 k c
         # told put k c: written
         release
         deliver FetchB
         run 3s
         show 1 ready
         # last 1: ready true
         cut 2
         given get 4 k
         # told get k: value c"
    ));
}

/// The group is split after the loss, and the put comes to a part.
#[test]
fn a_part_keeps_the_epoch() {
    schedule(
        "nodes 3 spare 2 memory first 100 brisk
         given put 4 k x
         # told put k x: written
         put 5 k a within 60s
         deliver ReadA
         deliver ReadB
         deliver WriteA
         drop WriteB
         given get 4 k
         # told get k: value a
         cut 5
         crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         run 3s
         given put 4 k c
         # told put k c: written
         split 1 1 8000000000000000
         split 2 1 8000000000000000
         split 3 1 8000000000000000
         run 2s
         given get 4 k
         # told get k: value c
         mend 5
         run 3s
         # told put k a: refused..
         given get 4 k
         # told get k: value c",
    );
}

/// Who forgets after all are complete again, and is told of the loss, waits for no more than any
/// other that forgets.
#[test]
fn who_forgets_after_a_loss_is_over_waits_for_nobody_more() {
    schedule(
        "nodes 5 spare 1 memory first 100 brisk
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
         run 5s
         view 1 2 1 2 3 4 5 6
         view 2 2 1 2 3 4 5 6
         view 3 2 1 2 3 4 5 6
         view 4 2 1 2 3 4 5 6
         view 5 2 1 2 3 4 5 6
         run 5s
         given put 1 k a
         # told put k a: written
         crash 6
         restart 6 forgot
         deliver ListA 6->
         deliver ListB
         drop all
         cut 4
         run 5s
         show 6 ready
         # last 6: ready true
         given get 6 k
         # told get k: value a",
    );
}

/// One has heard that another lacked data, and comes to the next epoch before it hears that this
/// one forgot once more: what was said before confirms nothing.
#[test]
fn what_was_said_before_an_epoch_confirms_nothing_in_it() {
    schedule(
        "nodes 3 spare 1 memory first 100 brisk
         put 4 k a within 60s
         deliver ReadA
         deliver ReadB
         crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         deliver WriteA 4->1
         drop WriteA
         drop WriteB
         cut 4
         drop ListA 2->
         drop ListA 3->
         deliver ListA 1->
         deliver Lacks ->1
         deliver ListA 1->3
         deliver Lacks 3->1
         drop ListA
         drop ListB
         crash 3
         restart 3 forgot
         run 3s
         show 1 ready
         # last 1: ready true",
    );
}

/// After this 1 to 4 of five are in the second epoch, and 5 in the first; all are ready. Two losses
/// were found apart, and one went on when enough were complete.
const LAGS: &str = "nodes 5 spare 1 memory first 100 brisk
         given put 6 k x
         # told put k x: written
         given put 6 k y
         # told put k y: written
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
         deliver ListA 2->
         drop ListB ->2
         deliver Lacks ->2
         deliver ListA 2->
         drop ListB ->2
         delay Lacks ->2
         deliver ListB ->1
         deliver ListA
         deliver ListB
         drop Lacks
         deliver ListA
         deliver ListB
         drop all
         release
         deliver Lacks ->2
         drop ListA 2->5
         deliver ListA 2->
         deliver ListB ->2";

/// Then all lose everything once more, and the one in the lower epoch finds it out.
#[test]
fn a_loss_is_counted_above_every_epoch_that_it_rests_on() {
    schedule(&format!(
        "{LAGS}
         given put 6 k x
         # told put k x: written
         put 6 k a within 60s
         drop ReadA 6->5
         deliver ReadA
         deliver ReadB
         drop WriteA 6->5
         deliver WriteA
         drop WriteB
         cut 5
         given get 6 k
         # told get k: value a
         mend 5
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
         drop all
         restart 5 forgot
         deliver ListA 5->
         drop ListB ->5
         deliver Lacks ->5
         deliver ListA 5->
         drop ListB ->5
         deliver Lacks ->5
         run 3s
         given put 4 k c
         # told put k c: written
         given get 4 k
         # told get k: value c
         mend 6
         run 3s
         # told put k a: refused..
         given get 4 k
         # told get k: value c"
    ));
}

/// The one in the lower epoch hears of the other: writes that rest on it are done again, and a get
/// that reads again does not ask without a pause.
#[test]
fn who_is_in_a_lower_epoch_comes_to_the_higher_one() {
    let ring = "ring all 1:1 2:2 3:3 4:4 5:5";
    for (before, then) in [("put 5 k b\nrun 3s\n# told put k b: refused..", "get 5 k"), ("", "")] {
        let told = if then.is_empty() { "" } else { "# told get k: value b" };
        schedule(&format!(
            "{LAGS}
             {before}
             {then}
             {ring}
             run 3s
             {told}
             cut 3
             cut 4
             given put 6 k c
             # told put k c: written
             mend 3
             mend 4
             given put 5 k d
             # told put k d: written
             given get 1 k
             # told get k: value d"
        ));
    }
}
