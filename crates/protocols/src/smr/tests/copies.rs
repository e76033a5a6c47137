//! A copy is of one entry, whatever is executed while it is made.

use super::member::{Member, client, from};
use super::numbers::{Command, FIRST, Numbers, add, key, remove};
use crate::vsr::{Machine as _, Op};
use bytes::Bytes;
use quorate_kernel::rng::Rng;
use std::collections::BTreeSet;
use std::format;
use std::vec::Vec;

const NAMES: u64 = 12;

/// Commands of one client, some of which are made at random.
struct Busy {
    rng: Rng,
    next: u64,
    log: Vec<Bytes>,
}

impl Busy {
    fn new(seed: u64) -> Busy {
        Busy { rng: Rng::new(seed), next: 1, log: Vec::new() }
    }

    fn goes_on(&mut self, member: &mut Member<Numbers>) {
        let name = format!("{}", self.rng.below(NAMES));
        let command = match self.rng.below(5) {
            0 | 1 => remove(&name),
            2 => Command::Time(name),
            _ => add(&name, self.rng.below(9)),
        };
        let number = self.next - self.rng.below(2).min(self.next - 1);
        let from = from(client(1, 1), number);
        let entry = super::member::entry::<Numbers>(self.next, from, &[command]);
        self.next = self.next.max(number + 1);
        member.execute(&entry);
        self.log.push(entry);
    }
}

#[test]
fn a_copy_is_of_one_entry_while_its_source_goes_on() {
    for seed in 0..60 {
        let (mut source, mut busy) = (Member::new(), Busy::new(seed));
        (0..20).for_each(|_| busy.goes_on(&mut source));
        let at = source.op;
        let mut twin = Member::new();
        busy.log.iter().for_each(|entry| twin.execute(entry));
        let mut copied = Member::new();
        // What it had before, stored or not, is not mixed with what it gets.
        copied.ask(1, from(client(2, 1), 1), &[add("gone", 1)]);
        copied.store();
        copied.ask(1, from(client(2, 1), 2), &[remove("gone"), add("gone too", 1)]);
        copied.copy(&mut source, |source| busy.goes_on(source));
        assert!(source.op > at, "it went on meanwhile");
        copied.is_as(&twin);
        copied.restart();
        copied.is_as(&twin);
        busy.log[at.0 as usize..].iter().for_each(|entry| copied.execute(entry));
        copied.is_as(&source);
    }
}

#[test]
fn copies_of_several_entries_are_given_at_a_time() {
    let mut source = Member::<Numbers>::new();
    let one = client(1, 1);
    source.ask(1, from(one, 1), &[add("a", 1), add("b", 1)]);
    let early = source.op;
    source.head();
    source.ask(1, from(one, 3), &[remove("a"), add("c", 1)]);
    let late = source.op;
    source.head();
    source.ask(1, from(one, 5), &[add("a", 9), remove("b"), remove("c")]);
    let all = |at| {
        let page = source.page(at, &Bytes::new(), usize::MAX).expect("it is known");
        assert_eq!(page.next, None);
        let mut member = Member::<Numbers>::new();
        member.call(|machine, store| machine.install(&page.items, store));
        let numbers = member.machine.objects().iter();
        numbers.map(|(key, number)| (key.clone(), *number)).collect::<Vec<_>>()
    };
    let with = |mut numbers: Vec<(&'static str, u64)>| {
        numbers.push(FIRST);
        numbers.into_iter().map(|(name, number)| (key(name), number)).collect::<Vec<_>>()
    };
    assert_eq!(all(early), with(Vec::from([("a", 1), ("b", 1)])));
    assert_eq!(all(late), with(Vec::from([("b", 1), ("c", 1)])));
    // A page may begin anywhere.
    let page = source.page(late, &key("bb"), 1).expect("it is known");
    assert_eq!(page.next, Some(key(FIRST.0)));

    source.call(|machine, _| machine.keep(&BTreeSet::from([late])));
    assert_eq!(source.page(early, &Bytes::new(), 1), None);
    assert!(source.page(late, &Bytes::new(), 1).is_some());
    assert_eq!(source.page(Op(99), &Bytes::new(), 1), None, "nobody has asked for it");
    source.store();
    source.restart();
    assert_eq!(source.page(late, &Bytes::new(), 1), None, "after a restart it is not known");
}

#[test]
fn what_is_no_copy_changes_nothing() {
    let mut member = Member::<Numbers>::new();
    member.ask(1, from(client(1, 1), 1), &[add("a", 1)]);
    let mut twin = Member::<Numbers>::new();
    twin.ask(1, from(client(1, 1), 1), &[add("a", 1)]);
    let nonsense = Bytes::from_static(&[1, 255]);
    assert!(!member.call(|machine, store| machine.begin_install(Op(9), &nonsense, store)));
    assert!(!member.call(|machine, store| machine.install(&nonsense, store)));
    member.is_as(&twin);
}

#[test]
fn a_copy_of_nothing_is_the_machine_before_the_first_command() {
    let mut member = Member::<Numbers>::new();
    member.ask(1, from(client(1, 1), 1), &[add("a", 1)]);
    member.store();
    let empty = Bytes::new();
    assert!(member.call(|machine, store| machine.begin_install(Op(0), &empty, store)));
    member.call(|machine, store| machine.end_install(Op(0), store));
    member.op = Op(0);
    member.is_as(&Member::new());
    member.restart();
    member.is_as(&Member::new());
}

#[test]
fn a_copy_that_was_interrupted_is_begun_anew() {
    let mut source = Member::<Numbers>::new();
    source.ask(1, from(client(1, 1), 1), &[add("a", 1), add("b", 2)]);
    let (at, head) = (source.op, source.head());
    let mut copied = Member::<Numbers>::new();
    assert!(copied.call(|machine, store| machine.begin_install(at, &head, store)));
    let page = source.page(at, &Bytes::new(), 1).expect("the copy is kept");
    assert!(copied.call(|machine, store| machine.install(&page.items, store)));
    copied.restart();
    assert_eq!(copied.op, Op(0), "nothing whole is stored");
    source.ask(1, from(client(1, 1), 3), &[remove("a")]);
    copied.copy(&mut source, |_| {});
    copied.is_as(&source);
    copied.restart();
    copied.is_as(&source);
}

#[test]
fn what_was_there_before_a_copy_goes_with_its_pages() {
    let mut source = Member::<Numbers>::new();
    source.ask(1, from(client(1, 1), 1), &[add("b", 1), add("y", 2)]);
    let mut copied = Member::<Numbers>::new();
    let names: Vec<_> = (10..40).map(|name| add(&format!("{name}"), 7)).collect();
    copied.ask(1, from(client(2, 1), 1), &names);
    copied.store();
    let before = copied.disk.keys();
    let (at, head) = (source.op, source.head());
    assert!(copied.call(|machine, store| machine.begin_install(at, &head, store)));
    assert_eq!(copied.disk.keys(), before - 1, "all but the head is there yet");
    let page = source.page(at, &Bytes::new(), 1).expect("the copy is kept");
    assert!(copied.call(|machine, store| machine.install(&page.items, store)));
    let left = copied.disk.keys();
    assert!(left < before - 1 && left > 3, "some of it is gone: {left}");
    copied.restart();
    assert_eq!(copied.op, Op(0), "nothing whole is stored");
    copied.copy(&mut source, |_| {});
    copied.is_as(&source);
    copied.restart();
    copied.is_as(&source);
}

#[test]
fn what_is_left_of_the_state_before_goes_in_several_turns_and_a_crash_is_survived() {
    for crashes_behind in 0..6 {
        let mut source = Member::<Numbers>::new();
        source.ask(1, from(client(1, 1), 1), &[add("b", 1), add("y", 2)]);
        let mut copied = Member::<Numbers>::new();
        let names: Vec<_> = (100..160).map(|name| add(&format!("{name}"), 7)).collect();
        copied.ask(1, from(client(2, 1), 1), &names);
        copied.store();
        let (at, head) = (source.op, source.head());
        assert!(copied.call(|machine, store| machine.begin_install(at, &head, store)));
        let page = source.page(at, &Bytes::new(), 1 << 20).expect("the copy is kept");
        assert!(page.next.is_none() && copied.call(|it, store| it.install(&page.items, store)));
        let mut turns = 0;
        loop {
            if turns == crashes_behind {
                copied.restart();
                assert_eq!(copied.op, Op(0), "nothing whole is stored");
                copied.copy(&mut source, |_| {});
                break;
            }
            let before = copied.disk.keys();
            let is_clear = copied.call(|machine, store| machine.clear_away(store));
            let removed = before - copied.disk.keys();
            assert!(removed <= 16, "{removed} in one turn");
            if is_clear {
                assert!(turns >= 3, "all but what went with the page");
                copied.call(|machine, store| machine.end_install(at, store));
                copied.op = at;
                break;
            }
            turns += 1;
        }
        copied.is_as(&source);
        copied.restart();
        copied.is_as(&source);
    }
}
