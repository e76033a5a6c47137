//! Hosts that were removed from the cluster, and whoever waited to hear from them.

use crate::linearizable::Linearizable;
use crate::linearizable::tests::traps::schedule;
use crate::testing::world::{Setup, World};
use quorate_kernel::ids::NodeId;
use std::format;

/// Two of three forgot, and the third is removed from the cluster: what it held is gone, and nobody
/// waits for it any more.
#[test]
fn a_host_that_is_gone_for_good_is_not_waited_for() {
    schedule(
        "nodes 3 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         ring all 1:1 2:2 3:3:suspected
         run 3s
         show 1 ready
         # last 1: ready false
         ring all 1:1 2:2 3:3:left
         run 3s
         show 1 ready
         # last 1: ready true
         show 2 ready
         # last 2: ready true
         given get 1 k
         # told get k: nothing
         given put 1 k b
         # told put k b: written
         given get 2 k
         # told get k: value b",
    );
}

/// Everything was lost, and one of those who found that out is gone before the others hear it.
#[test]
fn who_is_gone_for_good_after_everything_was_lost_is_not_waited_for() {
    schedule(
        "nodes 3 memory first 100 brisk
         crash 1
         crash 2
         crash 3
         restart 1 forgot
         restart 2 forgot
         restart 3 forgot
         drop ListA 2->
         drop ListA 3->
         deliver ListA
         deliver Lacks
         deliver ListA
         deliver Lacks
         drop all
         crash 3
         ring all 1:1 2:2 3:3:suspected
         run 3s
         show 1 ready
         # last 1: ready false
         ring all 1:1 2:2 3:3:left
         run 3s
         show 1 ready
         # last 1: ready true
         show 2 ready
         # last 2: ready true
         given put 2 k a
         # told put k a: written",
    );
}

/// One forgot while another is down, who is removed then. The third has what they had.
#[test]
fn who_is_complete_is_enough_when_the_others_are_gone_for_good() {
    schedule(
        "nodes 3 memory first 100 brisk
         given put 1 k a
         # told put k a: written
         crash 3
         crash 2
         restart 2 forgot
         ring all 1:1 2:2 3:3:suspected
         run 3s
         show 2 ready
         # last 2: ready false
         ring all 1:1 2:2 3:3:left
         run 4s
         show 2 ready
         # last 2: ready true
         show 2 members
         # last 2: members 2
         given get 2 k
         # told get k: value a
         given put 2 k b
         # told put k b: written",
    );
}

/// A newcomer needs two of three that were there before it. Two are lost with their disks, and who
/// removes them gives up what they alone held; while one of them may come back, it is waited for.
#[test]
fn a_newcomer_goes_on_without_hosts_that_are_gone_for_good() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         given put 1 k a
         # told put k a: written
         put 2 k b
         deliver ReadA
         deliver ReadB
         drop WriteA 2->1
         deliver all
         # told put k b: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver Invite
         drop ListA
         crash 2
         crash 3
         ring all 1:1 4:4 2:2:suspected 3:3:left
         run 3s
         show 4 ready
         # last 4: ready false
         restart 2
         cut 2
         run 1s
         show 4 ready
         # last 4: ready false
         ring all 1:1 4:4 2:2:left 3:3:left
         run 3s
         show 4 ready
         # last 4: ready true
         given get 4 k
         # told get k: value a
         given put 4 k c
         # told put k c: written",
    );
}

/// Who lacks data says from whom it waits to hear.
#[test]
fn it_is_shown_who_is_waited_for() {
    let setup = Setup { members: 3, is_memory: true, ..Setup::default() };
    let mut world: World<Linearizable> = World::new(&setup);
    world.crash(1);
    world.restart(1, true);
    let rows = world.rows(1, "groups");
    let [second, third] = [2, 3].map(NodeId);
    assert_eq!(rows[0]["moving"], format!("0 %, waits for {second} {third}"));
}

/// The only member that one who has left knows of has handed everything on, and is removed. Others
/// know what has become of the group: nothing is kept for it.
#[test]
fn who_has_left_keeps_nothing_for_a_host_that_is_gone() {
    schedule(
        "nodes 1 spare 2 first 100 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 2
         deliver Invite
         deliver ListA
         deliver ListB
         deliver FetchA
         deliver FetchB
         show 2 ready
         # last 2: ready true
         cut 1
         view 2 3 3
         ring all 1:1:leaving 2:2:leaving 3:3
         run 3s
         show 2 groups_kept_for_others
         # last 2: groups_kept_for_others 0
         crash 2
         mend 1
         ring all 1:1:leaving 2:2:left 3:3
         show 1 groups_kept_for_others
         # last 1: groups_kept_for_others 1
         run 9s
         show 1 groups_kept_for_others
         # last 1: groups_kept_for_others 0",
    );
}
