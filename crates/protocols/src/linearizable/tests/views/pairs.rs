//! Groups of two, where one of the two is gone or goes.

use crate::linearizable::tests::traps::schedule;
use std::format;

/// One of two members dies as soon as both have voted for a newcomer. The other has left their
/// view, so nothing can be completed there any more, and has everything: the newcomer comes.
#[test]
fn a_newcomer_of_a_group_of_two_is_invited_by_one_of_them() {
    for change in ["1 3", "1 2 3"] {
        schedule(&format!(
            "nodes 2 spare 1 first 100 brisk
             given put 1 k a
             # told put k a: written
             view 1 2 {change}
             crash 2
             run 3s
             show 3 groups
             # last 3: groups 1
             given get 1 k
             # told get k: value a"
        ));
    }
}

/// A group of one takes in a second member, which is removed from the cluster before it comes. The
/// first has everything, and goes on alone.
#[test]
fn a_group_goes_on_without_a_second_member_that_is_gone() {
    schedule(
        "nodes 1 spare 1 first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2
         drop all
         ring all 1:1 2:2:left
         crash 2
         run 3s
         show 1 members
         # last 1: members 1
         given get 1 k
         # told get k: value a
         given put 1 k b
         # told put k b: written",
    );
}
