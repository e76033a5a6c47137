//! What was read of an entry when it came is what is executed.

use super::member::{Member, client, entry, from};
use super::numbers::{Numbers, add};
use crate::smr::early::Early;
use crate::smr::{Entry, Part};
use crate::vsr::{Machine as _, Op};
use bytes::Bytes;
use std::vec;
use std::vec::Vec;

/// Executes an entry of which nothing is asked before.
fn apply(member: &mut Member<Numbers>, entry: &Bytes) {
    member.op = Op(member.op.0 + 1);
    let op = member.op;
    member.call(|machine, store| machine.apply(op, entry, store));
}

#[test]
fn an_entry_that_came_is_executed_as_the_same_that_did_not() {
    let one = client(1, 1);
    let [replaced, first, second] = [(1, 9), (1, 5), (2, 6)]
        .map(|(number, by)| entry::<Numbers>(1, from(one, number), &[add("a", by)]));
    let (mut early, mut late) = (Member::<Numbers>::new(), Member::<Numbers>::new());
    // Of what came first another took the place; the others come twice.
    for came in [&replaced, &first, &second, &first, &second] {
        assert!(early.machine.is_command(came));
    }
    for entry in [&first, &second] {
        apply(&mut early, entry);
        apply(&mut late, &Bytes::copy_from_slice(entry));
        early.is_as(&late);
    }
    assert_eq!(early.client(one).reply(2).map(|it| it.1), Some(11));
}

#[test]
fn only_a_little_is_kept_and_nothing_that_came_before_what_was_taken() {
    let read = |at: usize| Entry::<Numbers> { at_ms: at as u64, parts: Vec::new() };
    for (count, bytes, kept) in [(300, 8, 256), (5, 1024 * 1024, 4), (1, 5 * 1024 * 1024, 0)] {
        let all: Vec<Bytes> = (0..count).map(|_| Bytes::from(vec![1; bytes])).collect();
        let mut early = Early::<Numbers>::default();
        all.iter().enumerate().for_each(|(at, bytes)| early.put(bytes.clone(), read(at)));
        let dropped = count - kept;
        let taken = |early: &mut Early<Numbers>, at: usize| {
            early.take(&all[at]).map(|entry| entry.at_ms as usize)
        };
        assert!((0..dropped).all(|at| taken(&mut early, at).is_none()));
        if kept == 0 {
            continue;
        }
        assert_eq!(taken(&mut early, count - 2), Some(count - 2));
        assert_eq!(taken(&mut early, dropped), None, "it came before");
        let other = Bytes::copy_from_slice(&all[count - 1]);
        assert!(early.take(&other).is_none(), "they are other bytes");
        assert_eq!(taken(&mut early, count - 1), Some(count - 1));
        assert_eq!(taken(&mut early, count - 1), None, "it was taken");
    }
}

#[test]
fn short_commands_count_as_what_they_take_when_they_are_read() {
    let commands = vec![add("a", 1); 4000];
    let read = || Entry::<Numbers> {
        at_ms: 1,
        parts: vec![Part { from: None, commands: commands.clone() }],
    };
    let taken = size_of_val(&commands[..]);
    let all: Vec<Bytes> = (0..100).map(|_| Bytes::from(vec![1; 8])).collect();
    let mut early = Early::<Numbers>::default();
    all.iter().for_each(|bytes| early.put(bytes.clone(), read()));
    let kept = all.iter().filter(|bytes| early.take(bytes).is_some()).count();
    assert_eq!(kept, 4 * 1024 * 1024 / (taken + 8 + size_of::<Part<Numbers>>()));
    assert!(kept < all.len());
}
