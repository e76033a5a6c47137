//! Random schedules: hosts stop and start, frames are lost and late, links are cut in one direction
//! or both; judged by strict serializability.

mod customers;
mod judge;

use super::world::{World, settings};
use crate::serializable::lane::groups::hosted::Hosted;
use customers::{Customers, KEYS, key};
use judge::judge_all;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::Process;
use quorate_kernel::ring::Standing;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use std::env;

/// One schedule; how many operations were judged, and how many listings were done.
pub fn run_seed(seed: u64, durability: Durability) -> (usize, usize) {
    let mut rng = Rng::new(seed ^ 0x5eed);
    let (hosts, groups) = (rng.between(3, 5), rng.between(1, 5));
    let world = World::new(seed, hosts, settings(hosts, 3, groups, durability));
    let (judged, listings, _) = run(seed, rng, world, |_, _| {});
    (judged, listings)
}

/// One schedule in which hosts join, leave and fail, too; how many operations were judged, and how
/// often members have changed.
fn run_seats(seed: u64) -> (usize, u64) {
    let mut rng = Rng::new(seed ^ 0x5ea7);
    let (founders, groups) = (rng.between(1, 4), rng.between(1, 4));
    let hosts = founders + rng.between(1, 3);
    let mut settings = settings(founders, 3, groups, Durability::Sync);
    settings.failed = Span::millis(500);
    let mut world = World::new(seed, hosts, settings);
    world.gather(1..founders + 1);
    let mut known = founders;
    let (judged, _, changes) = run(seed, rng, world, |world, rng| match rng.below(40) {
        0 if known < hosts => {
            known += 1;
            world.gather(known..known + 1);
        }
        1 | 2 => {
            let at = rng.below(known) as usize;
            let staying = world.ring.iter().filter(|host| host.standing == Standing::Up).count();
            let is_up = world.ring[at].standing == Standing::Up;
            if !is_up || staying > 1 {
                world.stand(at, if is_up { Standing::Leaving } else { Standing::Up });
            }
        }
        3 => {
            let at = rng.below(known) as usize;
            world.suspect(at, !world.is_up(at));
        }
        4 if rng.below(3) == 0 => world.alter(rng.between(1, 6) as usize),
        _ => {}
    });
    (judged, changes)
}

/// One schedule in which buckets move between groups that come and go, and seats are altered; how
/// many operations were judged, and how often a bucket was taken.
fn run_moves(seed: u64) -> (usize, u64) {
    let mut rng = Rng::new(seed ^ 0xb0c4e7);
    let (hosts, groups) = (rng.between(3, 5), rng.between(1, 3));
    let mut world = World::new(seed, hosts, settings(hosts, 3, groups, Durability::Sync));
    world.gather(1..hosts + 1);
    let mut taken = 0;
    let (judged, _, _) = run(seed, rng, world, |world, rng| {
        match rng.below(60) {
            0 | 1 => world.alter_groups(rng.between(1, 5)),
            2 => world.alter(rng.between(1, 5) as usize),
            _ => {}
        }
        let there = world.hosts.iter().flat_map(|host| &host.process);
        let versions = there.flat_map(|it| (0..=u8::MAX).map(|bucket| it.homes.home(bucket).0));
        taken = taken.max(versions.max().unwrap_or_default());
    });
    (judged, taken)
}

/// Runs a schedule to its end; how many operations were judged, how many listings were done, and
/// how often members have changed.
fn run(
    seed: u64,
    mut rng: Rng,
    mut world: World,
    mut also: impl FnMut(&mut World, &mut Rng),
) -> (usize, usize, u64) {
    let (hosts, durability) = (world.hosts.len() as u64, world.settings.durability);
    let mut customers = Customers::new(rng.between(2, 7));
    let is_sync = durability == Durability::Sync;
    let mut down = None;
    for _ in 0..rng.between(250, 500) {
        let span = Span::micros(rng.between(200, 30_000));
        world.run(span);
        customers.hear(&mut world);
        (0..rng.between(0, 2)).for_each(|_| customers.step(&mut world));
        also(&mut world, &mut rng);
        match rng.below(160) {
            // What is only in memory is lost with a majority: one at a time, and it comes back.
            0 | 1 if down.is_none() || is_sync => {
                let at = rng.below(hosts) as usize;
                if world.is_up(at) {
                    world.crash(at);
                    customers.lose(at);
                    down = Some(at);
                    if rng.below(2) == 0 {
                        world.unlink(at);
                    }
                }
            }
            2..8 => {
                let stopped = (0..hosts as usize).find(|at| !world.is_up(*at));
                if let Some(at) = stopped {
                    world.restart(at);
                }
                if !is_sync && down.is_some() && world.cut.is_empty() {
                    assert!(world.run_until(Span::secs(60), is_whole), "it gets all back");
                    customers.hear(&mut world);
                    down = None;
                }
            }
            8 | 9 => {
                let (one, other) = (rng.below(hosts) as usize, rng.below(hosts) as usize);
                world.cut.insert((one, other));
                if rng.below(2) == 0 {
                    world.cut.insert((other, one));
                }
            }
            10 => {
                let alone = rng.below(hosts) as usize;
                for other in (0..hosts as usize).filter(|other| *other != alone) {
                    world.cut.extend([(alone, other), (other, alone)]);
                }
            }
            11..16 => world.cut.clear(),
            16 => world.loss_percent = rng.below(15),
            17 => world.delay_max = Span::millis(rng.between(1, 60)),
            _ => {}
        }
    }
    heal(seed, &mut world, &mut customers);
    match judge_all(&world, &customers.history) {
        Ok(judged) => (judged, customers.listings, changes(&world)),
        Err(why) => panic!("seed {seed}: {why}"),
    }
}

/// Whether every host that is up has all that it held.
fn is_whole(world: &mut World) -> bool {
    let mut there = world.hosts.iter().flat_map(|host| &host.process);
    there.all(|process| process.parts().iter().all(|part| !part.owes))
}

/// How often members have changed.
fn changes(world: &World) -> u64 {
    let entries = world.logs.values().flat_map(|log| log.values());
    entries.filter(|entry| entry.is_none()).count() as u64 - world.logs.len() as u64
}

/// Everything works from now on: whoever waits is answered, and every key can be written and read.
fn heal(seed: u64, world: &mut World, customers: &mut Customers) {
    world.cut.clear();
    world.loss_percent = 0;
    world.delay_max = Span::millis(2);
    for at in 0..world.hosts.len() {
        if !world.is_up(at) {
            world.restart(at);
        }
    }
    for at in 0..world.ring.len() {
        world.suspect(at, false);
    }
    let is_over = world.run_until(Span::secs(20), |world| {
        customers.hear(world);
        customers.are_idle()
    });
    assert!(is_over, "who waits is answered by its deadline");
    let are_placed = world.run_until(Span::secs(90), |world| world.are_placed());
    assert!(are_placed, "seed {seed}: {:#?}", world.show());
    for number in 0..KEYS {
        let host = world.rng.below(world.hosts.len() as u64) as usize;
        let outcome = world.ask(host, Operation::get(key(number)), Span::secs(10));
        let shown = || world.show();
        assert!(
            matches!(outcome, Outcome::Values { .. }),
            "seed {seed}: {outcome:?} {:#?}",
            shown()
        );
        let last = Operation::put(key(number), std::format!("last{number}").into());
        let outcome = world.ask(host, last, Span::secs(10));
        assert!(matches!(outcome, Outcome::Written { .. }), "{outcome:?}");
    }
    // What was given up is asked for until it is known, and then nothing is in hand.
    let is_quiet = world.run_until(Span::secs(30), |world| {
        world.hosts.iter().flat_map(|host| &host.process).all(|it| {
            let is_done = |of: &Hosted| of.state.head.pending.is_empty();
            it.clients.len() == 0 && it.groups.values().filter(|it| it.member.leads()).all(is_done)
        })
    });
    assert!(is_quiet, "it becomes known how everything ended");
}

/// How many seeds a test runs: `LANE_SEEDS` times as many if that is in the environment.
fn seeds(many: u64) -> core::ops::Range<u64> {
    let factor = env::var("LANE_SEEDS").ok().map(|text| text.parse().expect("it is a number"));
    0..factor.unwrap_or(1) * many
}

#[test]
fn random_schedules_are_strictly_serializable() {
    let seeds = seeds(4);
    let count = seeds.end as usize;
    let (mut judged, mut listings) = (0, 0);
    for seed in seeds {
        let (more, listed) = run_seed(seed, Durability::Sync);
        judged += more;
        listings += listed;
    }
    assert!(judged > 40 * count, "operations are done: {judged}");
    assert!(listings > count, "listings are done: {listings}");
}

#[test]
fn one_host_at_a_time_may_forget_what_is_only_in_memory() {
    for durability in [Durability::Memory, Durability::Periodic { every_ms: 50 }] {
        let seeds = seeds(2);
        let count = seeds.end as usize;
        let judged: usize = seeds.map(|seed| run_seed(seed, durability).0).sum();
        assert!(judged > 40 * count, "operations are done: {judged}");
    }
}

#[test]
fn members_change_and_every_promise_is_kept() {
    let seeds = seeds(4);
    let count = seeds.end;
    let (mut judged, mut changes) = (0, 0);
    for seed in seeds {
        let (more, changed) = run_seats(seed);
        judged += more as u64;
        changes += changed;
    }
    assert!(judged > 40 * count, "operations are done: {judged}");
    assert!(changes > 4 * count, "members change: {changes}");
}

#[test]
fn buckets_move_and_every_promise_is_kept() {
    let seeds = seeds(6);
    let count = seeds.end;
    let (mut judged, mut moved) = (0, 0);
    for seed in seeds {
        let (more, taken) = run_moves(seed);
        judged += more as u64;
        moved += taken;
    }
    assert!(judged > 40 * count, "operations are done: {judged}");
    assert!(moved > count, "buckets move: {moved}");
}
