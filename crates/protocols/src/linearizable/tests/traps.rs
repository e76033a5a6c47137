//! The mistakes that the protocol invites, each with the shortest schedule in which it would show.
//! What clients are told, and when, is the whole assertion; the golden scripts show the messages.

use super::super::Linearizable;
use crate::testing::script;
use std::format;
use std::string::String;
use std::vec::Vec;

/// Runs a schedule. `# told ANSWER` says that exactly this was answered since the last such line, and
/// `# told nothing` that nothing was; `# last LINE` is the last thing that happened.
#[track_caller]
fn schedule(lines: &str) {
    let lines: Vec<&str> = lines.lines().map(str::trim).collect();
    let text = ["A trap.\n", &lines.join("\n")].concat();
    let text = script::run::<Linearizable>(&text).expect("a schedule");
    let (mut told, mut last): (Vec<&str>, &str) = (Vec::new(), "");
    for line in text.lines() {
        if let Some(happened) = line.strip_prefix("> ") {
            last = happened;
            told.extend(happened.split_once(": answers ").map(|(_, answer)| answer));
        } else if line == "# told nothing" {
            assert!(told.is_empty(), "{told:?}\n{text}");
        } else if let Some(expected) = line.strip_prefix("# told ") {
            assert_eq!(told, [expected], "{text}");
            told.clear();
        } else if let Some(expected) = line.strip_prefix("# last ") {
            assert_eq!(last, expected, "{text}");
        }
    }
    assert!(told.is_empty(), "{told:?}\n{text}");
}

/// Sets of equal answers would make one member's doubled acknowledgement worth the same as one, and
/// two members' equal ones worth one. They are counted by sender.
#[test]
fn acknowledgements_are_counted_by_sender() {
    schedule(
        "nodes 5
         put 1 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 1->2
         duplicate WriteB 2->1
         duplicate WriteB 2->1
         deliver WriteB
         # told nothing
         deliver WriteA 1->3
         deliver WriteB 3->1
         # told put k a: written",
    );
}

/// With five nodes that hold a new view of three, two pairs of them could be disjoint majorities.
#[test]
fn a_removed_member_is_no_part_of_a_quorum() {
    schedule(
        "nodes 3 spare 1
         view 1 2 1 2 4
         view 3 2 1 2 4
         get 4 k
         deliver ReadA 4->3
         duplicate ReadB 3->4
         deliver ReadB 3->4
         deliver ReadA 4->1
         deliver ReadB 1->4
         # told nothing
         view 2 2 1 2 4
         deliver ReadA 4->2
         deliver ReadB 2->4
         # told get k: nothing",
    );
}

/// A put that reads again after a view change writes its value a second time, above a put that came
/// between: the value would appear, be overwritten, and appear again.
#[test]
fn a_put_that_moves_to_a_new_view_writes_the_same_record() {
    schedule(
        "nodes 3 spare 1
         put 4 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 4->1
         drop WriteA
         drop WriteB
         given get 2 k
         # told get k: value a
         given put 2 k b
         # told put k b: written
         view 1 2 1 2 3
         view 2 2 1 2 3
         view 3 2 1 2 3
         tick 20ms
         deliver all
         # told put k a: written
         given get 3 k
         # told get k: value b",
    );
}

/// A refusal stamped with the view that the put has meanwhile moved to stored nothing.
#[test]
fn a_refusal_is_no_acknowledgement() {
    schedule(
        "nodes 3 spare 1
         put 1 k a
         deliver ReadA
         deliver ReadB
         view 2 2 2 3 4
         view 3 2 2 3 4
         deliver WriteA
         duplicate WriteB 2->1
         deliver WriteB
         # told nothing
         deliver WriteA 1->2
         deliver WriteA 1->3
         deliver WriteB
         # told put k a: written",
    );
}

/// An acknowledgement for one view says nothing about another.
#[test]
fn acknowledgements_of_two_views_do_not_add_up() {
    schedule(
        "nodes 3 spare 2
         put 5 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 5->1
         deliver WriteB 1->5
         view 2 2 1 2 4
         deliver WriteA 5->2
         deliver WriteB 2->5
         deliver WriteA 5->2
         deliver WriteB 2->5
         # told nothing
         view 1 2 1 2 4
         deliver WriteA 5->1
         deliver WriteB 1->5
         # told put k a: written",
    );
}

/// Two starts of one coordinator can choose the same counter and operation number for two puts. Were
/// the timestamps equal, members would hold different values that look the same.
#[test]
fn two_starts_of_a_coordinator_write_different_timestamps() {
    schedule(
        "nodes 3
         hold sync 1
         put 1 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 1->3
         drop all
         crash 1
         restart 1
         put 1 k b
         deliver ReadA 1->2
         deliver ReadB 2->1
         deliver WriteA 1->3
         deliver WriteB 3->1
         # told put k b: written
         drop all
         given get 3 k
         # told get k: value b",
    );
}

/// After {1 2 3}, {1 2 4}, {1 2 3} a node that is still in the first view must not pass for a member
/// of the third: it lacks what was written in between.
#[test]
fn views_of_equal_members_differ() {
    schedule(
        "nodes 3 spare 1
         view 1 2 1 2 4
         view 1 3 1 2 3
         get 1 k
         deliver ReadA 1->3
         deliver ReadB 3->1
         # told nothing
         view 2 2 1 2 4
         view 2 3 1 2 3
         deliver ReadA 1->2
         deliver ReadB 2->1
         # told get k: nothing",
    );
}

/// A view is installed only after the one before it: a node that skips the view in which it was no
/// member would count for the next one without what was written meanwhile.
#[test]
fn a_node_installs_no_view_over_a_gap() {
    schedule(
        "nodes 3 spare 1
         view 1 2 1 2 4
         view 1 3 1 2 3
         view 3 3 1 2 3
         get 1 k
         deliver ReadA 1->3
         deliver ReadB 3->1
         # told nothing
         view 3 2 1 2 4
         deliver ReadA 1->2
         show 3 view ready
         # last 3: ready false",
    );
}

/// What a member stamps with a view must not leave before that view is synced: after a crash it would
/// stamp an older one again.
#[test]
fn a_stamp_waits_until_its_view_is_synced() {
    schedule(
        "nodes 3 spare 1
         put 1 k a
         deliver ReadA
         deliver ReadB
         hold sync 2
         view 2 2 1 2 4
         deliver WriteA 1->2
         # last 2: holds until synced WriteB to 1: op 1 v1 refused, v2 hint v2(1 2 4)
         crash 2
         restart 2
         show 2 view
         # last 2: view 1",
    );
}

/// While a member of the old view has not left it, writes can still complete there. What it gives a
/// new member before that may lack them.
#[test]
fn a_source_counts_only_after_it_has_left_the_old_view() {
    schedule(
        "nodes 3 spare 2
         put 5 k a
         deliver ReadA
         deliver ReadB
         view 4 2 1 2 4
         deliver RefillA
         deliver RefillB
         deliver WriteA 5->2
         deliver WriteA 5->3
         deliver WriteB
         # told put k a: written
         drop all
         view 1 2 1 2 4
         view 2 2 1 2 4
         get 4 k
         deliver ReadA 4->1
         deliver ReadB 1->4
         # told nothing
         drop all
         tick 200ms
         deliver all
         tick 1s
         deliver all
         # told get k: value a",
    );
}

/// The data of a member that is itself still without it is no source.
#[test]
fn a_member_that_lacks_data_is_no_source() {
    schedule(
        "nodes 3 spare 2
         put 3 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 3->1
         deliver all
         # told put k a: written
         view 4 2 1 2 4
         drop RefillA
         view 4 3 1 4 5
         view 1 2 1 2 4
         view 1 3 1 4 5
         view 2 2 1 2 4
         view 2 3 1 4 5
         view 5 2 1 2 4
         view 5 3 1 4 5
         deliver RefillA 5->1
         deliver RefillA 5->4
         deliver RefillB
         drop RefillA
         get 5 k
         deliver all
         # told nothing
         tick 200ms
         deliver all
         tick 1s
         deliver all
         # told get k: value a",
    );
}

/// A removed member that forgot is still asked by the one who replaced it. It has nothing to give.
#[test]
fn a_removed_member_that_forgot_is_no_source() {
    schedule(
        "nodes 3 spare 2 memory
         put 5 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 5->2
         deliver WriteA 5->3
         deliver WriteB
         # told put k a: written
         drop all
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         crash 3
         restart 3 forgot
         drop all
         view 4 2 1 2 4
         deliver RefillA 4->1
         deliver RefillA 4->3
         deliver RefillB
         show 4 ready
         # last 4: ready false
         deliver RefillA
         deliver RefillB
         given get 4 k
         # told get k: value a",
    );
}

/// A value that a get shows, or that counts as stored, must be synced at the member that holds it.
#[test]
fn nothing_is_shown_that_a_crash_can_take_back() {
    schedule(
        "nodes 3 spare 1
         put 4 k a
         deliver ReadA
         deliver ReadB
         hold sync 2
         deliver WriteA 4->2
         drop WriteA
         get 3 k
         deliver ReadA 3->2
         drop ReadA
         deliver all
         tick 2ms
         # told nothing
         crash 2
         restart 2
         get 2 k
         deliver ReadA 2->1
         deliver all
         # told get k: nothing",
    );
}

/// An acknowledgement says that the record is synced.
#[test]
fn an_acknowledgement_waits_for_the_sync() {
    schedule(
        "nodes 3 spare 1
         hold sync 2
         put 4 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 4->3
         deliver all
         # told nothing
         sync 2
         deliver all
         # told put k a: written",
    );
}

/// Two gets in a row must not see a value and then miss it: the first stores what it read at a
/// majority before it answers.
#[test]
fn what_one_get_has_seen_no_later_get_misses() {
    schedule(
        "nodes 3 spare 1
         put 4 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 4->1
         drop all
         get 3 k
         deliver ReadA 3->1
         deliver ReadB 1->3
         drop all
         tick 2ms
         # told get k: value a
         drop all
         get 2 k
         deliver ReadA 2->3
         drop all
         tick 2ms
         deliver all
         # told nothing",
    );
}

/// What a member acknowledged before it forgot must not complete a write that is not there any more.
#[test]
fn an_acknowledgement_from_before_the_member_forgot_does_not_count() {
    schedule(
        "nodes 3 spare 1 memory
         put 4 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 4->1
         deliver WriteB 1->4
         crash 1
         restart 1 forgot
         deliver RefillA
         deliver RefillB
         show 1 ready
         # last 1: ready true
         drop RefillA
         deliver WriteA 4->2
         deliver WriteB 2->4
         # told nothing
         drop WriteA
         get 3 k
         deliver ReadA 3->1
         deliver ReadB 1->3
         # told get k: nothing",
    );
}

/// Members that forget and refill one after the other have each said once that they forgot. Only a
/// second round shows that they had not all forgot at one moment.
#[test]
fn everything_is_lost_only_if_all_had_forgot_at_once() {
    let mut lines = String::from(
        "nodes 5 memory
         given put 5 k a
         # told put k a: written
         crash 1
         restart 1 forgot
         drop all\n",
    );
    for node in 2..=5 {
        // It forgets, says so to node 1, and refills.
        lines += &format!(
            "crash {node}
             restart {node} forgot
             tick 200ms
             deliver RefillA 1->{node}
             deliver RefillB {node}->1
             drop RefillA 1->
             deliver all
             show {node} ready
             # last {node}: ready true\n"
        );
    }
    schedule(
        &(lines
            + "show 1 ready
               # last 1: ready false
               tick 200ms
               deliver all
               show 1 ready
               # last 1: ready true
               given get 1 k
               # told get k: value a"),
    );
}

/// A source that answers "I forgot" has given nothing, however often it says so.
#[test]
fn two_of_three_that_forgot_stay_silent() {
    schedule(
        "nodes 3 memory
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 1->3
         deliver all
         # told put k a: written
         crash 1
         crash 2
         restart 1 forgot
         restart 2 forgot
         deliver all
         tick 1s
         deliver all
         get 3 k
         deliver all
         # told nothing",
    );
}
