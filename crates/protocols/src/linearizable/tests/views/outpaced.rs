//! Members that are further behind than anybody keeps decisions of.

use crate::linearizable::Linearizable;
use crate::linearizable::tests::traps::schedule;
use crate::testing::world::{Setup, World};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use std::format;
use std::string::String;
use std::vec::Vec;

/// A group goes through more views than anybody keeps decisions of, while one member is away and
/// remains a member. It is told the newest view, and comes to it with the others' data.
fn away_for_many_views(keyspace: &str, then: &str) {
    away_for_many_views_after(keyspace, "", then);
}

/// The same, after something else.
fn away_for_many_views_after(keyspace: &str, before: &str, then: &str) {
    let mut script = format!(
        "nodes 3 spare 1 {keyspace}first 100 brisk
         {before}
         given put 1 old a
         # told put old a: written
         crash 4
         cut 3
         put 1 k b
         run 1s
         # told put k b: written\n",
    );
    for version in 2..=67 {
        let more = if version % 2 == 0 { "4" } else { "" };
        for node in [1, 2] {
            script += &format!("view {node} {version} 1 2 3 {more}\n");
        }
    }
    schedule(&[&script, "drop all\n mend 3\n", then].concat());
}

#[test]
fn a_member_that_is_too_far_behind_begins_anew() {
    away_for_many_views(
        "",
        "ring all 1:1 2:2 3:3
         show 3 view
         # last 3: view 1
         run 1s
         show 3 view
         # last 3: view 1
         run 4s
         show 3 view ready groups_lacking_data
         # last 3: groups_lacking_data 0
         show 3 view
         # last 3: view 67
         crash 1
         given get 3 k
         # told get k: value b
         given get 3 old
         # told get old: value a
         given put 3 k c
         # told put k c: written
         crash 2
         restart 1
         run 1s
         get 3 k
         run 1s
         # told get k: value c",
    );
}

/// All forgot, and one of them is that far behind: no member of the newer view is complete, nor
/// will be without it.
#[test]
fn a_member_that_is_too_far_behind_waits_for_nobody_when_all_forgot() {
    away_for_many_views(
        "memory ",
        "crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         ring all 1:1 2:2 3:3
         show 3 view
         # last 3: view 1
         run 8s
         show 3 view
         # last 3: view 67
         show 1 ready
         # last 1: ready true
         show 3 ready
         # last 3: ready true
         given put 3 k c
         # told put k c: written
         given get 1 k
         # told get k: value c",
    );
}

/// Everything was lost once, long ago; since then the member that is that far behind has got data
/// again, and did not forget it.
fn lost_long_ago(then: &str) {
    let loss = "crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         run 2s";
    away_for_many_views_after("memory ", loss, then);
}

/// The others forgot, and wait for it: it has what they lack.
#[test]
fn a_loss_of_long_ago_makes_no_member_give_up_its_data() {
    lost_long_ago(
        "crash 1
         crash 2
         restart 1 forgot
         restart 2 forgot
         ring all 1:1 2:2 3:3
         run 8s
         show 3 view
         # last 3: view 1
         show 3 groups_lacking_data
         # last 3: groups_lacking_data 0
         show 1 ready
         # last 1: ready false
         crash 3
         restart 3 forgot
         ring all 1:1 2:2 3:3
         run 8s
         show 3 view
         # last 3: view 67
         show 1 ready
         # last 1: ready true",
    );
}

/// Everything was lost twice, and a member of the first time lacks data in the same start when it
/// is lost again: it was replaced and has come back. What the others know of the first time is no
/// news: it would be told and found out anew in turns.
#[test]
fn a_loss_of_long_ago_takes_no_place_of_a_later_one() {
    let setup = Setup { members: 3, is_memory: true, ..Setup::default() };
    let mut world: World<Linearizable> = World::new(&setup);
    world.crash(3);
    world.restart(3, true);
    let who = |node, start| Incarnation { node: NodeId(node), start: Start(start) };
    let long_ago = Vec::from([who(1, 2), who(2, 2), who(3, 2)]);
    let later = Vec::from([who(1, 3), who(2, 2), who(3, 2)]);
    let known = |world: &mut World<Linearizable>, told: &Vec<Incarnation>| {
        let mut known = Vec::new();
        world.step(3, |process, cx| {
            let view = process.group_after(None).expect("it is there");
            process.on_told_of_loss(view, told.clone(), cx);
            known.clone_from(&process.group(view).expect("it is there").record.lost);
        });
        known
    };
    assert_eq!(known(&mut world, &long_ago), long_ago);
    assert_eq!(known(&mut world, &later), later);
    assert_eq!(known(&mut world, &long_ago), later);
}

/// Without a majority that stands in the newer view, the member keeps what it has.
#[test]
fn a_member_that_is_too_far_behind_waits_for_a_majority() {
    away_for_many_views(
        "",
        "crash 2
         ring all 1:1 2:2 3:3
         run 6s
         show 3 view
         # last 3: view 1
         restart 2
         ring all 1:1 2:2 3:3
         run 5s
         show 3 view
         # last 3: view 67",
    );
}

/// The same as with a loss of long ago, where those that forgot are heard before they have asked
/// anybody: what is known of their earlier starts says nothing of these.
#[test]
fn a_loss_of_an_earlier_start_makes_no_member_give_up_its_data() {
    lost_long_ago(
        "crash 2
         ring all 1:1 2:2 3:3
         run 8s
         crash 1
         restart 1 forgot
         restart 2 forgot
         drop ListA
         ring all 1:1 2:2 3:3
         tick 100ms
         deliver Beats
         deliver LocateB
         run 5s
         show 3 view
         # last 3: view 1
         show 3 groups_lacking_data
         # last 3: groups_lacking_data 0",
    );
}

/// A member that was replaced while it lacked data, and was left behind, gets the data from a
/// majority of a view that its members may not have gathered in yet: half of them is not enough.
#[test]
fn who_was_left_behind_hears_a_majority_of_a_view_that_gathers() {
    let members = |version: u64, told: &[u64], members: &str| -> String {
        told.iter().map(|node| format!("view {node} {version} {members}\n")).collect()
    };
    let (second, third, fourth) = (
        members(2, &[1, 2, 3, 4, 5], "1 2 3 4 6"),
        members(3, &[1, 2, 3, 4], "1 2 3 6 7"),
        members(4, &[1, 2, 3, 7], "1 2 3 7"),
    );
    schedule(&format!(
        "nodes 5 spare 2 first 100 brisk
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 1->2
         drop WriteA 1->3
         deliver WriteA
         deliver WriteB
         # told put k a: written
         {second}
         deliver Invite
         drop all
         cut 6
         {third}
         deliver Invite
         drop all
         {fourth}
         drop all
         cut 1
         cut 2
         cut 3
         cut 4
         mend 6
         ring all 1:1 2:2 3:3 7:7
         run 10s
         mend 2
         mend 3
         run 4s
         get 2 k within 300ms
         run 1s
         # told get k: ..
         mend 1
         mend 4
         run 4s
         get 2 k
         run 1s
         # told get k: value a"
    ));
}

/// A member that missed one change alone, and stands in the next view again, has been a member all
/// along: what it holds for those who ask since that view is what it holds now.
#[test]
fn who_missed_one_change_goes_on_with_its_data() {
    let replaced: String =
        [1, 2, 3, 5].iter().map(|node| format!("view {node} 2 1 2 3 4 6\n")).collect();
    schedule(&format!(
        "nodes 5 spare 1 memory first 100 brisk
         cut 4
         {replaced}
         deliver Invite
         drop all
         cut 1
         cut 2
         cut 3
         cut 5
         mend 4
         ring all 1:1 2:2 3:3 4:4 6:6
         run 8s
         mend 1
         mend 2
         mend 3
         tick 1s
         deliver Beats 1->4
         deliver Beats 2->4
         deliver Beats 3->4
         deliver Beats 6->4
         drop all
         cut 6
         run 1s
         show 4 view
         # last 4: view 2
         show 4 groups_lacking_data
         # last 4: groups_lacking_data 0
         mend 6
         put 1 k a
         deliver ReadA
         deliver ReadB
         drop WriteA 1->2
         drop WriteA 1->3
         deliver WriteA
         deliver WriteB
         # told put k a: written
         cut 6
         crash 1
         restart 1 forgot
         run 2s
         cut 4
         get 2 k
         run 1s
         # told get k: value a"
    ));
}

/// A member that was away was replaced, and chosen again. The others lost everything meanwhile. As
/// it begins anew it is asked for a write of before the loss, before it has heard anybody.
#[test]
fn who_begins_anew_takes_nothing_of_before_a_loss() {
    let mut views = String::new();
    for version in 3..=69 {
        let more = if version % 2 == 0 { "6" } else { "" };
        for node in [1, 2, 4] {
            views += &format!("view {node} {version} 1 2 4 3 {more}\n");
        }
    }
    schedule(&format!(
        "nodes 3 spare 3 memory first 100 brisk
         given put 4 k x
         # told put k x: written
         put 5 k a within 60s
         deliver ReadA
         deliver ReadB
         deliver WriteA
         drop WriteB
         given get 4 k
         # told get k: value a
         cut 5
         cut 3
         view 1 2 1 2 4
         view 2 2 1 2 4
         run 2s
         crash 1
         crash 2
         crash 4
         restart 1 forgot
         restart 2 forgot
         restart 4 forgot
         run 3s
         given put 4 k c
         # told put k c: written
         given get 4 k
         # told get k: value c
         crash 6
         {views}
         view 1 70 1 2 3
         view 2 70 1 2 3
         view 4 70 1 2 3
         drop all
         mend 3
         ring all 1:1 2:2 3:3
         run 1s
         run 700ms
         mend 5
         tick 340ms
         deliver Beats
         deliver DecisionsA
         tick 20ms
         deliver LocateB
         delay ListA 3->
         run 1s
         # told put k a: refused..
         cut 1
         get 4 k
         run 1s
         # told get k: value c"
    ));
}
