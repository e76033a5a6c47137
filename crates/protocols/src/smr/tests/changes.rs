//! Whoever follows changes goes on behind the last one that it has, at any replica that knows it.

use super::member::{Member, client, entry, from};
use super::numbers::{Command, Numbers, add, remove};
use crate::smr::Changes;
use std::string::String;
use std::vec::Vec;

fn told(name: &str, number: u64) -> (String, u64) {
    (name.into(), number)
}

#[test]
fn changes_are_told_in_order_and_once() {
    let mut member = Member::<Numbers>::new();
    let commands = [add("a", 1), Command::Waver("b".into()), add("a", 2), remove("a")];
    member.ask(1, from(client(1, 1), 1), &commands);
    member.execute(&entry::<Numbers>(1, from(client(1, 1), 1), &commands));
    let all = Vec::from([told("a", 1), told("a", 3), told("a", 0)]);
    assert_eq!(member.changes_after(0), Some(all.clone()));
    assert_eq!(member.changes_after(2), Some(all[2..].to_vec()));
    assert_eq!(member.changes_after(3), Some(Vec::new()));
    assert_eq!(member.changes_after(4), None, "it was never told");
    let numbers = member.changes().after(1).map(|after| after.map(|(number, _)| number).collect());
    assert_eq!(numbers, Some(Vec::from([2, 3])));
}

#[test]
fn another_replica_numbers_them_the_same_and_knows_those_behind_its_begin() {
    let mut source = Member::<Numbers>::new();
    source.ask(1, from(client(1, 1), 1), &[add("a", 1), add("a", 1)]);
    source.store();
    let mut copied = Member::new();
    copied.copy(&mut source, |_| {});
    source.restart();
    for member in [&mut source, &mut copied] {
        assert_eq!(member.changes_after(1), None, "it does not know that one any more");
        assert_eq!(member.changes_after(2), Some(Vec::new()));
        member.ask(1, from(client(1, 1), 3), &[add("a", 1)]);
        assert_eq!(member.changes_after(2), Some(Vec::from([told("a", 3)])));
        assert_eq!(member.changes().last(), 3);
    }
}

#[test]
fn the_oldest_are_forgotten() {
    let mut changes = Changes::new(0);
    let (kept, more) = (64 * 1024, 10);
    (1..=kept + more).for_each(|number| changes.push(number, 8));
    assert!(changes.after(more - 1).is_none());
    let after = changes.after(more).expect("it is kept").collect::<Vec<_>>();
    assert_eq!((after.len(), after[0]), (kept as usize, (more + 1, &(more + 1))));
}

#[test]
fn the_oldest_are_forgotten_when_all_are_too_long_and_the_last_one_is_kept() {
    const MIB: usize = 1024 * 1024;
    let mut changes = Changes::new(0);
    let kept = |changes: &Changes<u64>| {
        let first = (0..changes.last()).find(|seen| changes.after(*seen).is_some());
        first.map(|seen| (seen + 1, changes.last()))
    };
    (1..=64).for_each(|number| changes.push(number, MIB));
    assert_eq!(kept(&changes), Some((1, 64)));
    changes.push(65, 1);
    assert_eq!(kept(&changes), Some((2, 65)));
    changes.push(66, 60 * MIB);
    assert_eq!(kept(&changes), Some((62, 66)));
    changes.push(67, 65 * MIB);
    assert_eq!(kept(&changes), Some((67, 67)));
    changes.push(68, 1);
    assert_eq!(kept(&changes), Some((68, 68)));
}

#[test]
fn half_of_what_is_kept_is_soon_forgotten() {
    let (mut many, mut long) = (Changes::new(5), Changes::new(0));
    let half = 32 * 1024;
    (0..half).for_each(|number| many.push(number, 8));
    assert!(!many.is_aging(5) && many.is_aging(4), "what was never told here is not known");
    many.push(0, 8);
    assert!(many.is_aging(5) && !many.is_aging(6) && !many.is_aging(half + 6));
    (0..33).for_each(|number| long.push(number, 1024 * 1024));
    assert!(long.is_aging(0) && !long.is_aging(1) && !long.is_aging(33));
    (0..64).for_each(|number| long.push(number, 1024 * 1024));
    assert!(long.is_aging(33) && long.is_aging(64) && !long.is_aging(65));
}
