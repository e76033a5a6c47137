//! Keys that share their first eight bytes, and so one token of a keyspace in key order: however
//! many they are, no message of a scan, a transfer or a removal of tombstones holds all of them.

use crate::linearizable::Linearizable;
use crate::linearizable::replicate::load::estimate;
use crate::linearizable::wire::page::PAGE_BYTES;
use crate::testing::world::{Setup, World};
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::{KEY_BYTES_MAX, LIST_KEYS_MAX};
use quorate_kernel::operation::{Cursor, Operation, Outcome};
use quorate_kernel::process::{Context, Table};
use quorate_kernel::ring::{Closing, RingHost, Standing};
use quorate_kernel::storage::Class;
use quorate_kernel::time::Span;
use std::borrow::ToOwned;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::format;
use std::string::String;
use std::vec::Vec;

/// The longest frame that anybody may need: a page is closed behind the key that fills it, and two
/// cursors may have keys of their own.
const FRAME_BYTES: usize = PAGE_BYTES + 3 * KEY_BYTES_MAX + 1024;
/// The first token of the one group.
const FIRST: u64 = 100;
const SOON: Span = Span::secs(5);
const STEP: Span = Span::millis(20);

struct Pile {
    world: World<Linearizable>,
    keys: BTreeSet<Bytes>,
    /// The longest frame so far.
    longest: usize,
}

impl Pile {
    /// Three members and one that may come, with these keys.
    fn new(keys: impl Iterator<Item = String>) -> Pile {
        Pile::with(&["ordered", "brisk"], keys)
    }

    fn with(options: &[&str], keys: impl Iterator<Item = String>) -> Pile {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let setup =
            Setup { members: 3, spares: 1, first: Some(FIRST), options, ..Setup::default() };
        let keys: BTreeSet<Bytes> = keys.map(Bytes::from).collect();
        let mut pile = Pile { world: World::new(&setup), keys, longest: 0 };
        pile.ring(&[1, 2, 3]);
        for key in pile.keys.clone() {
            let value = Bytes::from_static(b"v");
            assert_eq!(pile.ask(1, Operation::put(key, value)), Outcome::written());
        }
        pile
    }

    /// The members are to be these hosts: they come first behind the group's range.
    fn ring(&mut self, members: &[u64]) {
        let token = |node| if members.contains(&node) { node } else { 50 + node };
        let host = |node: u64| RingHost {
            who: Incarnation { node: NodeId(node), start: Start(1) },
            address: String::new(),
            zone: String::new(),
            tokens: Vec::from([token(node)]),
            standing: Standing::Up,
            is_suspected: false,
            doors: Vec::new(),
        };
        let mut hosts: Vec<RingHost> = (1..=4).map(host).collect();
        hosts.sort_by_key(|host| host.tokens[0]);
        (1..=4).for_each(|id| self.world.announce(id, &hosts, Closing::No));
    }

    fn deliver(&mut self) {
        while let Some(flight) = self.world.flights.first() {
            self.longest = self.longest.max(flight.body.frame_bytes());
            self.world.deliver(0);
        }
        self.world.log.clear();
    }

    /// What is said of deletions is lost, or late by some steps, in turns that do not repeat soon.
    fn run_with_losses(&mut self, span: Span) {
        let (mut late, mut count) = (Vec::new(), 0_usize);
        for step in 0..span.0 / STEP.0 {
            while let Some(flight) = self.world.flights.first() {
                let (is_told, is_done) = (flight.name == "DropA", flight.name == "DropB");
                count += usize::from(is_told || is_done);
                match [1, 5, 0, 1, 2, 0, 1][count % 7] {
                    1 if is_told => drop(self.world.flights.remove(0)),
                    after @ 1.. if is_done => {
                        late.push((step + after, self.world.flights.remove(0)));
                    }
                    _ => self.world.deliver(0),
                }
            }
            let (due, rest) = late.into_iter().partition(|(at, _)| *at <= step);
            late = rest;
            let due: Vec<(u64, _)> = due;
            self.world.flights.extend(due.into_iter().map(|(_, flight)| flight));
            while !self.world.flights.is_empty() {
                self.world.deliver(0);
            }
            self.world.log.clear();
            self.world.tick(STEP);
        }
        self.deliver();
    }

    fn run(&mut self, span: Span) {
        for _ in 0..span.0 / STEP.0 {
            self.deliver();
            self.world.tick(STEP);
        }
        self.deliver();
    }

    fn ask(&mut self, node: u64, operation: Operation) -> Outcome {
        let number = self.world.request(node, operation, SOON);
        self.deliver();
        let answer = self.world.answers[number].1.clone();
        answer.unwrap_or_else(|| panic!("not answered: {:?}", self.world.answers[number]))
    }

    /// All keys, in pages of so many.
    fn scan(&mut self, node: u64, limit: u32) -> Vec<Bytes> {
        let (mut all, mut from) = (Vec::new(), Some(Cursor::at(FIRST)));
        while let Some(at) = from {
            match self.ask(node, Operation::Scan { from: at.clone(), limit }) {
                Outcome::Page { keys, next } => {
                    assert!(keys.len() <= limit as usize, "a page holds what was asked for");
                    assert!(next.as_ref().is_none_or(|next| *next > at), "it comes to an end");
                    all.extend(keys);
                    from = next;
                }
                other => panic!("{other:?}"),
            }
        }
        all
    }

    fn check(&mut self, node: u64, limit: u32) {
        let listed = self.scan(node, limit);
        assert!(listed.iter().eq(&self.keys), "each key once, in order, by {limit}");
        assert!(self.longest <= FRAME_BYTES, "a frame of {} bytes", self.longest);
    }

    /// Two of the first three members are replaced, or are again, and what a member of all views
    /// holds is looked at by others.
    fn move_around(&mut self) {
        self.ring(&[2, 3, 4]);
        self.run(Span::secs(6));
        let moved = self.world.field(4, "moved_keys");
        assert_eq!(moved, format!("{}", self.keys.len()), "the newcomer has it all");
        self.world.crash(2);
    }
}

/// More keys than a list holds, and short ones around them.
fn many() -> impl Iterator<Item = String> {
    let pile = (0..LIST_KEYS_MAX + 50).map(|number| format!("samehead{number}"));
    pile.chain(["a", "samehea", "sameheae", "z"].map(ToOwned::to_owned))
}

/// Keys of which a few fill a page, five times as many as one page can hold.
fn long() -> impl Iterator<Item = String> {
    let tail = "x".repeat(KEY_BYTES_MAX - 20);
    (0..5 * PAGE_BYTES / KEY_BYTES_MAX).map(move |number| format!("samehead{number:04}{tail}"))
}

#[test]
fn a_page_ends_between_two_keys_of_one_token() {
    let mut pile = Pile::new(many());
    [1, 7, 10_000].into_iter().for_each(|limit| pile.check(2, limit));
    let mut pile = Pile::new(long());
    [1, 7, 10_000].into_iter().for_each(|limit| pile.check(3, limit));
}

#[test]
fn a_pile_moves_in_pieces() {
    for mut pile in [Pile::new(many()), Pile::new(long())] {
        pile.move_around();
        pile.check(4, 500);
    }
}

#[test]
fn tombstones_of_a_pile_are_removed_in_pieces() {
    for mut pile in [Pile::new(many()), Pile::new(long())] {
        for key in core::mem::take(&mut pile.keys) {
            assert_eq!(pile.ask(2, Operation::delete(key)), Outcome::deleted(true));
        }
        let count = pile.world.answers.len() / 2;
        pile.run(Span::secs(8));
        let purged = pile.world.field(1, "tombstones_purged");
        assert_eq!(purged, format!("{count}"), "every tombstone is gone");
        pile.check(3, 100);
    }
}

/// One page after the other is told until every member has answered, whatever becomes of messages.
#[test]
fn every_page_of_tombstones_goes_at_every_member() {
    let mut pile = Pile::new(long());
    let keys = core::mem::take(&mut pile.keys);
    let count = format!("{}", keys.len());
    for key in keys {
        assert_eq!(pile.ask(2, Operation::delete(key)), Outcome::deleted(true));
    }
    pile.run_with_losses(Span::secs(8));
    for node in 1..=3 {
        assert_eq!(pile.world.field(node, "tombstones_purged"), count, "at member {node}");
    }
}

/// Members compare a pile in pieces: who was away gets all of it.
#[test]
fn a_pile_is_compared_in_pieces() {
    for keys in [many().collect::<Vec<_>>(), long().collect()] {
        let mut pile = Pile::with(&["ordered", "brisk", "comparing"], core::iter::empty());
        pile.world.cut.extend([3]);
        for key in keys.iter().cloned().map(Bytes::from) {
            let value = Bytes::from_static(b"v");
            assert_eq!(pile.ask(1, Operation::put(key, value)), Outcome::written());
        }
        pile.world.cut.clear();
        pile.keys = keys.into_iter().map(Bytes::from).collect();
        pile.run(Span::secs(8));
        let restored = pile.world.field(3, "records_restored");
        assert_eq!(restored, format!("{}", pile.keys.len()), "everything it missed");
        pile.check(3, 500);
    }
}

/// A slot that was given up is emptied key by key, also where keys share a token.
#[test]
fn a_pile_that_was_given_up_is_swept() {
    let mut pile = Pile::new(many());
    let (before, count) = (pile.world.stored(1), pile.keys.len());
    pile.ring(&[2, 3, 4]);
    pile.run(Span::secs(12));
    let after = pile.world.stored(1);
    assert!(before > count && after < 20, "{before} keys, then {after} of the group's state");
}

/// A table that counts the pairs that are looked at.
struct Counting<'a> {
    table: &'a dyn Table,
    seen: Cell<usize>,
}

impl Table for Counting<'_> {
    fn get(&self, class: Class, key: &Bytes) -> Option<Bytes> {
        self.table.get(class, key)
    }

    fn scan(&self, class: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        self.table.scan(class, from, &mut |key, value| {
            self.seen.set(self.seen.get() + 1);
            each(key, value)
        });
    }
}

/// Looks begin at random tokens; some of them come upon the pile.
#[test]
fn a_pile_is_not_looked_at_whole_to_estimate_the_load() {
    let mut pile = Pile::new(many());
    let mut longest = 0;
    pile.world.step(1, |engine, cx| {
        let group = engine.durable.groups.values().next().expect("it is a member");
        for _ in 0..32 {
            let table = Counting { table: cx.table, seen: Cell::new(0) };
            let Context { me, lane, now, wall, .. } = *cx;
            let (rng, fx) = (&mut *cx.rng, &mut *cx.fx);
            let (keys, _) =
                estimate(group, &mut Context { me, lane, now, wall, rng, table: &table, fx });
            longest = longest.max(table.seen.get());
            let is_whole = table.seen.get() >= LIST_KEYS_MAX;
            assert!(!is_whole || keys >= LIST_KEYS_MAX as u64, "{keys} of what was seen");
        }
    });
    // The group has two stretches of tokens. Behind each one key more is looked at.
    assert!((LIST_KEYS_MAX..=LIST_KEYS_MAX + 4).contains(&longest), "{longest} keys in one look");
}
