//! What clients are told besides values: refusals, explanations, and keyspaces of other modes.

use crate::linearizable::tests::traps::schedule;

/// With a majority suspected nothing can be done, and that is said long before the deadline.
#[test]
fn a_minority_fails_fast() {
    schedule(
        "nodes 3 spare 1 first 100
         ring 4 1:1 2:2:suspected 3:3:suspected a4:4
         get 4 k
         # told nothing
         tick 90ms
         # told nothing
         tick 10ms
         # told get k: refused: 2 of the 3 replicas in view 1 are suspected..
         ring 4 1:1 2:2 3:3:suspected a4:4
         given get 4 k
         # told get k: nothing",
    );
}

/// Those of which most are away may have been replaced: newer views are asked for at once, and not
/// when there is no time left.
#[test]
fn a_minority_is_a_reason_to_ask_for_news() {
    schedule(
        "nodes 3 spare 1 first 100
         ring 4 1:1 2:2:suspected 3:3:left a4:4
         get 4 k
         deliver LocateA 4->1
         deliver LocateB 1->4",
    );
}

/// Whoever waits already when a majority becomes suspected is told soon too, although the wait
/// before the next question has grown long.
#[test]
fn who_waits_already_fails_fast_too() {
    schedule(
        "nodes 3 spare 1 first 100
         get 4 k within 60s
         tick 4s
         ring 4 1:1 2:2:suspected 3:3:suspected a4:4
         # told nothing
         tick 100ms
         # told get k: refused: 2 of the 3 replicas in view 1 are suspected..",
    );
}

/// Those whose replicas nobody knows are refused at their deadline, however many come after them.
#[test]
fn who_comes_later_takes_no_deadline_from_who_finds_no_replicas() {
    schedule(
        "nodes 3 unrouted
         get 1 k within 100ms
         tick 40ms
         get 1 l
         tick 40ms
         get 1 m
         tick 40ms
         get 1 n
         tick 40ms
         # told get k: refused..",
    );
}

/// A get that imposes what it read changes nothing, so it need not wait for its deadline.
#[test]
fn a_get_that_imposes_fails_fast() {
    schedule(
        "nodes 3 spare 1 first 100
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop all
         crash 1
         restart 1
         get 4 k within 60s
         deliver ReadA 4->1
         deliver ReadA 4->2
         deliver ReadB
         tick 50ms
         ring 4 1:1 2:2:suspected 3:3:suspected a4:4
         # told nothing
         tick 100ms
         # told get k: refused: 2 of the 3 replicas in view 1 are suspected..",
    );
}

/// A write that was sent before its members were suspected may have been applied.
#[test]
fn a_write_under_way_has_an_unknown_outcome() {
    schedule(
        "nodes 3 spare 1 first 100
         put 4 k a
         deliver ReadA
         deliver ReadB
         ring 4 1:1 2:2:suspected 3:3:suspected a4:4
         tick 5s
         # told put k a: refused: the deadline passed after the write was sent..",
    );
}

/// Of a token that no view covers nothing is known, and nobody tells.
#[test]
fn a_token_without_a_view_has_no_route() {
    schedule(
        "nodes 3 first 100
         scan 2 5 10
         # told nothing
         tick 6s
         # told scan 5 10: refused: no replica of the key's range is known..",
    );
}

/// An explanation names what each member said.
#[test]
fn a_get_is_explained() {
    schedule(
        "nodes 3 first 100
         given put 1 k a
         # told put k a: written
         explain 1 k
         deliver all
         # told get k: explained by 1 2: 1 answers in view 1, ready: a value at timestamp 1@..",
    );
}

/// Who lost its memory is asked, but the explanation does not rest on it.
#[test]
fn an_explanation_rests_on_members_that_have_all() {
    schedule(
        "nodes 3 memory first 100
         given put 1 k a
         # told put k a: written
         crash 2
         restart 2 forgot
         explain 1 k
         deliver ReadA 1->2
         deliver ReadB 2->1
         # told nothing
         deliver ReadA 1->3
         deliver ReadB 3->1
         # told get k: explained by 1 3: 1 answers in view 1, ready: a value at timestamp 1@..",
    );
}

/// A group says who holds it, and who of them surely holds all of it.
#[test]
fn a_group_is_examined() {
    schedule(
        "nodes 3 memory first 100
         crash 2
         restart 2 forgot
         examine 1 500
         deliver ExamineA 1->2
         deliver ExamineB 2->1
         # told nothing
         deliver ExamineA 1->3
         deliver ExamineB 3->1
         # told scan 1f4 1: held by 2 of 1 Confirmed, 2 Some, 3 Confirmed",
    );
}

/// Keys in their own order: a scan shows them so.
#[test]
fn ordered_keys_are_scanned_in_their_order() {
    schedule(
        "nodes 3 ordered
         given put 1 b 1
         # told put b 1: written
         given put 2 a 2
         # told put a 2: written
         given put 3 abcdefghi 3
         # told put abcdefghi 3: written
         given scan 1 0 10
         # told scan 0 10: page a abcdefghi b, next end
         given scan 1 6161000000000000 10
         # told scan 6161000000000000 10: page abcdefghi b, next end",
    );
}

/// In the eventual mode a write has one phase, and the wall clock for a counter.
#[test]
fn the_eventual_mode_writes_in_one_phase() {
    schedule(
        "nodes 3 eventual
         tick 10ms
         put 1 k a
         # told nothing
         deliver WriteA 1->2
         deliver WriteB 2->1
         # told put k a: written
         get 3 k
         deliver ReadA 3->1
         deliver ReadB 1->3
         # told get k: value a",
    );
}
