//! The mistakes that the protocol invites without any crash, each with the shortest schedule in
//! which it would show. What clients are told, and when, is the whole assertion; the golden scripts
//! show the messages.

use super::super::Linearizable;
use crate::testing::script;
use std::vec::Vec;

/// Runs a schedule. `# told ANSWER` says that exactly this was answered since the last such line
/// (after `..` comes more), and `# told nothing` that nothing was; `# last LINE` is the last thing
/// that happened.
#[track_caller]
pub(super) fn schedule(lines: &str) {
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
            match (expected.strip_suffix(".."), &told[..]) {
                (Some(begin), [one]) => assert!(one.starts_with(begin), "{told:?}\n{text}"),
                _ => assert_eq!(told, [expected], "{text}"),
            }
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
        "nodes 3 spare 2
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
         view 1 2 2 3 5
         view 2 2 2 3 5
         view 3 2 2 3 5
         deliver all
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

/// After {1 2 3}, {1 2 4}, {1 2 3} a node that is still in the first view must not pass for a
/// member of the third: it lacks what was written in between.
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
         show 3 groups
         # last 3: groups 0
         tick 20ms
         deliver ReadA 1->3
         deliver ReadB 3->1
         # told nothing",
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
         drop WriteA 5->2
         deliver WriteA 5->1
         deliver WriteB 1->5
         view 1 2 1 2 4
         view 2 2 1 2 4
         deliver Invite
         deliver ListA 4->3
         deliver ListB 3->4
         deliver WriteA 5->3
         deliver WriteB 3->5
         # told put k a: written
         deliver ListA 4->2
         deliver ListB 2->4
         show 4 ready
         # last 4: ready false
         view 3 2 1 2 4
         tick 400ms
         deliver all
         show 4 ready
         # last 4: ready true
         get 4 k
         drop ReadA 4->1
         deliver all
         tick 2ms
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
         view 1 2 1 2 4
         view 2 2 1 2 4
         deliver Invite
         drop ListA
         view 1 3 1 4 5
         view 2 3 1 4 5
         view 4 3 1 4 5
         deliver Invite
         deliver ListA 5->1
         deliver ListA 5->4
         deliver ListB
         drop ListA
         show 5 ready
         # last 5: ready false
         get 5 k
         deliver all
         # told nothing
         tick 400ms
         deliver all
         tick 1s
         deliver all
         # told get k: value a",
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

/// A newcomer that acknowledged before a majority had left the view before would complete a write
/// that the view before, still in force for a majority, does not show.
#[test]
fn a_newcomer_acknowledges_only_when_the_view_before_was_left() {
    schedule(
        "nodes 3 spare 1
         put 2 k a
         deliver ReadA
         deliver ReadB
         drop WriteA
         view 2 2 1 2 4
         deliver Invite
         tick 20ms
         deliver WriteA 2->4
         deliver WriteB 4->2
         # told nothing
         get 3 k
         deliver ReadA 3->1
         deliver ReadB 1->3
         # told get k: nothing",
    );
}

/// Majorities of two views need not meet: replies of a member that has gone on to the next view
/// must not count in the one before.
#[test]
fn a_reply_counts_only_in_the_view_that_it_is_stamped_with() {
    schedule(
        "nodes 3 spare 1
         view 1 2 1 2 4
         view 2 2 1 2 4
         deliver Invite
         deliver ListA
         deliver ListB
         put 1 k a
         drop ReadA 1->2
         deliver ReadA 1->4
         deliver ReadB
         drop WriteA 1->2
         deliver WriteA
         deliver WriteB
         # told put k a: written
         get 3 k
         drop ReadA 3->1
         deliver ReadA
         deliver ReadB
         tick 100ms
         deliver all
         # told get k: value a",
    );
}
