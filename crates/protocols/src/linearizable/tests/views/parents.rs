//! Groups that were split are forgotten when nobody can ask for them.

use crate::linearizable::Linearizable;
use crate::linearizable::group::Status;
use crate::linearizable::keys::Slot;
use crate::linearizable::tests::traps::schedule;
use crate::testing::world::{Setup, World};
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::limits::GROUPS_MAX;
use quorate_kernel::view::{Range, View, ViewId};
use std::vec;
use std::vec::Vec;

/// Every host says that it knows of the split, or knows nothing of the group: its record goes, and
/// the data stays with the parts. Who still aims at it is told of a part.
#[test]
fn a_parent_goes_when_all_hosts_know() {
    schedule(
        "nodes 3 spare 1 brisk
         given put 4 k a
         # told put k a: written
         split 1 1 a000000000000000
         split 2 1 a000000000000000
         split 3 1 a000000000000000
         show 1 groups_split
         # last 1: groups_split 1
         ring all 3333333333333333:1 a000000000000000:2 ffffffffffffffff:3
         run 1s
         show 1 groups_split
         # last 1: groups_split 0
         show 3 groups_split groups
         # last 3: groups 3
         given get 4 k
         # told get k: value a
         crash 2
         restart 2
         given get 2 k
         # told get k: value a",
    );
}

/// A member that is away has not heard of the split, and will ask.
#[test]
fn a_parent_stays_while_a_member_may_ask() {
    schedule(
        "nodes 3 spare 1 brisk
         given put 1 k a
         # told put k a: written
         cut 3
         split 1 1 a000000000000000
         split 2 1 a000000000000000
         ring all 3333333333333333:1 a000000000000000:2 ffffffffffffffff:3
         run 3s
         show 1 groups_split
         # last 1: groups_split 1
         show 3 groups
         # last 3: groups 1
         mend 3
         run 2s
         show 3 groups
         # last 3: groups 3
         show 1 groups_split
         # last 1: groups_split 0
         show 3 groups_split
         # last 3: groups_split 0
         given get 3 k
         # told get k: value a",
    );
}

/// So does it while a host is away that is no member, but may have been one.
#[test]
fn a_parent_stays_while_any_host_is_silent() {
    schedule(
        "nodes 3 spare 1 brisk
         ring all 3333333333333333:1 a000000000000000:2 ffffffffffffffff:3 1:4:leaving
         crash 4
         run 3s
         show 1 groups_split
         # last 1: groups_split 2
         restart 4
         ring 4 3333333333333333:1 a000000000000000:2 ffffffffffffffff:3 1:4:leaving
         run 2s
         show 1 groups_split
         # last 1: groups_split 0",
    );
}

/// Who left before the split waits for its members to say that they know of it. One that is gone
/// for good says nothing.
#[test]
fn who_left_before_a_split_does_not_wait_for_hosts_that_are_gone_for_good() {
    schedule(
        "nodes 3 spare 1 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         cut 3
         run 2s
         show 4 ready
         # last 4: ready true
         split 1 2 a000000000000000
         split 2 2 a000000000000000
         split 4 2 a000000000000000
         split 3 2 a000000000000000
         crash 2
         mend 3
         ring all 3333333333333333:1 a000000000000000:4 1:3:leaving 2:2:suspected
         run 3s
         show 3 groups_split
         # last 3: groups_split 1
         ring all 3333333333333333:1 a000000000000000:4 1:3:leaving 2:2:left
         run 4s
         show 3 groups_split
         # last 3: groups_split 0
         show 1 groups_split
         # last 1: groups_split 0",
    );
}

/// A part was left and come back to while the split was still remembered. What its first membership
/// left stands in the slot that the parts share with their parent, and is kept for others when the
/// parent is forgotten.
#[test]
fn what_is_kept_of_a_part_outlives_its_parent() {
    let setup = Setup { members: 3, ..Setup::default() };
    let mut world: World<Linearizable> = World::new(&setup);
    for node in 1..=3 {
        world.split(node, 1, 0xa000_0000_0000_0000);
    }
    world.step(1, |process, cx| {
        let groups = process.durable.groups.values();
        let is_parent = |view: &View| view.id.group == GroupId(1);
        let (parents, parts): (Vec<View>, Vec<View>) =
            groups.map(|group| group.record.view.clone()).partition(is_parent);
        let [parent, part] = [&parents[0], &parts[0]];
        let before = process.group(part.id).expect("it is there").record.clone();
        // It was replaced, chosen again, and lacks data.
        process.set_aside(&before, before.generation, cx);
        let sources = part.members().to_vec();
        let id = ViewId { version: part.id.version + 2, ..part.id };
        let status = Status::Busy { sources, since: id, forgot: false };
        let view = View::new(id, part.range, part.members().to_vec());
        let slot = process.fresh_slot(cx);
        process.take_up(Linearizable::newborn(view, status, slot), cx);
        process.begin_transfer(id, cx);
        process.let_go(parent.id, cx);
        assert_eq!(process.held_since(part.id), Some((vec![before.slot], true)));
        assert!(!process.durable.garbage.contains(&(before.slot, part.range)));
        // Once everybody has everything it goes too.
        process.give_up_kept(part, cx);
        assert!(process.durable.garbage.contains(&(before.slot, part.range)));
    });
}

/// A node that takes part in as many groups as it can refuses to learn another one, and shows so.
#[test]
fn a_refusal_to_learn_is_shown() {
    let setup = Setup { members: 3, spares: 1, ..Setup::default() };
    let mut world: World<Linearizable> = World::new(&setup);
    let view = |group: u64| {
        let id = ViewId { group: GroupId(group), version: 1 };
        View::new(id, Range { low: group, high: group + 1 }, Vec::from([1, 2, 3].map(NodeId)))
    };
    let kept =
        |parts: Vec<View>| Status::Retired { was_ready: true, forgot: false, lacking: None, parts };
    let learn = |world: &mut World<Linearizable>| {
        world.step(4, |process, cx| {
            process.on_learn(cx.me, view(1_000_000), Default::default(), cx);
        });
    };
    // What was split does not count.
    world.step(4, |process, cx| {
        for group in 0..GROUPS_MAX as u64 - 1 {
            let record = Linearizable::newborn(view(10 + group), kept(Vec::new()), Slot(0));
            process.take_up(record, cx);
        }
        let record = Linearizable::newborn(view(9), kept(Vec::from([view(9)])), Slot(0));
        process.take_up(record, cx);
    });
    learn(&mut world);
    assert_eq!(world.field(4, "groups_refused"), "0");
    assert_eq!(world.field(4, "transfers"), "1", "it copies the group");
    world.step(4, |process, cx| {
        process.on_learn(cx.me, view(2_000_000), Default::default(), cx);
    });
    assert_eq!(world.field(4, "groups_refused"), "1");
    learn(&mut world);
    assert_eq!(world.field(4, "groups_refused"), "1", "what it has begun it may go on with");
}

/// A member that is away misses that its group was split, and that a part was split again after it
/// had been replaced there. When it is back it knows nothing of that part yet, but comes to it: who
/// can tell it what became of the part does not forget before.
#[test]
fn a_part_that_was_split_stays_while_a_member_of_the_whole_may_come_to_it() {
    schedule(
        "nodes 3 spare 1 brisk
         given put 1 k a
         # told put k a: written
         cut 3
         split 1 1 a000000000000000
         split 2 1 a000000000000000
         ring all 3333333333333333:1 a000000000000000:2 ffffffffffffffff:4 1:3:suspected
         run 8s
         show 3 groups
         # last 3: groups 1
         show 4 groups_split
         # last 4: groups_split 2
         mend 3
         tick 200ms
         deliver 1->3
         deliver 2->3
         deliver 4->3
         deliver 3->1
         deliver 3->2
         deliver 3->4
         drop all
         tick 200ms
         drop all
         ring all 3333333333333333:1 a000000000000000:2 ffffffffffffffff:4 1:3
         run 8s
         show 1 changes_wanted
         # last 1: changes_wanted 0
         show 4 changes_wanted
         # last 4: changes_wanted 0
         show 1 groups_split
         # last 1: groups_split 0
         show 3 groups_split
         # last 3: groups_split 0
         given get 3 k
         # told get k: value a",
    );
}

/// A host said that it knows nothing of a group that was split, and an invitation to a view from
/// before the split comes after that: nobody could tell it any more what became of the group.
#[test]
fn who_said_that_it_knows_nothing_of_a_split_group_does_not_come_to_it() {
    schedule(
        "nodes 3 spare 2 brisk
         given put 1 k a
         # told put k a: written
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         delay Invite
         view 1 3 1 2 5
         view 2 3 1 2 5
         view 3 3 1 2 5
         drop Invite ->4
         cut 4
         run 3s
         crash 3
         mend 4
         split 1 3 a000000000000000
         split 2 3 a000000000000000
         split 5 3 a000000000000000
         ring all 3333333333333333:1 a000000000000000:2 ffffffffffffffff:5 1:3:left 2:4:leaving
         run 3s
         show 1 groups_split
         # last 1: groups_split 0
         show 2 groups_split
         # last 2: groups_split 0
         show 5 groups_split
         # last 5: groups_split 0
         release
         deliver Invite ->4
         run 20s
         show 4 groups
         # last 4: groups 0
         ring all 3333333333333333:1 a000000000000000:2 ffffffffffffffff:4 1:3:left 2:5:leaving
         run 6s
         show 4 groups_lacking_data
         # last 4: groups_lacking_data 0
         show 4 groups
         # last 4: groups 3
         show 1 changes_wanted
         # last 1: changes_wanted 0
         given get 4 k
         # told get k: value a",
    );
}
