//! What was lost does not come back: operations that read before a loss impose nothing after it.

use crate::linearizable::tests::traps::schedule;
use std::format;

/// All members lose everything, go on, and a put is made and seen.
const LOST_AND_WRITTEN: &str = "crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         run 2s
         given put 4 k c
         # told put k c: written
         given get 4 k
         # told get k: value c";

/// A get has read what two members hold, and was about to impose it when all lost it.
#[test]
fn a_get_does_not_impose_what_was_lost() {
    schedule(&format!(
        "nodes 3 spare 2 memory first 100 brisk
         given put 4 k x
         # told put k x: written
         given get 5 j
         # told get j: nothing
         put 4 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 4->3
         deliver WriteA
         deliver WriteB
         # told put k a: written
         get 5 k
         drop ReadA 5->2
         deliver ReadA
         deliver ReadB
         tick 300ms
         tick 20ms
         drop all
         cut 5
         {LOST_AND_WRITTEN}
         mend 5
         run 1s
         # told get k: value c
         given get 4 k
         # told get k: value c"
    ));
}

/// A put, or a delete, was made and seen, and who asked for it was told nothing before all lost it.
#[test]
fn what_was_seen_and_lost_is_not_written_again() {
    for ask in ["put 5 k a", "delete 5 k"] {
        let (told, seen) = match ask {
            "delete 5 k" => ("delete k", "nothing"),
            _ => ("put k a", "value a"),
        };
        for newcomer in [false, true] {
            let (views, all) = match newcomer {
                true => (
                    "view 1 2 1 2 6
                     view 2 2 1 2 6
                     view 3 2 1 2 6
                     deliver Invite
                     drop all
                     mend 5
                     tick 300ms
                     tick 300ms
                     deliver WriteA 5->1
                     deliver WriteB
                     drop ListA
                     deliver WriteA",
                    "",
                ),
                false => ("", "mend 5"),
            };
            schedule(&format!(
                "nodes 3 spare 3 memory first 100 brisk
                 given put 4 k x
                 # told put k x: written
                 given get 5 j
                 # told get j: nothing
                 {ask}
                 deliver ReadA
                 deliver ReadB
                 deliver WriteA
                 drop WriteB
                 given get 4 k
                 # told get k: {seen}
                 cut 5
                 {LOST_AND_WRITTEN}
                 {views}
                 {all}
                 run 1s
                 # told {told}: refused..
                 given get 4 k
                 # told get k: value c
                 given get 1 k
                 # told get k: value c"
            ));
        }
    }
}

/// A message of a put that had ended before the loss arrives after it.
#[test]
fn a_late_message_brings_nothing_back() {
    schedule(&format!(
        "nodes 3 spare 2 memory first 100 brisk
         given put 4 k x
         # told put k x: written
         put 4 k a
         deliver ReadA
         deliver ReadB
         delay WriteA 4->3
         deliver WriteA
         deliver WriteB
         # told put k a: written
         {LOST_AND_WRITTEN}
         release
         deliver WriteA
         drop WriteB
         given get 3 k
         # told get k: value c"
    ));
}

/// A newcomer was told when it was invited who forgot, and is restarted before it hears anybody.
#[test]
fn a_newcomer_that_is_restarted_takes_nothing_that_was_lost() {
    schedule(&format!(
        "nodes 3 spare 3 memory first 100 brisk
         given put 4 k x
         # told put k x: written
         given get 5 j
         # told get j: nothing
         put 5 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA
         drop WriteB
         given get 4 k
         # told get k: value a
         cut 5
         {LOST_AND_WRITTEN}
         view 1 2 1 2 6
         view 2 2 1 2 6
         view 3 2 1 2 6
         deliver Invite
         drop all
         mend 5
         tick 300ms
         tick 300ms
         deliver WriteA 5->1
         deliver WriteB 1->5
         drop WriteA 5->1
         drop WriteA 5->2
         crash 6
         restart 6 forgot
         drop ListA
         deliver WriteA 5->6
         run 3s
         # told put k a: refused..
         show 6 ready
         # last 6: ready true
         cut 1
         given get 4 k
         # told get k: value c"
    ));
}
