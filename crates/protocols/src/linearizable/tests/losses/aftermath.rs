//! What holds once a group has begun empty, or goes on without a host that is gone.

use crate::linearizable::tests::traps::schedule;
use std::format;

/// A put that two of four, or of five, have made; then the members forget, and a newcomer that
/// lacked data waits for one that has left. Whom one of them waits for, all of them wait for: the
/// newcomer would bring its value back beside what they have acknowledged since.
fn begins_empty_for_all_or_for_nobody(changes: &str, newcomer: &str, then: &str) {
    schedule(&format!(
        "nodes 4 spare 1 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         given put 1 k b
         # told put k b: written
         {changes}
         drop all
         crash 1
         crash 2
         crash 3
         {newcomer}
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         run 3s
         show 1 ready
         # last 1: ready false
         {then}
         run 3s
         show 1 ready
         # last 1: ready true
         show 5 groups_lacking_data
         # last 5: groups_lacking_data 0
         cut 5
         given put 1 k c
         # told put k c: written
         given get 2 k
         # told get k: value c
         mend 5
         run 1s
         given get 5 k
         # told get k: value c"
    ));
}

#[test]
fn a_group_whose_newcomer_waits_for_who_has_left_waits_for_it_too() {
    let replaced = "view 1 2 1 2 3 5
         view 2 2 1 2 3 5
         view 3 2 1 2 3 5
         view 4 2 1 2 3 5
         deliver Invite";
    let shrunk = "view 1 2 1 2 3 4 5
         view 2 2 1 2 3 4 5
         view 3 2 1 2 3 4 5
         view 4 2 1 2 3 4 5
         deliver Invite
         drop all
         view 1 3 1 2 3 5
         view 2 3 1 2 3 5
         view 3 3 1 2 3 5
         view 4 3 1 2 3 5
         view 5 3 1 2 3 5";
    let has_heard = "deliver ListA 5->4\ndeliver ListB 4->5";
    let forgets = "crash 5\nrestart 5 forgot";
    for then in ["crash 4\nrestart 4 forgot", "crash 4\nring all 1:1 2:2 3:3 5:5 4:4:left"] {
        begins_empty_for_all_or_for_nobody(replaced, forgets, then);
        begins_empty_for_all_or_for_nobody(shrunk, forgets, then);
    }
    let replaced = format!("{replaced}\n{has_heard}");
    begins_empty_for_all_or_for_nobody(&replaced, "", "crash 4\nrestart 4 forgot");
}

/// The same, where a deleted value would come back.
#[test]
fn a_newcomer_brings_nothing_back_that_was_deleted() {
    schedule(
        "nodes 2 spare 1 memory first 100 brisk
         given put 1 x v
         # told put x v: written
         view 1 2 1 2 3
         view 2 2 1 2 3
         deliver Invite
         drop all
         delete 1 x
         deliver ReadA
         deliver ReadB
         drop WriteA 1->2
         deliver WriteA
         deliver WriteB
         # told delete x: deleted 1
         view 1 3 1 3
         view 3 3 1 3
         view 2 3 1 3
         drop all
         crash 1
         crash 3
         restart 1 forgot
         restart 3 forgot
         run 3s
         show 1 ready
         # last 1: ready false
         crash 2
         restart 2 forgot
         run 3s
         given get 1 x
         # told get x: nothing
         given get 3 x
         # told get x: nothing",
    );
}

/// One forgot and has heard from both others that they are complete; then one of them goes for good
/// before what it alone had was fetched.
#[test]
fn a_host_that_is_gone_is_not_waited_for_whatever_it_said_before() {
    schedule(
        "nodes 3 memory first 100 brisk
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 1->2
         deliver WriteA
         deliver WriteB
         # told put k a: written
         crash 1
         restart 1 forgot
         deliver ListA
         deliver ListB
         drop FetchA
         crash 3
         ring all 1:1 2:2 3:3:suspected
         run 3s
         ring all 1:1 2:2 3:3:left
         run 20s
         show 1 groups_lacking_data
         # last 1: groups_lacking_data 0
         show 1 ready
         # last 1: ready true",
    );
}

/// The same, where it goes before it has said anything.
#[test]
fn a_host_that_is_gone_before_it_was_heard_is_not_waited_for() {
    schedule(
        "nodes 3 memory first 100 brisk
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 1->2
         deliver WriteA
         deliver WriteB
         # told put k a: written
         crash 1
         crash 3
         restart 1 forgot
         ring all 1:1 2:2 3:3:suspected
         run 3s
         ring all 1:1 2:2 3:3:left
         run 5s
         show 1 groups_lacking_data
         # last 1: groups_lacking_data 0
         show 1 ready
         # last 1: ready true",
    );
}

/// A newcomer has heard one of its three sources; that one and another go for good.
#[test]
fn a_newcomer_does_not_wait_for_sources_that_are_gone() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         given put 1 k a
         # told put k a: written
         put 2 j b
         deliver ReadA
         deliver ReadB
         drop WriteA 2->1
         deliver all
         # told put j b: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver Invite
         drop ListA 4->1
         drop ListA 4->3
         deliver ListA 4->2
         deliver ListB
         crash 2
         crash 3
         ring all 1:1 4:4 2:2:suspected 3:3:suspected
         run 2s
         ring all 1:1 4:4 2:2:left 3:3:left
         run 10s
         show 4 groups_lacking_data
         # last 4: groups_lacking_data 0",
    );
}

/// A group is split after a removal in an even view; a part's member forgets while the one that had
/// left the whole can be reached.
#[test]
fn who_left_before_a_split_brings_nothing_back_that_was_deleted() {
    schedule(
        "nodes 3 memory first 100 brisk
         given put 1 k v
         # told put k v: written
         cut 3
         given delete 1 k
         # told delete k: deleted 1
         view 1 2 1 2
         view 2 2 1 2
         ring all 1:1 2:2 3:3:leaving
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         split 1 2 8000000000000000
         split 2 2 8000000000000000
         mend 3
         crash 2
         restart 2 forgot
         deliver ListA
         deliver ListB
         run 2s
         show 2 ready
         # last 2: ready true
         given get 2 k
         # told get k: nothing",
    );
}
