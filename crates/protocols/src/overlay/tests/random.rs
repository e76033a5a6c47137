//! Random faults of every kind; when they end, all hosts believe the same, and the truth.

use super::world::{World, node};
use quorate_kernel::operation::Control;
use quorate_kernel::ring::Standing;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use std::vec::Vec;

fn disturb(world: &mut World, rng: &mut Rng) {
    let host = rng.below(world.len() as u64) as usize;
    match rng.below(12) {
        0..=2 if world.is_up(host) => world.crash(host),
        3..=5 if !world.is_up(host) => world.start(host),
        6 => world.freeze(host, Span::millis(rng.between(100, 15_000))),
        7 => {
            let salt = rng.next();
            world.partition(|host| (salt >> (host % 64)) as u8 & 1);
        }
        8 => world.partition(|_| 0),
        9 => world.loss_ppm = rng.below(200_000) as u32,
        10 => {
            let other = rng.below(world.len() as u64) as usize;
            world.cut.insert((host, other));
        }
        11 if world.len() < 30 => world.add(&[host]),
        _ => world.cut.clear(),
    }
    if rng.below(10) == 0 && world.is_up(host) {
        let target = node(rng.below(world.len() as u64) as usize);
        let undo = rng.below(2) == 0;
        let control = match rng.below(8) {
            0 => Control::Remove { node: target, force: false },
            _ => Control::Drain { node: target, undo, replicas: 3 },
        };
        world.order(host, control);
    }
}

/// Every host that has not left knows all, in their present start, and suspects nobody.
fn is_agreed(world: &World) -> bool {
    let standing = |other| world.sees(other, other).map(|(standing, _)| standing);
    let has_left = |other| standing(other) == Some(Standing::Left);
    (0..world.len()).filter(|host| !has_left(*host)).all(|host| {
        (0..world.len()).all(|other| match world.sees(host, other) {
            Some((Standing::Left, _)) => has_left(other),
            Some((seen, is_suspected)) => {
                !is_suspected
                    && Some(seen) == standing(other)
                    && world.start_seen(host, other) == world.start_seen(other, other)
            }
            None => false,
        })
    })
}

#[test]
fn when_faults_end_everybody_believes_the_truth() {
    for seed in 100..112 {
        let mut rng = Rng::new(seed);
        let mut world = World::founded(seed, 12);
        for _ in 0..60 {
            disturb(&mut world, &mut rng);
            let span = Span::millis(rng.between(100, 4000));
            world.run(span);
        }
        world.loss_ppm = 0;
        world.cut.clear();
        world.partition(|_| 0);
        let down: Vec<usize> = (0..world.len()).filter(|host| !world.is_up(*host)).collect();
        down.into_iter().for_each(|host| world.start(host));
        let took = world.until(Span::secs(120), is_agreed);
        assert!(took.is_some_and(|took| took.0 <= Span::secs(60).0), "seed {seed}: {took:?}");
    }
}
