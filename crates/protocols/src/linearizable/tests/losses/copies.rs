//! What a learner copied before others lost what is in it.

use crate::linearizable::tests::traps::schedule;

/// Members of a `memory` keyspace lose everything; a host that had copied ahead joins afterwards.
#[test]
fn a_copy_of_what_was_lost_does_not_come_back() {
    schedule(
        "nodes 3 spare 1 memory first 100 brisk
         given put 1 k x
         # told put k x: written
         given put 1 k a
         # told put k a: written
         ring all 1:1 2:2 3:3
         run 400ms
         ring all 1:1 2:2 4:4 3:3:leaving
         tick 20ms
         tick 20ms
         tick 20ms
         deliver Learn
         deliver ListA 4->
         deliver ListB ->4
         deliver FetchA 4->
         deliver FetchB ->4
         drop all
         crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         cut 4
         run 3s
         show 1 view
         # last 1: view 1
         given get 1 k
         # told get k: nothing
         given put 1 k b
         # told put k b: written
         mend 4
         ring all 1:1 2:2 4:4 3:3:leaving
         run 3s
         show 4 ready
         # last 4: ready true
         show 4 view
         # last 4: view 2
         cut 1
         get 4 k
         run 1s
         # told get k: value b",
    );
}

/// So it is with what a loss of power took from the members of a `periodic` keyspace.
#[test]
fn a_copy_of_what_power_took_does_not_come_back() {
    schedule(
        "nodes 3 spare 1 periodic first 100 brisk
         given put 1 k x
         # told put k x: written
         ring all 1:1 2:2 3:3
         run 400ms
         hold sync 1
         hold sync 2
         hold sync 3
         given put 3 k a
         # told put k a: written
         ring all 1:1 2:2 4:4 3:3:leaving
         tick 20ms
         tick 20ms
         tick 20ms
         deliver Learn
         deliver ListA 4->
         deliver ListB ->4
         deliver FetchA 4->
         deliver FetchB ->4
         drop all
         crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         run 3s
         given get 1 k
         # told get k: value x
         given put 1 k b
         # told put k b: written
         ring all 1:1 2:2 4:4 3:3:leaving
         run 3s
         show 4 ready
         # last 4: ready true
         show 4 view
         # last 4: view 2
         cut 1
         get 4 k
         run 1s
         # told get k: value b",
    );
}
