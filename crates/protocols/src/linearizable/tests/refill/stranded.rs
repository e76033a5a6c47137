//! Groups in even views in which most have forgotten: who is waited for, and who is not.

use crate::linearizable::tests::traps::schedule;
use std::format;
use std::string::String;

/// All up to this node lose everything. The first finds that out and goes on, the others are not
/// told.
fn one_goes_on(upto: u64) -> String {
    one_that_knows_goes_on(upto, "")
}

/// The same, and after their restart all come to know something.
fn one_that_knows_goes_on(upto: u64, known: &str) -> String {
    let each = |nodes: core::ops::RangeInclusive<u64>, what: &str| -> String {
        nodes.map(|node| what.replace('N', &format!("{node}"))).collect()
    };
    let crashes = each(1..=upto, "crash N\n");
    let restarts = each(1..=upto, "restart N forgot\n");
    let unasked = each(2..=upto, "drop ListA N->\n");
    format!(
        "{crashes}{restarts}{unasked}{known}
         deliver ListA
         deliver Lacks
         deliver ListA
         deliver Lacks
         deliver ListA
         drop Lacks
         deliver ListB
         show 1 ready
         # last 1: ready true"
    )
}

/// Whether each of these nodes is ready.
fn ready(nodes: &[u64], is_ready: bool) -> String {
    let each = |node| format!("show {node} ready\n# last {node}: ready {is_ready}\n");
    nodes.iter().map(each).collect()
}

/// Each of the nodes up to this one enters view 2 with these members.
fn view(upto: u64, members: &str) -> String {
    (1..=upto).map(|node| format!("view {node} 2 {members}\n")).collect()
}

/// A newcomer hears of one that was replaced, and is gone, only from the others. One member still
/// has everything that the others have acknowledged and forgotten.
#[test]
fn a_host_that_only_others_miss_is_no_reason_to_give_up() {
    let views = view(4, "1 2 3 5");
    schedule(&format!(
        "nodes 4 spare 1 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         {views}
         run 2s
         show 5 ready
         # last 5: ready true
         crash 4
         ring all 1:1 2:2 3:3 5:5 4:4:left
         run 1s
         put 2 k b
         deliver ReadA
         deliver ReadB
         drop WriteA 2->1
         deliver WriteA
         deliver WriteB
         # told put k b: written
         crash 2
         crash 3
         crash 5
         restart 2 forgot
         restart 3 forgot
         restart 5 forgot
         ring all 1:1 2:2 3:3 5:5 4:4:left
         run 5s
         show 5 groups_lacking_data
         # last 5: groups_lacking_data 1"
    ));
}

/// One is complete and still gathers; the others have acknowledged more and forgotten it. That the
/// one that left is gone, and never had it, is no reason to give it up.
#[test]
fn a_leaver_that_is_gone_is_no_reason_where_members_are_too_few() {
    let views = view(5, "1 2 4 5");
    schedule(&format!(
        "nodes 5 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         {views}
         drop all
         put 2 k b
         deliver ReadA
         deliver ReadB
         drop WriteA 2->1
         deliver WriteA
         deliver WriteB
         # told put k b: written
         crash 3
         crash 2
         crash 4
         crash 5
         restart 2 forgot
         restart 4 forgot
         restart 5 forgot
         ring all 1:1 2:2 3:3:left 4:4 5:5
         run 5s
         show 2 groups_lacking_data
         # last 2: groups_lacking_data 1"
    ));
}

/// Long after all have gathered, the one that was replaced is down, and all lose everything.
#[test]
fn who_left_before_all_had_gathered_is_not_waited_for() {
    for durability in ["memory", "periodic"] {
        schedule(&format!(
            "nodes 2 spare 1 {durability} first 100 brisk
             given put 1 k a
             # told put k a: written
             view 1 2 1 3
             view 2 2 1 3
             run 2s
             show 3 view
             # last 3: view 2
             show 3 ready
             # last 3: ready true
             crash 2
             show 1 groups_lacking_data
             # last 1: groups_lacking_data 0
             crash 1
             crash 3
             restart 1 forgot
             restart 3 forgot
             run 20s
             show 1 groups_lacking_data
             # last 1: groups_lacking_data 0"
        ));
    }
    let views = view(5, "1 2 4 5");
    let forgotten = |some: &str, crashed: &str| {
        let crashes: String = crashed.split(' ').map(|node| format!("crash {node}\n")).collect();
        let restarts: String =
            crashed.split(' ').map(|node| format!("restart {node} forgot\n")).collect();
        schedule(&format!(
            "nodes 5 {some} first 100 brisk
             given put 1 k a
             # told put k a: written
             {views}
             ring all 1:1 2:2 3:3:suspected 4:4 5:5
             run 5s
             crash 3
             {crashes}
             {restarts}
             run 20s
             show 1 groups_lacking_data
             # last 1: groups_lacking_data 0"
        ));
    };
    forgotten("memory", "1 2 4 5");
    forgotten("periodic", "1 2 4");
}

/// All have lost everything, and one is complete again; then a dead member is replaced.
#[test]
fn a_member_that_dies_after_everything_was_lost_is_replaced() {
    let (one_goes_on, all) = (one_goes_on(4), ready(&[2, 3, 5], true));
    for then in ["", "run 2s\nrestart 4 forgot\nrun 20s", "restart 4 forgot"] {
        schedule(&format!(
            "nodes 4 spare 1 memory first 100 brisk
             {one_goes_on}
             crash 4
             view 1 2 1 2 3 5
             view 2 2 1 2 3 5
             view 3 2 1 2 3 5
             {then}
             run 10s
             {all}"
        ));
    }
}

/// The same where one has left, and it, or a member, is restarted once more or dies.
#[test]
fn who_restarts_after_everything_was_lost_holds_nobody_up() {
    let (one_goes_on, all) = (one_goes_on(5), ready(&[2, 4, 5], true));
    let views = view(5, "1 2 4 5");
    for then in ["crash 3\nrestart 3 forgot", "crash 3", "", "crash 5\nrestart 5 forgot"] {
        schedule(&format!(
            "nodes 5 memory first 100 brisk
             {views}
             drop all
             {one_goes_on}
             {then}
             run 20s
             {all}"
        ));
    }
}

/// Both members of a group that nobody has left lose everything; and so in the parts of a split.
#[test]
fn two_that_lose_everything_begin_empty() {
    for split in ["", "split 1 1 8000000000000000\nsplit 2 1 8000000000000000\nrun 5s"] {
        schedule(&format!(
            "nodes 2 memory first 100 brisk
             given put 1 k a
             # told put k a: written
             {split}
             crash 1
             crash 2
             restart 1 forgot
             restart 2 forgot
             run 20s
             show 1 groups_lacking_data
             # last 1: groups_lacking_data 0
             show 2 groups_lacking_data
             # last 2: groups_lacking_data 0
             given get 1 k
             # told get k: nothing"
        ));
    }
}

/// A host that is gone is the reason to go on only where it would have made enough complete. One
/// member has all that the others have acknowledged and forgotten: they wait for it.
#[test]
fn a_host_that_is_gone_is_no_reason_where_it_would_not_have_been_enough() {
    schedule(
        "nodes 3 spare 1 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         deliver Invite
         drop all
         put 2 k b
         deliver ReadA
         deliver ReadB
         drop WriteA 2->1
         deliver WriteA
         deliver WriteB
         # told put k b: written
         crash 3
         crash 2
         crash 4
         restart 2 forgot
         restart 4 forgot
         ring all 1:1 2:2 4:4 3:3:left
         run 5s
         show 4 groups_lacking_data
         # last 4: groups_lacking_data 1
         show 2 groups_lacking_data
         # last 2: groups_lacking_data 1",
    );
    schedule(
        "nodes 5 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         crash 5
         put 2 k b
         deliver ReadA
         deliver ReadB
         drop WriteA 2->1
         deliver WriteA
         deliver WriteB
         # told put k b: written
         crash 2
         crash 3
         crash 4
         restart 2 forgot
         restart 3 forgot
         restart 4 forgot
         ring all 1:1 2:2 3:3 4:4 5:5:left
         run 5s
         show 2 groups_lacking_data
         # last 2: groups_lacking_data 1",
    );
}

/// Two of those that stay lost a put with their power, and so did not; the one that left lost power
/// too, but has the put on its disk. What another that lost power lists does not stand for it.
#[test]
fn who_left_and_lost_power_is_heard_for_what_it_has_on_disk() {
    let views = view(5, "1 2 4 5");
    schedule(&format!(
        "nodes 5 spare 1 periodic first 100 brisk
         hold sync 2
         hold sync 4
         put 6 k a
         deliver ReadA
         deliver ReadB
         deliver WriteA 6->2
         deliver WriteA 6->3
         deliver WriteA 6->4
         drop WriteA
         deliver WriteB
         # told put k a: written
         crash 2
         crash 4
         restart 2 forgot
         restart 4 forgot
         {views}
         drop all
         crash 3
         restart 3 forgot
         drop all
         tick 1s
         deliver ListA 2->
         deliver ListB ->2
         deliver Lacks ->2
         deliver ListA 2->
         deliver ListB ->2
         deliver Lacks ->2
         drop all
         cut 3
         run 2s
         show 2 ready
         # last 2: ready false
         mend 3
         run 3s
         given get 2 k
         # told get k: value a"
    ));
}

/// All have lost everything, and one goes on; another is restarted once more before it was told.
/// It and the third may have acknowledged something since that the first has not: they wait for it,
/// as two of three that forget do, and go on when it has forgotten too.
#[test]
fn who_restarts_before_it_was_told_of_a_loss_waits_for_the_first() {
    let (one_goes_on, waits, all) = (one_goes_on(3), ready(&[2], false), ready(&[1, 2, 3], true));
    schedule(&format!(
        "nodes 3 memory first 100 brisk
         {one_goes_on}
         crash 3
         restart 3 forgot
         run 10s
         {waits}
         crash 1
         restart 1 forgot
         run 20s
         {all}"
    ));
}

/// The same where a newcomer lacked data when all lost it, and who was replaced too: either of the
/// two is restarted once more.
#[test]
fn who_came_or_left_and_restarts_before_it_was_told_waits_for_the_first() {
    let views = view(3, "1 2 4");
    // The members hear of who has left from the newcomer.
    let one_goes_on = one_that_knows_goes_on(4, "deliver ListA\ndeliver Lacks");
    let (waits, all) = (ready(&[2, 4], false), ready(&[1, 2, 4], true));
    for again in [3, 4] {
        schedule(&format!(
            "nodes 3 spare 1 memory first 100 brisk
             {views}
             deliver Invite
             drop all
             {one_goes_on}
             crash {again}
             restart {again} forgot
             run 10s
             {waits}
             crash 1
             restart 1 forgot
             run 20s
             {all}"
        ));
    }
}

/// The same in a group of five of which one is gone: the four that are left need each other.
#[test]
fn who_restarts_before_it_was_told_beside_one_that_is_gone_waits_for_the_first() {
    let ring = "ring all 1:1 2:2 3:3 4:4 5:5:left";
    let one_goes_on = one_that_knows_goes_on(4, ring);
    let (waits, all) = (ready(&[2, 3, 4], false), ready(&[1, 2, 3, 4], true));
    schedule(&format!(
        "nodes 5 memory first 100 brisk
         crash 5
         {one_goes_on}
         crash 4
         restart 4 forgot
         {ring}
         run 10s
         {waits}
         crash 1
         restart 1 forgot
         {ring}
         run 20s
         {all}"
    ));
}
