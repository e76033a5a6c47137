//! The number of groups is altered while all serve: buckets move, and every promise is kept.

use super::promises::{SOON, transact};
use super::seats::{LONG, fill, founded, has_all};
use super::world::World;
use crate::serializable::lane::message::Message;
use crate::serializable::lane::places::place;
use bytes::Bytes;
use quorate_kernel::change::Change;
use quorate_kernel::expiry::Expiry;
use quorate_kernel::ids::{GroupId, Ticket};
use quorate_kernel::limits::SCAN_KEYS_MAX;
use quorate_kernel::operation::{Cursor, Operation, Outcome};
use quorate_kernel::time::Span;
use quorate_kernel::transaction::{Item, ItemOutcome};
use std::collections::BTreeSet;
use std::vec::Vec;

impl World {
    /// Whether all hosts that are up know that every bucket is where it should be, and nothing is
    /// left where they were.
    pub fn are_placed(&self) -> bool {
        let mut there = self.hosts.iter().flat_map(|host| &host.process);
        there.all(|process| {
            let is_idle = process.groups.values().all(|hosted| {
                let mut moved = hosted.state.head.moves.buckets.values();
                moved.all(|it| it.arrival.is_none() && !it.is_kept)
            });
            process.homes.away().next().is_none() && is_idle
        })
    }

    /// The group that has a client's key, as a host knows it.
    fn group_of(&self, at: usize, key: &Bytes) -> GroupId {
        let process = self.hosts[at].process.as_ref().expect("it is up");
        process.homes.group_of(&place::stored(key))
    }

    /// The groups that have buckets, as a host knows it.
    fn used(&self, at: usize) -> BTreeSet<GroupId> {
        let process = self.hosts[at].process.as_ref().expect("it is up");
        (0..=u8::MAX).map(|bucket| process.homes.home(bucket).1).collect()
    }
}

fn list(world: &mut World, host: usize) -> Vec<Bytes> {
    let (mut keys, mut from) = (Vec::new(), Cursor::at(0));
    loop {
        let limit = SCAN_KEYS_MAX as u32;
        match world.ask(host, Operation::Scan { from, limit }, SOON) {
            Outcome::Page { keys: more, next } => {
                keys.extend(more);
                match next {
                    Some(next) => from = next,
                    None => return keys,
                }
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn groups_are_added_and_removed_and_keep_every_key() {
    let mut world = founded(5, 2);
    let keys = fill(&mut world);
    world.gather(4..6);
    for groups in [4, 1, 3, 0, 2] {
        world.alter_groups(groups);
        assert!(world.run_until(LONG, |world| world.are_placed()), "{groups}: {:?}", world.show());
        let wanted = if groups == 0 { 2 } else { groups };
        for host in [0, 4] {
            assert_eq!(world.used(host).len() as u64, wanted);
            has_all(&mut world, host, &keys);
        }
        let mut listed = list(&mut world, 3);
        listed.sort_unstable();
        let mut all = keys.clone();
        all.sort_unstable();
        assert_eq!(listed, all, "each key is listed once");
    }
}

/// A host is lost and comes back at some moment of the moves; all are lost at another.
#[test]
fn moves_go_on_after_hosts_have_stopped_at_any_moment() {
    for (round, ms) in [20, 90, 170, 260, 400, 700, 1100, 1600].into_iter().enumerate() {
        let mut world = founded(3, 1);
        let keys = fill(&mut world);
        world.alter_groups(3);
        world.run(Span::millis(ms));
        let victims: Vec<usize> =
            if round % 2 == 0 { [round % 3].into() } else { (0..3).collect() };
        victims.iter().for_each(|at| world.crash(*at));
        world.run(Span::millis(300));
        victims.iter().for_each(|at| world.restart(*at));
        assert!(world.run_until(LONG, |world| world.are_placed()), "{ms}: {:?}", world.show());
        assert_eq!(world.used(1).len(), 3);
        (0..3).for_each(|at| has_all(&mut world, at, &keys));
    }
}

#[test]
fn listings_tell_each_key_once_while_buckets_move() {
    let mut world = founded(3, 1);
    let keys: BTreeSet<Bytes> = fill(&mut world).into_iter().collect();
    for groups in [3, 1, 2] {
        world.alter_groups(groups);
        for _ in 0..60 {
            let listed = list(&mut world, 1);
            let told: BTreeSet<Bytes> = listed.iter().cloned().collect();
            assert_eq!((listed.len(), told.len()), (keys.len(), keys.len()), "{groups}");
            assert_eq!(told, keys);
            world.run(Span::millis(20));
        }
        assert!(world.run_until(LONG, |world| world.are_placed()), "{groups}");
    }
}

/// Numbers are added to while their buckets move to and fro over bad links: each once.
#[test]
fn what_is_asked_once_is_done_once_though_its_bucket_moves() {
    let mut world = founded(3, 1);
    world.loss_percent = 10;
    let key = |number: usize| Bytes::from(std::format!("n{number}"));
    let (mut sums, mut may) = ([0_i64; 4], [0_i64; 4]);
    for round in 0..120_usize {
        if round % 20 == 0 {
            world.alter_groups([3, 1, 2][round / 20 % 3]);
        }
        let add = Item::Change { key: key(round % 4), change: Change::Add(1) };
        match world.ask(round % 3, transact(Vec::from([add])), Span::secs(8)) {
            Outcome::Refused(_) => may[round % 4] += 1,
            _ => sums[round % 4] += 1,
        }
    }
    world.loss_percent = 0;
    assert!(world.run_until(LONG, |world| world.are_placed()), "{:?}", world.show());
    for number in 0..4 {
        let got = world.ask(1, Operation::get(key(number)), SOON);
        let Outcome::Values { .. } = &got else { panic!("{got:?}") };
        let has = |sum: i64| got == Outcome::value(Some(std::format!("{sum}").into()));
        let fits = (sums[number]..=sums[number] + may[number]).any(has);
        assert!(fits, "{got:?} is not {} and up to {} more", sums[number], may[number]);
    }
    assert!(sums.iter().sum::<i64>() > 60, "most are done: {sums:?}");
}

/// Two keys are read, each at its group. One answer is late, and by then both keys are of that
/// group, and were set together.
#[test]
fn what_was_read_at_two_groups_is_checked_though_it_is_all_of_one_by_now() {
    let mut world = founded(3, 2);
    let leader = world.leader(GroupId(1)).expect("somebody leads");
    let (host, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let of = |group| {
        let mut names = (0..).map(|number: u32| Bytes::from(std::format!("k{number}")));
        names.find(|name| world.group_of(host, name) == group)
    };
    let keys = [of(GroupId(1)), of(GroupId(2))].map(|name| name.expect("there are many"));
    let both = |value: &str| {
        let put = |key: &Bytes| Item::Put {
            key: key.clone(),
            value: Bytes::copy_from_slice(value.as_bytes()),
            expiry: Expiry::Never,
        };
        transact(keys.iter().map(put).collect())
    };
    assert!(matches!(world.ask(other, both("0"), SOON), Outcome::Transacted(_)));
    world.take(move |_, to, message| {
        to == host && matches!(message, Message::Told { group: GroupId(1), .. })
    });
    let reads = keys.iter().map(|key| Item::Get { key: key.clone() }).collect();
    let ticket = world.request(host, transact(reads), LONG);
    world.run(Span::millis(100));
    world.alter_groups(1);
    assert!(world.run_until(LONG, |world| world.are_placed()), "{:?}", world.show());
    assert!(matches!(world.ask(other, both("1"), SOON), Outcome::Transacted(_)));
    world.taken();
    let is_it = |(_, of, _): &&(_, Ticket, Outcome)| *of == ticket;
    assert!(world.run_until(SOON, |world| world.answers.iter().any(|it| is_it(&it))));
    let told = world.answers.iter().find(is_it).map(|(_, _, outcome)| outcome.clone());
    let one = || ItemOutcome::Value(Some(Bytes::from_static(b"1")));
    assert_eq!(told, Some(Outcome::Transacted(Vec::from([one(), one()]))));
}
