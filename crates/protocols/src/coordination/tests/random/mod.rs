//! Random schedules: hosts stop and start, frames are lost, late, and come twice, links are cut in
//! one direction or both, and clients go from host to host with their sessions.
//!
//! | file | what it holds |
//! |---|---|
//! | `customers.rs` | the clients |
//! | `replay.rs` | the log, executed anew |
//! | `followers.rs` | a model of what clients follow |
//! | `judge.rs` | what must hold of all that clients were told |

mod customers;
mod followers;
mod judge;
mod replay;

use super::world::{World, settings};
use customers::Customers;
use judge::{Judged, judge};
use quorate_kernel::process::Process;
use quorate_kernel::ring::Standing;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use std::env;

/// One schedule.
fn run_seed(seed: u64, durability: Durability) -> Judged {
    let mut rng = Rng::new(seed ^ 0x5eed);
    // One of less than three that forgets is too many.
    let least = if durability == Durability::Sync { 1 } else { 3 };
    let (founders, more) = (rng.between(least, 5), rng.between(0, 2));
    let world = World::new(seed, founders + more, settings(founders, durability));
    run(seed, rng, world, |_, _| {}).0
}

/// One schedule in which hosts answer what sessions read.
fn run_here(seed: u64, durability: Durability) -> Judged {
    let mut rng = Rng::new(seed ^ 0x4e4e);
    let least = if durability == Durability::Sync { 1 } else { 3 };
    let (founders, more) = (rng.between(least, 5), rng.between(0, 2));
    let mut settings = settings(founders, durability);
    settings.session_reads = true;
    run(seed, rng, World::new(seed, founders + more, settings), |_, _| {}).0
}

/// One schedule in which hosts join, leave and fail, too; how often members have changed.
fn run_seats(seed: u64) -> (Judged, usize) {
    let mut rng = Rng::new(seed ^ 0x5ea7);
    let founders = rng.between(1, 4);
    let hosts = founders + rng.between(1, 3);
    let mut settings = settings(founders, Durability::Sync);
    settings.replicas = 3;
    settings.failed = Span::millis(500);
    let mut world = World::new(seed, hosts, settings);
    world.gather(1..founders + 1);
    let mut known = founders;
    run(seed, rng, world, |world, rng| match rng.below(40) {
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
        _ => {}
    })
}

fn run(
    seed: u64,
    mut rng: Rng,
    mut world: World,
    mut also: impl FnMut(&mut World, &mut Rng),
) -> (Judged, usize) {
    let hosts = world.hosts.len() as u64;
    let is_sync = world.settings.durability == Durability::Sync;
    let mut customers = Customers::new(rng.between(2, 7), seed);
    let mut down = None;
    for _ in 0..rng.between(250, 500) {
        world.run(Span::micros(rng.between(200, 30_000)));
        customers.hear(&world);
        (0..rng.between(0, 2)).for_each(|_| customers.step(&mut world));
        also(&mut world, &mut rng);
        match rng.below(160) {
            // What is only in memory is lost with a majority: one at a time, and it comes back.
            0 | 1 if down.is_none() || is_sync => {
                let at = rng.below(hosts) as usize;
                if world.is_up(at) {
                    customers.lose(&world, at);
                    world.crash(at);
                    down = Some(at);
                    if rng.below(2) == 0 {
                        world.unlink(at);
                    }
                }
            }
            2..8 => {
                if let Some(at) = (0..hosts as usize).find(|at| !world.is_up(*at)) {
                    world.restart(at);
                }
                if !is_sync && down.is_some() && world.cut.is_empty() {
                    assert!(world.run_until(Span::secs(60), is_whole), "it gets all back");
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
            10 => world.isolate(rng.below(hosts) as usize),
            11 => _ = world.leader().map(|leader| world.isolate(leader)),
            12..16 => world.cut.clear(),
            16 => world.loss_percent = rng.below(15),
            17 => world.double_percent = rng.below(15),
            18 => world.delay_max = Span::millis(rng.between(1, 60)),
            _ => {}
        }
    }
    heal(&mut world, &mut customers);
    let changes = world.logs.values().flat_map(|log| log.values());
    let changes = changes.filter(|entry| entry.is_none()).count();
    (judge(&world, &customers), changes)
}

/// Whether every host that is up has all that it held.
fn is_whole(world: &mut World) -> bool {
    let mut there = world.hosts.iter().flat_map(|host| &host.process);
    there.all(|process| process.parts().iter().all(|part| !part.owes))
}

/// Everything works from now on: whoever waits is answered.
fn heal(world: &mut World, customers: &mut Customers) {
    world.mend();
    world.delay_max = Span::millis(2);
    for at in 0..world.hosts.len() {
        if !world.is_up(at) {
            world.restart(at);
        }
    }
    for at in 0..world.ring.len() {
        world.suspect(at, false);
    }
    // Longer than any deadline, and shorter than the time-outs of some.
    world.run(Span::secs(8));
    customers.hear(world);
    for at in 0..world.hosts.len() {
        assert!(world.is_there(at, "/"), "host {at} serves");
    }
    world.run(Span::secs(1));
    customers.hear(world);
}

/// How many seeds a test runs: `LANE_SEEDS` times as many if that is in the environment, from
/// `LANE_FROM` on.
fn seeds(many: u64) -> core::ops::Range<u64> {
    let number = |name| env::var(name).ok().map(|text| text.parse().expect("it is a number"));
    let (factor, from): (u64, u64) =
        (number("LANE_SEEDS").unwrap_or(1), number("LANE_FROM").unwrap_or(0));
    from..from + factor * many
}

/// Runs one schedule after the other, and says which seed one was that fails.
fn all(many: u64, mut run: impl FnMut(u64) -> Judged) -> (Judged, usize) {
    struct Says(u64);
    impl Drop for Says {
        fn drop(&mut self) {
            if std::thread::panicking() {
                std::eprintln!("seed {}", self.0);
            }
        }
    }
    let mut all = Judged::default();
    let seeds = seeds(many);
    for seed in seeds.clone() {
        let says = Says(seed);
        let Judged { reads, writes, events, here, older } = run(seed);
        drop(says);
        all.reads += reads;
        all.writes += writes;
        all.events += events;
        all.here += here;
        all.older += older;
    }
    (all, (seeds.end - seeds.start) as usize)
}

#[test]
fn every_promise_is_kept_whatever_fails() {
    let (judged, count) = all(12, |seed| run_seed(seed, Durability::Sync));
    let Judged { reads, writes, events, older, .. } = judged;
    assert_eq!(older, 0, "reads are linearizable");
    assert!(reads > 40 * count, "{reads} reads");
    assert!(writes > 40 * count, "{writes} writes");
    assert!(events > 20 * count, "{events} events");
}

#[test]
fn one_host_at_a_time_may_forget_what_is_only_in_memory() {
    for durability in [Durability::Memory, Durability::Periodic { every_ms: 50 }] {
        let (judged, count) = all(3, |seed| run_seed(seed, durability));
        assert!(judged.writes > 20 * count, "{judged:?}");
    }
}

#[test]
fn members_change_and_every_promise_is_kept() {
    let mut changes = 0;
    let (judged, count) = all(10, |seed| {
        let (judged, changed) = run_seats(seed);
        changes += changed;
        judged
    });
    assert!(judged.writes > 20 * count, "{judged:?}");
    assert!(changes > count, "members change: {changes}");
}

#[test]
fn hosts_answer_what_sessions_read_and_each_has_its_order() {
    let (judged, count) = all(10, |seed| run_here(seed, Durability::Sync));
    let Judged { reads, writes, events, here, older } = judged;
    assert!(reads > 40 * count, "{reads} reads");
    assert!(writes > 40 * count, "{writes} writes");
    assert!(events > 20 * count, "{events} events");
    assert!(here > count, "{here} reads are answered at once");
    assert!(older > 0, "some show less than others know");
}

#[test]
fn hosts_that_forget_answer_nothing_that_was_not_committed() {
    for durability in [Durability::Memory, Durability::Periodic { every_ms: 50 }] {
        let (judged, count) = all(3, |seed| run_here(seed, durability));
        assert!(judged.writes > 20 * count, "{judged:?}");
    }
}
