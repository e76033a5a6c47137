//! Gets at a member whose own copy is older than what a majority has.

use crate::linearizable::Linearizable;
use crate::linearizable::tests::traps::schedule;
use crate::testing::script;

/// The first get asks another member for the value; the next ones find it here, and are done when
/// a majority has named its timestamp.
#[test]
fn a_get_that_found_its_own_member_behind_brings_it_up() {
    schedule(
        "nodes 3 first 100 digests majority
         cut 3
         given put 1 k a
         # told put k a: written
         mend 3
         given get 3 k
         # told get k: value a
         get 3 k
         deliver ReadA
         deliver ReadB
         # told get k: value a
         show 3 records_restored
         # last 3: records_restored 1
         crash 1
         crash 3
         restart 3
         get 3 k
         run 1s
         # told get k: value a
         show 3 rounds_write_back
         # last 3: rounds_write_back 0",
    );
}

/// The members answer, the value is deleted and its tombstone removed, and only then the answers
/// come. The get may still tell the value; it must not bring it back.
#[test]
fn what_was_read_before_a_removal_brings_nobody_up() {
    // The get repeats its question each second by now.
    let step = "tick 20ms\n deliver all\n".repeat(40);
    let (before, after) = (
        "nodes 3 first 100 brisk hasty
         ring all 1:1 2:2 3:3
         run 100ms
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 1->3
         deliver WriteA
         deliver WriteB
         # told put k a: written
         get 3 k within 60s
         tick 20ms
         drop all
         tick 40ms
         drop all
         tick 80ms
         drop all
         tick 160ms
         drop all
         tick 320ms
         drop all
         tick 640ms
         drop all
         tick 20ms
         deliver ReadA
         delay ReadB
         # told nothing
         given delete 1 k
         # told delete k: deleted 1\n",
        "show 3 tombstones_purged
         # last 3: tombstones_purged 1
         release
         deliver ReadB
         # told get k: value a
         show 3 records_restored
         # last 3: records_restored 0
         given get 3 k
         # told get k: nothing",
    );
    schedule(&[before, &step, after].concat());
}

/// Two gets end when their wait for the remaining replies does. Of a member that has the newest
/// record of all they have heard meanwhile that it forgot: what is left has a majority, and the own
/// member is behind that. One record of a key is stored at a time.
#[test]
fn gets_that_end_at_one_moment_bring_their_member_up_once() {
    let text = "Two gets of one key end at one moment.
nodes 7 memory first 100
put 3 k a
deliver ReadA
deliver ReadB
drop WriteA 3->1
drop WriteA 3->2
deliver WriteA
deliver WriteB
put 2 k b
deliver ReadA
deliver ReadB
drop WriteA
get 1 k
get 1 k
drop ReadA 1->7
deliver ReadA
deliver ReadB
crash 2
restart 2 forgot
deliver ListA 2->1
tick 20ms
show 1 records_restored";
    let text = script::run::<Linearizable>(text).expect("a script");
    assert_eq!(text.matches("1: answers get k: value a").count(), 2, "{text}");
    assert!(text.ends_with("1: records_restored 1\n"), "{text}");
}
