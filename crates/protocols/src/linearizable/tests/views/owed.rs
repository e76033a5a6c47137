//! What members owe each other while a group changes: invitations, and the data of the views that
//! they have left, also when they come back or forget.

use crate::linearizable::tests::traps::schedule;
use std::format;

/// A member is replaced, and takes the place of the one who replaced it, which has heard nothing
/// yet. What it held before is still owed to that one, of whom its own new membership rests.
#[test]
fn who_comes_back_still_serves_what_it_owes() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         put 2 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 2->1
         deliver all
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver Invite
         drop all
         cut 4
         view 1 3 1 2 3
         view 2 3 1 2 3
         deliver Invite
         drop all
         crash 2
         mend 4
         run 5s
         get 3 k
         run 1s
         # told get k: value a
         show 3 groups_lacking_data
         # last 3: groups_lacking_data 0",
    );
}

/// What was kept is given up once every member holds everything.
#[test]
fn what_was_kept_goes_when_everybody_is_ready() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         given put 2 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver Invite
         drop all
         cut 4
         view 1 3 1 2 3
         view 2 3 1 2 3
         deliver Invite
         drop all
         cut 1
         cut 2
         run 1s
         show 3 slots_kept
         # last 3: slots_kept 1
         mend 1
         mend 2
         run 3s
         show 3 slots_kept
         # last 3: slots_kept 0
         crash 3
         restart 3
         show 3 slots_kept
         # last 3: slots_kept 0",
    );
}

/// It is kept over a restart too.
#[test]
fn what_was_kept_outlives_a_restart() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         put 2 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 2->1
         deliver all
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver Invite
         drop all
         cut 4
         view 1 3 1 2 3
         view 2 3 1 2 3
         deliver Invite
         drop all
         crash 2
         crash 3
         restart 3
         show 3 slots_kept
         # last 3: slots_kept 1
         mend 4
         run 5s
         get 3 k
         run 1s
         # told get k: value a",
    );
}

/// A member is replaced, chosen again and replaced once more before it hears of any of it. What it
/// holds is of its first membership: to the newcomer it is worth something only when it has heard
/// what it would have heard in its second one.
#[test]
fn a_membership_that_never_began_is_no_source() {
    schedule(
        "nodes 3 spare 2 first 100 brisk
         cut 3
         view 1 2 1 2 4
         view 2 2 1 2 4
         run 1s
         put 2 k b
         deliver ReadA
         deliver ReadB
         drop WriteA 2->1
         deliver all
         # told put k b: written
         cut 4
         view 1 3 1 2 3
         view 2 3 1 2 3
         drop Invite
         view 1 4 1 2 5
         view 2 4 1 2 5
         deliver Invite
         drop all
         crash 2
         mend 3
         ring 3 1:1 2:2 5:5
         run 3s
         get 5 k within 300ms
         run 1s
         # told get k: ..
         mend 4
         ring 4 1:1 2:2 5:5
         run 3s
         get 5 k
         run 1s
         # told get k: value b",
    );
}

/// A newcomer was replaced before it came. Who took its place needs two of three, and one of them
/// is lost, or forgot and waits for it. The one that never came is still owed its invitation, and
/// stands for what it would have heard: who left for it has that.
#[test]
fn who_was_replaced_before_it_came_is_still_invited() {
    let replaced = |keyspace: &str, then: &str| {
        schedule(&format!(
            "nodes 3 spare 2 {keyspace}first 100 brisk
         put 2 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 2->1
         deliver all
         # told put k a: written
         cut 4
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         drop all
         view 1 3 1 2 5
         view 2 3 1 2 5
         deliver Invite
         drop all
         mend 4
         crash 2
         {then}"
        ));
    };
    replaced(
        "",
        "run 4s
         show 5 ready
         # last 5: ready true
         get 5 k
         run 1s
         # told get k: value a",
    );
    replaced(
        "memory ",
        "restart 2 forgot
         run 4s
         show 5 ready
         # last 5: ready true
         show 2 ready
         # last 2: ready true
         show 1 newcomers_awaited
         # last 1: newcomers_awaited 0
         crash 1
         get 5 k
         run 1s
         # told get k: value a
         show 4 groups
         # last 4: groups 0",
    );
}

/// Two newcomers, neither of which came when it was chosen: both are owed.
#[test]
fn every_newcomer_is_owed_not_the_newest_alone() {
    schedule(
        "nodes 5 spare 2 first 100 brisk
         given put 1 k a
         # told put k a: written
         cut 6
         view 1 2 1 2 3 4 6
         view 2 2 1 2 3 4 6
         view 3 2 1 2 3 4 6
         view 4 2 1 2 3 4 6
         view 5 2 1 2 3 4 6
         view 1 3 1 2 3 6 7
         view 2 3 1 2 3 6 7
         view 3 3 1 2 3 6 7
         view 4 3 1 2 3 6 7
         run 1s
         show 7 ready
         # last 7: ready true
         mend 6
         run 3s
         show 6 groups groups_lacking_data
         # last 6: groups_lacking_data 0
         show 6 groups
         # last 6: groups 1
         crash 1
         crash 2
         given get 6 k
         # told get k: value a",
    );
}

/// A newcomer that is replaced before it has heard enough goes on until it has: who replaces it may
/// have nobody else.
#[test]
fn a_newcomer_that_is_replaced_still_owes_what_it_had_to_hear() {
    schedule(
        "nodes 3 spare 2 first 100 brisk
         put 2 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 2->1
         deliver all
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver Invite
         drop all
         view 1 3 1 2 5
         view 2 3 1 2 5
         view 4 3 1 2 5
         crash 2
         run 5s
         get 5 k
         run 1s
         # told get k: value a",
    );
}

/// Who comes back still owes the invitation that it owed when it left: the newcomer of that time
/// needs one of a majority, and the others may be gone.
#[test]
fn who_comes_back_still_owes_an_invitation() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         given put 1 k a
         # told put k a: written
         cut 4
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         view 1 3 1 3 4
         view 2 3 1 3 4
         deliver Invite 1->3
         deliver Invite 2->3
         drop all
         show 3 groups
         # last 3: groups 1
         crash 2
         mend 4
         run 5s
         show 4 groups_lacking_data
         # last 4: groups_lacking_data 0
         show 4 groups
         # last 4: groups 1
         show 3 groups_lacking_data
         # last 3: groups_lacking_data 0
         get 3 k
         run 1s
         # told get k: value a",
    );
}

/// Who has left votes on nothing that follows a later view, though that view has it again, until it
/// was invited: others may still complete operations in the view before.
#[test]
fn who_is_chosen_again_neither_votes_nor_goes_on_before_it_is_invited() {
    schedule(
        "nodes 3 spare 2 first 100 brisk
         given put 1 k a
         # told put k a: written
         cut 4
         view 1 2 1 2 4
         view 3 2 1 2 4
         drop all
         view 1 3 1 3 4
         drop all
         cut 2
         ring 1 1:1 3:3 4:4:suspected 5:5 2:2
         run 4s
         show 3 groups
         # last 3: groups 0
         show 1 view
         # last 1: view 3
         mend 2
         run 4s
         show 3 groups
         # last 3: groups 1
         get 3 k
         run 1s
         # told get k: value a",
    );
}

/// A group is split while a member lags behind that keeps what it held before.
#[test]
fn what_was_kept_goes_with_a_split() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver Invite
         drop all
         cut 4
         view 1 3 1 2 3
         view 2 3 1 2 3
         deliver Invite
         deliver ListA
         deliver ListB
         deliver FetchA
         deliver FetchB
         show 3 groups_lacking_data slots_kept
         # last 3: slots_kept 1
         split 3 3 8000000000000000
         show 3 slots_kept
         # last 3: slots_kept 0
         split 1 3 8000000000000000
         split 2 3 8000000000000000
         given get 3 k
         # told get k: value a",
    );
}
