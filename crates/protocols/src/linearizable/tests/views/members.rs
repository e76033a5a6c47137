//! Members that come, go, lag behind and come back, in groups that follow the ring by themselves.

use crate::linearizable::tests::traps::schedule;

/// One member after the other is replaced only when the newcomer before has all data.
#[test]
fn hosts_that_take_the_place_of_all_members_have_their_data() {
    schedule(
        "nodes 3 spare 3 first 100 brisk
         given put 1 k a
         # told put k a: written
         ring all 4:4 5:5 6:6 a1:1 a2:2 a3:3
         run 6s
         show 4 ready view
         # last 4: view 4
         show 1 groups groups_kept_for_others
         # last 1: groups_kept_for_others 0
         crash 1
         crash 2
         crash 3
         given get 6 k
         # told get k: value a",
    );
}

/// While a newcomer lacks data nothing else is changed, however much the ring asks for it.
#[test]
fn no_change_is_proposed_while_a_newcomer_is_busy() {
    schedule(
        "nodes 3 spare 2 first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         deliver Invite
         drop ListA
         cut 4
         ring all 1:1 4:4 5:5 a2:2
         run 2s
         show 1 view
         # last 1: view 2
         mend 4
         run 4s
         show 1 view
         # last 1: view 3
         crash 2
         given get 5 k
         # told get k: value a",
    );
}

/// A newcomer that is suspected while it lacks data is replaced: nothing waits for it.
#[test]
fn a_suspected_newcomer_is_replaced() {
    schedule(
        "nodes 3 spare 2 first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         drop all
         crash 4
         ring all 1:1 2:2 4:4:suspected 5:5
         run 3s
         show 5 ready view
         # last 5: view 3
         restart 4
         ring all 1:1 2:2 5:5 a4:4
         run 2s
         show 4 groups
         # last 4: groups 0
         crash 1
         given get 5 k
         # told get k: value a",
    );
}

/// Whoever proposed is gone once the change is decided: the members that installed it invite the
/// newcomer.
#[test]
fn a_newcomer_needs_no_proposer() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         drop all
         view 2 2 1 2 4
         view 3 2 1 2 4
         drop all
         crash 1
         run 2s
         show 4 ready
         # last 4: ready true
         given get 4 k
         # told get k: value a",
    );
}

/// Who has left keeps the data until the newcomer has it, then empties its slot.
#[test]
fn who_has_left_keeps_the_data_until_it_is_not_needed() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         put 3 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 3->1
         deliver all
         # told put k a: written
         ring all 1:1 2:2 4:4 a3:3
         cut 4
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         crash 2
         run 3s
         show 3 groups_kept_for_others
         # last 3: groups_kept_for_others 1
         mend 4
         run 2s
         show 4 ready
         # last 4: ready true
         restart 2
         run 2s
         # last 3: writes state garbage is gone
         show 3 groups_kept_for_others
         # last 3: groups_kept_for_others 0
         get 1 k
         run 1s
         # told get k: value a",
    );
}

/// A node that was removed and chosen again is a newcomer: equal members, two versions later.
#[test]
fn a_removed_node_that_is_chosen_again_begins_anew() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         cut 3
         ring all 1:1 2:2 4:4 3:3:suspected
         run 3s
         show 4 ready view
         # last 4: view 2
         put 1 k a
         run 1s
         # told put k a: written
         mend 3
         ring all 1:1 2:2 3:3 a4:4
         run 4s
         show 3 ready view
         # last 3: view 3
         show 3 groups_lacking_data
         # last 3: groups_lacking_data 0
         crash 1
         get 3 k
         run 1s
         # told get k: value a",
    );
}

/// A source that dies while it is asked for records is done without.
#[test]
fn a_source_that_dies_is_replaced() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver Invite
         deliver ListA
         deliver ListB
         crash 1
         drop FetchA
         run 4s
         show 4 ready
         # last 4: ready true
         crash 3
         given get 4 k
         # told get k: value a",
    );
}

/// Decisions that arrive in reverse order wait for each other, and what is missing is asked for.
#[test]
fn decisions_are_installed_in_order() {
    schedule(
        "nodes 3 spare 2
         view 1 2 1 2 4
         view 1 3 1 2 5
         view 2 3 1 2 5
         show 2 view
         # last 2: view 1
         view 2 2 1 2 4
         show 2 view
         # last 2: view 3
         view 3 3 1 2 5
         show 3 view
         # last 3: view 1
         view 3 2 1 2 4
         show 3 groups
         # last 3: groups 0",
    );
}

/// What a learner copied is kept when it becomes a member, unless tombstones were removed since.
#[test]
fn what_was_copied_ahead_is_kept() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         given put 1 k a
         # told put k a: written
         given put 1 x b
         # told put x b: written
         ring all 1:1 2:2 4:4 a3:3
         run 3s
         show 4 ready moved_keys
         # last 4: moved_keys 2",
    );
}

/// A learner that nobody wants any more does not wait for its sources for ever.
#[test]
fn a_learner_that_is_not_wanted_gives_up() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         ring all 1:1 2:2 4:4 a3:3
         tick 20ms
         deliver all
         tick 20ms
         deliver Learn
         cut 2
         cut 3
         run 1s
         show 4 transfers
         ring all 1:1 2:2 3:3
         run 8s
         show 4 transfers
         # last 4: transfers 1
         run 4s
         show 4 transfers
         # last 4: transfers 0",
    );
}

/// A learner has given up and learns again. What a source listed to it the first time says nothing
/// of what a majority holds now.
#[test]
fn a_late_list_says_nothing_to_who_learns_again() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         ring all 1:1 2:2 4:4 a3:3
         tick 20ms
         deliver all
         tick 20ms
         deliver Learn
         deliver ListA 4->2
         delay ListB 2->4
         drop all
         cut 2
         cut 3
         ring all 1:1 2:2 3:3
         run 14s
         show 4 transfers
         # last 4: transfers 0
         ring 1 1:1 2:2 4:4 a3:3
         mend 2
         mend 3
         tick 250ms
         deliver Beats
         tick 250ms
         deliver Learn
         deliver ListA 4->1
         deliver ListB 1->4
         release
         deliver ListB 2->4
         show 4 transfers
         # last 4: transfers 1",
    );
}

/// A member that was away fetches the decisions that it missed, one after the other.
#[test]
fn a_gap_is_fetched() {
    schedule(
        "nodes 3 spare 2 first 100 brisk
         cut 3
         view 1 2 1 3 4
         view 2 2 1 3 4
         run 1s
         view 1 3 1 3 5
         view 4 3 1 3 5
         run 1s
         ring all 1:1 3:3 5:5
         show 3 view
         # last 3: view 1
         mend 3
         run 1s
         show 3 view
         # last 3: view 3",
    );
}

/// A put meets a view change at one replica after the other.
#[test]
fn a_put_survives_a_view_change_at_each_replica() {
    for [first, second] in [[1, 2], [1, 3], [2, 1], [2, 3], [3, 1], [3, 2]] {
        let third = 6 - first - second;
        schedule(&std::format!(
            "nodes 3 spare 2
             put 5 k a
             deliver ReadA
             deliver ReadB
             deliver WriteA 5->{third}
             view {first} 2 1 2 4
             deliver WriteA 5->{first}
             view {second} 2 1 2 4
             deliver WriteA 5->{second}
             deliver all
             view {third} 2 1 2 4
             deliver all
             tick 400ms
             deliver all
             # told put k a: written
             crash 1
             get 4 k
             deliver all
             tick 100ms
             deliver all
             # told get k: value a"
        ));
    }
}

/// A member is away while all others are replaced and let go of the group. They are started again
/// and do not even know that there is one: who holds the range does.
#[test]
fn a_member_that_nobody_remembers_asks_who_holds_the_range() {
    schedule(
        "nodes 3 spare 3 first 100 brisk
         given put 1 k a
         # told put k a: written
         cut 1
         ring all 4:4 5:5 6:6 a2:2 a3:3 1:1:suspected
         run 20s
         show 2 groups_kept_for_others
         # last 2: groups_kept_for_others 0
         show 4 ready
         # last 4: ready true
         crash 2
         restart 2
         crash 3
         restart 3
         mend 1
         ring all 4:4 5:5 6:6 a1:1 a2:2 a3:3
         run 16s
         show 1 groups
         # last 1: groups 0",
    );
}

/// Those that a newcomer is to hear have died, one after the other, and been replaced. It takes
/// part in every vote, and nothing is changed while it lacks data: so it hears who has all now.
#[test]
fn a_newcomer_hears_who_is_there_when_those_before_it_have_died() {
    schedule(
        "nodes 3 spare 3 first 100 brisk
         given put 1 k a
         # told put k a: written
         crash 3
         view 1 2 1 2 4
         view 2 2 1 2 4
         deliver Invite
         drop ListA 4->
         cut 4
         view 1 3 2 4 5
         view 2 3 2 4 5
         run 2s
         show 5 ready
         # last 5: ready true
         crash 1
         mend 4
         ring all 1:2 2:4 3:5 4:6
         run 10s
         show 4 ready
         # last 4: ready true
         crash 2
         given get 4 k
         # told get k: value a",
    );
}
