//! Frames that no correct peer sends: real ones with odd contents and a checksum that fits.
//!
//! A frame comes from somebody who proved to know the cluster's secret, so it need not be expected
//! to be hostile. But whatever it says, it may at worst be refused: a host must not end by it. What
//! a forged frame does to the data is another matter, so no judge looks.

use bytes::{Bytes, BytesMut};
use quorate_kernel::ids::{Incarnation, LaneId};
use quorate_kernel::limits::HEADER_BYTES_MAX;
use quorate_kernel::rng::Rng;
use quorate_kernel::wire::{Received, TAILS, frame_of};
use std::collections::BTreeMap;

/// The scenarios whose frames are forged unless others are named: together they have every lane,
/// and every kind of change and of durability.
pub const WORLDS: [&str; 7] = [
    "both-moves",
    "both-churn",
    "both-memory",
    "catalog-churn",
    "both-power",
    "memory",
    "shutdown",
];
/// How many frames are kept, to put parts of them into others.
const KEPT: usize = 64;
/// The longest tail that is kept or changed.
const TAIL_BYTES_MAX: usize = 64 * 1024;
/// Numbers at the edges of their kinds, in the form in which heads have them.
const EDGES: [&[u8]; 8] = [
    &[0],
    &[1],
    &[0x7f],
    &[0xff, 0x01],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01],
    &[0xff, 0xff, 0x03],
];

/// The parts of a frame that a message is made of.
#[derive(Clone)]
struct Parts {
    lane: LaneId,
    head: Bytes,
    tails: [Bytes; TAILS],
}

/// Forges frames of real ones.
pub struct Forger {
    rng: Rng,
    /// Of how many frames one is followed by a forged one.
    one_in: u64,
    kept: Vec<Parts>,
    /// How many were forged, of each lane.
    pub forged: BTreeMap<LaneId, u64>,
}

impl Forger {
    /// One that follows every so manieth frame by a forged one.
    #[must_use]
    pub fn new(seed: u64, one_in: u64) -> Forger {
        let rng = Rng::new(seed).fork(0xf0_4e);
        Forger { rng, one_in: one_in.max(1), kept: Vec::new(), forged: BTreeMap::new() }
    }

    /// A frame that follows this one, if one does: between the same two nodes.
    pub fn follow(&mut self, bytes: &Bytes) -> Option<Bytes> {
        let real = Received::decode(bytes.clone()).ok()?;
        let (source, target) = (real.source, real.target);
        self.forge(real, source, target)
    }

    /// A frame that answers this one, if one does: the other way, in the name of `me`.
    pub fn answer(&mut self, bytes: &Bytes, me: Incarnation) -> Option<Bytes> {
        let real = Received::decode(bytes.clone()).ok()?;
        let target = real.source;
        self.forge(real, me, target)
    }

    fn forge(&mut self, real: Received, source: Incarnation, target: Incarnation) -> Option<Bytes> {
        let (head, tails) = real.message.parts();
        if tails.iter().any(|tail| tail.len() > TAIL_BYTES_MAX) {
            return None;
        }
        let mut parts = Parts { lane: real.lane, head, tails };
        self.keep(parts.clone());
        if self.rng.below(self.one_in) != 0 {
            return None;
        }
        for _ in 0..=self.rng.below(3) {
            self.change(&mut parts);
        }
        let Parts { lane, head, tails } = parts;
        if head.len() > HEADER_BYTES_MAX {
            return None;
        }
        *self.forged.entry(lane).or_default() += 1;
        Some(frame_of(lane, source, target, head, tails))
    }

    fn keep(&mut self, parts: Parts) {
        if self.kept.len() < KEPT {
            self.kept.push(parts);
        } else {
            let at = self.rng.below(KEPT as u64) as usize;
            self.kept[at] = parts;
        }
    }

    fn change(&mut self, parts: &mut Parts) {
        let other = self.rng.below(self.kept.len() as u64) as usize;
        let other = self.kept[other].clone();
        match self.rng.below(10) {
            0 => *parts = other,
            1 if other.lane == parts.lane => parts.head = other.head,
            2 if other.lane == parts.lane => {
                let at = self.rng.below(TAILS as u64) as usize;
                parts.tails[at] = other.tails[at].clone();
            }
            3 => {
                let at = self.rng.below(TAILS as u64) as usize;
                parts.tails[at] = self.changed(&parts.tails[at].clone());
            }
            _ => parts.head = self.changed(&parts.head.clone()),
        }
    }

    /// The bytes with one thing changed.
    fn changed(&mut self, bytes: &Bytes) -> Bytes {
        if bytes.is_empty() {
            return Bytes::copy_from_slice(
                &[self.rng.next() as u8; 9][..self.rng.below(10) as usize],
            );
        }
        let mut new = BytesMut::from(&bytes[..]);
        let at = self.rng.below(bytes.len() as u64) as usize;
        match self.rng.below(8) {
            0 => new[at] ^= 1 << self.rng.below(8),
            1 => new[at] = self.rng.next() as u8,
            2 => new[at] = new[at].wrapping_add(1),
            3 => new[at] = new[at].wrapping_sub(1),
            4 => new.truncate(at),
            5 => {
                let piece = self.rng.below((bytes.len() - at) as u64 + 1) as usize;
                new.extend_from_slice(&bytes[at..at + piece]);
            }
            6 => drop(new.split_off(at)),
            _ => {
                // A number in the place of another one.
                let length = bytes[at..].iter().take_while(|byte| **byte & 0x80 != 0).count() + 1;
                let edge = EDGES[self.rng.below(EDGES.len() as u64) as usize];
                let rest = &bytes[(at + length).min(bytes.len())..];
                new.truncate(at);
                new.extend_from_slice(edge);
                new.extend_from_slice(rest);
            }
        }
        new.freeze()
    }
}
