//! Groups that are cut in two.

use crate::linearizable::Linearizable;
use crate::linearizable::tests::traps::schedule;
use crate::testing::script;
use std::format;

/// The parts go on with the same members and the same data; whoever asks for the whole is told of
/// the part that holds the key, and a scan goes on from one part to the other.
#[test]
fn the_parts_serve_and_a_stale_coordinator_is_told() {
    schedule(
        "nodes 3 spare 1
         given put 4 k a
         # told put k a: written
         given put 4 x b
         # told put x b: written
         split 1 1 a921ffffffffffff
         split 2 1 a921ffffffffffff
         split 3 1 a921ffffffffffff
         show 1 groups
         # last 1: groups 2
         given get 4 k
         # told get k: value a
         given put 4 k c
         # told put k c: written
         given get 2 k
         # told get k: value c
         given scan 1 0 10
         # told scan 0 10: page k, next a922000000000000
         given scan 1 a922000000000000 10
         # told scan a922000000000000 10: page x, next end",
    );
}

/// A newcomer that was not there when its group was split is not forgotten: it is invited to the
/// view before, and follows from there.
#[test]
fn a_newcomer_that_missed_a_split_comes_to_the_parts() {
    schedule(
        "nodes 3 spare 1 brisk
         given put 1 k a
         # told put k a: written
         crash 4
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         split 1 2 a000000000000000
         split 2 2 a000000000000000
         drop all
         restart 4
         run 2s
         show 4 groups groups_lacking_data
         # last 4: groups_lacking_data 0
         show 4 groups
         # last 4: groups 2
         crash 1
         given get 4 k
         # told get k: value a",
    );
}

/// Who missed the split and was replaced in the parts since is not invited for ever.
#[test]
fn who_is_replaced_in_the_parts_is_owed_nothing() {
    let text = script::run::<Linearizable>(
        "Debts to a newcomer that will never come.

nodes 3 spare 2 brisk
given put 1 k a
crash 4
view 1 2 1 2 4
view 2 2 1 2 4
view 3 2 1 2 4
split 1 2 a000000000000000
split 2 2 a000000000000000
drop all
ring all 3333333333333333:1 a000000000000000:2 1:4:suspected
run 2s
# still a member
tick 1s
drop all
ring all 3333333333333333:1 a000000000000000:2 ffffffffffffffff:5 1:4:suspected
run 6s
# replaced
tick 1s
",
    );
    let text = text.expect("a schedule");
    let (_, later) = text.split_once("# still a member").expect("the line is kept");
    let (member, replaced) = later.split_once("# replaced").expect("the line is kept");
    assert!(member.contains("Invite to 4"), "it may come yet: {text}");
    assert!(!replaced.contains("Invite"), "nobody waits for it: {text}");
}

/// A member that has not heard of a split is invited to a part it has left and come back to. Were
/// it to join, the split would take it back to the part's first version, with what it held then.
#[test]
fn a_member_that_lags_behind_a_split_joins_no_part() {
    schedule(
        "nodes 3 spare 1 brisk
         split 1 1 a000000000000000
         split 2 1 a000000000000000
         ring all 3333333333333333:1 a000000000000000:2 ffffffffffffffff:4 1:3:suspected
         crash 3
         run 3s
         restart 3
         ring all 3333333333333333:1 a000000000000000:2 ffffffffffffffff:4 1:3
         run 6s
         show 3 groups_lacking_data
         # last 3: groups_lacking_data 0
         given put 1 k a
         # told put k a: written
         given get 3 k
         # told get k: value a",
    );
}

/// A member is away while all others are replaced and let go, and the group is split after that.
/// Who was there when it was split tells what became of it, also if it forgot, in a membership that
/// it had not heard everything for, or not.
#[test]
fn a_member_that_nobody_remembers_hears_of_a_split() {
    for (keyspace, forgot) in [("", ""), ("memory ", " forgot")] {
        schedule(&format!(
            "nodes 3 spare 3 {keyspace}first 100 brisk
             given put 1 k a
             # told put k a: written
             cut 3
             view 1 2 1 2 4
             view 2 2 1 2 4
             run 1s
             view 1 3 1 4 5
             view 2 3 1 4 5
             view 4 3 1 4 5
             run 1s
             view 1 4 4 5 6
             view 4 4 4 5 6
             view 5 4 4 5 6
             ring all 4:4 5:5 6:6 a1:1 a2:2 a3:3
             run 2s
             show 1 groups_kept_for_others
             # last 1: groups_kept_for_others 0
             split 4 4 8000000000000000
             split 5 4 8000000000000000
             split 6 4 8000000000000000
             run 1s
             crash 1
             restart 1{forgot}
             crash 2
             restart 2{forgot}
             crash 3
             restart 3{forgot}
             mend 3
             ring all 4:4 5:5 6:6 a1:1 a2:2 a3:3
             show 3 groups
             # last 3: groups 1
             run 12s
             show 3 groups groups_kept_for_others
             # last 3: groups_kept_for_others 0
             show 4 groups_split
             # last 4: groups_split 0"
        ));
    }
}
