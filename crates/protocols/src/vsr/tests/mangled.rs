//! A peer gone wrong: of what it sends, some is damaged on its way, number by number. Its group may
//! lose what it promised, for it believes members; no node may stop.

use super::calm::FEW;
use super::node::Level;
use super::wire;
use super::world::{Setup, World, ids};
use crate::vsr::Message;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use std::vec::Vec;

/// Who sends what is damaged, and how often.
#[derive(Clone, Copy)]
pub struct Faulty {
    pub node: usize,
    pub percent: u64,
}

/// A damaged message, if it still can be read: a number in it is another one, or some byte is.
pub fn mangled(message: &Message, rng: &mut Rng) -> Option<Message> {
    let (mut head, mut tail) = wire::pieces(message);
    for _ in 0..=rng.below(2) {
        if !tail.is_empty() && rng.below(6) == 0 {
            let at = rng.below(tail.len() as u64) as usize;
            tail[at] = rng.below(256) as u8;
            continue;
        }
        // The first byte says which message it is.
        let begin = 1 + rng.below(head.len() as u64 - 1) as usize;
        let length = 1 + head[begin..].iter().take_while(|byte| **byte >= 128).count();
        let end = head.len().min(begin + length);
        let old = u64::from(head[begin]);
        let big = [u64::MAX, u64::MAX - 1, 1 << 62, (1 << 32) + 2, 1 << 32, 300];
        let new = match rng.below(4) {
            0 => big[rng.below(big.len() as u64) as usize],
            1 => rng.below(8),
            2 => old + 1,
            _ => old.saturating_sub(1),
        };
        let new = postcard::to_allocvec(&new).expect("plain data");
        head.splice(begin..end, new);
    }
    wire::read(&head, &tail).ok()
}

/// Everything that the group does, with one peer gone wrong; answers how often it was refused.
fn run(seed: u64, level: Level) -> usize {
    let (members, spares, clients) = (3, 2, 3);
    let setup = Setup { seed, members, spares, level, kept: FEW, clients, jitter: Span::millis(3) };
    let mut world = World::new(setup);
    world.trace = std::env::var("VSR_SEED")
        .ok()
        .filter(|wanted| *wanted == std::format!("{seed}"))
        .map(|_| Vec::new());
    world.run(Span::millis(300));
    let node = seed as usize % 4;
    world.faulty = Some(Faulty { node, percent: [3, 15, 50][seed as usize % 3] });
    for step in 0..40 {
        let node = world.rng.below(world.nodes.len() as u64) as usize;
        match world.rng.below(8) {
            0 if world.is_up(node) => {
                world.crash(node);
                world.start(node);
            }
            1 => {
                let wish = ids(if step % 2 == 0 { &[1, 2, 3, 4] } else { &[1, 2, 3] });
                for node in 0..world.nodes.len() {
                    world.turn(node, |replica, _| _ = replica.wish(&wish));
                }
            }
            2 => world.side[node] ^= 1,
            3 => world.side.fill(0),
            _ => {}
        }
        world.run(Span::millis(60));
    }
    world.refused
}

#[test]
fn a_peer_gone_wrong_stops_no_node() {
    for level in [Level::Sync, Level::Memory, Level::Periodic] {
        let runs: Vec<usize> = super::random::seeds(30).map(|seed| run(seed, level)).collect();
        let met = runs.iter().filter(|refused| **refused > 0).count();
        assert!(met * 2 > runs.len(), "{runs:?}: what is damaged is refused and counted");
    }
}
