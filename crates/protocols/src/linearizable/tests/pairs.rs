//! Groups of two, where one of the two is gone or goes.

use super::traps::schedule;
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
