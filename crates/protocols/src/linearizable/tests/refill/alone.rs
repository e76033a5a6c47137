//! A member that forgets and is left alone: the one that left has what it lost.

use crate::linearizable::tests::traps::schedule;
use std::format;

/// One of two leaves, as an operator asked, while the other is restarted. The other votes for it as
/// soon as it is up, and has not heard yet what it forgot.
#[test]
fn who_forgot_and_is_left_alone_hears_who_left() {
    for durability in ["memory", "periodic"] {
        schedule(&format!(
            "nodes 2 {durability} first 100 brisk
             hold sync 1
             given put 1 k a
             # told put k a: written
             ring all 1:2 2:1
             run 1s
             crash 1
             ring 2 1:2:leaving 2:1
             tick 100ms
             drop all
             restart 1 forgot
             drop ListA 1->
             tick 100ms
             deliver Reconfigure
             deliver Reconfigure
             deliver Reconfigure
             deliver Reconfigure
             deliver Reconfigure
             show 1 members
             # last 1: members 1
             show 1 ready
             # last 1: ready false
             run 3s
             show 1 ready
             # last 1: ready true
             given get 1 k
             # told get k: value a
             show 2 groups_kept_for_others
             # last 2: groups_kept_for_others 0"
        ));
    }
}

/// The one that left forgets too, or is removed: then everything is lost, and nobody waits. Who
/// forgets later, when it is alone, waits for nobody.
#[test]
fn who_is_left_alone_waits_only_for_what_can_be_heard() {
    let forgets = "nodes 2 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         crash 1
         restart 1 forgot
         drop all
         view 2 2 1
         view 1 2 1
         drop all";
    let begins_empty = "run 5s
         show 1 ready
         # last 1: ready true
         given get 1 k
         # told get k: nothing
         given put 1 k b
         # told put k b: written";
    let waits = "run 5s
         show 1 ready
         # last 1: ready false";
    schedule(&format!("{forgets}\ncrash 2\n{waits}\nrestart 2 forgot\n{begins_empty}"));
    schedule(&format!("{forgets}\ncrash 2\n{waits}\nring all 1:1 2:2:left\n{begins_empty}"));
    schedule(&format!(
        "nodes 2 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         view 2 2 1
         view 1 2 1
         run 2s
         crash 2
         crash 1
         restart 1 forgot
         {begins_empty}"
    ));
}
