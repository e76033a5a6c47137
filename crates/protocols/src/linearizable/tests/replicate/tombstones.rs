//! Deletes, and what could bring a deleted value back once the tombstone is gone.

use crate::linearizable::tests::traps::schedule;

/// The ring of these schedules: all hosts lie before the one group's range.
const DELETED: &str = "nodes 3 spare 1 first 100 brisk
     given put 1 k a
     # told put k a: written
     ring all 1:1 2:2 3:3
     given delete 1 k
     # told delete k: deleted 1\n";

#[track_caller]
fn after_delete(lines: &str) {
    schedule(&[DELETED, lines].concat());
}

/// When every member holds the tombstone it goes, and the key stays deleted.
#[test]
fn a_tombstone_that_all_hold_is_removed() {
    after_delete(
        "run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         show 3 tombstones_purged
         # last 3: tombstones_purged 1
         given get 2 k
         # told get k: nothing
         given put 2 k b
         # told put k b: written
         given get 3 k
         # told get k: value b",
    );
}

/// A member that is away may still hold the value: nothing is removed without its word.
#[test]
fn nothing_is_removed_while_a_member_is_away() {
    schedule(
        "nodes 3 first 100 brisk
         given put 1 k a
         # told put k a: written
         ring all 1:1 2:2 3:3
         crash 3
         delete 1 k
         run 4s
         # told delete k: deleted 1
         show 1 tombstones_purged
         # last 1: tombstones_purged 0
         restart 3
         crash 2
         get 3 k
         run 1s
         # told get k: nothing",
    );
}

/// A put is above every tombstone that was removed, although no member holds one any more: else
/// what an older write left behind at somebody would be taken for newer.
#[test]
fn a_put_after_the_removal_is_above_the_tombstone() {
    after_delete(
        "run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         put 4 k b
         deliver ReadA 4->1
         deliver ReadA 4->2
         deliver ReadB
         # last 4: WriteA to 1 2 3: op 1 v1 k = 3@4.1#1 \"b\" above generation 2
         deliver all
         # told put k b: written
         given get 3 k
         # told get k: value b",
    );
}

/// A put that read before the tombstone was there, and whose write arrives after it is gone, must
/// not bring its value back over an answer that said that there is none.
#[test]
fn a_write_from_before_the_removal_is_refused() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         ring all 1:1 2:2 3:3
         put 4 k old
         deliver ReadA 4->
         deliver ReadB
         delay WriteA 4->
         crash 4
         given put 1 k a
         # told put k a: written
         given delete 2 k
         # told delete k: deleted 1
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         release
         deliver WriteA 4->
         get 3 k
         run 1s
         # told get k: nothing",
    );
}

/// A get that read before the tombstone was there, and imposes the value after it is gone.
#[test]
fn what_a_get_imposes_from_before_the_removal_is_refused_and_read_again() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         ring all 1:1 2:2 3:3
         put 4 k a
         deliver ReadA 4->
         deliver ReadB
         deliver WriteA 4->1
         drop all
         crash 4
         restart 4
         get 4 k within 60s
         deliver ReadA 4->1
         deliver ReadA 4->2
         deliver ReadB
         tick 2ms
         # told nothing
         cut 4
         drop all
         get 2 k
         run 1s
         # told get k: value a
         given delete 1 k
         # told delete k: deleted 1
         run 5s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         mend 4
         run 2s
         # told get k: nothing
         get 3 k
         run 1s
         # told get k: nothing",
    );
}

/// A node that held the value when it was removed comes back after the tombstone is gone: it
/// begins with nothing of what it held.
#[test]
fn who_comes_back_brings_no_deleted_value() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         given put 1 k a
         # told put k a: written
         ring all 1:1 2:2 3:3
         crash 3
         ring all 1:1 2:2 3:3:suspected 4:4
         run 3s
         show 4 ready
         # last 4: ready true
         given delete 1 k
         # told delete k: deleted 1
         run 4s
         show 4 tombstones_purged
         # last 4: tombstones_purged 1
         restart 3
         ring all 1:1 2:2 3:3 4:4
         run 5s
         show 3 groups groups_lacking_data
         # last 3: groups_lacking_data 0
         crash 1
         get 3 k
         run 1s
         # told get k: nothing
         crash 2
         restart 1
         get 3 k
         run 1s
         # told get k: nothing",
    );
}

/// In the eventual mode clocks decide, so a tombstone is kept.
#[test]
fn the_eventual_mode_keeps_tombstones() {
    schedule(
        "nodes 3 first 100 brisk eventual
         ring all 1:1 2:2 3:3
         run 1s
         put 1 k a
         deliver WriteA
         deliver WriteB
         # told put k a: written
         run 1s
         given delete 2 k
         # told delete k: deleted 0
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 0
         given get 3 k
         # told get k: nothing",
    );
}

/// What a learner copied is of no use once tombstones were removed: it may hold what they deleted.
#[test]
fn a_learner_gives_up_what_it_copied_before_the_removal() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         given put 1 k a
         # told put k a: written
         ring all 1:1 2:2 4:4 a3:3
         run 50ms
         ring all 1:1 2:2 3:3 a4:4
         show 4 transfers
         # last 4: transfers 0
         show 4 groups_kept_for_others
         # last 4: groups_kept_for_others 1
         show 1 view
         # last 1: view 1
         given delete 1 k
         # told delete k: deleted 1
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         show 4 groups_kept_for_others
         # last 4: groups_kept_for_others 1
         ring all 1:1 2:2 4:4 a3:3
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         run 1s
         show 4 ready view
         # last 4: view 2
         crash 1
         get 4 k
         run 1s
         # told get k: nothing",
    );
}

/// The leader of a removal fails when one of two members that can be reached enforces it. The other
/// one alone has a newer value, which a get cannot impose before both do.
#[test]
fn a_get_ends_although_a_removal_was_left_halfway() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         ring all 1:1 2:2 3:3
         given put 1 k a
         # told put k a: written
         put 4 k b
         deliver ReadA 4->
         deliver ReadB
         deliver WriteA 4->2
         drop all
         crash 4
         restart 4
         given put 1 t a
         # told put t a: written
         given delete 1 t
         # told delete t: deleted 1
         run 1s
         tick 20ms
         deliver TombstonesA
         deliver TombstonesB
         drop all
         cut 3
         ring all 2:2 3:3 1:1:suspected
         get 4 k
         run 200ms
         # told get k: value b",
    );
}

/// A removal is announced again and again while one member is away. It is the same one each time: a
/// later announcement would say of the first that it was enforced, and a put that had read at the
/// one that was away, which knows of neither, would be refused.
#[test]
fn a_removal_that_was_given_up_is_announced_as_it_was() {
    after_delete(
        "cut 3
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 0
         mend 3
         put 4 k b
         deliver ReadA 4->2
         deliver ReadA 4->3
         deliver ReadB
         deliver WriteA
         deliver WriteB
         # told put k b: written",
    );
}
