//! Random elections whose next primaries are copying the state, slowly.

use super::node::{GROUP, Level};
use super::random::seeds;
use super::world::{Setup, World};
use crate::vsr::tests::calm::FEW;
use crate::vsr::{Status, ViewNumber};
use quorate_kernel::time::Span;
use std::string::ToString;
use std::vec::Vec;

/// Whether a member is to lead the view that has begun, and copies the state.
fn is_met(world: &World) -> bool {
    let up = world.nodes.iter().filter_map(|node| node.replica.as_ref());
    let mut copying = up.filter(|replica| replica.install.is_some());
    copying.any(|it| it.status() == Status::ViewChange && it.known_primary() == Some(it.me))
}

/// Time passes; whether such an election was met.
fn pass(world: &mut World, ms: u64) -> bool {
    let mut has_met = false;
    for _ in 0..ms.div_ceil(5) {
        world.run(Span::millis(5));
        has_met |= is_met(world);
    }
    has_met
}

/// The one that serves, and who leads after it.
fn leaders(world: &World) -> Option<(usize, usize)> {
    let first = world.serving()?;
    let replica = world.replica(first);
    let ViewNumber { epoch, view } = replica.view();
    let next = ViewNumber { epoch, view: view + 1 };
    let next = replica.configuration().primary(GROUP, next)?;
    Some((first, next.0 as usize - 1))
}

/// Again and again the next to lead lags, and begins to copy; one other misses what is committed
/// last; the first dies. How often an election has met a copy.
fn run(seed: u64) -> usize {
    let (spares, clients, jitter) = (0, 8, Span::millis([2, 10][seed as usize % 2]));
    let setup = Setup { seed, members: 5, spares, level: Level::Sync, kept: FEW, clients, jitter };
    let mut world = World::new(setup);
    world.trace = std::env::var("VSR_SEED")
        .ok()
        .filter(|wanted| *wanted == seed.to_string())
        .map(|_| Vec::new());
    world.slow_pages = Span::millis([100, 200, 300][seed as usize / 2 % 3]);
    world.run(Span::millis(400));
    let mut met = 0;
    for _ in 0..12 {
        let Some((first, next)) = leaders(&world) else {
            pass(&mut world, 100);
            continue;
        };
        world.side[next] = 1;
        let away = world.rng.between(250, 500);
        pass(&mut world, away);
        world.side.fill(0);
        let copying = world.rng.between(10, 200);
        pass(&mut world, copying);
        let others: Vec<usize> = (0..5).filter(|node| ![first, next].contains(node)).collect();
        let lacking = others[world.rng.below(3) as usize];
        world.deaf.insert((first, lacking));
        let missed = world.rng.between(5, 40);
        pass(&mut world, missed);
        if world.is_up(first) {
            world.crash(first);
        }
        if world.rng.below(4) > 0 && world.is_up(next) {
            // Any member may be the source afterwards.
            world.crash(next);
            world.start(next);
        }
        let waits = world.rng.between(600, 1500);
        met += usize::from(pass(&mut world, waits));
        world.deaf.clear();
        for node in 0..5 {
            if !world.is_up(node) {
                world.start(node);
            }
        }
        let calm = world.rng.between(200, 500);
        pass(&mut world, calm);
    }
    super::random::end(&mut world);
    met
}

/// The last two seeds have found a primary that led with a log that nobody had chosen.
#[test]
fn one_log_where_the_next_primary_copies() {
    let met: usize = seeds(4).chain([16, 21]).map(run).sum();
    std::println!("{met} elections have met a copy");
    assert!(met > 3, "{met} elections have met a copy");
}
